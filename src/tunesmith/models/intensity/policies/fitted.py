"""A policy from a fitted heuristic: the bucket of a product gives the configuration or the tile."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from tunesmith.kernels import Kernel
from tunesmith.models.intensity.fit.heuristic import CutPoint, FittedHeuristic, MetricRule, Question
from tunesmith.models.intensity.fit.heuristic_file import read_heuristic
from tunesmith.models.intensity.metrics import Product
from tunesmith.records import Configuration, Problem, Target, Value

from .answers import PolicyChoice, ReasonLine
from .latency import LatencyPolicy
from .legal import tuned_configuration
from .mappings import FamilyMapping
from .policy import MATRIX_VECTOR, TilePolicy
from .situation import PolicyInput
from .tile_steps import TILE_STEPS
from .tuned_tile import KERNEL, family_values, tuned_wish
from .wish import TileWish

CLIP = "clip"
"""The step that cuts the tile's sides to those of the product, in whole unit tiles."""


class FittedPolicy(TilePolicy):
    """Takes the configuration of the product's bucket, if it belongs to the requested family and is legal; otherwise
    the tile of the bucket.

    `location` names the heuristic's file in errors. Raises UserError for a bucket without a tile.
    """

    name = "fitted"
    acts: ClassVar[tuple[str, ...]] = (CLIP, *TILE_STEPS, *LatencyPolicy.acts)
    steps = frozenset(acts)

    def __init__(self, heuristic: FittedHeuristic, location: str) -> None:
        self.heuristic = heuristic
        data_type = heuristic.origin.data_type
        self._wishes = tuple(
            tuned_wish(seed.configuration, data_type, f"{location}: bucket {number} of {len(heuristic.seeds)}")
            for number, seed in enumerate(heuristic.seeds, 1)
        )

    def wish(self, situation: PolicyInput, mapping: FamilyMapping, lines: list[ReasonLine]) -> TileWish:
        why = self._begin(situation, lines)
        wish = self._wishes[self.heuristic.bucket(situation.product)]
        if wish is None:
            latency = LatencyPolicy()
            tiled = latency.with_steps(self.steps & set(latency.acts)).wish(situation, mapping, lines)
            named = self.heuristic.seed(situation.product).configuration[KERNEL]
            reason = f"{why}: {named} has no tile, so the latency model decides; {lines[-1].text}"
            lines.append(ReasonLine("fallback", reason))
            return tiled
        if CLIP in self.steps and (clipped := clip(wish, situation)) != wish:
            lines.append(ReasonLine(CLIP, f"{clipped}"))
            wish = clipped
        for name, shrink in TILE_STEPS.items():
            if name in self.steps and (shrunk := shrink(wish, situation)) != wish:
                lines.append(ReasonLine(name, f"{shrunk}"))
                wish = shrunk
        lines.append(ReasonLine("tile", f"{why}: {wish}"))
        return wish

    def tuned(
        self, situation: PolicyInput, problem: Problem, kernel: Kernel, lines: list[ReasonLine]
    ) -> PolicyChoice | None:
        configuration = self.heuristic.seed(situation.product).configuration
        if configuration.get(KERNEL) != kernel.name:
            return None
        why = self._begin(situation, lines)
        full = tuned_configuration(kernel, family_values(configuration), problem, situation.target, lines)
        reason = f"{why}: {kernel.name} as it was tuned"
        return PolicyChoice(self.name, kernel.name, full, reason, tuple(lines)) if full else None

    def ordered(
        self, problem: Problem, target: Target, kernels: Collection[Kernel], lines: list[ReasonLine] | None = None
    ) -> tuple[Kernel, ...]:
        """The families, with that of the product's bucket first if it is among them; otherwise the order of the latency
        model."""
        named = self._family(problem, target)
        if any(kernel.name == named for kernel in kernels):
            return tuple(sorted(kernels, key=lambda kernel: kernel.name != named))
        return LatencyPolicy().ordered(problem, target, kernels, lines)

    def _family(self, problem: Problem, target: Target) -> Value | None:
        """The family that the product's bucket names; None if the bucket only has a tile."""
        if problem.type.operation != "GEMM" or not all(problem.sizes):
            return None
        situation = PolicyInput.of(problem, target)
        if situation.is_vector and MATRIX_VECTOR in self.steps:
            return None
        return self.heuristic.seed(situation.product).configuration.get(KERNEL)

    def _begin(self, situation: PolicyInput, lines: list[ReasonLine]) -> str:
        """The reason for the product's bucket, in words. If `lines` is empty, the bucket and its seed are appended."""
        product = situation.product
        bucket = self.heuristic.bucket(product)
        seed, origin = self.heuristic.seeds[bucket], self.heuristic.origin
        why = f"bucket {bucket + 1} of {len(self._wishes)}: {bucket_reason(self.heuristic, product)}"
        if not lines:
            fitted_on = f"of {seed.products} products on {origin.device}, {origin.data_type}"
            lines += [ReasonLine("bucket", why), ReasonLine("seed", f"{_shown(seed.configuration)}, {fitted_on}")]
        return why


def fitted_policy(path: Path) -> FittedPolicy:
    """The policy of a heuristic's file. The file is read again only if it has changed. Raises UserError for a file that
    is not a heuristic, and for a bucket without a tile."""
    try:
        changed = path.stat().st_mtime_ns
    except (OSError, ValueError):
        changed = 0
    return _policy_of(path, changed)


@lru_cache(maxsize=64)
def _policy_of(path: Path, changed: int) -> FittedPolicy:
    return FittedPolicy(read_heuristic(path), str(path))


def clip(wish: TileWish, situation: PolicyInput) -> TileWish:
    """The wish with no side longer than that of the product, rounded up to unit tiles, and no more depth than K."""
    unit, gemm = situation.unit, situation.gemm
    sides = (
        min(side, -(-size // step) * step)
        for side, size, step in ((wish.m, gemm.m, unit.m), (wish.n, gemm.n, unit.n), (wish.depth, gemm.k, unit.k))
    )
    m, n, depth = sides
    return replace(wish, m=m, n=n, depth=depth)


def bucket_reason(heuristic: FittedHeuristic, product: Product) -> str:
    """The product's numbers that led to its bucket, with the cut points around them."""
    if isinstance(heuristic.rule, MetricRule):
        return _between(heuristic.rule, heuristic.bucket(product), heuristic, product)
    return ", ".join(_answers(heuristic.rule, heuristic, product))


def _between(rule: MetricRule, bucket: int, heuristic: FittedHeuristic, product: Product) -> str:
    value = f"{rule.metric} = {heuristic.value(rule.metric, product):.4g}"
    bounds = []
    if bucket:
        bounds.append(f"at least {_cut(rule.cut_points[bucket - 1])}")
    if bucket < len(rule.cut_points):
        bounds.append(f"below {_cut(rule.cut_points[bucket])}")
    return f"{value}, {' and '.join(bounds)}" if bounds else f"{value}, and there are no cut points"


def _cut(cut: CutPoint) -> str:
    if cut.pinned is not None:
        fitted = "" if cut.fitted is None else f", fitted {cut.fitted:.4g}"
        return f"{cut.pinned:.4g} (pinned by a person{fitted})"
    interval = "" if cut.low is None or cut.high is None else f" (95 % {cut.low:.4g} to {cut.high:.4g})"
    return f"{cut.value:.4g}{interval}"


def _answers(question: Question | int, heuristic: FittedHeuristic, product: Product) -> Iterator[str]:
    """The questions on the product's path through a tree, each with its answer."""
    while isinstance(question, Question):
        value = heuristic.value(question.feature, product)
        is_below = value < question.cut
        yield f"{question.feature} = {value:.4g} {'<' if is_below else '>='} {question.cut:.4g}"
        question = question.below if is_below else question.beyond


def _shown(configuration: Configuration) -> str:
    return ", ".join(f"{name} {_text(value)}" for name, value in configuration.items()) or "no values"


def _text(value: Value) -> str:
    return "x".join(map(_text, value)) if isinstance(value, tuple) else str(value)
