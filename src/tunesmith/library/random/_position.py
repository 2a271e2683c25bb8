"""Where a generator stands in its sequence, from one call to the next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """`offset` words (of a quasi generator: points) are over; of the turn begun, `vectors` of `width` words are.

    In a turn each of T engines gives one vector. Generators without engines have T = 1, and no turn is ever begun.
    """

    offset: int
    vectors: int = 0
    width: int = 1

    @property
    def words(self) -> int:
        """Words that are over."""
        return self.offset + self.vectors * self.width

    def fit_for(self, width: int, engines: int) -> Position:
        """Here, or where the next turn begins if this one is of vectors with another number of words."""
        if self.vectors and self.width != width:
            return Position(self.offset + engines * self.width)
        return self

    def after(self, vectors: int, width: int, engines: int, skips: bool) -> Position:
        """Behind so many vectors more. Where engines can skip, an offset says it all as long as vectors are words."""
        if width == 1 and skips:
            return Position(self.offset + vectors)
        turns, begun = divmod(self.vectors + vectors, engines)
        return Position(self.offset + turns * engines * width, begun, width if begun else 1)
