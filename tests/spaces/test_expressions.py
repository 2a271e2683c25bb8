"""Expressions in a user's files: their meaning, and that they raise nothing but UserError."""

from __future__ import annotations

import ast
import contextlib
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith.records import UserError
from tunesmith.spaces.expressions import Expression

NAMES = {"M": 100, "N": 7, "WorkGroup": (16, 8, 1), "Edge": "Branch", "Prefetch": True, "ratio": 0.5}


def value(text):
    return Expression.parse(text, "here:1").evaluate(NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("M + 2 * N", 114),
        ("M // N, M % N, -M // N", (14, 2, -15)),
        ("WorkGroup[0] * WorkGroup[1]", 128),
        ("WorkGroup[-1]", 1),
        ("ceil_div(M, WorkGroup[0])", 7),
        ("ceil_div(96, 16)", 6),
        ("round_up(M, 16)", 112),
        ("1 < N <= 7", True),
        ("1 < N < 7", False),
        ("Edge == 'Branch' and not N % 7", True),
        ("Edge in ['ShiftPtr', 'None'] or M == 1", False),
        ("64 if Prefetch else 32", 64),
        ("max(WorkGroup) + min(M, N) + abs(-1) + len(WorkGroup)", 27),
        ("log2(64)", 6.0),
        ("2 ** 10 * ratio", 512.0),
        ("M not in (1, 2)", True),
        (12, 12),
        (" 12 ", 12),
    ],
)
def test_expressions_mean_what_arithmetic_means(text, expected):
    assert value(text) == expected


def test_only_the_terms_that_decide_are_evaluated():
    assert value("N == 7 or 1 // 0 == 1") is True
    assert value("5 if N else 1 // 0") == 5


def test_names_are_those_that_need_a_value():
    assert Expression.parse("min(M, WorkGroup[0]) < len(max) if a else 'b'", "").names == {"M", "WorkGroup", "max", "a"}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "M.real",
        "(lambda: 1)()",
        "[x for x in WorkGroup]",
        "open('f')",
        "len",
        "min(M, default=3)",
        "min(*WorkGroup)",
        "f'{M}'",
        "M := 3",
        "b'x'",
        "None",
        "1j",
        "...",
        "{1: 2}",
        "WorkGroup[0:1]",
        "M is N",
        "~M",
        "M << 3",
        "M @ N",
        "",
        "M +",
        "M; N",
        "9" * 30,
        "1e999",
        "-" * 1500 + "1",
        "(" * 300,
        "+".join("1" * 500),
        "\0",
        "nothing + 1",
        "M // 0",
        "M % 0.0",
        "0 ** -1",
        "(-8) ** 0.5",
        "9 ** 9 ** 9",
        "2.0 ** 99999",
        "1e300 * 1e300",
        "(M ** 9) ** 9 * 0",
        "'x' * 99999999",
        "WorkGroup * 99999999",
        "WorkGroup + WorkGroup",
        "WorkGroup[3]",
        "WorkGroup['a']",
        "Edge[0]",
        "-Edge",
        "Edge < M",
        "M in N",
        "min()",
        "len(M)",
        "log2(0)",
        "ceil_div(M, 0)",
        "ceil_div(1)",
        None,
        [1],
    ],
)
def test_a_forbidden_expression_or_one_without_a_value_is_a_user_error_with_its_location(text):
    with pytest.raises(UserError, match=r"^here:1: "):
        value(text)


def test_integer_takes_whole_numbers_only():
    assert Expression.parse("M / 2", "").integer(NAMES) == 50
    for text, least in (("N / 2", 0), ("-N", 0), ("N - 7", 1), ("Edge", 0), ("WorkGroup", 0)):
        with pytest.raises(UserError):
            Expression.parse(text, "").integer(NAMES, least)


def test_an_expression_travels_to_another_process():
    original = Expression.parse("M // WorkGroup[1]", "file:3")
    copy = pickle.loads(pickle.dumps(original))
    assert copy == original
    assert copy.evaluate(NAMES) == 12


ATOMS = st.sampled_from(
    [*NAMES, "x", "0", "1", "2", "-3", "99999999999999", "1.5", "'a'", "True", "min", "[1, 2]", "()"]
)
SIGNS = ["+", "-", "*", "/", "//", "%", "**", "<", "==", "in", "and", "or", ",", "<<", "is"]
TEXTS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(SIGNS), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("not {}".format),
        st.tuples(st.sampled_from(["min", "len", "log2", "ceil_div", "open"]), inner).map(lambda f: f"{f[0]}({f[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]}[{pair[1]}]"),
        st.tuples(inner, inner, inner).map(lambda three: "{} if {} else {}".format(*three)),
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(TEXTS, st.text(max_size=40), st.integers(), st.floats(), st.booleans()))
def test_random_texts_raise_nothing_but_the_users_error(text):
    with contextlib.suppress(UserError):
        value(text)


NUMBERS = st.recursive(
    st.one_of(st.integers(0, 50).map(str), st.sampled_from(["M", "N", "ratio"])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "<", ">=", "==", "and", "or"]), inner).map(
            lambda part: f"({' '.join(part)})"
        ),
        inner.map("(-{})".format),
        st.tuples(inner, inner).map(lambda pair: "max({}, {})".format(*pair)),
        st.tuples(inner, inner, inner).map(lambda three: "({} if {} else {})".format(*three)),
    ),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(NUMBERS)
def test_arithmetic_agrees_with_python(text):
    """Python itself is the oracle, except that `and` and `or` give truth values."""
    tree = _TruthfulBooleans().visit(ast.parse(text, mode="eval"))
    try:
        expected = eval(compile(ast.fix_missing_locations(tree), "oracle", "eval"), {"max": max, "bool": bool, **NAMES})
    except ZeroDivisionError:
        with pytest.raises(UserError):
            value(text)
    else:
        assert value(text) == expected


class _TruthfulBooleans(ast.NodeTransformer):
    def visit_BoolOp(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("bool", ast.Load()), [node], [])
