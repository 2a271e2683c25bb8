"""All mistakes of a file at once: each is caught where it is found, and told when nothing more can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tunesmith.records import SeveralError, UserError

ItemT = TypeVar("ItemT")
ReadT = TypeVar("ReadT")


class Mistakes:
    """Collects mistakes, each once. A reader catches what is wrong with a part and goes on with the next one."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], UserError] = {}

    @property
    def count(self) -> int:
        return len(self._found)

    def add(self, error: UserError) -> None:
        for one in error.errors:
            self._found.setdefault((one.location, one.what), one)

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Within it, a UserError ends the block and is collected."""
        try:
            yield
        except UserError as error:
            self.add(error)

    def each(self, read: Callable[[ItemT], ReadT], items: Iterable[ItemT]) -> list[ReadT]:
        """What `read` gives for the items that are right."""
        made: list[ReadT] = []
        for item in items:
            with self.caught():
                made.append(read(item))
        return made

    def tell(self) -> None:
        """Raise what was collected, in the order of its lines: UserError for one mistake, SeveralError for several."""
        found = sorted(self._found.values(), key=_line)
        if len(found) == 1:
            raise found[0]
        if found:
            raise SeveralError(found)


def _line(error: UserError) -> tuple[str, int]:
    path, _, line = error.location.rpartition(":")
    return (path, int(line)) if line.isdecimal() else (error.location, 0)
