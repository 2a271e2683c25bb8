"""`TritonGemm`: GEMM in Triton for any layout, type and epilogue; data-parallel, persistent, split-K and stream-K."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm.parameters import STREAM_GRID
from tunesmith.kernels.gemm.types import gemm_of_type
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, Module, Plan, Problem, ProblemType, Rejection, Target, UserError, Value
from tunesmith.spaces import Space

from . import guess as _guess
from . import launches
from . import parameters as p
from . import rules as rules
from .shape import TritonShape


class TritonGemm(Kernel):
    """D = activation(alpha op(A) op(B) + bias) + beta C, one macro tile at a time by `tl.dot`.

    Five schedules share one loop. Operands come by TMA descriptors if strides allow them, or by loads of the
    work-items, which take any size and stride. Sums over a part of K are added in a fixed order, so that results repeat
    bit by bit.
    """

    name, operation, language, named_by = "TritonGemm", "GEMM", "Triton", p.SCHEDULE.name

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space(p.DENSE)

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        shape, gemm = TritonShape.of(config), gemm_of_type(problem_type)
        yield from rules.wrong_device_or_type(gemm, shape.precision, target)
        yield from rules.wrong_shape(shape, gemm, target)
        yield from rules.wrong_schedule(shape)
        if shape.loads_by_tma or shape.stores_by_tma:
            yield from rules.no_copy_engine(target)
        yield from rules.wrong_specialization(shape, target)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        gemm, shape = _situation(config, problem, target)
        groups = max(shape.tiles(gemm) * shape.splits, shape.grid)
        yield from rules.wrong_launch(problem, groups, shape.workspace(gemm), target)
        yield from rules.wrong_alignment(shape, gemm)
        yield from rules.short_sum(shape.precision, gemm)
        if shape.splits_k:
            yield from rules.wrong_batch(gemm)
        if shape.splits > shape.iterations(gemm):
            yield Rejection(
                "global split", f"{shape.splits} parts of {shape.iterations(gemm)} iterations leave some without work"
            )
        if shape.splits_k and shape.splits == 1:
            yield Rejection("global split", "the tiles fill the device, or K has one iteration")

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        shape = TritonShape.of(config)
        yield from rules.useless(facts, shape.warps, target)
        yield from rules.not_resident(shape, facts, target)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        gemm = gemm_of_type(problem_type)
        return launches.modules(TritonShape.of(config).for_problem(gemm, 1), gemm)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        """The launches. Raises UserError if work-groups that wait for one another cannot all run at once by `facts`."""
        gemm, shape = _situation(config, problem, target)
        for rejection in rules.not_resident(shape, facts, target):
            raise UserError(STREAM_GRID.name, rejection.detail, "give no more than run at once, or 0")
        if 0 in (gemm.m, gemm.n, gemm.batch):
            return Plan(())
        return launches.plan(shape, gemm, target, {fact.entry: fact for fact in facts})

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        shape = TritonShape.of(config)
        return {"MacroTile": (shape.m, shape.n), "DepthU": shape.depth, "NumWarps": shape.warps}

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        gemm, shape = _situation(config, problem, target)
        return _guess.seconds(shape, gemm, target)


def _situation(config: Configuration, problem: Problem, target: Target) -> tuple[Gemm, TritonShape]:
    gemm = Gemm.of(problem)
    return gemm, TritonShape.of(config).for_problem(gemm, target.compute_units)
