"""What a sweep will measure of each product of its list: which kernel computes it, and how it may be launched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from tunesmith.models.stream_k.predict import Model, StreamKChoice, StreamKDecision, Work, rivals
from tunesmith.problems.gemm import Gemm
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Configuration, Problem
from tunesmith.session.frame.oracle import ConfigurationOracle

from .choices import SPLITS, as_launched, closer, sweep_of
from .kernels import StreamKernel, in_layout
from .swept import DATA_PARALLEL


@dataclass(frozen=True)
class Planned:
    """A product, what every way to decide says of it, and the configuration of each choice that is legal. `searched`
    are those of them that are there whatever was said."""

    listed: ListedGemm
    problem: Problem
    work: Work
    said: Mapping[str, StreamKChoice]
    configs: Mapping[StreamKChoice, Configuration]
    searched: frozenset[StreamKChoice]


class Planner:
    """Plans products for a kernel in any layout. The first of `models` is what a library would ask."""

    def __init__(self, kernel: StreamKernel, model: Model, grids: int) -> None:
        self.kernel, self.grids = kernel, grids
        self.models = (model, *rivals(model))
        self._in_type = cache(kernel.laid_out)
        self._oracle = cache(lambda kind: ConfigurationOracle(kind, kernel.target))

    def plan(self, listed: ListedGemm) -> Planned | None:
        """None where no kernel with this tile computes the layout, or nothing is legal for the product."""
        kind = in_layout(self.kernel.type, listed.trans_b, listed.trans_a, listed.batch > 1)
        kernel = self._in_type(kind)
        if kernel is None:
            return None
        problem = Problem(kind, listed.sizes(kind))
        gemm = Gemm.of(problem)
        work = kernel.tile.work(gemm.m, gemm.n, gemm.batch, gemm.k)
        said = {model.name: self.launched(model, work) for model in self.models}
        said[DATA_PARALLEL] = StreamKChoice.whole_tiles(work, kernel.room)
        asked, searched = sweep_of(
            work, kernel.room, said.values(), grids=self.grids, parts=self._parts, capped=kernel.capped
        )
        legal = self._legal(kernel, problem, work, dict.fromkeys([*asked, *searched]))
        found = frozenset(searched) & legal.keys()
        return Planned(listed, problem, work, said, legal, found) if legal else None

    def closer(self, one: Planned, best: StreamKChoice) -> dict[StreamKChoice, Configuration]:
        """What is next to the best of a product's searched choices, and was not tried."""
        kernel = self._in_type(one.problem.type)
        assert kernel is not None, "it was planned"
        near = closer(one.work, best, kernel.room, grids=self.grids, parts=self._parts, capped=kernel.capped)
        return self._legal(kernel, one.problem, one.work, [choice for choice in near if choice not in one.configs])

    @property
    def _parts(self) -> tuple[int, ...]:
        return SPLITS if self.kernel.parts else ()

    def _legal(
        self, kernel: StreamKernel, problem: Problem, work: Work, choices: Iterable[StreamKChoice]
    ) -> dict[StreamKChoice, Configuration]:
        configs = {choice: kernel.configured(StreamKDecision(work, choice)) for choice in choices}
        oracle = self._oracle(problem.type)
        return {
            choice: config
            for choice, config in configs.items()
            if not (oracle.rejections(config) or oracle.rejections_for(config, problem))
        }

    def launched(self, model: Model, work: Work) -> StreamKChoice:
        """What a model chooses."""
        return as_launched(work, model.choose(work), self.kernel.room, self.kernel.capped)
