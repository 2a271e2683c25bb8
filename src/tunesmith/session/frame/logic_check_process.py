"""The process that launches what a logic names, through the library, and tells what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tunesmith.bench import connect_to_parent
from tunesmith.devices import LaunchError
from tunesmith.library import Launched, Library, load
from tunesmith.logic import Document, Logic, Row
from tunesmith.problems import OPERATIONS
from tunesmith.records import Configuration, Problem, UserError
from tunesmith.session.tune.arrays import RowMajor, row_major

LAUNCHED = "GEMM"
"""The operation that the library launches."""

OF_TENSORS = ("ScaleAB", "F32XdlMathOp")
"""Fields of types that are asked for by torch tensors alone: NumPy's arrays have no scale, and no TF32."""


def watched(path: Path) -> Iterator[str]:
    """What is wrong with one logic, a sentence each; see `_watch.watch`."""
    logic = Logic.load(path)
    kind = logic.document.problem_type
    if kind.operation != LAUNCHED or any(name in kind.fields for name in OF_TENSORS):
        return
    launched: list[Launched] = []
    try:
        with load(path, launched=launched.append) as library:
            for row in _smallest(logic.document):
                yield from (f"{path.name}: {what}" for what in _look(library, logic, row, launched))
    except (UserError, LaunchError) as error:
        yield f"{path.name}: {error}"


def _smallest(document: Document) -> list[Row]:
    """For each solution, of the sizes that it won, the one with the least work."""
    rows = sorted(document.rows, key=lambda row: np.prod(row.sizes, dtype=float), reverse=True)
    return list({row.solution: row for row in rows}.values())


def _look(library: Library, logic: Logic, row: Row, launched: list[Launched]) -> Iterator[str]:
    kind = logic.document.problem_type
    beta = 2.0 if kind.fields.flag("UseBeta") else 0.0
    problem = Problem(kind, row.sizes, row.leading, Configuration({"alpha": 1.0, "beta": beta}))
    arrays = row_major(problem, np.random.default_rng(0))
    library.matmul(
        arrays.a,
        arrays.b,
        out=arrays.out,
        bias=arrays.storage.get("Bias"),
        activation=str(kind.fields.get("Activation", "none")),
        c=arrays.c if beta else None,
        beta=beta,
    )
    told = launched[-1]
    # Operands whose rows lie very far apart are copied by the library, and have natural leading dimensions then.
    said = logic.choose(row.sizes, told.problem.leading)
    if (told.problem.sizes, told.choice.solution) != (row.sizes, said.solution):
        yield f"at {problem} the library launches {told.choice.name} for {told.problem}, the logic says {said.name}"
    if not _right(problem, arrays):
        yield f"at {problem} the library's launch of {told.choice.name} gives a wrong result"


def _right(problem: Problem, arrays: RowMajor) -> bool:
    expected = OPERATIONS[LAUNCHED].reference(problem, arrays.storage)["D"]
    found = arrays.out.T[expected.where].astype(np.float64)  # type: ignore[index]  # an index of NumPy's by its record
    return bool((np.abs(found - expected.value) <= expected.bound).all() and not np.isnan(arrays.out).any())


def main(arguments: list[str]) -> None:
    connection = connect_to_parent(arguments)
    connection.send([sentence for path in connection.recv() for sentence in watched(path)])


if __name__ == "__main__":
    main(sys.argv[1:])
