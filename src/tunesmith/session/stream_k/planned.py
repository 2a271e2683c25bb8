"""The launches of each product that a sweep will measure, and the kernel that computes the product."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from tunesmith.models.stream_k.decision_models import (
    Model,
    StreamKChoice,
    StreamKDecision,
    TiledProduct,
    models_to_compare,
)
from tunesmith.problems.gemm import Gemm
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Configuration, Problem
from tunesmith.session.frame.oracle import ConfigurationOracle

from .choices import SPLITS, as_launched, neighbours_of_best, sweep_of
from .kernels import StreamKernel, in_layout
from .swept import DATA_PARALLEL


@dataclass(frozen=True)
class PlannedProduct:
    """A product with the launches to measure.

    `chosen` has the choice of every method (each model, and data-parallel); `configs` has the configuration of each
    legal choice. `searched` are the legal choices that do not depend on what the methods chose.
    """

    listed: ListedGemm
    problem: Problem
    work: TiledProduct
    chosen: Mapping[str, StreamKChoice]
    configs: Mapping[StreamKChoice, Configuration]
    searched: frozenset[StreamKChoice]


class Planner:
    """Plans products for a kernel in any layout. The first of `models` is the one that the library would ask."""

    def __init__(self, kernel: StreamKernel, model: Model, grids: int) -> None:
        self.kernel, self.grids = kernel, grids
        self.models = (model, *models_to_compare(model))
        self._in_type = cache(kernel.laid_out)
        self._oracle = cache(lambda kind: ConfigurationOracle(kind, kernel.target))

    def plan(self, listed: ListedGemm) -> PlannedProduct | None:
        """The launches of a product; None if no kernel with this tile computes its layout, or no choice is legal."""
        kind = in_layout(self.kernel.type, listed.trans_b, listed.trans_a, listed.batch > 1)
        kernel = self._in_type(kind)
        if kernel is None:
            return None
        problem = Problem(kind, listed.sizes(kind))
        gemm = Gemm.of(problem)
        work = kernel.tile.work(gemm.m, gemm.n, gemm.batch, gemm.k)
        chosen = {model.name: self.launched(model, work) for model in self.models}
        chosen[DATA_PARALLEL] = StreamKChoice.whole_tiles(work, kernel.room)
        predicted, searched = sweep_of(
            work, kernel.room, chosen.values(), grids=self.grids, parts=self._parts, capped=kernel.capped
        )
        configs = self._legal(kernel, problem, work, dict.fromkeys([*predicted, *searched]))
        legal_searched = frozenset(searched) & configs.keys()
        return PlannedProduct(listed, problem, work, chosen, configs, legal_searched) if configs else None

    def untried_neighbours(self, product: PlannedProduct, best: StreamKChoice) -> dict[StreamKChoice, Configuration]:
        """The legal choices next to the best searched choice of a product that were not tried."""
        kernel = self._in_type(product.problem.type)
        assert kernel is not None, "it was planned"
        neighbours = neighbours_of_best(
            product.work, best, kernel.room, grids=self.grids, parts=self._parts, capped=kernel.capped
        )
        untried = [choice for choice in neighbours if choice not in product.configs]
        return self._legal(kernel, product.problem, product.work, untried)

    @property
    def _parts(self) -> tuple[int, ...]:
        return SPLITS if self.kernel.parts else ()

    def _legal(
        self, kernel: StreamKernel, problem: Problem, work: TiledProduct, choices: Iterable[StreamKChoice]
    ) -> dict[StreamKChoice, Configuration]:
        configs = {choice: kernel.configured(StreamKDecision(work, choice)) for choice in choices}
        oracle = self._oracle(problem.type)
        return {
            choice: config
            for choice, config in configs.items()
            if not (oracle.rejections(config) or oracle.rejections_for(config, problem))
        }

    def launched(self, model: Model, work: TiledProduct) -> StreamKChoice:
        """The choice of a model, as it is launched."""
        return as_launched(work, model.choose(work), self.kernel.room, self.kernel.capped)
