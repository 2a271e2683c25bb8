"""What a person should be told about a file that is right all the same: what was assumed, and what was ignored."""

from __future__ import annotations

from collections.abc import Iterator


class Notes:
    """Sentences in the order in which they came up, each with its place, each once."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def say(self, place: str, sentence: str) -> None:
        """A sentence that comes up at several places is said once, with the first."""
        self._said.setdefault(sentence, f"{place}: {sentence}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._said.values())
