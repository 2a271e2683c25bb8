"""The one exception for what the user can put right, and the record for what cannot run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ._printable import printable

ErrorT = TypeVar("ErrorT", bound="UserError")


class UserError(Exception):
    """A mistake of the user's: where it is, what is wrong, and what would be right.

    `location` is `file:line`, an option (`--size`) or an argument; printed as `location: what; remedy`, exit code 2.
    """

    def __init__(self, location: str, what: str, remedy: str) -> None:
        super().__init__(location, what, remedy)
        self.location, self.what, self.remedy = location, what, remedy

    @property
    def errors(self) -> tuple[UserError, ...]:
        """The mistakes that it tells: itself."""
        return (self,)

    def __str__(self) -> str:
        return printable(f"{self.location}: {self.what}; {self.remedy}")


def fresh(error: ErrorT) -> ErrorT:
    """The same mistake as an error of its own. One that was raised holds the frames it went through, and their locals;
    so what is kept, and raised again, is made anew."""
    return type(error)(error.location, error.what, error.remedy)


class SeveralError(UserError):
    """Several mistakes of the user's that were found together; as text, a line each. `location`, `what` and `remedy`
    are those of the first."""

    def __init__(self, errors: Sequence[UserError]) -> None:
        super().__init__(errors[0].location, errors[0].what, errors[0].remedy)
        self._errors = tuple(errors)

    def __reduce__(self) -> tuple[type[SeveralError], tuple[tuple[UserError, ...]]]:
        return SeveralError, (self._errors,)

    @property
    def errors(self) -> tuple[UserError, ...]:
        return self._errors

    def __str__(self) -> str:
        return "\n".join(map(str, self._errors))


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a configuration cannot be used: `reason` is a constant that reports count by, `detail` is for the person.

    `is_asked_for` where the user's own constraint says so: then it is what the user wants, and nothing to look at.
    """

    reason: str
    detail: str
    is_asked_for: bool = False

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
