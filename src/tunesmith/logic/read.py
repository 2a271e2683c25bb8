"""Reads and checks a library logic file. Errors name the line of the mistake."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tunesmith.problems import MOST_GENERATED_BYTES, MOST_NODES, OPERATIONS, bytes_of, refuse_depth
from tunesmith.records import Configuration, Estimate, ProblemType, Solution, UserError, Value, freeze

from .document import READABLE, Document, NamedSolution, Origin, Regret, SizeRow
from .neighbours import NEAREST_COUNT

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_REMEDY = "give a file that `tunesmith tune` wrote, or tune again"
_LARGEST = 2**63 - 1

_KEY = "tunesmith-logic"
TOP_KEYS = (
    _KEY,
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
REST = {"rule": "nearest", "sizes": NEAREST_COUNT, "distance": "log2 of sizes and alignment"}
"""The only rule for sizes that were not measured. The file states it for its readers."""


def read(path: Path) -> Document:
    """The document in a file. Raises UserError, with the line, if the file cannot be read or is no library logic."""
    try:
        text = bytes_of(path, "YAML", MOST_GENERATED_BYTES, "name a library logic")
        refuse_depth(text, str(path))
        value = yaml.load(text, Loader=_LOADER)
        if b"&" in text and _expanded_count(value, {}) > MOST_NODES:
            raise UserError(str(path), f"aliases expand to more than {MOST_NODES:,} values", _REMEDY)
        return _document(_Node(value, ()))
    except _MalformedError as error:
        raise UserError(f"{path}:{_line_of(text, error.key_path)}", str(error), error.remedy) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}", f"is no YAML ({error.problem})", _REMEDY) from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        # PyYAML raises the last three for scalars and keys that contradict their tags, and for absurd nesting.
        raise UserError(f"{path}:1", f"is no YAML ({error})", _REMEDY) from error


def document_of(value: Any, name: str) -> Document:
    """The document in a value that `plain_of` made, and that was kept elsewhere than in YAML. Raises UserError, with
    `name` as its location, for any other value."""
    try:
        return _document(_Node(value, ()))
    except _MalformedError as error:
        raise UserError(name, str(error), error.remedy) from None


def location_in(path: Path, *key_path: str | int) -> str:
    """`file:line` of the value in a library logic that these keys and indices lead to. If the value is missing, the
    line of the mapping or list that should have it. The file alone if the file cannot be read any more."""
    try:
        return f"{path}:{_line_of(bytes_of(path, 'YAML', MOST_GENERATED_BYTES), key_path)}"
    except (UserError, yaml.YAMLError):
        return str(path)


def _expanded_count(value: Any, counts: dict[int, float]) -> float:
    """The number of values with every alias written out; infinite if an alias stands inside of the value that it names.
    `counts` holds the numbers of lists and mappings by identity."""
    if not isinstance(value, (list, dict)):
        return 1
    if id(value) not in counts:
        counts[id(value)] = math.inf
        items = value if isinstance(value, list) else value.values()
        counts[id(value)] = 1 + sum(_expanded_count(item, counts) for item in items)
    return counts[id(value)]


KeyPath = tuple[str | int, ...]


class _MalformedError(Exception):
    """A mistake in the value at the end of `key_path`."""

    def __init__(self, key_path: KeyPath, what: str, remedy: str = _REMEDY) -> None:
        super().__init__(f"{_as_text(key_path)}: {what}" if key_path else what)
        self.key_path, self.remedy = key_path, remedy


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of the file, and the keys and indices that lead to it. Every method raises _MalformedError for a value of
    another kind."""

    value: Any
    key_path: KeyPath

    def fields(self, keys: Collection[str], optional: Collection[str] = ()) -> dict[str, _Node]:
        if not isinstance(self.value, dict):
            raise _MalformedError(self.key_path, f"expected a mapping of {', '.join(keys)}")
        if unknown := [key for key in self.value if key not in keys]:
            raise _MalformedError((*self.key_path, unknown[0]), f"unknown key; there are {', '.join(keys)}")
        if missing := [key for key in keys if key not in self.value and key not in optional]:
            raise _MalformedError(self.key_path, f"{missing[0]} is missing")
        return {key: _Node(value, (*self.key_path, key)) for key, value in self.value.items()}

    def items(self, length: int | None = None) -> list[_Node]:
        if not isinstance(self.value, list) or (length is not None and len(self.value) != length):
            raise _MalformedError(self.key_path, "expected a list" + (f" of {length}" if length is not None else ""))
        return [_Node(value, (*self.key_path, index)) for index, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise _MalformedError(self.key_path, f"expected a text, found {_shown(self.value)}")
        return self.value

    def whole(self, low: int, high: int = _LARGEST) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not low <= self.value <= high:
            among = f"from {low} to {high}" if high < _LARGEST else f"of at least {low}"
            raise _MalformedError(self.key_path, f"expected a whole number {among}, found {_shown(self.value)}")
        return self.value

    def number(self) -> float:
        """A number of at least zero, or infinite. Text such as 1e-5 is taken, too, which YAML 1.1 reads as a string."""
        try:
            number = math.nan if isinstance(self.value, bool) else float(self.value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not number >= 0:
            raise _MalformedError(self.key_path, f"expected a number of at least zero, found {_shown(self.value)}")
        return number

    def positive(self) -> float:
        if not 0 < self.number() < math.inf:
            raise _MalformedError(self.key_path, f"expected a number above zero, found {_shown(self.value)}")
        return self.number()

    def bound(self) -> float:
        """The end of an interval; NaN for null, an unknown end."""
        return math.nan if self.value is None else self.positive()

    def times(self, solutions: int) -> Mapping[int, float]:
        """Seconds by the index of a solution, which is below `solutions`."""
        if not isinstance(self.value, dict):
            raise _MalformedError(self.key_path, "expected a mapping of solutions to seconds")
        times: dict[int, float] = {}
        for index, seconds in self.value.items():
            # A file has tens of thousands of pairs. Only one that is written in another way, or wrong, needs a node.
            if type(index) is int and type(seconds) is float and 0 <= index < solutions and 0 < seconds < math.inf:
                times[index] = seconds
            else:
                number = _Node(index, self.key_path).whole(0, solutions - 1)
                times[number] = _Node(seconds, self.key_path).positive()
        return times

    def configuration(self) -> Configuration:
        if not isinstance(self.value, dict):
            raise _MalformedError(self.key_path, "expected a mapping of parameters")
        return Configuration({str(key): _Node(v, (*self.key_path, key)).parameter() for key, v in self.value.items()})

    def parameter(self) -> Value:
        """A scalar, a list of scalars, or a list of such lists. Deeper nesting has no meaning."""
        rows = self.value if isinstance(self.value, list) else [self.value]
        flat = [item for row in rows for item in (row if isinstance(row, list) else [row])]
        if any(isinstance(item, (list, dict)) for item in flat):
            raise _MalformedError(self.key_path, "expected a value or a list of values")
        try:
            return freeze(self.value)
        except TypeError as error:
            raise _MalformedError(self.key_path, str(error)) from None


def _document(top: _Node) -> Document:
    if not isinstance(top.value, dict) or _KEY not in top.value:
        raise _MalformedError((), f"is no library logic of tunesmith: it has no key {_KEY}")
    version = _Node(top.value[_KEY], (_KEY,)).whole(1)
    if version not in READABLE:
        what = f"is format {version}, this tunesmith reads {' and '.join(map(str, READABLE))}"
        raise _MalformedError((_KEY,), what, "use the tunesmith that wrote it, or tune again")
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
        raise _MalformedError(parts["indices"].key_path, "there is no index")
    _no_repeats(parts["indices"].key_path, indices)
    fields = parts["fields"].configuration() | (texts.configuration() if texts else {})
    problem_type = ProblemType(parts["operation"].text(), parts["name"].text(), tuple(indices), fields)
    if problem_type.operation in OPERATIONS:
        try:
            OPERATIONS[problem_type.operation].validate(problem_type)
        except UserError as error:
            # The error's location is the name of a field or of another part, if the mistake is in one of them.
            field = (error.location,) if error.location in parts["fields"].value else ()
            part = parts.get(error.location, parts["fields"])
            raise _MalformedError((*part.key_path, *field), error.what, error.remedy) from error
    return problem_type


def _solution(node: _Node, index: int, problem_type: ProblemType) -> NamedSolution:
    parts = node.fields(SOLUTION_KEYS)
    parts["index"].whole(index, index)
    solution = Solution(problem_type, parts["kernel"].text(), parts["configuration"].configuration())
    return NamedSolution(parts["name"].text(), solution)


def _row(node: _Node, indices: int, solutions: int) -> SizeRow:
    parts = node.items()
    if len(parts) not in (7, 8):
        raise _MalformedError(node.key_path, "expected a list of 7, or of 8 where there are ties")
    where, solution, seconds, interval, count, rate, others = parts[:7]
    sizes = _sizes(where)
    if len(sizes) < indices:
        raise _MalformedError(where.key_path, f"expected {indices} sizes, then leading dimensions if any")
    low, high = interval.items(2)
    estimate = Estimate(seconds.positive(), low.bound(), high.bound(), count.whole(0))
    winner = solution.whole(0, solutions - 1)
    times = others.times(solutions)
    if winner in times:
        raise _MalformedError(others.key_path, f"solution {winner} is the size's own, and no other")
    ties = tuple(_tie(tie, times) for part in parts[7:] for tie in part.items())
    return SizeRow(sizes[:indices], sizes[indices:], winner, estimate, rate.number(), times, ties)


def _tie(node: _Node, others: Mapping[int, float]) -> int:
    tie = node.whole(0)
    if tie not in others:
        raise _MalformedError(node.key_path, f"solution {tie} has no time at this size, so that it can tie with none")
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
    # As in `times`, only sizes that are written in another way, or wrong, need nodes.
    if isinstance(node.value, list) and all(type(size) is int and size > 0 for size in node.value):
        return tuple(node.value)
    return tuple(item.whole(1) for item in node.items())


def _no_repeats(key_path: KeyPath, values: Collection[object], within: KeyPath = ()) -> None:
    """Raises _MalformedError at the first value that occurs twice."""
    earlier = set()
    for index, value in enumerate(values):
        if value in earlier:
            raise _MalformedError((*key_path, index, *within), f"{_shown(value)} is there twice")
        earlier.add(value)


def _line_of(text: bytes, key_path: KeyPath) -> int:
    """The line of the value at the end of `key_path`; if the value is missing, the line of what should hold it."""
    node: Any = yaml.compose(text, Loader=_LOADER)
    for key in key_path:
        child = next(_child(node, key), None)
        if child is None:
            break
        node = child
    return int(node.start_mark.line) + 1 if node is not None else 1


def _child(node: Any, step: str | int) -> Iterator[Any]:
    if isinstance(node, yaml.MappingNode):
        yield from (value for key, value in node.value if key.value == str(step))
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        yield from node.value[step : step + 1]


def _as_text(key_path: KeyPath) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key_path).lstrip(".")


def _shown(value: object) -> str:
    """The value as a short text, even if a few aliases expand to many values."""
    return reprlib.repr(value)
