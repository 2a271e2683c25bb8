"""A generator's position in its sequence, from one call to the next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """`offset` words (of a quasi generator: points) are consumed by completed turns. In the current turn, `vectors`
    vectors of `width` words are consumed.

    In a turn each of T engines gives one vector. Generators without engines have T = 1, so every turn is complete.
    """

    offset: int
    vectors: int = 0
    width: int = 1

    @property
    def words(self) -> int:
        """The number of words that are consumed."""
        return self.offset + self.vectors * self.width

    def fit_for(self, width: int, engines: int) -> Position:
        """The position from which vectors of `width` words can be taken: this one, or the beginning of the next turn if
        the vectors of the current turn have another number of words."""
        if self.vectors and self.width != width:
            return Position(self.offset + engines * self.width)
        return self

    def after(self, vectors: int, width: int, engines: int, skips: bool) -> Position:
        """The position after so many more vectors. If engines can skip and vectors are single words, the offset alone
        holds the position."""
        if width == 1 and skips:
            return Position(self.offset + vectors)
        turns, consumed = divmod(self.vectors + vectors, engines)
        return Position(self.offset + turns * engines * width, consumed, width if consumed else 1)
