"""One text from sources and macros. The text compiles without options: it defines every macro."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tunesmith.kernels.base import source

Macros = Mapping[str, int | str]

BEFORE_ALL = ("dialect.h", "vectors.h", "visits.h", "operand.h", "output.h")


@dataclass(frozen=True, slots=True)
class Section:
    """A source with the macros for this source alone. A name such as `NAME(x)` defines a macro with arguments."""

    source: str
    macros: Macros


def text_of(macros: Macros, sections: Iterable[Section]) -> str:
    """The text of all sections; `macros` are defined for the whole text."""
    parts = [*_defined(macros), *map(_source, BEFORE_ALL)]
    for section in sections:
        parts += [*_defined(section.macros), _source(section.source)]
        parts += [f"#undef {name.partition('(')[0]}" for name in section.macros]
    return "\n".join(parts) + "\n"


def named(macro: str, suffix: str) -> dict[str, str]:
    """The macro that makes a source's names differ from the names of the same source elsewhere in the text."""
    return {f"{macro}(x)": f"x##{suffix}"}


def _defined(macros: Macros) -> Iterator[str]:
    yield from (f"#define {name} {value}" for name, value in macros.items())


def _source(name: str) -> str:
    return source(__package__, "source", name).rstrip("\n")
