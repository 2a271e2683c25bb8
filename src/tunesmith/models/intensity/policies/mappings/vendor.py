"""The mapping of the vendor's library, which takes no tile."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.models.intensity.policies.situation import Situation
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping


class VendorMapping(FamilyMapping):
    """`VendorBlas` has no parameter that a tile decides."""

    def values(self, wish: TileWish, situation: Situation) -> dict[str, Value]:
        return {}

    def candidates(self, situation: Situation) -> Sequence[TileWish]:
        return (TileWish(128, 128, 32),)
