"""Functions of sizes and parameters become expressions that give the same values, or a mistake at their line."""

# ruff: noqa: N803, RUF005  # parameters have the names of sizes and macros

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith.autotuning import tracing
from tunesmith.autotuning.tracing import Names, expressions_of
from tunesmith.records import UserError
from tunesmith.spaces.expressions import Expression

PARAMETERS = {"X": [1, 2, 4, 8], "Y": [16, 32], "MODE": ["fast", "slow"], "SHARE": [0.25, 0.5]}
SIZES = {"Rows": [100, 1000], "Columns": [7]}
NAMES = Names(PARAMETERS, SIZES, ("MaxWorkGroupSize",))
STAGES = {1: 10, 2: 20, 4: 30, 8: 40}


def expressions(function, extents=1, is_condition=False, seconds=20.0):
    return expressions_of(function, NAMES, "the grid", seconds, extents, is_condition)


def assignments(**sizes):
    for values in product(*PARAMETERS.values()):
        yield dict(zip(PARAMETERS, values, strict=True)) | {"Rows": 100, "Columns": 7, "MaxWorkGroupSize": 64} | sizes


def evaluated(text, values):
    return Expression.parse(text, "test").evaluate(values)


class Values(dict):
    __getattr__ = dict.__getitem__


NUMBERS = [
    lambda p: p["Rows"] // p["X"],
    lambda p: -(-p.Rows // p.X) + 2 * p.Y - 3,
    lambda p: 7 - p.X % 3 + 1.5 * p.SHARE / 2**p.X,
    lambda p: +p.X - abs(p.X - 5),
    lambda p: math.ceil(p.Rows / (p.X * p.Y)),
    lambda p: math.floor(p.Rows / p.X),
    lambda p: STAGES[p.X] * 2,
    lambda p: 3 if p.MODE == "fast" else min(p.X, 4),
    lambda p: max(p.X, p.Y, 17),
    lambda p: int(math.log2(p.X)) + round(float(p.SHARE)),
    lambda p: len(f"{p.MODE}{p.X}"),
    lambda p: -p.X if p.MODE != "fast" and not p.X > 2 else p.Y,
    lambda p: sum(range(p.X)),
    lambda p: int(np.ceil(np.asarray(p.Y) / 3)),
    lambda p: p.MaxWorkGroupSize // p.X,
    lambda p: 1 if 2 <= p.X <= 4 else 0,
]


@pytest.mark.parametrize("function", NUMBERS)
def test_an_expression_gives_what_its_function_gives(function):
    (text,) = expressions(function)
    for values in assignments():
        assert evaluated(text, values) == function(Values(values)), (text, values)


CONDITIONS = [
    lambda p: p.X * p.Y <= 64,
    lambda p: (p.X * p.Y <= 64 and p.X > 1) or p.Y == 32,
    lambda p: not (p.X > 2 or p.MODE == "slow"),
    lambda p: p.X in (1, 8),
    lambda p: all(value < 20 for value in (p.X, p.Y)),
    lambda p: any(value == 8 for value in (p.X, p.Y)),
    lambda p: p.Rows % p.X == 0 and p.Columns >= p.X,
    lambda p: p.X & 4 == 4 if isinstance(p.X, int) else int(p.X) & 4 == 4,
    lambda p: True,
]


@pytest.mark.parametrize("function", CONDITIONS)
def test_a_condition_holds_where_its_function_does(function):
    (text,) = expressions(function, is_condition=True)
    for values in assignments():
        assert bool(evaluated(text, values)) == bool(function(Values(values))), (text, values)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 50), st.integers(-3, 40), st.sampled_from([0, 1, 5]))
def test_closures_are_traced_with_what_they_hold(factor, limit, step):
    def function(p):
        steps = 0
        value = p.X * factor
        while value > limit and steps < step:
            value, steps = value - p.Y, steps + 1
        return value if steps % 2 else value + steps

    (text,) = expressions(function)
    for values in assignments():
        assert evaluated(text, values) == function(Values(values))


def test_parameters_may_be_named_and_results_be_tuples():
    assert expressions(lambda X, Rows: (Rows // X, X), extents=3) == ("Rows // X", "X")
    assert expressions(lambda X, Rows, factor=2: Rows * factor) == ("Rows * 2",)
    assert expressions(lambda p: (p.X, 2) if p.X > 4 else p.X, extents=3) == ("X", "2 if X > 4 else 1")


def test_conditions_are_written_as_a_person_would():
    assert expressions(lambda p: p.X > 1 and p.Y < 32, is_condition=True) == ("X > 1 and Y < 32",)
    assert expressions(lambda p: p.X > 1 or p.Y < 32, is_condition=True) == ("X > 1 or Y < 32",)
    assert expressions(lambda p: p.X > 0, is_condition=True) == ("X > 0",)


def test_answers_that_no_values_give_lead_nowhere():
    def function(p):
        if p.X == 1:
            return 10
        return 20 if p.X != 1 else STAGES["never"]

    assert expressions(function) == ("10 if X == 1 else 20 if X != 1 else 0",)


def test_an_expression_does_not_depend_on_the_values_that_are_listed():
    def small(p):
        return p.X == 1 or p.Y < 32

    few = Names({"X": [1], "Y": [16]}, SIZES)
    assert expressions(small, is_condition=True) == ("X == 1 or Y < 32",)
    assert expressions_of(small, few, "the grid", 20.0, is_condition=True) == ("X == 1 or Y < 32",)


def test_a_loop_ends_where_the_values_end():
    def halvings(p):
        value, count = p.X, 0
        while value > 1:
            value, count = value // 2, count + 1
        return count

    (text,) = expressions(halvings)
    assert [evaluated(text, {"X": value}) for value in (1, 2, 4, 8)] == [0, 1, 2, 3]


def test_a_size_is_never_taken_for_the_tuned_ones():
    (text,) = expressions(lambda p: p.Rows // 4 if p.Rows % 4 == 0 else p.Rows // 4 + 1)
    assert [evaluated(text, {"Rows": rows}) for rows in (100, 1000, 1001)] == [25, 250, 251]


def test_a_size_that_must_be_known_gives_nothing_elsewhere():
    (text,) = expressions(lambda p: 2 ** math.ceil(math.log2(p.Rows)))
    assert [evaluated(text, {"Rows": rows}) for rows in (100, 1000, 64)] == [128, 1024, 0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p: STAGES[p.X - 1], r"raised KeyError: X - 1, with X = 1"),
        (lambda p: 1 if p.X < 8 else p.X / (p.MODE == "x" or STAGES["none"]), "raised KeyError: 'none', with .*X = 8"),
        (lambda p: p.Q, "there is no Q"),
        (lambda p: p["Q"], "KeyError: 'Q'"),
        (lambda X, Q: X, "has a parameter Q, which is no size and no parameter"),
        (lambda p: "a", "gave a str"),
        (lambda p: None, "gave a NoneType"),
        (lambda p: (), "gave an empty list"),
        (lambda p: (1, 2, 3, 4), "gave 4 numbers; return at most 1"),
        (lambda p: int(p.MaxWorkGroupSize), "needs the value of MaxWorkGroupSize, which the device decides"),
        (lambda p: p.X + [1], "raised TypeError"),
    ],
)
def test_a_mistake_names_the_line_of_the_function(function, message):
    line = function.__code__.co_firstlineno
    with pytest.raises(UserError, match=rf"test_tracing\.py:{line}: the function for the grid .*{message}"):
        expressions(function)


def test_a_function_that_does_not_end_is_left():
    def forever(p):
        while True:
            pass

    with pytest.raises(UserError, match=r"did not end within 0\.2 s; mend the function, or raise `callable_seconds`"):
        expressions(forever, seconds=0.2)


def test_a_function_that_asks_without_end_is_left():
    def asks(p):
        count = 0
        while p.Rows > count:
            count += 1
        return count

    with pytest.raises(UserError, match="asks more than 50 questions about sizes and parameters; write an expression"):
        expressions(asks)


def test_a_function_of_very_many_results_is_left(monkeypatch):
    monkeypatch.setattr(tracing, "MOST_CALLS", 60)

    def bits(p):
        return sum(2**bit for bit in range(20) if p.Rows // 2**bit % 2 == 1)

    with pytest.raises(UserError, match="gives more than 60 different answers; write an expression"):
        expressions(bits)
