"""All mistakes of a file at once: each is collected where it is found, and all are raised when reading has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tunesmith.records import SeveralError, UserError

ItemT = TypeVar("ItemT")
ReadT = TypeVar("ReadT")


class Mistakes:
    """Collects mistakes, each once, so that a reader can go on with the next part of a file."""

    def __init__(self) -> None:
        self._collected: dict[tuple[str, str], UserError] = {}

    @property
    def count(self) -> int:
        return len(self._collected)

    @property
    def collected(self) -> tuple[UserError, ...]:
        return tuple(self._collected.values())

    def add(self, error: UserError) -> None:
        for mistake in error.errors:
            self._collected.setdefault((mistake.location, mistake.what), mistake)

    @contextmanager
    def caught(self) -> Iterator[None]:
        """A context in which a UserError ends the block and is collected."""
        try:
            yield
        except UserError as error:
            self.add(error)

    def each(self, read: Callable[[ItemT], ReadT], items: Iterable[ItemT]) -> list[ReadT]:
        """The results of `read` for the items that are right; the mistakes of the others are collected."""
        results: list[ReadT] = []
        for item in items:
            with self.caught():
                results.append(read(item))
        return results

    def tell(self) -> None:
        """Raise what was collected, ordered by line: UserError for one mistake, SeveralError for several."""
        mistakes = sorted(self._collected.values(), key=_line)
        if len(mistakes) == 1:
            raise mistakes[0]
        if mistakes:
            raise SeveralError(mistakes)


def _line(error: UserError) -> tuple[str, int]:
    path, _, line = error.location.rpartition(":")
    return (path, int(line)) if line.isdecimal() else (error.location, 0)
