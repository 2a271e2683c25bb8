"""Policies that begin with a seed for the size of the product: IREE's trip-count rule and IREE's intensity rule."""

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
from .situation import PolicyInput
from .tile_steps import TILE_STEPS
from .wish import TileWish

_SAFE = (*TILE_STEPS, MATRIX_VECTOR)
_BOOSTED_GENERATION = "CDNA4"


class SeededPolicy(TilePolicy):
    """Finds the product's bucket, takes the bucket's seed, changes the seed by steps, and turns the seed into a
    tile."""

    acts: ClassVar[tuple[str, ...]] = STEPS

    @abstractmethod
    def start(self, situation: PolicyInput) -> tuple[Bucket, TileSeed, str]:
        """The bucket, its seed, and the reason for the bucket in words."""

    def active_steps(self, situation: PolicyInput) -> frozenset[str]:
        """The steps that act on this target."""
        return self.steps

    def wish(self, situation: PolicyInput, mapping: FamilyMapping, lines: list[ReasonLine]) -> TileWish:
        bucket, seed, why = self.start(situation)
        active = self.active_steps(situation)
        lines.append(ReasonLine("bucket", why))
        lines.append(ReasonLine("seed", str(seed)))
        for name, change in SEED_STEPS.items():
            if name in active:
                changed = change(seed, situation, bucket)
                lines.append(ReasonLine(name, _seed_text(seed, changed, situation)))
                seed = changed
        wish = tile_of(seed, situation, ALIGNMENT in active)
        padding = ", M and N rounded up first" if ALIGNMENT in active else ""
        lines.append(ReasonLine("distribution", f"{wish}{padding}"))
        for name, shrink in TILE_STEPS.items():
            if name in active and (shrunk := shrink(wish, situation)) != wish:
                lines.append(ReasonLine(name, f"{shrunk}"))
                wish = shrunk
        lines.append(ReasonLine("tile", f"{bucket} product ({why}): {wish}"))
        return wish


class TripCountPolicy(SeededPolicy):
    """IREE's rule until August 2025: M N alone decides between two seeds."""

    name = "trip-count"
    steps = frozenset(_SAFE)

    def start(self, situation: PolicyInput) -> tuple[Bucket, TileSeed, str]:
        bucket = trip_count_bucket(situation.product)
        return bucket, TRIP_COUNT_SEEDS[bucket], f"M N = {situation.product.mn} makes it {bucket}"


class PublishedIntensityPolicy(SeededPolicy):
    """IREE's rule since August 2025: intensity relative to the chip's ridge decides among three seeds, and the cap on
    work-groups acts.

    On CDNA4, `boost` and `utilisation-guard` act too, as published. On other chips they act only if switched on.
    """

    name = "published-intensity"
    workload = Workload.GEMM
    steps = frozenset(("workgroup-cap", ALIGNMENT, *_SAFE))

    def start(self, situation: PolicyInput) -> tuple[Bucket, TileSeed, str]:
        ridge, product = situation.ridge, situation.product
        bucket = intensity_bucket(product, ridge)
        workload = Workload.SCALED_GEMM if situation.gemm.scaled else self.workload
        against = "no ridge is known" if ridge is None else f"the ridge is {ridge:.0f} FLOP/byte"
        why = f"{product.intensity:.1f} FLOP/element, {against}: {bucket}"
        return bucket, published_seed(situation.target.architecture, workload, bucket), why

    def active_steps(self, situation: PolicyInput) -> frozenset[str]:
        is_published = self.steps == type(self).steps and not situation.gemm.scaled
        if is_published and generation_of(situation.target.architecture) == _BOOSTED_GENERATION:
            return self.steps | {"boost", "utilisation-guard"}
        return self.steps


def _seed_text(before: TileSeed, after: TileSeed, situation: PolicyInput) -> str:
    groups = f"{work_groups(after, situation):.0f} work-groups on {situation.units} compute units"
    return f"{after}; {groups}" if after != before else f"unchanged; {groups}"
