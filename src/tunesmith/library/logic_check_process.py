"""The process that launches a logic's solutions through the library and reports what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from tunesmith.devices import APIS, LaunchError
from tunesmith.kernels import KERNELS
from tunesmith.library import LaunchRecord, Library, load
from tunesmith.library.call_adapters import Storage, call_adapter_of, logical_arrays, storage_for
from tunesmith.logic import Document, Logic, Origin, SizeRow
from tunesmith.problems import OPERATIONS, Array, Expected
from tunesmith.records import Problem, ProblemType, Solution, UserError, whole_device

EVERY = slice(None)


def mistakes_in(path: Path, part: slice = EVERY) -> Iterator[str]:
    """Sentences on what is wrong with a part of one logic's solutions; see `session.frame.logic_check`."""
    logic = Logic.load(path)
    kind = logic.document.problem_type
    if not call_adapter_of(kind).takes_host_arrays(kind):
        return
    launched: list[LaunchRecord] = []
    try:
        # Without a floor: whether the BLAS would be faster here is no question of the logic's.
        with load(path, device=_whole(logic.document.origin), launched=launched.append, floor=False) as library:
            for row in _smallest(logic.document)[part]:
                yield from (f"{path.name}: {mistake}" for mistake in _mistakes(library, logic, row, launched))
    except (UserError, LaunchError) as error:
        yield f"{path.name}: {error}"


def _whole(origin: Origin) -> str | None:
    """The selector of the CPU of which the logic's device is a part, since a part cannot be opened by itself. None if
    it is no part."""
    name = whole_device(origin.device)
    found = APIS[origin.api].find() if name != origin.device else ()
    return next((device.target.selector for device in found if device.target and device.target.name == name), None)


def _smallest(document: Document) -> list[SizeRow]:
    """For each solution, the row with the least work among those that it won."""
    rows = sorted(document.rows, key=lambda row: np.prod(row.sizes, dtype=float), reverse=True)
    return list({row.solution: row for row in rows}.values())


def share_references(path: Path) -> None:
    """Hand over what the process that checks a logic needs of this one (`Operation.share`)."""
    document = Logic.load(path).document
    for row in _smallest(document):
        problem = _checked_problem(document.problem_type, row)
        OPERATIONS[document.problem_type.operation].share(problem, partial(_storage, problem))


def _checked_problem(kind: ProblemType, row: SizeRow) -> Problem:
    operation = OPERATIONS[kind.operation]
    usual = Problem(kind, row.sizes, row.leading, operation.scalars_of(kind.fields, str))
    return operation.checks(usual)[-1]


def _storage(problem: Problem) -> Storage:
    return storage_for(problem, np.random.default_rng(0))


def _mistakes(library: Library, logic: Logic, row: SizeRow, launched: list[LaunchRecord]) -> Iterator[str]:
    kind = logic.document.problem_type
    problem = _checked_problem(kind, row)
    storage = _storage(problem)
    before = {name: array.copy() for name, array in storage.items()}
    call_adapter_of(kind).call(library, problem, storage)()
    last = launched[-1]
    # The library copies operands whose rows lie very far apart; the copies have natural leading dimensions.
    named = logic.choose(row.sizes, last.problem.leading)
    if (last.problem.sizes, last.choice.solution) != (row.sizes, named.solution):
        yield f"at {problem} the library launches {last.choice.name} for {last.problem}, the logic says {named.name}"
    if not _is_right(problem, last.solution, before, storage):
        yield f"at {problem} the library's launch of {last.choice.name} gives a wrong result"


def _is_right(problem: Problem, solution: Solution, before: Storage, after: Storage) -> bool:
    """Whether the outputs agree with the reference. If results depend on the configuration, the family adds scalars for
    the reference."""
    added = KERNELS[solution.kernel].checks(solution.configuration, problem, (problem,))[0].scalars
    with_added = replace(problem, scalars=problem.scalars | added)
    expected = OPERATIONS[problem.type.operation].reference(with_added, before)
    outputs = logical_arrays(problem, after)
    return all(_agrees(outputs[name], values) for name, values in expected.items())


def _agrees(output: Array, expected: Expected) -> bool:
    """Whether an output is within the bound. Whole numbers are compared exactly, since float64 cannot tell neighbours
    apart beyond 2^53."""
    part = output[expected.where]  # type: ignore[index]  # an index of NumPy's by its record
    if output.dtype.kind in "iu":
        return bool((part == expected.value).all())
    near = np.abs(part.astype(np.float64) - expected.value) <= expected.bound
    return bool(near.all() and not np.isnan(output).any())


def main(connection: Connection) -> None:
    paths, part = connection.recv()
    connection.send([sentence for path in paths for sentence in mistakes_in(path, part)])
