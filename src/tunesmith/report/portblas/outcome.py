"""What `tunesmith portblas tune` prints: portBLAS's own list, the best kernels beside the system BLAS, and failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType

from tunesmith.records import thaw
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.portblas.plan import HEADER, PortBlasPlan
from tunesmith.session.portblas.rows import RowKind, SolutionRow, TunedTransposition

from .. import numbers as _numbers
from ..run import Document, closing, head
from ..table import table, titled

TOP = 10
"""Rows of the table; the list above it has all kernels that ran."""


def tables(outcome: RunOutcome[PortBlasPlan]) -> RenderableType:
    """For each transposition the list, the table of the best, and the failures; then the run's cost and files."""
    parts = [part for tuned in outcome.plan.tuned for part in _tuned(tuned, outcome.target.name)]
    measured, *rest = closing(outcome)
    return Group(*parts, measured, *(f"{kind}: {path}" for kind, path in _files(outcome)), *rest)


def document(outcome: RunOutcome[PortBlasPlan]) -> Document:
    """For `--json`."""
    files = list(_files(outcome))
    return {
        **head(outcome),
        "set": str(outcome.plan.config.path),
        "transpositions": [_transposition(tuned) for tuned in outcome.plan.tuned],
        "logic": [str(path) for kind, path in files if kind == "logic"],
        "results": [str(path) for kind, path in files if kind == "results"],
        "header": next((str(path) for kind, path in files if kind == "header"), None),
    }


def _files(outcome: RunOutcome[PortBlasPlan]) -> Iterator[tuple[str, Path]]:
    """The kind (logic, header or results) and path of each file that the run wrote."""
    for path in outcome.written:
        kind = "logic" if path in outcome.logic_files else "header" if path.name == HEADER else "results"
        yield kind, path


def _tuned(tuned: TunedTransposition, device: str) -> Iterator[RenderableType]:
    yield from ("", tuned.listing(device), "")
    yield _best(tuned)
    yield from _sentences(tuned)
    if failures := tuned.failures():
        yield from ("", _failures(failures))
    yield ""


def _best(tuned: TunedTransposition) -> RenderableType:
    """The `TOP` best rows, and the rows of the system BLAS and the current library at any rank."""
    ranked = tuned.ranked()
    numbers = ("GFLOP/s", "±", "time", "system BLAS / it", "error")
    shown = table("", *numbers, "what", right=numbers)
    for index, row in enumerate(ranked, start=1):
        if (index <= TOP or row.kind is not RowKind.CANDIDATE) and row.time:
            shown.add_row(*_cells(tuned, row, index))
    return titled(f"{tuned.name}: {tuned.problem.type.name} {tuned.problem}, the best of {len(ranked)} that ran", shown)


def _cells(tuned: TunedTransposition, row: SolutionRow, index: int) -> list[str]:
    assert row.time is not None
    assert row.measurement is not None
    ratio, error = tuned.over_system(row), row.measurement.error
    name = row.name if row.kind is RowKind.CANDIDATE else f"{row.kind.value}: {row.name}"
    return [
        f"{index}{'*' if row is tuned.winner else ''}",
        f"{tuned.flops / row.time.seconds / 1e9:.4g}",
        _numbers.half_width(row.time)[1:],
        _numbers.time(row.time.seconds),
        f"{ratio:.3f}" if ratio else "-",
        f"{error:.1e}" if error is not None else "-",
        name,
    ]


def _sentences(tuned: TunedTransposition) -> Iterator[str]:
    if tuned.winner:
        kept = tuned.decision.incumbent_kept if tuned.decision else False
        why = "the current library stays" if kept else "the winner"
        ties = tuned.ties()
        level = f"; as fast: {', '.join(row.name for row in ties)}" if ties else ""
        finalists = len(tuned.decision.finalists) if tuned.decision else 0
        again = f", of {finalists} that were measured again side by side" if finalists else ""
        yield f"* {why}: {tuned.winner.name}{again}{level}"
    if tuned.searched:
        yield f"a guided search measured a part of {tuned.programs} kernels"
    if tuned.left:
        yield f"{tuned.left} of the list were not measured"


def _failures(failures: list[tuple[str, int, str]]) -> RenderableType:
    rows = ((reason, count, " ".join(example.split())[:200]) for reason, count, example in failures)
    return table("what did not run", "count", "the first", right=("count",), rows=rows)


def _transposition(tuned: TunedTransposition) -> dict[str, object]:
    rows = [*tuned.ranked(), *(row for row in tuned.rows if not row.time)]
    return {
        "name": tuned.name,
        "problem_type": tuned.problem.type.name,
        "sizes": list(tuned.problem.sizes),
        "flops": tuned.flops,
        "kernels": tuned.programs,
        "left": tuned.left,
        "searched": tuned.searched,
        "winner": tuned.winner.name if tuned.winner else None,
        "incumbent_kept": bool(tuned.decision and tuned.decision.incumbent_kept),
        "ties": [row.name for row in tuned.ties()],
        "rows": [_row(tuned, row) for row in rows],
        "failures": [
            {"reason": reason, "count": count, "example": example} for reason, count, example in tuned.failures()
        ],
    }


def _row(tuned: TunedTransposition, row: SolutionRow) -> dict[str, object]:
    time = row.time
    return {
        "kind": row.kind.value,
        "winner": row is tuned.winner,
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
        "gflops": tuned.flops / time.seconds / 1e9 if time else None,
        "over_system": tuned.over_system(row),
        "error": row.measurement.error if row.measurement else None,
    }
