"""The one exception for what the user can put right, and the record for what cannot run."""

from __future__ import annotations

from dataclasses import dataclass

from ._printable import printable


class UserError(Exception):
    """A mistake of the user's: where it is, what is wrong, and what would be right.

    `place` is `file:line`, an option (`--size`) or an argument; printed as `place: what; remedy`, exit code 2.
    """

    def __init__(self, place: str, what: str, remedy: str) -> None:
        super().__init__(place, what, remedy)
        self.place, self.what, self.remedy = place, what, remedy

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.what}; {self.remedy}")


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a configuration cannot be used: `reason` is a constant that reports count by, `detail` is for the person."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
