"""Policies that begin with a seed for the size of the product: the old trip-count rule, and the published intensity
rule."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from tunesmith.models.intensity.published import Bucket, intensity_bucket, trip_count_bucket

from .answers import ReasonLine
from .distribution import tile_of
from .mappings import FamilyMapping
from .policy import ALIGNMENT, MATRIX_VECTOR, STEPS, TilePolicy
from .seed_steps import SEED_STEPS, work_groups
from .seeds import TRIP_COUNT_SEEDS, TileSeed, Workload, generation_of, published_seed
from .situation import Situation
from .tile_steps import TILE_STEPS
from .wish import TileWish

_SAFE = (*TILE_STEPS, MATRIX_VECTOR)
_BOOSTED_GENERATION = "CDNA4"


class SeededPolicy(TilePolicy):
    """A bucket, its seed, the steps that change it, and the tile that it is dealt to."""

    acts: ClassVar[tuple[str, ...]] = STEPS

    @abstractmethod
    def start(self, situation: Situation) -> tuple[Bucket, TileSeed, str]:
        """The bucket, its seed, and in words why it is that bucket."""

    def on(self, situation: Situation) -> frozenset[str]:
        """The steps that act for a target."""
        return self.steps

    def wish(self, situation: Situation, mapping: FamilyMapping, lines: list[ReasonLine]) -> TileWish:
        bucket, seed, why = self.start(situation)
        on = self.on(situation)
        lines.append(ReasonLine("bucket", why))
        lines.append(ReasonLine("seed", str(seed)))
        for name, change in SEED_STEPS.items():
            if name in on:
                changed = change(seed, situation, bucket)
                lines.append(ReasonLine(name, _told(seed, changed, situation)))
                seed = changed
        wish = tile_of(seed, situation, ALIGNMENT in on)
        padding = ", M and N rounded up first" if ALIGNMENT in on else ""
        lines.append(ReasonLine("distribution", f"{wish}{padding}"))
        for name, shrink in TILE_STEPS.items():
            if name in on and (shrunk := shrink(wish, situation)) != wish:
                lines.append(ReasonLine(name, f"{shrunk}"))
                wish = shrunk
        lines.append(ReasonLine("tile", f"{bucket} product ({why}): {wish}"))
        return wish


class TripCountPolicy(SeededPolicy):
    """Until August 2025: M N alone decides between two seeds."""

    name = "trip-count"
    steps = frozenset(_SAFE)

    def start(self, situation: Situation) -> tuple[Bucket, TileSeed, str]:
        bucket = trip_count_bucket(situation.product)
        return bucket, TRIP_COUNT_SEEDS[bucket], f"M N = {situation.product.mn} makes it {bucket}"


class PublishedIntensityPolicy(SeededPolicy):
    """Since August 2025: intensity against the chip's ridge decides among three seeds, and the cap on work-groups acts.

    On CDNA4, `boost` and `utilisation-guard` act too, as published; elsewhere where they are switched on.
    """

    name = "published-intensity"
    workload = Workload.GEMM
    steps = frozenset(("workgroup-cap", ALIGNMENT, *_SAFE))

    def start(self, situation: Situation) -> tuple[Bucket, TileSeed, str]:
        ridge, product = situation.ridge, situation.product
        bucket = intensity_bucket(product, ridge)
        workload = Workload.SCALED_GEMM if situation.gemm.scaled else self.workload
        against = "no ridge is known" if ridge is None else f"the ridge is {ridge:.0f} FLOP/byte"
        why = f"{product.intensity:.1f} FLOP/element, {against}: {bucket}"
        return bucket, published_seed(situation.target.architecture, workload, bucket), why

    def on(self, situation: Situation) -> frozenset[str]:
        is_published = self.steps == type(self).steps and not situation.gemm.scaled
        if is_published and generation_of(situation.target.architecture) == _BOOSTED_GENERATION:
            return self.steps | {"boost", "utilisation-guard"}
        return self.steps


def _told(before: TileSeed, after: TileSeed, situation: Situation) -> str:
    groups = f"{work_groups(after, situation):.0f} work-groups on {situation.units} compute units"
    return f"{after}; {groups}" if after != before else f"unchanged; {groups}"
