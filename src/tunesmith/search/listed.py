"""Candidates that are a list and no product of values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tunesmith.records import Configuration

from ._base import Candidates


@dataclass(frozen=True)
class Listed(Candidates):
    """The legal configurations of a list, numbered in its order."""

    listed: tuple[Configuration, ...] = ()

    @staticmethod
    def of_list(configurations: Iterable[Configuration]) -> Listed:
        """All of them are taken to be legal; each counts once."""
        return Listed(Configuration(), (), lambda config: True, tuple(dict.fromkeys(configurations)))

    @property
    def combinations(self) -> int:
        return len(self.listed)

    def combination(self, number: int) -> Configuration:
        return self.listed[number]
