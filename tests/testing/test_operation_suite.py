"""Each promise of the operation suite is broken by an operation that is wrong in one way."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from broken_promises import assert_all_can_be_broken, assert_broken, promises_of
from tunesmith.problems import Expected, Key, Operation, checked
from tunesmith.records import Configuration, Operand, Problem, ProblemType
from tunesmith.testing import OperationSuite

FIELDS = (Key("OperationType", "one of", "What is computed.", "Sum", ("Sum",)),)
NUMBERS = count()


class Sum(Operation):
    """Out = A + B, rows of float32 that lie LD elements apart."""

    name = "Sum"

    def type_of(self, fields, location, folder):
        checked(fields, FIELDS, location, "a sum")
        return ProblemType(self.name, "Sum_S", ("Rows", "Columns"), Configuration({"OperationType": "Sum"}))

    def leading(self, problem_type, sizes):
        return (("LD", sizes[1]),)

    def operands(self, problem):
        (apart,) = problem.leading or (problem.sizes[1],)
        roles = (("A", "in"), ("B", "in"), ("Out", "out"))
        return tuple(Operand(name, "float32", problem.sizes, (apart, 1), role) for name, role in roles)

    def inputs(self, problem, random):
        count = self.operands(problem)[0].storage_elements
        return {name: random.uniform(0.5, 1, count).astype(np.float32) for name in "AB"}

    def reference(self, problem, inputs):
        a, b = (self.logical(problem, inputs[name]).astype(np.float64) for name in "AB")
        return {"Out": Expected((...,), a + b, np.abs(a + b) * 2.0**-23)}

    def logical(self, problem, storage):
        operand = self.operands(problem)[0]
        strides = tuple(stride * storage.itemsize for stride in operand.strides)
        return np.lib.stride_tricks.as_strided(storage, operand.shape, strides)

    def flops(self, problem):
        return float(np.prod(problem.sizes))


class RefusesSizes(Sum):
    def wrong_sizes(self, problem_type, sizes):
        return "no sizes will do"


class MakesAnotherType(Sum):
    def type_of(self, fields, location, folder):
        return replace(super().type_of(fields, location, folder), name=f"Sum_{next(NUMBERS)}")


class TakesAnyKey(Sum):
    def type_of(self, fields, location, folder):
        return super().type_of({}, location, folder)


class HasState(Sum):
    """Its operands follow from what pickle leaves behind."""

    @cached_property
    def number(self):
        return next(NUMBERS)

    def __reduce__(self):
        return HasState, ()

    def operands(self, problem):
        return tuple(replace(operand, name=f"{operand.name}{self.number}") for operand in super().operands(problem))


class NamesOperandsAlike(Sum):
    def operands(self, problem):
        return tuple(replace(operand, name="A") for operand in super().operands(problem))


class ReadsSizesBackwards(Sum):
    def sizes_from(self, problem_type, shapes, named_sizes):
        return super().sizes_from(problem_type, shapes, named_sizes)[::-1]


class AsksForTooMuchBetweenRows(Sum):
    def leading(self, problem_type, sizes):
        return (("LD", sizes[1] + 1),)


class FillsInDouble(Sum):
    def inputs(self, problem, random):
        return {name: storage.astype(np.float64) for name, storage in super().inputs(problem, random).items()}


class ForgetsTheSeed(Sum):
    def inputs(self, problem, random):
        return super().inputs(problem, np.random.default_rng())


class DrawsZeros(Sum):
    def inputs(self, problem, random):
        return {name: np.where(x < 0.6, np.float32(0), x) for name, x in super().inputs(problem, random).items()}


class BoundsInSingle(Sum):
    def reference(self, problem, inputs):
        expected = super().reference(problem, inputs)["Out"]
        return {"Out": replace(expected, bound=expected.bound.astype(np.float32))}


class ChangesItsInputs(Sum):
    def reference(self, problem, inputs):
        inputs["A"][0] += 1
        return super().reference(problem, inputs)


class AllowsNoRounding(Sum):
    def reference(self, problem, inputs):
        expected = super().reference(problem, inputs)["Out"]
        return {"Out": replace(expected, bound=np.zeros_like(expected.bound), value=expected.value / 3)}


class AllowsAnything(Sum):
    def reference(self, problem, inputs):
        expected = super().reference(problem, inputs)["Out"]
        return {"Out": replace(expected, bound=np.full_like(expected.bound, 1e3))}


class CountsHalfAFlop(Sum):
    def flops(self, problem):
        return super().flops(problem) + 0.5


class EnlargesTheSmall(Sum):
    def small(self, problem):
        return replace(problem, sizes=(64, 64), leading=())


class ChecksNothing(Sum):
    def checks(self, problem):
        return ()


def suite_of(operation, problem=None):
    suite = OperationSuite()
    suite.operation = operation
    kind = Sum().type_of({}, str, Path())
    suite.problems = (problem,) if problem else (Problem(kind, (5, 7)), Problem(kind, (5, 7), (9,)))
    return suite


LISTED = replace(Sum().type_of({}, str, Path()), indices=["Rows", "Columns"])
"""Its indices are a list, which JSON does not tell from a tuple."""
BROKEN = {
    "test_its_problems_are_problems_of_it": suite_of(RefusesSizes()),
    "test_a_type_is_made_by_its_fields": suite_of(MakesAnotherType()),
    "test_an_unknown_key_is_the_users_mistake": suite_of(TakesAnyKey()),
    "test_types_and_problems_come_back_from_json_and_pickle": suite_of(Sum(), Problem(LISTED, (5, 7))),
    "test_it_is_stateless_and_can_be_pickled": suite_of(HasState()),
    "test_operands_are_well_formed": suite_of(NamesOperandsAlike()),
    "test_sizes_and_leading_dimensions_are_read_off_the_operands": suite_of(ReadsSizesBackwards()),
    "test_the_smallest_leading_dimensions_are_the_natural_ones": suite_of(AsksForTooMuchBetweenRows()),
    "test_inputs_fill_what_is_read": suite_of(FillsInDouble()),
    "test_the_same_seed_draws_the_same_inputs_and_another_seed_others": suite_of(ForgetsTheSeed()),
    "test_no_wrong_result_can_hide_in_the_inputs": suite_of(DrawsZeros()),
    "test_the_reference_says_what_every_output_must_hold": suite_of(BoundsInSingle()),
    "test_the_reference_is_pure": suite_of(ChangesItsInputs()),
    "test_the_reference_accepts_the_right_result": suite_of(AllowsNoRounding()),
    "test_the_reference_refuses_what_is_not_the_result": suite_of(AllowsAnything()),
    "test_work_is_counted_in_whole_numbers": suite_of(CountsHalfAFlop()),
    "test_a_small_problem_is_one_of_the_same_type_and_no_larger": suite_of(EnlargesTheSmall()),
    "test_the_problem_itself_is_the_first_that_is_checked": suite_of(ChecksNothing()),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_operation_is_found_out(promise):
    assert_broken(BROKEN[promise], promise)


@pytest.mark.parametrize("promise", promises_of(OperationSuite))
def test_a_sound_operation_is_not(promise):
    getattr(suite_of(Sum()), promise)()


def test_every_promise_can_be_broken():
    assert_all_can_be_broken(OperationSuite, BROKEN)
