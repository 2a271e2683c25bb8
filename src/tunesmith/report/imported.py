"""What became of a Tensile tuning file, for `tunesmith plan`: a table, counts as written beside ours, and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType

from tunesmith.session.tuning_file import (
    Forecast,
    ImportedFile,
    RejectedProblem,
    TensileImport,
    Treatment,
    WrittenGroup,
)

from .run import Document, fields
from .table import table, titled

MOST_SHOWN = 5
"""The most written values of one name in the table."""


def outcome(done: ImportedFile) -> RenderableType:
    """The dialect, a row for each name that is not as written, the problems that are left out, and the new file."""
    return Group(*_names(done.imported), *_left_out(done.imported), f"written: {done.written}")


def outcome_document(done: ImportedFile) -> Document:
    """`outcome` as JSON."""
    return {"written": str(done.written), "groups": done.groups, "imported": document(done.imported)}


def summary(forecast: Forecast, imported: TensileImport) -> Iterator[RenderableType]:
    """The dialect, a row for each name that is not as written, the counts, and the problems that are left out."""
    yield from _names(imported)
    yield titled("size groups: as written, and what is distinct and legal here", _counts(forecast, imported))
    yield from _left_out(imported)
    enqueues = sum(group.enqueues for group in imported.written)
    planned = sum(group.enqueues for group in imported.groups)
    distinct = sum(group.forecast.enqueues_before for group in forecast.groups)
    legal = sum(group.forecast.enqueues_after for group in forecast.groups)
    yield (
        f"{enqueues} enqueues as written, {planned} of them of problems that a kernel computes; "
        f"{distinct} distinct, {legal} legal"
    )
    yield ""


def _names(imported: TensileImport) -> Iterator[RenderableType]:
    yield f"read as a tuning file of Tensile's: {imported.dialect}"
    yield from (f"{location}: {sentence}" for location, sentence in imported.remarks)
    if imported.treatments:
        shown = table("what", "name", "is", "written", "becomes", "line")
        for treatment in imported.treatments:
            line = treatment.location.rpartition(":")[2]
            more = f" (+{treatment.mentions - 1})" if treatment.mentions > 1 else ""
            written = _written(treatment)
            shown.add_row(
                treatment.section, treatment.name, treatment.fate.value, written, treatment.becomes, f"{line}{more}"
            )
        yield titled("what became of the file's names", shown)


def _left_out(imported: TensileImport) -> Iterator[str]:
    for (reason, detail), problems in _by_reason(imported).items():
        listed = ", ".join(problem.location.rpartition(":")[2] for problem in problems)
        yield f"left out, since no kernel computes it: {reason} ({detail}): {len(problems)}, at line {listed}"


def document(imported: TensileImport) -> Document:
    """The import as JSON."""
    return {
        "dialect": imported.dialect.value,
        "remarks": [f"{location}: {sentence}" for location, sentence in imported.remarks],
        "treatments": [
            {
                **fields(treatment, "section", "name", "becomes", "location", "mentions"),
                "fate": treatment.fate.value,
                "written": [_plain(value) for value in treatment.written],
            }
            for treatment in imported.treatments
        ],
        "written": [_group(group) for group in imported.groups],
        "rejected": [
            {
                **fields(problem, "location", "name", "reason", "detail"),
                "written": [_group(group) for group in problem.groups],
            }
            for problem in imported.rejected
        ],
    }


def _counts(forecast: Forecast, imported: TensileImport) -> RenderableType:
    numbers = ("step", "lineages", "choices", "sizes", "written", "distinct", "legal")
    shown = table("size group", *numbers, right=numbers[1:])
    ours = {id(group): own for group, own in zip(imported.groups, forecast.groups, strict=False)}
    for group in imported.written:
        own = ours.get(id(group))
        name = own.name if own else f"{group.problem}, group {group.group}"
        for step in group.steps:
            counts = (step.lineages, step.choices, step.sizes, step.enqueues)
            shown.add_row(name, step.name, *(str(count or "") for count in counts), "", "")
            name = ""
        distinct = str(own.forecast.enqueues_before) if own else ""
        legal = str(own.forecast.enqueues_after) if own else "no kernel"
        total = f"all steps; exhaustive: {group.exhaustive}"
        shown.add_row("", total, "", "", "", str(group.enqueues), distinct, legal)
    return shown


def _by_reason(imported: TensileImport) -> dict[tuple[str, str], list[RejectedProblem]]:
    found: dict[tuple[str, str], list[RejectedProblem]] = {}
    for problem in imported.rejected:
        found.setdefault((problem.reason, problem.detail), []).append(problem)
    return found


def _group(group: WrittenGroup) -> Document:
    return {
        **fields(group, "location", "problem", "group", "enqueues", "exhaustive"),
        "steps": [fields(step, "name", "phase", "lineages", "choices", "sizes", "enqueues") for step in group.steps],
    }


def _written(treatment: Treatment) -> str:
    values = [str(_plain(value)) for value in treatment.written]
    more = f", ... ({len(values)})" if len(values) > MOST_SHOWN else ""
    text = ", ".join(values[:MOST_SHOWN]) + more
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(value: object) -> object:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
