"""What a sweep will measure of each product of its list: which kernel computes it, and how it may be launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tunesmith.models.stream_k import Choice, Model, Portable, Published, Room, Work
from tunesmith.problems.gemm import Gemm
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Configuration, Problem, ProblemType, Target
from tunesmith.session.frame.oracle import ConfigurationOracle

from .choices import SPLITS, as_launched, sweep_of, whole_tiles
from .kernels import StreamKernel, in_layout, is_capped, laid_out, model_parts
from .swept import DATA_PARALLEL


@dataclass(frozen=True)
class Planned:
    """A product, what every way to decide says of it, and the configuration of each choice that is legal."""

    listed: ListedGemm
    problem: Problem
    work: Work
    said: Mapping[str, Choice]
    configs: Mapping[Choice, Configuration]


class Planner:
    """Plans products for a kernel in any layout. The first of `models` is what a library would ask."""

    def __init__(self, kernel: StreamKernel, target: Target, room: Room, model: Model, grids: int) -> None:
        self.kernel, self.target, self.room, self.grids = kernel, target, room, grids
        self.models = _with_rivals(model, room)
        self.capped = is_capped(room, target)
        self.parts = model_parts(kernel, room, target)
        self.oracle = cache(self._oracle)
        self._in_type = cache(self._laid_out)

    def plan(self, listed: ListedGemm) -> Planned | None:
        """None where no kernel with this tile computes the layout, or nothing is legal for the product."""
        kind = in_layout(self.kernel.type, listed.trans_b, listed.trans_a, listed.batch > 1)
        kernel = self._in_type(kind)
        if kernel is None:
            return None
        problem = Problem(kind, listed.sizes(kind))
        gemm = Gemm.of(problem)
        work = kernel.tile.work(gemm.m, gemm.n, gemm.batch, gemm.k)
        said = self._said(work)
        predicted, *rivals = said.values()
        parts = SPLITS if self.parts else ()
        swept = sweep_of(work, self.room, predicted, rivals, grids=self.grids, parts=parts, capped=self.capped)
        configs = {choice: kernel.configured(work, choice, self.capped) for choice in swept}
        legal = {choice: config for choice, config in configs.items() if self._runs(config, problem)}
        return Planned(listed, problem, work, said, legal) if legal else None

    def launched(self, model: Model, work: Work) -> Choice:
        """What a model chooses."""
        return as_launched(work, model.choose(work), self.room, self.capped)

    def _said(self, work: Work) -> dict[str, Choice]:
        said = {model.name: self.launched(model, work) for model in self.models}
        return {**said, DATA_PARALLEL: whole_tiles(work, self.room)}

    def _runs(self, config: Configuration, problem: Problem) -> bool:
        oracle = self.oracle(problem.type)
        return not oracle.rejections(config) and not oracle.rejections_for(config, problem)

    def _oracle(self, kind: ProblemType) -> ConfigurationOracle:
        return ConfigurationOracle(kind, self.target)

    def _laid_out(self, kind: ProblemType) -> StreamKernel | None:
        return laid_out(self.kernel, kind, self.target)


def _with_rivals(model: Model, room: Room) -> Sequence[Model]:
    rivals = (Portable(room), Published(room), Published(room, gated=False))
    return (model, *(rival for rival in rivals if rival.name != model.name))
