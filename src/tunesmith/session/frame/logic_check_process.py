"""The process that launches what a logic names, through the library, and tells what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tunesmith.bench import connect_to_parent
from tunesmith.devices import LaunchError
from tunesmith.kernels import KERNELS
from tunesmith.library import Launched, Library, load
from tunesmith.library.call_adapters import Storage, call_adapter_of, logical_arrays, storage_for
from tunesmith.logic import Document, Logic, SizeRow
from tunesmith.problems import OPERATIONS, Array, Expected
from tunesmith.records import Problem, Solution, UserError


def watched(path: Path) -> Iterator[str]:
    """What is wrong with one logic, a sentence each; see `logic_check.watch`."""
    logic = Logic.load(path)
    kind = logic.document.problem_type
    if not call_adapter_of(kind).takes_host_arrays(kind):
        return
    launched: list[Launched] = []
    try:
        with load(path, launched=launched.append) as library:
            for row in _smallest(logic.document):
                yield from (f"{path.name}: {what}" for what in _look(library, logic, row, launched))
    except (UserError, LaunchError) as error:
        yield f"{path.name}: {error}"


def _smallest(document: Document) -> list[SizeRow]:
    """For each solution, of the sizes that it won, the one with the least work."""
    rows = sorted(document.rows, key=lambda row: np.prod(row.sizes, dtype=float), reverse=True)
    return list({row.solution: row for row in rows}.values())


def _look(library: Library, logic: Logic, row: SizeRow, launched: list[Launched]) -> Iterator[str]:
    kind = logic.document.problem_type
    operation = OPERATIONS[kind.operation]
    usual = Problem(kind, row.sizes, row.leading, operation.scalars_of(kind.fields, str))
    problem = operation.checks(usual)[-1]
    storage = storage_for(problem, np.random.default_rng(0))
    before = {name: array.copy() for name, array in storage.items()}
    call_adapter_of(kind).call(library, problem, storage)()
    last = launched[-1]
    # Operands whose rows lie very far apart are copied by the library, and have natural leading dimensions then.
    named = logic.choose(row.sizes, last.problem.leading)
    if (last.problem.sizes, last.choice.solution) != (row.sizes, named.solution):
        yield f"at {problem} the library launches {last.choice.name} for {last.problem}, the logic says {named.name}"
    if not _right(problem, last.solution, before, storage):
        yield f"at {problem} the library's launch of {last.choice.name} gives a wrong result"


def _right(problem: Problem, solution: Solution, before: Storage, after: Storage) -> bool:
    """Whether outputs are what the reference says, by what the family adds to the scalars where results depend on the
    configuration too."""
    added = KERNELS[solution.kernel].checks(solution.configuration, problem, (problem,))[0].scalars
    known = replace(problem, scalars=problem.scalars | added)
    expected = OPERATIONS[problem.type.operation].reference(known, before)
    found = logical_arrays(problem, after)
    return all(_meets(found[name], one) for name, one in expected.items())


def _meets(found: Array, expected: Expected) -> bool:
    """Whole numbers exactly: float64 has no two neighbours beyond 2^53."""
    part = found[expected.where]  # type: ignore[index]  # an index of NumPy's by its record
    if found.dtype.kind in "iu":
        return bool((part == expected.value).all())
    near = np.abs(part.astype(np.float64) - expected.value) <= expected.bound
    return bool(near.all() and not np.isnan(found).any())


def main(arguments: list[str]) -> None:
    connection = connect_to_parent(arguments)
    connection.send([sentence for path in connection.recv() for sentence in watched(path)])


if __name__ == "__main__":
    main(sys.argv[1:])
