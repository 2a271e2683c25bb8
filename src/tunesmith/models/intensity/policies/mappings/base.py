"""The interface of a mapping, and functions that round numbers to the nearest values of a family."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache

from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value


class FamilyMapping(ABC):
    """Turns a wished tile into parameters of one kernel family. A mapping is stateless and pure.

    `adds_in_kernel`: the work-groups add the parts of a split K themselves, without a second launch. `is_persistent`: a
    work-group fetches the next tile while it finishes one. `is_for_vectors`: the family computes M = 1 or N = 1 only.
    """

    adds_in_kernel: bool = False
    is_persistent: bool = False
    is_for_vectors: bool = False

    @abstractmethod
    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        """The parameters that the wish decides, at the nearest values that the family has. All other parameters keep
        their defaults."""

    @abstractmethod
    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        """A few dozen tiles of the family for a model that ranks them, with K in one piece.

        Among equally good tiles a model takes the first. Tall tiles come first, because their columns of D are longer.
        """

    def load_width(self, wish: TileWish, situation: PolicyInput) -> int:
        """Elements of A or B that a work-item loads at once; 0 if a copy engine loads them, or if the width does not
        count."""
        return 0

    def stores_singly(self, wish: TileWish, situation: PolicyInput) -> bool:
        """Whether work-items store D element by element, in short pieces of memory."""
        return False

    def copied_bytes(self, situation: PolicyInput) -> tuple[int, ...]:
        """Bytes of each operand that the family copies, in a launch of its own, before it multiplies."""
        return ()


Pair = tuple[int, int]


def nearest_power(value: int, least: int, most: int) -> int:
    """The power of two from `least` to `most` (both powers of two) that is nearest by ratio."""
    value = max(1, value)
    below = 1 << (value.bit_length() - 1)
    return min(max(2 * below if value * value > 2 * below * below else below, least), most)


def power_up(value: int) -> int:
    """The smallest power of two that is at least `value`."""
    return 1 << max(0, value - 1).bit_length()


def distance(tile: Pair, wish: Pair) -> float:
    """The distance of two tiles: the sum of the binary logarithms of the ratios of their sides."""
    return abs(math.log2(tile[0] / wish[0])) + abs(math.log2(tile[1] / wish[1]))


@lru_cache(maxsize=4096)
def nearest_blocking(groups: tuple[Pair, ...], items: tuple[Pair, ...], wish: Pair) -> tuple[Pair, Pair]:
    """The pair of a work-group (work-items along M and N) and a work-item's tile whose macro tile is nearest to the
    wish. Among equally near pairs, the one with the largest work-item's tile, which has the most reuse."""
    return min(
        ((group, item) for group in groups for item in items),
        key=lambda pair: (
            distance((pair[0][0] * pair[1][0], pair[0][1] * pair[1][1]), wish),
            -math.prod(pair[1]),
        ),
    )


def parts(wish: TileWish, iterations: int) -> int:
    """The parts of K of a wish, limited so that each part has an iteration."""
    return max(1, min(wish.split, iterations))


def blocking_of(wish: TileWish, groups: tuple[Pair, ...], items: tuple[Pair, ...]) -> tuple[Pair, Pair]:
    """The work-group and the work-item's tile: those of the wish if it sets `item`; otherwise the nearest pair."""
    if wish.item != (0, 0):
        return (wish.m // wish.item[0], wish.n // wish.item[1]), wish.item
    return nearest_blocking(groups, items, (wish.m, wish.n))


@lru_cache(maxsize=64)
def blockings(groups: tuple[Pair, ...], items: tuple[Pair, ...], depth: int) -> tuple[TileWish, ...]:
    """Every combination of a work-group and a work-item's tile, as a wish."""
    return tuple(
        TileWish(group[0] * item[0], group[1] * item[1], depth, sub_groups=group, item=item)
        for group in groups
        for item in items
    )
