"""The page of Tensile's names, made from the tables with which tunesmith translates Tensile's tuning files."""

from __future__ import annotations

from collections.abc import Iterable

from tunesmith.formats.tensile.tuning import names
from tunesmith.formats.tensile.tuning.geometry import FORMULAS, OLDER_NAMES
from tunesmith.protocol.tensile import ANSWERED_GLOBALS, ANSWERED_LOGIC, IGNORED_GLOBALS, IGNORED_LOGIC

_OPENING = """# Names of Tensile's tuning files

This page is made from the tables with which tunesmith [translates Tensile's tuning files](from-tensile.md). A parameter
that is on neither this page nor among [our parameters](parameters.md) is a mistake, in any dialect."""


def page() -> str:
    """The page in Markdown."""
    parts = " and ".join(", ".join(f"`{name}`" for name in formula.parameters) for formula in FORMULAS[::2])
    tiles = " and ".join(", ".join(f"`{name}`" for name in formula.parameters) for formula in FORMULAS[1::2])
    sections = [
        _OPENING,
        "## Translated parameters",
        _table(("Tensile's", "here"), (_code(row) for row in (names.RENAMED | OLDER_NAMES).items())),
        f"`WorkGroup` is made of {parts}. `ThreadTile` is made of {tiles}.",
        "## Translated values",
        _table(("parameter", "values", "here"), _values()),
        "## Held parameters",
        "Each has one value here, whatever the file lists. A list of several values collapses.",
        _table(("what holds instead", "parameters"), _held()),
        "## Fields of a problem type",
        _table(
            ("field", "why it changes nothing"), ((f"`{n}`", t) for n, t in names.TYPE_FIELDS_WITHOUT_MEANING.items())
        ),
        "## Rejected problem types",
        _table(("asked for by", "reason"), _rejected()),
        "## Settings",
        _table(("setting", "here"), ((f"`{n}`", t) for n, t in (ANSWERED_GLOBALS | ANSWERED_LOGIC).items())),
        "Without a counterpart: " + ", ".join(f"`{name}`" for name in sorted(IGNORED_GLOBALS | IGNORED_LOGIC)) + ".",
    ]
    return "\n\n".join(sections) + "\n"


def _code(row: tuple[str, str]) -> tuple[str, ...]:
    return tuple(f"`{word}`" for word in row)


def _values() -> Iterable[tuple[str, ...]]:
    for name, table in names.VALUES.items():
        listed = list(table)
        shown = ", ".join(f"`{value}`" for value in listed[:5]) + (", ..." if len(listed) > 5 else "")
        meaning = names.MEANINGS.get(name)
        yield f"`{name}`", shown, meaning or ", ".join(f"`{old}` is {_own(own)}" for old, own in table.items())
    yield "`MatrixInstruction`", "lists", names.MEANINGS["MatrixInstruction"]


def _own(own: object) -> str:
    return own.value if isinstance(own, names.Instead) else f"`{own}`"


def _held() -> Iterable[tuple[str, ...]]:
    for reason in dict.fromkeys(names.HELD.values()):
        yield reason, ", ".join(f"`{name}`" for name, why in names.HELD.items() if why == reason)
    beside = ", ".join(f"`{name}`" for name in names.ONLY_BESIDE_SCHEDULE)
    yield "only kernels with a `Schedule` have them", beside


def _rejected() -> Iterable[tuple[str, ...]]:
    yield "`OperationType: TensorContraction`", "tensor contraction"
    yield "`OperationType: Convolution...`", "convolution"
    for word, reason in names.UNAVAILABLE_TYPES.items():
        yield f"data type `{word}`", reason
    for field, reason in names.REJECTING_FIELDS.items():
        yield f"`{field}`", reason
    yield "data types that no kernel computes together", "data types"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ("---",) * len(header), *rows))
