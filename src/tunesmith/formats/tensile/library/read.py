"""Reads a Tensile library logic in any of its forms.

The list form has its elements by position (`LIST_ELEMENTS`); the other form has keys. The library of a file is a table
of exact sizes, to which old files add range rules, or regions with decision trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith.problems import Mistakes, beginning_of, most_similar
from tunesmith.problems.files import MOST_GENERATED_BYTES
from tunesmith.records import UserError

from .contraction import read_type
from .marked_yaml import Located, MarkedDict, MarkedList, read_marked
from .read_solutions import read_solutions
from .read_tables import index_order, read_ranges, read_rows
from .read_trees import read_regions
from .records import Distance, LogicForm, LogicHardware, TensileLogic

VERSION = "MinimumRequiredVersion"
LIST_ELEMENTS = (
    VERSION, "ScheduleName", "ArchitectureName", "DeviceNames", "ProblemType", "Solutions", "indexOrder", "table",
    "range logic", "TileSelectionIndices", "PerfMetric", "Fp16AltImpl", "distance", "Fp16AltImplRound",
)  # fmt: skip
"""What the elements of the list form are; the first eight must be there."""
NEEDED_ELEMENTS = 8

KEYS = (
    VERSION, "ScheduleName", "ArchitectureName", "CUCount", "IsAPU", "DeviceNames", "ProblemType", "Solutions",
    "LibraryType", "Library", "PerfMetric", "Fp16AltImpl", "Fp16AltImplRound", "ExactLogic",
)  # fmt: skip
MATCHING, DECISION_TREE = "Matching", "DecisionTree"
LIBRARY_TYPES = (MATCHING, DECISION_TREE)
VARIANTS = ("Fp16AltImpl", "Fp16AltImplRound")
METRICS = ("DeviceEfficiency", "CUEfficiency", "ExperimentalGrid", "ExperimentalDTree")

_REMEDY = "give a library logic of Tensile"


def is_tensile_logic(path: Path) -> bool:
    """Whether a file may be a library logic of Tensile: all of them say which version they need."""
    return path.is_file() and VERSION.encode() in beginning_of(path, "YAML", MOST_GENERATED_BYTES)


def read_logic(path: Path) -> TensileLogic:
    """The library logic in a file. Raises UserError, with file and line, for a file that is none."""
    content = read_marked(path, "Tensile's library logic")
    if isinstance(content, MarkedList):
        return _logic(_of_list(Located(content, str(path), content.line, "")))
    if isinstance(content, MarkedDict):
        return _logic(_of_keys(Located(content, str(path), content.line, "")))
    raise UserError(f"{path}:1", "is neither a list nor keys with values", _REMEDY)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a file, whatever its form. `table` and `ranges` are those of a matching library, `trees` that of
    decision trees."""

    root: Located
    form: LogicForm
    version: Located
    schedule: Located
    hardware: LogicHardware
    devices: Located | None
    problem_type: Located
    solutions: Located
    order: Located | None = None
    table: Located | None = None
    ranges: Located | None = None
    distance: Located | None = None
    trees: Located | None = None
    metric: Located | None = None
    variants: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _of_list(root: Located) -> _Parts:
    count = len(root.sequence())
    if count < NEEDED_ELEMENTS:
        what = f"a list of {count} elements; a library logic has at least {NEEDED_ELEMENTS}"
        raise UserError(root.location, what, f"the elements are {', '.join(LIST_ELEMENTS[:NEEDED_ELEMENTS])}")
    parts = {name: root.item(index, name) for index, name in enumerate(LIST_ELEMENTS[:count])}
    present = {name: part for name, part in parts.items() if part.value is not None}
    notes = [f"{root.file}: elements from {len(LIST_ELEMENTS)} on are not read"] * (count > len(LIST_ELEMENTS))
    if "TileSelectionIndices" in present and present["TileSelectionIndices"].value:
        notes.append(f"{parts['TileSelectionIndices'].location}: TileSelectionIndices is not read")
    return _Parts(
        root,
        LogicForm.LIST,
        version=parts[VERSION].need(VERSION),
        schedule=parts["ScheduleName"],
        hardware=_hardware(parts["ArchitectureName"]),
        devices=parts["DeviceNames"],
        problem_type=parts["ProblemType"],
        solutions=parts["Solutions"],
        order=parts["indexOrder"],
        table=parts["table"],
        ranges=present.get("range logic"),
        distance=present.get("distance"),
        metric=present.get("PerfMetric"),
        variants=tuple(name for name in VARIANTS if name in present and present[name].value == name),
        notes=tuple(notes),
    )


def _of_keys(root: Located) -> _Parts:
    mistakes = Mistakes()
    for key in (VERSION, "ProblemType", "Solutions", "Library"):
        with mistakes.caught():
            root.need(key)
    mistakes.tell()
    library = root.need("Library")
    kind = _library_type(root, library)
    notes = tuple(
        f"{root.file}:{root.mapping().line_of(key)}: {key} is not read" for key in root.mapping() if key not in KEYS
    )
    is_table = kind == MATCHING
    return _Parts(
        root,
        LogicForm.KEYS,
        version=root.need(VERSION),
        schedule=root.need("ScheduleName"),
        hardware=_hardware(root.need("ArchitectureName"), root),
        devices=root.get("DeviceNames"),
        problem_type=root.need("ProblemType"),
        solutions=root.need("Solutions"),
        order=library.need("indexOrder") if is_table else None,
        table=library.need("table") if is_table else None,
        distance=library.get("distance") if is_table else None,
        trees=library if not is_table else None,
        metric=_not_null(root.get("PerfMetric")),
        variants=tuple(name for name in VARIANTS if (found := _not_null(root.get(name))) and found.flag()),
        notes=notes,
    )


def _library_type(root: Located, library: Located) -> str:
    """The library's type; if the file does not tell it, what its shape says."""
    found = root.get("LibraryType")
    if found is None:
        return DECISION_TREE if isinstance(library.value, MarkedList) else MATCHING
    if found.value not in LIBRARY_TYPES:
        raise found.wrong(f"{found.word()} is not read here", f"there are {', '.join(LIBRARY_TYPES)}")
    return str(found.value)


def _logic(parts: _Parts) -> TensileLogic:
    problem_type = read_type(parts.problem_type)
    solutions = read_solutions(parts.solutions, problem_type, parts.problem_type.value)
    logic = TensileLogic(
        path=parts.root.file,
        form=parts.form,
        version=str(parts.version.value),
        schedule=parts.schedule.word(),
        hardware=parts.hardware,
        devices=tuple(_devices(parts.devices)),
        problem_type=problem_type,
        solutions=solutions,
        metric=_metric(parts.metric),
        variants=parts.variants,
        notes=parts.notes,
    )
    if parts.table is None or parts.order is None:
        assert parts.trees is not None, "a library without a table has trees"
        return replace(logic, regions=read_regions(parts.trees, problem_type, len(solutions)))
    order = index_order(parts.order, problem_type)
    distance = _distance(parts.distance)
    return replace(
        logic,
        index_order=order,
        rows=read_rows(parts.table, problem_type, len(solutions), distance),
        ranges=read_ranges(parts.ranges, order, len(solutions)) if parts.ranges is not None else (),
        distance=distance,
        distance_line=parts.distance.line if parts.distance is not None else parts.table.line,
    )


def _hardware(node: Located, root: Located | None = None) -> LogicHardware:
    """The architecture as a word, or as a mapping with CUCount and IsAPU, which may also be keys of the file."""
    more = root if root is not None else node
    architecture = node.need("Architecture") if isinstance(node.value, MarkedDict) else node
    if not isinstance(more.value, MarkedDict):
        return LogicHardware(architecture.word())
    units, apu = _not_null(more.get("CUCount")), _not_null(more.get("IsAPU"))
    return LogicHardware(
        architecture.word(),
        units.whole(1, 2**31 - 1) if units is not None else None,
        apu.flag() if apu is not None else None,
    )


def _devices(node: Located | None) -> Iterator[str]:
    if node is not None and node.value is not None:
        yield from (str(item.value) for item in node.items())


def _distance(node: Located | None) -> Distance:
    """Euclidean if the file names none."""
    if node is None or node.value is None:
        return Distance.EUCLIDEAN
    name, known = node.word(), [distance.value for distance in Distance]
    if name not in known:
        similar = most_similar(name, known)
        raise node.wrong(
            f"there is no distance {name}", f"did you mean {similar}?" if similar else f"there are {', '.join(known)}"
        )
    return Distance(name)


def _metric(node: Located | None) -> str:
    if node is None:
        return METRICS[0]
    if node.value not in METRICS:
        raise node.wrong(f"{node.word()} is no metric", f"there are {', '.join(METRICS)}")
    return str(node.value)


def _not_null(node: Located | None) -> Located | None:
    """A key's value; None if it is absent or null."""
    return None if node is None or node.value is None else node
