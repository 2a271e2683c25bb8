"""What a person sees of a tuning with portBLAS's parameters: the original's list, the best beside the system BLAS, and
what did not run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType

from tunesmith.records import thaw
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.portblas.plan import HEADER, PortBlasPlan
from tunesmith.session.portblas.rows import RowKind, SolutionRow, Tuned

from .. import numbers as _numbers
from ..run import Document, closing, head
from ..table import table, titled

TOP = 10
"""Rows of the table; the list above it has all that ran."""


def tables(outcome: RunOutcome[PortBlasPlan]) -> RenderableType:
    """For each transposition the list, the table of the best, and the reasons; then what it cost, and the files."""
    parts = [part for one in outcome.plan.tuned for part in _tuned(one, outcome.target.name)]
    measured, *rest = closing(outcome)
    return Group(*parts, measured, *(f"{kind}: {path}" for kind, path in _files(outcome)), *rest)


def document(outcome: RunOutcome[PortBlasPlan]) -> Document:
    """For `--json`."""
    files = list(_files(outcome))
    return {
        **head(outcome),
        "set": str(outcome.plan.config.path),
        "transpositions": [_transposition(one) for one in outcome.plan.tuned],
        "logic": [str(path) for kind, path in files if kind == "logic"],
        "results": [str(path) for kind, path in files if kind == "results"],
        "header": next((str(path) for kind, path in files if kind == "header"), None),
    }


def _files(outcome: RunOutcome[PortBlasPlan]) -> Iterator[tuple[str, Path]]:
    """What was written, with what it is."""
    for path in outcome.written:
        kind = "logic" if path in outcome.logic_files else "header" if path.name == HEADER else "results"
        yield kind, path


def _tuned(one: Tuned, device: str) -> Iterator[RenderableType]:
    yield from ("", one.listing(device), "")
    yield _best(one)
    yield from _sentences(one)
    if failures := one.failures():
        yield from ("", _failures(failures))
    yield ""


def _best(one: Tuned) -> RenderableType:
    """The best, and the system BLAS and the current library wherever they stand."""
    ranked = one.ranked()
    numbers = ("GFLOP/s", "±", "time", "system BLAS / it", "error")
    shown = table("", *numbers, "what", right=numbers)
    for index, row in enumerate(ranked, start=1):
        if (index <= TOP or row.kind is not RowKind.CANDIDATE) and row.time:
            shown.add_row(*_cells(one, row, index))
    return titled(f"{one.name}: {one.problem.type.name} {one.problem}, the best of {len(ranked)} that ran", shown)


def _cells(one: Tuned, row: SolutionRow, index: int) -> list[str]:
    assert row.time is not None
    assert row.measurement is not None
    ratio, error = one.over_system(row), row.measurement.error
    what = row.name if row.kind is RowKind.CANDIDATE else f"{row.kind.value}: {row.name}"
    return [
        f"{index}{'*' if row is one.winner else ''}",
        f"{one.flops / row.time.seconds / 1e9:.4g}",
        _numbers.half_width(row.time)[1:],
        _numbers.time(row.time.seconds),
        f"{ratio:.3f}" if ratio else "-",
        f"{error:.1e}" if error is not None else "-",
        what,
    ]


def _sentences(one: Tuned) -> Iterator[str]:
    if one.winner:
        kept = one.decision.incumbent_kept if one.decision else False
        why = "the current library stays" if kept else "the winner"
        ties = one.ties()
        level = f"; as fast: {', '.join(row.name for row in ties)}" if ties else ""
        finalists = len(one.decision.finalists) if one.decision else 0
        again = f", of {finalists} that were measured again side by side" if finalists else ""
        yield f"* {why}: {one.winner.name}{again}{level}"
    if one.searched:
        yield f"a guided search measured a part of {one.programs} kernels"
    if one.left:
        yield f"{one.left} of the list were not measured"


def _failures(failures: list[tuple[str, int, str]]) -> RenderableType:
    rows = ((reason, count, " ".join(example.split())[:200]) for reason, count, example in failures)
    return table("what did not run", "count", "the first", right=("count",), rows=rows)


def _transposition(one: Tuned) -> dict[str, object]:
    rows = [*one.ranked(), *(row for row in one.rows if not row.time)]
    return {
        "name": one.name,
        "problem_type": one.problem.type.name,
        "sizes": list(one.problem.sizes),
        "flops": one.flops,
        "kernels": one.programs,
        "left": one.left,
        "searched": one.searched,
        "winner": one.winner.name if one.winner else None,
        "incumbent_kept": bool(one.decision and one.decision.incumbent_kept),
        "ties": [row.name for row in one.ties()],
        "rows": [_row(one, row) for row in rows],
        "failures": [
            {"reason": reason, "count": count, "example": example} for reason, count, example in one.failures()
        ],
    }


def _row(one: Tuned, row: SolutionRow) -> dict[str, object]:
    time = row.time
    return {
        "kind": row.kind.value,
        "winner": row is one.winner,
        "name": row.name,
        "original_name": row.original_name,
        "kernel": row.solution.kernel,
        "configuration": {name: thaw(value) for name, value in row.solution.configuration.items()},
        "toolchain": row.toolchain,
        "failure": row.failure,
        "seconds": time.seconds if time else None,
        "low": time.low if time else None,
        "high": time.high if time else None,
        "samples": time.count if time else None,
        "gflops": one.flops / time.seconds / 1e9 if time else None,
        "over_system": one.over_system(row),
        "error": row.measurement.error if row.measurement else None,
    }
