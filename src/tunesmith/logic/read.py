"""A library logic's file, read and checked: whatever is wrong with it is said with its line."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tunesmith.problems import MOST_MADE_BYTES, MOST_NODES, OPERATIONS, bytes_of, refuse_depth
from tunesmith.records import Configuration, Estimate, ProblemType, Solution, UserError, Value, freeze

from .document import READABLE, Document, Named, Origin, Regret, SizeRow
from .neighbours import SPEAK

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_REMEDY = "give a file that `tunesmith tune` wrote, or tune again"
_LARGEST = 2**63 - 1

TOP_KEYS = (
    "tunesmith-logic",
    "unfinished",
    "origin",
    "problem-type",
    "solutions",
    "fallback",
    "exact",
    "rest",
    "regret",
    "texts",
)
OPTIONAL_KEYS = ("unfinished", "rest", "regret", "texts")
ORIGIN_KEYS = ("api", "device", "kind", "architecture", "driver", "toolchain", "tunesmith", "date")
TYPE_KEYS = ("operation", "name", "indices", "fields")
SOLUTION_KEYS = ("index", "name", "kernel", "configuration")
REGRET_KEYS = ("geomean", "worst", "worst-at", "sizes")
REST = {"rule": "nearest", "sizes": SPEAK, "distance": "log2 of sizes and alignment"}
"""The only rule for sizes that were not measured; named in the file for its readers."""


def read(path: Path) -> Document:
    """The document in a file; UserError with the line for a file that cannot be read or is no library logic."""
    try:
        text = bytes_of(path, "YAML", MOST_MADE_BYTES, "name a library logic")
        refuse_depth(text, str(path))
        value = yaml.load(text, Loader=_LOADER)
        if b"&" in text and _expanded(value, {}) > MOST_NODES:
            raise UserError(str(path), f"aliases expand to more than {MOST_NODES:,} values", _REMEDY)
        return _document(_Node(value, ()))
    except _MalformedError as error:
        raise UserError(f"{path}:{_line(text, error.way)}", str(error), error.remedy) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}", f"is no YAML ({error.problem})", _REMEDY) from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        # PyYAML raises the last three for scalars and keys that contradict their tags, and for absurd nesting.
        raise UserError(f"{path}:1", f"is no YAML ({error})", _REMEDY) from error


def place_in(path: Path, *way: str | int) -> str:
    """`file:line` of the value that these keys and indices lead to in a library logic, or of what should hold it; the
    file alone where it cannot be read any more."""
    try:
        return f"{path}:{_line(bytes_of(path, 'YAML', MOST_MADE_BYTES), way)}"
    except (UserError, yaml.YAMLError):
        return str(path)


def _expanded(value: Any, known: dict[int, float]) -> float:
    """How many values there are with every alias written out; infinitely many where one stands inside of what it
    names. `known` has those of lists and mappings by their identity."""
    if not isinstance(value, (list, dict)):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        items = value if isinstance(value, list) else value.values()
        known[id(value)] = 1 + sum(_expanded(item, known) for item in items)
    return known[id(value)]


Way = tuple[str | int, ...]


class _MalformedError(Exception):
    """Something is not as it must be at the end of `way`."""

    def __init__(self, way: Way, what: str, remedy: str = _REMEDY) -> None:
        super().__init__(f"{_spelled(way)}: {what}" if way else what)
        self.way, self.remedy = way, remedy


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of the file and the way to it. Every method raises _MalformedError for a value of another kind."""

    value: Any
    way: Way

    def fields(self, keys: Collection[str], optional: Collection[str] = ()) -> dict[str, _Node]:
        if not isinstance(self.value, dict):
            raise _MalformedError(self.way, f"expected a mapping of {', '.join(keys)}")
        if unknown := [key for key in self.value if key not in keys]:
            raise _MalformedError((*self.way, unknown[0]), f"unknown key; there are {', '.join(keys)}")
        if missing := [key for key in keys if key not in self.value and key not in optional]:
            raise _MalformedError(self.way, f"{missing[0]} is missing")
        return {key: _Node(value, (*self.way, key)) for key, value in self.value.items()}

    def items(self, length: int | None = None) -> list[_Node]:
        if not isinstance(self.value, list) or (length is not None and len(self.value) != length):
            raise _MalformedError(self.way, "expected a list" + (f" of {length}" if length is not None else ""))
        return [_Node(value, (*self.way, index)) for index, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise _MalformedError(self.way, f"expected a text, found {_shown(self.value)}")
        return self.value

    def whole(self, low: int, high: int = _LARGEST) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not low <= self.value <= high:
            among = f"from {low} to {high}" if high < _LARGEST else f"of at least {low}"
            raise _MalformedError(self.way, f"expected a whole number {among}, found {_shown(self.value)}")
        return self.value

    def number(self) -> float:
        """A number of at least zero, or infinite. YAML 1.1 takes 1e-5 for a word, a person does not."""
        try:
            number = math.nan if isinstance(self.value, bool) else float(self.value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not number >= 0:
            raise _MalformedError(self.way, f"expected a number of at least zero, found {_shown(self.value)}")
        return number

    def positive(self) -> float:
        if not 0 < self.number() < math.inf:
            raise _MalformedError(self.way, f"expected a number above zero, found {_shown(self.value)}")
        return self.number()

    def bound(self) -> float:
        """The end of an interval; null where it is not known."""
        return math.nan if self.value is None else self.positive()

    def times(self, solutions: int) -> Iterator[tuple[int, float]]:
        """Seconds by the place of one of so many solutions."""
        if not isinstance(self.value, dict):
            raise _MalformedError(self.way, "expected a mapping of solutions to seconds")
        for location, seconds in self.value.items():
            yield _Node(location, self.way).whole(0, solutions - 1), _Node(seconds, self.way).positive()

    def configuration(self) -> Configuration:
        if not isinstance(self.value, dict):
            raise _MalformedError(self.way, "expected a mapping of parameters")
        return Configuration({str(key): _Node(v, (*self.way, key)).parameter() for key, v in self.value.items()})

    def parameter(self) -> Value:
        """A scalar, or a list of scalars or of such lists: deeper nesting has no meaning."""
        rows = self.value if isinstance(self.value, list) else [self.value]
        flat = [item for row in rows for item in (row if isinstance(row, list) else [row])]
        if any(isinstance(item, (list, dict)) for item in flat):
            raise _MalformedError(self.way, "expected a value or a list of values")
        try:
            return freeze(self.value)
        except TypeError as error:
            raise _MalformedError(self.way, str(error)) from None


def _document(top: _Node) -> Document:
    if not isinstance(top.value, dict) or TOP_KEYS[0] not in top.value:
        raise _MalformedError((), f"is no library logic of tunesmith: it has no key {TOP_KEYS[0]}")
    version = _Node(top.value[TOP_KEYS[0]], (TOP_KEYS[0],)).whole(1)
    if version not in READABLE:
        what = f"is format {version}, this tunesmith reads {' and '.join(map(str, READABLE))}"
        raise _MalformedError((TOP_KEYS[0],), what, "use the tunesmith that wrote it, or tune again")
    parts = top.fields(TOP_KEYS, OPTIONAL_KEYS)
    if "rest" in parts and parts["rest"].value != REST:
        raise _MalformedError(("rest",), f"expected {REST}")
    problem_type = _problem_type(parts["problem-type"], parts.get("texts"))
    solutions = tuple(_solution(node, index, problem_type) for index, node in enumerate(parts["solutions"].items()))
    if not solutions:
        raise _MalformedError(("solutions",), "there is no solution")
    _no_repeats(("solutions",), [named.name for named in solutions], within=("name",))
    rows = tuple(_row(node, len(problem_type.indices), len(solutions)) for node in parts["exact"].items())
    _no_repeats(("exact",), [row.where for row in rows])
    return Document(
        origin=Origin(**{key: node.text() for key, node in parts["origin"].fields(ORIGIN_KEYS).items()}),
        problem_type=problem_type,
        solutions=solutions,
        rows=rows,
        fallback=parts["fallback"].whole(0, len(solutions) - 1),
        regret=_regret(parts["regret"]) if "regret" in parts and parts["regret"].value is not None else None,
        unfinished=parts["unfinished"].text() if "unfinished" in parts else "",
    )


def _problem_type(node: _Node, texts: _Node | None) -> ProblemType:
    parts = node.fields(TYPE_KEYS)
    indices = [index.text() for index in parts["indices"].items()]
    if not indices:
        raise _MalformedError(parts["indices"].way, "there is no index")
    _no_repeats(parts["indices"].way, indices)
    fields = parts["fields"].configuration() | (texts.configuration() if texts else {})
    made = ProblemType(parts["operation"].text(), parts["name"].text(), tuple(indices), fields)
    if made.operation in OPERATIONS:
        try:
            OPERATIONS[made.operation].validate(made)
        except UserError as error:
            # Its place is the name of a field or of another part, where it is about one of them.
            field = (error.location,) if error.location in parts["fields"].value else ()
            about = parts.get(error.location, parts["fields"])
            raise _MalformedError((*about.way, *field), error.what, error.remedy) from error
    return made


def _solution(node: _Node, index: int, problem_type: ProblemType) -> Named:
    parts = node.fields(SOLUTION_KEYS)
    parts["index"].whole(index, index)
    solution = Solution(problem_type, parts["kernel"].text(), parts["configuration"].configuration())
    return Named(parts["name"].text(), solution)


def _row(node: _Node, indices: int, solutions: int) -> SizeRow:
    parts = node.items()
    if len(parts) not in (7, 8):
        raise _MalformedError(node.way, "expected a list of 7, or of 8 where there are ties")
    where, solution, seconds, interval, count, rate, others = parts[:7]
    sizes = _sizes(where)
    if len(sizes) < indices:
        raise _MalformedError(where.way, f"expected {indices} sizes, then leading dimensions if any")
    low, high = interval.items(2)
    estimate = Estimate(seconds.positive(), low.bound(), high.bound(), count.whole(0))
    winner = solution.whole(0, solutions - 1)
    times = tuple(others.times(solutions))
    if winner in dict(times):
        raise _MalformedError(others.way, f"solution {winner} is the size's own, and no other")
    ties = tuple(_tie(tie, times) for part in parts[7:] for tie in part.items())
    return SizeRow(sizes[:indices], sizes[indices:], winner, estimate, rate.number(), times, ties)


def _tie(node: _Node, others: Collection[tuple[int, float]]) -> int:
    tie = node.whole(0)
    if tie not in dict(others):
        raise _MalformedError(node.way, f"solution {tie} has no time at this size, so that it can tie with none")
    return tie


def _regret(node: _Node) -> Regret:
    parts = node.fields(REGRET_KEYS)
    return Regret(
        parts["geomean"].number(),
        parts["worst"].number(),
        _sizes(parts["worst-at"]),
        tuple((_sizes(where), regret.number()) for where, regret in (pair.items(2) for pair in parts["sizes"].items())),
    )


def _sizes(node: _Node) -> tuple[int, ...]:
    return tuple(item.whole(1) for item in node.items())


def _no_repeats(way: Way, things: Collection[object], within: Way = ()) -> None:
    seen = set()
    for index, thing in enumerate(things):
        if thing in seen:
            raise _MalformedError((*way, index, *within), f"{_shown(thing)} is there twice")
        seen.add(thing)


def _line(text: bytes, way: Way) -> int:
    """The line of the value at the end of `way`, or of what holds it when it is missing."""
    node: Any = yaml.compose(text, Loader=_LOADER)
    for step in way:
        following = next(_child(node, step), None)
        if following is None:
            break
        node = following
    return int(node.start_mark.line) + 1 if node is not None else 1


def _child(node: Any, step: str | int) -> Iterator[Any]:
    if isinstance(node, yaml.MappingNode):
        yield from (value for key, value in node.value if key.value == str(step))
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        yield from node.value[step : step + 1]


def _spelled(way: Way) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way).lstrip(".")


def _shown(value: object) -> str:
    """Short, however much a few aliases blow it up."""
    return reprlib.repr(value)
