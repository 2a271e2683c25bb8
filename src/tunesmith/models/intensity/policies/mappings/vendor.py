"""The mapping of the vendor's library, which takes no tile."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.records import Value

from .base import FamilyMapping


class VendorMapping(FamilyMapping):
    """`VendorBlas` has no parameter that a tile decides."""

    def values(self, wish: TileWish, situation: PolicyInput) -> dict[str, Value]:
        return {}

    def candidates(self, situation: PolicyInput) -> Sequence[TileWish]:
        return (TileWish(128, 128, 32),)
