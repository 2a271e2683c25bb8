"""What a person should be told about a file that is right all the same: what was assumed, and what was ignored."""

from __future__ import annotations

from collections.abc import Iterator


class Notes:
    """Sentences in the order in which they came up, each with its place."""

    def __init__(self) -> None:
        self._said: list[tuple[str, str]] = []

    def say(self, location: str, sentence: str) -> None:
        if (location, sentence) not in self._said:
            self._said.append((location, sentence))

    def say_once(self, location: str, sentence: str) -> None:
        """For what holds at many places alike: said with the first."""
        if all(sentence != said for _, said in self._said):
            self._said.append((location, sentence))

    def __iter__(self) -> Iterator[str]:
        return (f"{location}: {sentence}" for location, sentence in self._said)
