"""The tile that a policy wishes for, before a kernel family turns it into a configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace

LEAST_SIDE = 8
"""The fewest rows or columns to which a tile may be halved."""


@dataclass(frozen=True, slots=True)
class TileWish:
    """A macro tile of `m` x `n` elements of D, with `depth` elements along K in an iteration.

    `sub_groups` counts warps (AMD: wavefronts; on a CPU: work-items) along M and N. `stages` counts tiles of A and B
    that are in flight. K is cut into `split` parts. `item` is the tile of a work-item; (0, 0) lets the family decide.
    `is_wide` asks for the widest loads and stores that the alignment allows; `packs` allows copies of operands.
    """

    m: int
    n: int
    depth: int
    sub_groups: tuple[int, int] = (2, 2)
    stages: int = 3
    split: int = 1
    item: tuple[int, int] = (0, 0)
    is_wide: bool = True
    packs: bool = True

    def __str__(self) -> str:
        m, n = self.sub_groups
        split = f", K in {self.split} parts" if self.split > 1 else ""
        return f"{self.m} x {self.n} x {self.depth}, {m} x {n} sub-groups, {self.stages} stages{split}"

    @property
    def elements(self) -> int:
        """Elements of D."""
        return self.m * self.n

    @property
    def warps(self) -> int:
        """The number of sub-groups."""
        return self.sub_groups[0] * self.sub_groups[1]

    def stage_bytes(self, element_bytes: float) -> float:
        """Bytes of one tile of A and one of B."""
        return (self.m + self.n) * self.depth * element_bytes


def shorter(wish: TileWish, least: int = 8) -> TileWish | None:
    """The wish with half the depth; None if the depth would go below `least`."""
    return replace(wish, depth=wish.depth // 2) if wish.depth // 2 >= least else None


def smaller(wish: TileWish, least: int = LEAST_SIDE) -> TileWish | None:
    """The wish with its longer side halved, and the sub-groups along that side; None if the side would go below
    `least`."""
    across = wish.n > wish.m
    side, count = (wish.n, wish.sub_groups[1]) if across else (wish.m, wish.sub_groups[0])
    if side // 2 < least:
        return None
    half = max(1, count // 2)
    if across:
        return replace(wish, n=side // 2, sub_groups=(wish.sub_groups[0], half), item=(0, 0))
    return replace(wish, m=side // 2, sub_groups=(half, wish.sub_groups[1]), item=(0, 0))


def fewer_stages(wish: TileWish) -> TileWish | None:
    """The wish with one stage less; None at two stages."""
    return replace(wish, stages=wish.stages - 1) if wish.stages > 2 else None


def fewer_sub_groups(wish: TileWish) -> TileWish | None:
    """The wish with half the sub-groups along the side that has more; None if there is only one sub-group."""
    m, n = wish.sub_groups
    if wish.warps == 1:
        return None
    return replace(wish, sub_groups=(m // 2, n) if m >= n else (m, n // 2), item=(0, 0))


def unsplit(wish: TileWish) -> TileWish | None:
    """The wish with K in one piece; None if K is in one piece already."""
    return replace(wish, split=1) if wish.split > 1 else None


def narrow(wish: TileWish) -> TileWish | None:
    """The wish with loads and stores of single elements; None if they are so already."""
    return replace(wish, is_wide=False) if wish.is_wide else None


def unpacked(wish: TileWish) -> TileWish | None:
    """The wish without copies of operands; None if there are none already."""
    return replace(wish, packs=False) if wish.packs else None
