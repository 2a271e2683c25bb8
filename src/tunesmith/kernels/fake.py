"""A GEMM family for the fake device: Tensile's parameters, a deterministic time, and faults on request.

It is for tests of everything that tunes. Its times behave like real ones: tiles waste edges, waves are not full, and
the best vector width depends on the tile. So tuning one parameter at a time can go wrong, as on a real device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tunesmith.problems.gemm import Gemm, GemmOperation
from tunesmith.records import (
    Argument,
    Configuration,
    Launch,
    Module,
    Operand,
    OperandArgument,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    ScalarArgument,
    Target,
    Value,
)
from tunesmith.spaces import ActsAt, Parameter, Space

from .base import Facts, Kernel
from .gemm.parameters import natural, pair, positive, switch
from .gemm.types import wrong_type

FAULTS = (
    "none",
    "wrong value",
    "unwritten element",
    "maximum with the old",
    "minimum with the old",
    "skip the last K",
    "swap operands",
    "index off by one",
    "modify an input",
    "write past the end",
    "write before the start",
    "write between rows",
    "out of memory",
    "launch error",
    "refusal",
    "poison",
    "segfault",
    "abort",
    "hang",
    "segfault when timed",
    "hang when timed",
    "break the next",
    "compile error",
    "compiler segfault",
    "compiler hang",
)
"""Faults that a configuration can request of the device and the compiler (`tunesmith.devices.fake`,
`tunesmith.toolchains.fake`)."""

_SPACE = Space(
    (
        Parameter("KernelLanguage", "fake", ("fake",), "The language of the kernel."),
        Parameter(
            "WorkGroup",
            (8, 8, 1),
            ((8, 8, 1), (16, 8, 1), (16, 16, 1)),
            "Work-items of a work-group along M and N; the third is 1.",
            accepts="list of 3 positive integers",
        ),
        pair("ThreadTile", ((2, 2), (4, 4), (8, 4), (8, 8)), "Elements of D a work-item.", default=(4, 4)),
        positive("LoopUnroll", (4, 8, 16, 32), "Steps along K at once.", default=8),
        Parameter("VectorWidth", 1, (1, 2, 4, 8), "Elements in a load."),
        switch("PrefetchGlobalRead", False, "Load a step ahead."),
        Parameter("GlobalSplitU", 1, (1, 2, 4, 8), "Parts of K.", ActsAt.LAUNCH, accepts="positive integer"),
        Parameter("FakeFault", "none", FAULTS, "What goes wrong on the fake device."),
        natural("FakeNoise", (0, 1, 2, 5), "Noise of the fake device's times, percent."),
        natural("FakeDrift", (0, 1, 10), "Rise of its times with each thousand, percent."),
    )
)

_PEAK, _BANDWIDTH = 1e11, 1e11
"""FLOP/s of one compute unit and bytes/s of the memory."""
_LAUNCH_SECONDS = 2e-6


class FakeGemm(Kernel):
    """D = alpha op(A) op(B) + beta C on the fake device."""

    name, operation, language = "FakeGemm", "GEMM", "fake"

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return _SPACE

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        # The fake device computes with any strides, so it can run an interleaved batch.
        yield from (rejection for rejection in wrong_type(problem_type) if rejection.reason != "batch layout")
        work_items = math.prod(config.integers("WorkGroup"))
        if work_items > target.max_work_group_size:
            yield Rejection("work-group size", f"{work_items} work-items, at most {target.max_work_group_size}")
        stages = 2 if config.flag("PrefetchGlobalRead") else 1
        if (need := sum(_tile(config)) * _unroll(config) * 4 * stages) > target.local_memory_bytes:
            yield Rejection("local memory", f"{need} bytes, the device has {target.local_memory_bytes}")

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        launch_time = [*_SPACE.launch_time(config), "KernelLanguage", "FakeFault", "FakeNoise", "FakeDrift"]
        behaviour: dict[str, Value] = {
            "DataType": {"s": "float32", "d": "float64"}[problem_type.fields.word("DataType")],
            "Fault": config.word("FakeFault"),
            "Noise": config.integer("FakeNoise") / 100,
            "Drift": config.integer("FakeDrift") / 100_000,
        }
        return (Module("fake", "gemm", ("gemm",), constants=config.without(launch_time) | behaviour),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        g = Gemm.of(problem)
        tile = _tile(config)
        operands = {operand.name: operand for operand in GemmOperation().operands(problem)}
        whole = (g.m, g.n, g.batch, g.k, *(s for name in "DCAB" for s in _three_strides(operands[name])))
        arguments: tuple[Argument, ...] = (
            *(OperandArgument(name) for name in "DCAB"),
            *(ScalarArgument(value, "int64") for value in whole),
            ScalarArgument(g.alpha, "float64"),
            ScalarArgument(g.beta, "float64"),
            ScalarArgument(self.guess(config, problem, target), "float64"),
        )
        grid = (math.ceil(g.m / tile[0]), math.ceil(g.n / tile[1]), g.batch * config.integer("GlobalSplitU"))
        width, height, _ = config.integers("WorkGroup")
        return Plan((Launch(0, "gemm", grid, (width, height, 1), arguments),))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        return {
            "MacroTile": _tile(config),
            "DepthU": _unroll(config),
            "WorkGroupSize": math.prod(config.integers("WorkGroup")),
        }

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float:
        """The device's own model, in seconds: full waves of whole tiles, at the efficiency of the parameters."""
        g = Gemm.of(problem)
        tile, split, depth = _tile(config), config.integer("GlobalSplitU"), _unroll(config)
        tiles = math.ceil(g.m / tile[0]) * math.ceil(g.n / tile[1]) * g.batch * split
        waves = math.ceil(tiles / target.compute_units)
        steps = math.ceil(g.k / split / depth) * depth
        computing = waves * 2 * math.prod(tile) * steps / (_PEAK * _efficiency(config))
        reducing = g.m * g.n * g.batch * 8 * split / _BANDWIDTH + _LAUNCH_SECONDS if split > 1 else 0.0
        return _LAUNCH_SECONDS + computing + reducing


def _tile(config: Configuration) -> tuple[int, int]:
    work_group, thread_tile = config.integers("WorkGroup"), config.integers("ThreadTile")
    return work_group[0] * thread_tile[0], work_group[1] * thread_tile[1]


def _unroll(config: Configuration) -> int:
    """LoopUnroll; 0, the default of the space that all families share, stands for 8."""
    return config.integer("LoopUnroll") or 8


def _efficiency(config: Configuration) -> float:
    """A factor between 0 and 1. Large thread tiles reuse more; the best vector width and unroll depend on them."""
    elements = math.prod(config.integers("ThreadTile"))
    best_width = 1 if elements < 16 else 2 if elements < 32 else 4
    best_unroll = 32 if elements < 16 else 16 if elements < 64 else 8
    off_width = abs(math.log2(config.integer("VectorWidth") / best_width))
    off_unroll = abs(math.log2(_unroll(config) / best_unroll))
    prefetch = 1.0 if config.flag("PrefetchGlobalRead") == (elements < 64) else 0.93
    return elements / (elements + 12) * float(0.9**off_width * 0.94**off_unroll * prefetch)


def _three_strides(operand: Operand) -> tuple[int, int, int]:
    """The strides of rows, columns and matrices of a batch; the last is 0 without a batch."""
    rows, columns, *batch = operand.strides
    return rows, columns, batch[0] if batch else 0
