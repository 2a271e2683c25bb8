"""Notes for the user about a valid file: what was assumed, and what was ignored."""

from __future__ import annotations

from collections.abc import Iterator


class Notes:
    """Sentences in the order in which they were added, each with its location in the file."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, str]] = []

    def add(self, location: str, sentence: str) -> None:
        if (location, sentence) not in self._notes:
            self._notes.append((location, sentence))

    def add_once(self, location: str, sentence: str) -> None:
        """Add a sentence that holds at many locations only at the first of them."""
        if all(sentence != earlier for _, earlier in self._notes):
            self._notes.append((location, sentence))

    def __iter__(self) -> Iterator[str]:
        return (f"{location}: {sentence}" for location, sentence in self._notes)
