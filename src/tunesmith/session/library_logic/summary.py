"""What is in a library logic, Tensile's or ours (`tunesmith logic show`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tunesmith.formats.tensile.library.read import is_tensile_logic, read_logic
from tunesmith.formats.tensile.library.records import RangeRule, RegionCondition, TensileLogic
from tunesmith.logic import Document, Logic, ShippedHead, logic_files, only_logic, shipped_under
from tunesmith.problems.gemm import DATA_TYPES, dest_of
from tunesmith.records import UserError, thaw


@dataclass(frozen=True, slots=True)
class SummarySolution:
    """A solution, and for how many exact sizes it is chosen. `kernel` is our family, or Tensile's language."""

    index: int
    name: str
    kernel: str
    sizes: int
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """An exact size with its solution's index and the recorded speed."""

    sizes: tuple[int, ...]
    leading: tuple[int, ...]
    solution: int
    speed: float


@dataclass(frozen=True)
class LogicSummary:
    """What is in a file. `form` says how it is written: Tensile's list, Tensile's keys, or tunesmith.

    `others` tells in words how sizes without a row are answered; `distance` is empty without a table. `data_types` are
    the letters of operands, result and sums. `ranges` and `regions` describe one rule each.
    """

    path: str
    form: str
    version: str
    schedule: str
    architecture: str
    compute_units: int | None
    is_apu: bool | None
    devices: tuple[str, ...]
    problem_type: str
    size_names: tuple[str, ...]
    data_types: tuple[str, ...]
    metric: str
    distance: str
    others: str
    solutions: tuple[SummarySolution, ...]
    rows: tuple[SummaryRow, ...]
    ranges: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


OTHERS = {
    "Equality": "none: only exact sizes are answered",
    "GridBased": "the next grid point in M and N with the nearest K",
    "Random": "by chance",
}
"""How sizes without a row are answered, by distance."""


def summary_of(path: Path) -> LogicSummary:
    """What is in the file, or in the shipped logic of this name (`shipped_under`).

    Raises UserError for a file that is no library logic, Tensile's or ours, and for a name of several.
    """
    if found := shipped_under(path):
        _, shipped = found
        return replace(_of_ours(only_logic(path, shipped).document, path), notes=tuple(_making(shipped.head)))
    if path.is_dir():
        raise UserError(str(path), "is a folder", "name one of its files of library logic")
    if is_tensile_logic(path):
        return _of_tensile(read_logic(path))
    return _of_ours(Logic.load(path).document, path)


def _making(head: ShippedHead) -> Iterator[str]:
    """How a shipped logic was made."""
    yield f"ships with tunesmith; measured on {head.device}, driver {head.driver}, {head.toolchain}, until {head.date}"
    yield f"lists of problems: {', '.join(head.lists)}"
    yield from (f"made by: {command}" for command in head.commands)


def ours_in(folder: Path, problem_type: str) -> tuple[Path, Document]:
    """The file of our logic of a type; without a type the only one. Raises UserError if there is none, or several."""
    documents = {path: Logic.load(path).document for path in logic_files(folder)}
    names = ", ".join(document.problem_type.name for document in documents.values())
    if not documents:
        raise UserError(str(folder), "holds no library logic", "name the output folder of `tunesmith tune`")
    found = {path: document for path, document in documents.items() if problem_type in ("", document.problem_type.name)}
    if not found:
        raise UserError("--type", f"{folder} has no logic of {problem_type}", f"it has {names}")
    if len(found) > 1:
        raise UserError("--type", f"{folder} has {len(found)} logics", f"name the file, or one type of {names}")
    return next(iter(found.items()))


def _of_tensile(logic: TensileLogic) -> LogicSummary:
    kind = logic.problem_type
    chosen = Counter(row.solution for row in logic.rows)
    distance = logic.distance.value if logic.distance is not None else ""
    others = OTHERS.get(distance, f"the nearest row, by the distance {distance}")
    if logic.ranges:
        others = "by the range rules, then " + others
    if logic.regions:
        others = "by decision trees"
    return LogicSummary(
        path=logic.path,
        form=f"Tensile's {logic.form}",
        version=logic.version,
        schedule=logic.schedule,
        architecture=logic.hardware.architecture,
        compute_units=logic.hardware.compute_units,
        is_apu=logic.hardware.is_apu,
        devices=logic.devices,
        problem_type=kind.name,
        size_names=kind.size_names,
        data_types=tuple(data_type.letters for data_type in (kind.data_type, kind.dest, kind.compute)),
        metric=" ".join((logic.metric, *logic.variants)),
        distance=distance,
        others=others,
        solutions=tuple(
            SummarySolution(
                found.index,
                found.name,
                str(found.parameters.get("KernelLanguage", "")),
                chosen[found.index],
                found.parameters,
            )
            for found in logic.solutions
        ),
        rows=tuple(SummaryRow(row.sizes, row.leading, row.solution, row.speed) for row in logic.rows),
        ranges=tuple(_ranges(logic.ranges, [kind.size_names[index] for index in logic.index_order])),
        regions=tuple(_regions(logic)),
        notes=logic.notes,
    )


def _of_ours(document: Document, path: Path) -> LogicSummary:
    kind, origin = document.problem_type, document.origin
    chosen = Counter(row.solution for row in document.rows)
    letters = str(kind.fields.get("DataType", ""))
    sums = {"float32": "S", "float64": "D", "int32": "I"}
    is_gemm = kind.operation == "GEMM"
    return LogicSummary(
        path=str(path),
        form="tunesmith",
        version=origin.tunesmith,
        schedule="",
        architecture=origin.architecture,
        compute_units=None,
        is_apu=None,
        devices=(origin.device,),
        problem_type=kind.name,
        size_names=kind.indices,
        data_types=(letters.upper(), dest_of(kind).upper(), sums[DATA_TYPES[letters].sums]) if is_gemm else (),
        metric=document.unit.rate,
        distance="log2",
        others="the solution that lost least at the nearest sizes",
        solutions=tuple(
            SummarySolution(
                index,
                named.name,
                named.solution.kernel,
                chosen[index],
                {name: thaw(value) for name, value in named.solution.configuration.items()},
            )
            for index, named in enumerate(document.solutions)
        ),
        rows=tuple(SummaryRow(row.sizes, row.leading, row.solution, row.rate) for row in document.rows),
        notes=(document.unfinished,) if document.unfinished else (),
    )


def _ranges(rules: tuple[RangeRule, ...], names: list[str], limits: tuple[str, ...] = ()) -> Iterator[str]:
    """A line for each innermost rule, in the order in which they are asked."""
    for rule in rules:
        own = limits if rule.threshold < 0 else (*limits, f"{names[0]} <= {rule.threshold}")
        if isinstance(rule.inner, int):
            yield f"{', '.join(own) or 'any size'}: solution {rule.inner}"
        else:
            yield from _ranges(rule.inner, names[1:], own)


def _regions(logic: TensileLogic) -> Iterator[str]:
    for region in logic.regions:
        where = ", ".join(_condition(condition, logic.problem_type.size_names) for condition in region.conditions)
        nodes = sum(len(tree.nodes) for tree in region.trees)
        fallback = f"fallback solution {region.fallback}" if region.fallback is not None else "no fallback"
        yield f"{where or 'any size'}: {len(region.trees)} trees of {nodes} nodes, {fallback}"


def _condition(condition: RegionCondition, names: tuple[str, ...]) -> str:
    if condition.inner:
        return f"{condition.name}({', '.join(_condition(part, names) for part in condition.inner)})"
    if isinstance(condition.value, tuple):
        low, high = condition.value
        return f"{low} <= {names[condition.index]}" + (f" < {high}" if high < 2**63 - 1 else "")
    if condition.name.startswith("Size"):
        return f"{condition.name}({names[condition.index]}, {condition.value})"
    return f"{condition.name}({condition.value})"
