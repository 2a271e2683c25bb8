"""The exception for mistakes of the user, and the record for configurations that cannot run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ._printable import printable

ErrorT = TypeVar("ErrorT", bound="UserError")


class UserError(Exception):
    """A mistake of the user: where it is, what is wrong, and how to correct it.

    `location` is `file:line`, an option (`--size`) or an argument. The error is printed as `location: what; remedy`;
    the exit code is 2.
    """

    def __init__(self, location: str, what: str, remedy: str) -> None:
        super().__init__(location, what, remedy)
        self.location, self.what, self.remedy = location, what, remedy

    @property
    def errors(self) -> tuple[UserError, ...]:
        """All mistakes of this error; here only itself."""
        return (self,)

    def __str__(self) -> str:
        return printable(f"{self.location}: {self.what}; {self.remedy}")


def unraised_copy(error: ErrorT) -> ErrorT:
    """A copy of the error that was never raised. A raised error holds the frames that it passed through, with their
    local variables; so an error that is kept and raised again must be copied first."""
    return type(error)(error.location, error.what, error.remedy)


class SeveralError(UserError):
    """Several mistakes of the user that were found together. Its text has a line for each. `location`, `what` and
    `remedy` are those of the first mistake."""

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
    """Why a configuration cannot be used. `reason` is a constant by which reports count; `detail` is for the person.

    `is_asked_for` if the user's own constraint rejects the configuration; then the rejection needs no attention.
    """

    reason: str
    detail: str
    is_asked_for: bool = False

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
