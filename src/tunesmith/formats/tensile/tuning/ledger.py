"""Collects what became of each name of a file: each name once, with all values that the file gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tunesmith.records import Value

from .record import Fate, Treatment

MOST_VALUES = 24
"""The most distinct values of one name that are kept."""


@dataclass
class _Page:
    becomes: str
    location: str
    written: dict[tuple[type, Value], None] = field(default_factory=dict)
    mentions: int = 0


class NameLedger:
    """Treatments by section, name and fate, in the order of their first mention.

    `is_foreign`: something was found that only Tensile's files have. Treatments that are no such sign (`weak`) are also
    made for files of our own, which are then read as they stand.
    """

    def __init__(self) -> None:
        self._pages: dict[tuple[str, str, Fate], _Page] = {}
        self._remarks: dict[tuple[str, str], None] = {}
        self.is_foreign = False

    def add(
        self,
        section: str,
        name: str,
        fate: Fate,
        becomes: str,
        location: str,
        written: Iterable[Value] = (),
        weak: bool = False,
    ) -> None:
        page = self._pages.setdefault((section, name, fate), _Page(becomes, location))
        for value in written:
            if len(page.written) < MOST_VALUES:
                page.written[type(value), value] = None
        page.mentions += 1
        self.is_foreign |= not weak

    def remark(self, location: str, sentence: str) -> None:
        """A sentence about the dialect; told once for a file."""
        if all(sentence != earlier for _, earlier in self._remarks):
            self._remarks[location, sentence] = None

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._remarks)

    def treatments(self) -> Iterator[Treatment]:
        for (section, name, fate), page in self._pages.items():
            written = tuple(value for _, value in page.written)
            yield Treatment(section, name, fate, page.becomes, page.location, written, page.mentions)
