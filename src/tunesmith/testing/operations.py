"""What every operation promises: see `problems.Operation`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from tunesmith.problems import Array, Expected, Operation, strided
from tunesmith.records import Operand, Problem, ProblemType, UserError, Value

from .promises import pickled, raised

_NO_KEY = "NoSuchKey"


class OperationSuite:
    """Set `operation`, and `problems`: small ones of every kind that matters, none of them empty.

    A type holds the fields by which a tuning file means it. Where they are others, override `fields_of`; `folder` is
    what paths among them are relative to.
    """

    operation: Operation
    problems: tuple[Problem, ...]
    folder: Path = Path()

    def fields_of(self, problem_type: ProblemType) -> Mapping[str, Value]:
        """What a tuning file's `ProblemType` says to mean this type."""
        return problem_type.fields

    def test_its_problems_are_problems_of_it(self) -> None:
        assert self.problems, "the suite needs problems to look at"
        for problem in self.problems:
            assert problem.type.operation == self.operation.name, (
                f"a type must name its operation, {self.operation.name!r}, not {problem.type.operation!r}"
            )
            names = problem.type.indices
            assert len(set(names)) == len(names) == len(problem.sizes), f"each index must be named once: {names}"
            refused = self.operation.wrong_sizes(problem.type, problem.sizes)
            assert not refused, f"wrong_sizes must say nothing of sizes that a problem has: {refused} ({problem})"

    def test_a_type_is_made_by_its_fields(self) -> None:
        for problem_type in {problem.type for problem in self.problems}:
            made = self.operation.type_of(self.fields_of(problem_type), str, self.folder)
            assert made == problem_type, f"type_of must make an equal type of its fields: {made} is not {problem_type}"
            self.operation.validate(made)

    def test_an_unknown_key_is_the_users_mistake(self) -> None:
        fields = {**self.fields_of(self.problems[0].type), _NO_KEY: 1}
        mistake = raised(
            UserError,
            lambda: self.operation.type_of(fields, lambda key: f"file:{key}", self.folder),
            "type_of must raise UserError for a key that it does not know",
        )
        locations = [error.location for error in mistake.errors]
        assert f"file:{_NO_KEY}" in locations, f"the UserError must stand at the unknown key, not at {locations}"
        assert all(error.remedy for error in mistake.errors), "a UserError must say what would be right"

    def test_types_and_problems_come_back_from_json_and_pickle(self) -> None:
        for problem in self.problems:
            back = Problem.from_json(problem.to_json())
            assert back == problem, f"a problem must come back from JSON as it was: {back} is not {problem}"
            assert ProblemType.from_json(problem.type.to_json()) == problem.type, "a type must come back from JSON"
            assert pickled(problem, "a problem") == problem, "a problem must come back from pickle as it was"

    def test_it_is_stateless_and_can_be_pickled(self) -> None:
        other = pickled(self.operation, "an operation")
        for problem in self.problems:
            assert other.operands(problem) == self.operation.operands(problem), "a pickled operation must answer alike"

    def test_operands_are_well_formed(self) -> None:
        for problem in self.problems:
            operands = self.operation.operands(problem)
            names = [operand.name for operand in operands]
            assert len(set(names)) == len(names), f"operands must have different names: {names}"
            assert any(operand.role != "in" for operand in operands), f"an operation must write something ({problem})"
            for operand in operands:
                assert operand.role in ("in", "out", "inout"), f"{operand.name} has the role {operand.role!r}"
                assert len(operand.shape) == len(operand.strides), f"{operand.name}: a stride for each extent"
                assert all(extent > 0 for extent in operand.shape), f"{operand.name} of {problem} is empty"
                assert _addresses_differ(operand), f"{operand.name} of {problem}: two elements share an address"

    def test_sizes_and_leading_dimensions_are_read_off_the_operands(self) -> None:
        for problem in self.problems:
            kind, operands = problem.type, self.operation.operands(problem)
            shapes = {operand.name: operand.shape for operand in operands}
            found_sizes = {size for sizes in self.operation.extents(kind).values() for size in sizes}
            by_name = dict(zip(kind.indices, problem.sizes, strict=True))
            named_sizes = {name: size for name, size in by_name.items() if name not in found_sizes}
            sizes = self.operation.sizes_from(kind, shapes, named_sizes)
            assert sizes == problem.sizes, f"sizes_from must find the sizes {problem.sizes}, it found {sizes}"
            strides = {operand.name: operand.strides for operand in operands}
            leading = self.operation.leading_from(kind, problem.sizes, strides)
            again = self.operation.operands(replace(problem, leading=leading))
            assert all(map(_same_layout, again, operands)), (
                f"leading_from must find the leading dimensions {problem.leading}, it found {leading}"
            )

    def test_the_smallest_leading_dimensions_are_the_natural_ones(self) -> None:
        for problem in self.problems:
            smallest = tuple(least for _, least in self.operation.leading(problem.type, problem.sizes))
            natural, explicit = (self.operation.operands(replace(problem, leading=ld)) for ld in ((), smallest))
            assert natural == explicit, f"`leading` must give the smallest values: with {smallest} the operands differ"

    def test_inputs_fill_what_is_read(self) -> None:
        for problem in self.problems:
            read = {operand.name: operand for operand in self.operation.operands(problem) if operand.role != "out"}
            inputs = self._inputs(problem)
            assert set(inputs) == set(read), f"inputs must be those that are read, {set(read)}, not {set(inputs)}"
            for name, operand in read.items():
                found = (inputs[name].shape, inputs[name].dtype)
                expected = ((operand.storage_elements,), np.dtype(operand.dtype))
                assert found == expected, f"the storage of {name} must have shape and type {expected}, not {found}"

    def test_the_same_seed_draws_the_same_inputs_and_another_seed_others(self) -> None:
        for problem in self.problems:
            first, again, other = (_bytes(self._inputs(problem, seed)) for seed in (1, 1, 2))
            assert first == again, f"inputs must follow from the generator alone; one seed gave two draws ({problem})"
            assert not first or first != other, f"inputs must be drawn from the generator; two seeds agree ({problem})"

    def test_no_wrong_result_can_hide_in_the_inputs(self) -> None:
        for problem in self.problems:
            inputs = self._inputs(problem)
            for operand in self.operation.operands(problem):
                if operand.name in inputs:
                    values = strided(operand, inputs[operand.name])
                    assert (values != 0).all(), f"inputs must have no zeros; {operand.name} of {problem} has some"
            for first, second in combinations(_bytes(inputs).items(), 2):
                assert first[1] != second[1], f"inputs must differ; {first[0]} and {second[0]} of {problem} are alike"

    def test_the_reference_says_what_every_output_must_hold(self) -> None:
        for problem in self.problems:
            written = {operand.name: operand for operand in self.operation.operands(problem) if operand.role != "in"}
            expected = self.operation.reference(problem, self._inputs(problem))
            assert set(expected) == set(written), f"the reference must have {set(written)}, it has {set(expected)}"
            for name, operand in written.items():
                _check_expected(operand, expected[name])

    def test_the_reference_is_pure(self) -> None:
        for problem in self.problems:
            inputs = self._inputs(problem)
            before = _bytes(inputs)
            first, second = (self.operation.reference(problem, inputs) for _ in range(2))
            assert _bytes(inputs) == before, f"the reference must leave its inputs as they are ({problem})"
            for name, expected in first.items():
                again = second[name]
                same = np.array_equal(expected.value, again.value) and np.array_equal(expected.bound, again.bound)
                assert same, f"the reference must answer alike when it is asked again ({name} of {problem})"

    def test_the_reference_accepts_the_right_result(self) -> None:
        """Its own values, rounded to what the output can hold: else no kernel could be right."""
        for problem, operand, expected in self._outputs():
            rounded = expected.value.astype(operand.dtype)
            assert _accepts(expected, rounded), f"the bound of {operand.name} must allow for rounding it ({problem})"

    def test_the_reference_refuses_what_is_not_the_result(self) -> None:
        """Zeros, elements that nobody wrote, and every element in the place of its neighbour."""
        for problem, operand, expected in self._outputs():
            right = expected.value.astype(operand.dtype)
            wrong = {"zeros": np.zeros_like(right)}
            if expected.value.dtype.kind == "f":
                wrong["NaN"] = np.full(right.shape, np.nan)
            if right.shape == operand.shape:  # of a sample, neighbours are no neighbours
                moved = (axis for axis, extent in enumerate(right.shape) if extent > 1)
                wrong |= {f"elements moved along axis {axis}": np.roll(right, 1, axis) for axis in moved}
            for what, values in wrong.items():
                assert not _accepts(expected, values), f"the reference must refuse {what} in {operand.name} ({problem})"

    def test_work_is_counted_in_whole_numbers(self) -> None:
        for problem in self.problems:
            flops, traffic, work = (
                count(problem) for count in (self.operation.flops, self.operation.bytes, self.operation.work)
            )
            assert flops >= 0, f"flops must not be negative: {flops} of {problem}"
            assert float(flops).is_integer(), f"flops must be a whole number: {flops} of {problem}"
            assert traffic > 0, f"bytes must be positive: {traffic} of {problem}"
            assert float(traffic).is_integer(), f"bytes must be a whole number: {traffic} of {problem}"
            assert 0 < work < float("inf"), f"work, in {self.operation.unit}, must be positive: {work} of {problem}"

    def test_a_small_problem_is_one_of_the_same_type_and_no_larger(self) -> None:
        for problem in self.problems:
            small = self.operation.small(problem)
            same = (small.type, small.scalars) == (problem.type, problem.scalars)
            assert same, f"a small problem must keep type and scalars ({problem})"
            larger = [size for size, least in zip(small.sizes, problem.sizes, strict=True) if size > least]
            assert not larger, f"a small problem must be no larger: {small} of {problem}"
            refused = self.operation.wrong_sizes(small.type, small.sizes)
            assert not refused, f"a small problem must be a problem: {refused}"
            self.operation.reference(small, self._inputs(small))

    def test_the_problem_itself_is_the_first_that_is_checked(self) -> None:
        for problem in self.problems:
            checks = self.operation.checks(problem)
            assert checks[:1] == (problem,), f"the first check must be the problem itself, not {checks[:1]}"
            for check in checks:
                same = (check.type, check.sizes, check.leading) == (problem.type, problem.sizes, problem.leading)
                assert same, f"checks must differ in their scalars alone: {check} of {problem}"

    def _inputs(self, problem: Problem, seed: int = 1) -> dict[str, Array]:
        return self.operation.inputs(problem, np.random.default_rng(seed))

    def _outputs(self) -> list[tuple[Problem, Operand, Expected]]:
        outputs = []
        for problem in self.problems:
            expected = self.operation.reference(problem, self._inputs(problem))
            operands = {operand.name: operand for operand in self.operation.operands(problem)}
            outputs += [(problem, operands[name], expected[name]) for name in expected]
        return outputs


def _bytes(arrays: Mapping[str, Array]) -> dict[str, bytes]:
    """Contents that can be compared where they are NaN, too."""
    return {name: array.tobytes() for name, array in arrays.items()}


def _addresses_differ(operand: Operand) -> bool:
    """Whether every element of an operand has an address of its own."""
    steps = (np.arange(extent) * stride for extent, stride in zip(operand.shape, operand.strides, strict=True))
    addresses = np.zeros((), np.int64)
    for axis in steps:
        addresses = addresses[..., None] + axis
    return len(np.unique(addresses)) == addresses.size


def _same_layout(first: Operand, second: Operand) -> bool:
    """Whether two operands are alike, but for the strides of axes with one element."""

    def layout(operand: Operand) -> tuple[object, ...]:
        strides = [stride for extent, stride in zip(operand.shape, operand.strides, strict=True) if extent > 1]
        return operand.name, operand.dtype, operand.shape, strides

    return layout(first) == layout(second)


def _check_expected(operand: Operand, expected: Expected) -> None:
    value, bound, name = expected.value, expected.bound, operand.name
    selected = np.broadcast_to(np.int8(0), operand.shape)[expected.where].shape  # type: ignore[index]  # whatever NumPy takes
    assert value.shape == bound.shape == selected, (
        f"value and bound of {name} must have the shape that `where` selects, {selected}: {value.shape}, {bound.shape}"
    )
    assert value.size, f"the reference must look at some elements of {name}"
    assert bound.dtype == np.float64, f"the bound of {name} must be float64, not {bound.dtype}"
    assert np.isfinite(bound).all(), f"the bound of {name} must be finite"
    assert (bound >= 0).all(), f"the bound of {name} must not be negative"
    if value.dtype.kind in "iu":
        assert value.dtype == np.dtype(operand.dtype), f"whole numbers of {name} must be {operand.dtype}"
        assert not bound.any(), f"whole numbers of {name} must be met exactly, with a bound of 0"
    else:
        assert value.dtype == np.float64, f"the values of {name} must be computed in float64, not {value.dtype}"
        assert np.isfinite(value).all(), f"the values of {name} must be finite"


def _accepts(expected: Expected, values: Array) -> bool:
    if expected.value.dtype.kind in "iu":
        return bool(np.array_equal(values, expected.value))
    return bool((np.abs(values.astype(np.float64) - expected.value) <= expected.bound).all())
