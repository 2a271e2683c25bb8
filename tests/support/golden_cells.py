"""Three cells of every kernel family, and all that a store and a cache of binaries know them by.

`golden/cells.json` has what they were known by when it was recorded. A difference means that runs of before measure
everything again: it needs a migration that is written down, or it is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuda_runner import H200
from described import EXAMPLES, STENCIL, type_of
from tunesmith.bench import Policy
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.random import random_type, scalars_for
from tunesmith.records import Configuration, Problem, ProblemType, Solution, Target, Value
from tunesmith.store import measurement_key

HOST = Target(
    api="OpenCL",
    selector="OpenCL:0:0",
    name="a CPU of 16 cores",
    kind="CPU",
    architecture="x86-64",
    driver="5.0",
    compute_units=16,
    max_work_group_size=4096,
    local_memory_bytes=512 * 1024,
    global_memory_bytes=32 * 2**30,
    max_allocation_bytes=8 * 2**30,
    last_level_cache_bytes=32 * 2**20,
    sub_group_size=1,
    double_precision=True,
)
FAKE = Target(
    api="fake",
    selector="fake:GPU:8",
    name="fake GPU",
    kind="GPU",
    architecture="fake",
    driver="1.0",
    compute_units=8,
    max_work_group_size=1024,
    local_memory_bytes=48 * 1024,
    global_memory_bytes=2**30,
    max_allocation_bytes=2**28,
    last_level_cache_bytes=2**18,
    sub_group_size=32,
    double_precision=True,
)
TOOLCHAIN = "a compiler 1.0"


@dataclass(frozen=True)
class PinnedCell:
    """A configuration (`values` over the family's defaults) on a problem and a device."""

    family: str
    target: Target
    type: ProblemType
    sizes: tuple[int, ...]
    values: Mapping[str, Value] = field(default_factory=dict)
    leading: tuple[int, ...] = ()
    scalars: Mapping[str, Value] = field(default_factory=dict)

    @property
    def configuration(self) -> Configuration:
        return KERNELS[self.family].space(self.type, self.target).defaults | self.values

    @property
    def problem(self) -> Problem:
        return Problem(self.type, self.sizes, self.leading, Configuration(self.scalars))

    @property
    def refused(self) -> list[str]:
        """Why it cannot run: pinned cells can."""
        kernel, config = KERNELS[self.family], self.configuration
        of_type = [str(why) for why in kernel.rejections(config, self.type, self.target)]
        return of_type or [str(why) for why in kernel.rejections_for(config, self.problem, self.target)]

    def known_by(self) -> dict[str, Any]:
        """Of a described kernel without the key: its problem type holds the folder that the description lies in."""
        kernel, config, problem = KERNELS[self.family], self.configuration, self.problem
        identity = kernel.identity(Solution(self.type, self.family, config))
        plan = kernel.plan(config, problem, self.target).digest()
        known = {
            "device": self.target.name,
            "type": self.type.name,
            "sizes": str(problem),
            "configuration": config.to_json(),
            "modules": [module.digest() for module in kernel.modules(config, self.type)],
            "identity": identity,
            "plan": plan,
        }
        if kernel.operation == "Custom":
            return known
        key = measurement_key(
            target=self.target,
            toolchain=TOOLCHAIN,
            identity=identity,
            plan_digest=plan,
            problem=problem,
            policy=Policy().key(),
        )
        return {**known, "problem": problem.to_json(), "key": key}


SCALED = {"alpha": 1.5, "beta": 0.5}
WHOLE = {"alpha": 2.0, "beta": 3.0}
PLAIN = {"alpha": 1.0, "beta": 0.0}
STENCIL_TYPE = type_of(EXAMPLES / STENCIL)
SOFTMAX_TYPE = type_of(EXAMPLES / "softmax_triton_kernel.yaml")


def nn(data_type: str = "s", **more: Any) -> ProblemType:
    return gemm_type(data_type, transpose_b=False, **more)


def tn(data_type: str = "s", **more: Any) -> ProblemType:
    return gemm_type(data_type, transpose_a=True, transpose_b=False, **more)


def _gemm() -> dict[str, tuple[PinnedCell, ...]]:
    """A product and what differs: transposes, batch, beta, leading dimensions, split-K, stream-K, epilogue, types."""
    return {
        name: tuple(PinnedCell(name, *cell) for cell in cells)
        for name, cells in {
            "TiledGemm": (
                (HOST, nn(batched=True), (129, 67, 3, 200), {"GlobalSplitU": 4, "DepthU": 16}, (), SCALED),
                (
                    HOST,
                    gemm_type("d", transpose_a=True, use_beta=False),
                    (640, 640, 512),
                    {"StreamKGrid": 16, "StreamKFullTiles": 1, "WorkGroupMapping": 4, "PrefetchGlobalRead": True},
                ),
                (
                    HOST,
                    gemm_type(),
                    (100, 300, 50),
                    {"WorkGroup": (16, 8, 2), "LdsPad": 1, "VectorWidth": 2, "EdgeType": "ShiftPtr"},
                    (104, 108, 112, 304),
                    {"alpha": -1.0, "beta": 1.0},
                ),
            ),
            "RegisterGemm": (
                (HOST, nn(), (100, 90, 70), {"PackA": True, "PackB": True}, (), PLAIN),
                (
                    HOST,
                    gemm_type("d", transpose_a=True, batched=True),
                    (65, 33, 2, 129),
                    {"GlobalSplitU": 2, "VectorWidth": 8, "ThreadTile": (16, 4)},
                    (),
                    SCALED,
                ),
                (HOST, gemm_type(), (512, 512, 1024), {"StreamKGrid": 64, "StreamKFullTiles": -1}, (), SCALED),
            ),
            "BlockedGemm": (
                (HOST, nn(), (100, 90, 70), {}, (), PLAIN),
                (
                    HOST,
                    gemm_type("d", transpose_a=True, batched=True),
                    (65, 33, 2, 129),
                    {"MacroTile": (512, 132), "ThreadTile": (16, 6), "VectorWidth": 8, "DepthU": 256},
                    (),
                    SCALED,
                ),
                (
                    HOST,
                    gemm_type(use_beta=False),
                    (2048, 4, 2048),
                    {"Schedule": "FewColumns", "MacroTile": (1024, 4), "ThreadTile": (16, 4), "DepthU": 8},
                ),
            ),
            "CudaSimtGemm": (
                (H200, nn(), (129, 67, 200), {}, (), PLAIN),
                (H200, gemm_type("d", batched=True), (64, 64, 5, 4096), {"GlobalSplitU": 8, "DepthU": 32}, (), SCALED),
                (
                    H200,
                    gemm_type(transpose_a=True, use_beta=False),
                    (255, 33, 17),
                    {"WorkGroup": (32, 8, 1), "ThreadTile": (8, 8)},
                    (260, 260, 20, 40),
                ),
            ),
            "CudaWgmmaGemm": (
                (
                    H200,
                    nn("h", batched=True, bias=True, activation="silu"),
                    (136, 77, 2, 200),
                    {"RowsAlong": "M", "WarpGroups": 1, "InstructionColumns": 64, "StorePath": "Direct"},
                    (136, 136, 136, 200),
                    SCALED,
                ),
                (
                    H200,
                    tn("b", bias=True, activation="gelu"),
                    (4096, 4096, 4096),
                    {"StreamKGrid": 132, "StreamKFullTiles": 1, "InstructionColumns": 128, "ClusterShape": (2, 1)},
                    (),
                    PLAIN,
                ),
                (
                    H200,
                    tn("f8", scaled=True, use_beta=False),
                    (256, 512, 1024),
                    {"GlobalSplitU": 2, "PromoteEvery": 2, "Stages": 4, "InstructionColumns": 96},
                ),
            ),
            "TritonTmaGemm": (
                (H200, nn(), (128, 64, 64), {"DepthU": 16}, (), PLAIN),
                (H200, gemm_type(batched=True), (256, 128, 2, 512), {"NumStages": 4, "DepthU": 32}, (), SCALED),
                (
                    H200,
                    tn(use_beta=False),
                    (64, 192, 128),
                    {"InputPrecision": "ieee", "WorkGroup": (8, 8, 1), "LoopUnroll": 16},
                ),
            ),
            "TritonGemm": (
                (
                    H200,
                    nn("h", bias=True, activation="gelu"),
                    (512, 256, 1024),
                    {"LoadPath": "Pointer", "MacroTile": (64, 64)},
                    (),
                    PLAIN,
                ),
                (
                    H200,
                    tn("b", batched=True),
                    (384, 256, 3, 4096),
                    {"Schedule": "SplitK", "GlobalSplitU": 6, "NumWarps": 4},
                    (),
                    SCALED,
                ),
                (
                    H200,
                    tn(use_beta=False),
                    (1088, 1024, 2048),
                    {"Schedule": "StreamK", "StreamKGrid": 128, "MacroTile": (64, 64), "InputPrecision": "tf32x3"},
                ),
            ),
            "TritonGemv": (
                (H200, tn("h"), (4096, 1, 4096), {}, (), PLAIN),
                (H200, tn("b", bias=True), (1024, 1, 8192), {"GlobalSplitU": 4, "GemvTile": (8, 512)}, (), SCALED),
                (H200, tn("s", use_beta=False), (1, 2048, 512), {"GemvAlong": "N", "NumWarps": 4}),
            ),
            "VendorBlas": (
                (HOST, gemm_type(transpose_a=True, batched=True), (64, 32, 3, 16), {}, (70, 71, 20, 40), SCALED),
                (H200, tn("f8", dest="h", bias=True, activation="relu", use_beta=False, scaled=True), (64, 128, 256)),
                (H200, nn("i8"), (64, 128, 256), {}, (), WHOLE),
            ),
            "PortBlasGemm": (
                (HOST, nn(), (100, 90, 70), {}, (), PLAIN),
                (
                    HOST,
                    gemm_type(batched=True, interleaved=True),
                    (8, 8, 64, 8),
                    {"PortBlasAlgorithm": "interleaved", "WorkItem": (2, 2), "WorkGroup": (8, 8, 1)},
                    (),
                    SCALED,
                ),
                (
                    HOST,
                    gemm_type("d", transpose_a=True),
                    (16, 12, 4000),
                    {"PortBlasAlgorithm": "tall_skinny"},
                    (),
                    SCALED,
                ),
            ),
            "PortBlasCuda": (
                (H200, nn("d", batched=True), (100, 90, 4, 70), {"DoubleBuffer": True, "PadA": True}, (), SCALED),
                (
                    H200,
                    gemm_type(transpose_a=True),
                    (64, 64, 64),
                    {"PortBlasAlgorithm": "non_local", "Vectorization": "none"},
                    (68, 68, 72, 76),
                    PLAIN,
                ),
                (H200, gemm_type(), (33, 31, 29), {"PortBlasAlgorithm": "naive"}, (), PLAIN),
            ),
            "FakeGemm": (
                (FAKE, nn(), (96, 96, 64), {}, (), PLAIN),
                (FAKE, gemm_type("d", batched=True), (33, 31, 2, 29), {"GlobalSplitU": 2, "FakeNoise": 1}, (), SCALED),
                (
                    FAKE,
                    gemm_type(transpose_a=True, use_beta=False),
                    (16, 16, 16),
                    {"FakeFault": "wrong value", "PrefetchGlobalRead": True},
                    (20, 20, 20, 20),
                ),
            ),
        }.items()
    }


def _random() -> dict[str, tuple[PinnedCell, ...]]:
    """Counters, engines with a state, and points of a quasi generator with its tables."""
    asked = (
        (
            random_type("philox4_32_10", "uniform", "float"),
            (100_003,),
            {"BlockSize": 64},
            scalars_for("uniform", seed=7),
        ),
        (
            random_type("xorwow", "normal", "double", dynamic=True),
            (1 << 20,),
            {"GridSize": 128},
            scalars_for("normal", seed=2**40 + 1, mean=0.75, stddev=1.5) | {"engines": 128 * 256},
        ),
        (random_type("sobol32", "uniform", "unsigned_int"), (4096, 3), {"GridSize": 64}, scalars_for("uniform")),
    )
    return {
        name: tuple(PinnedCell(name, target, kind, sizes, values, (), s) for kind, sizes, values, s in asked)
        for name, target in (("OpenCLRandom", HOST), ("CudaRandom", H200))
    }


def _custom() -> dict[str, tuple[PinnedCell, ...]]:
    asked: tuple[tuple[tuple[int, ...], dict[str, Value]], ...] = (
        ((512, 512), {}),
        ((1000, 77), {"GROUP_X": 32, "GROUP_Y": 2, "ITEM_X": 4, "STAGED": 1}),
        ((64, 4096), {"GROUP_X": 64, "GROUP_Y": 1, "ITEM_Y": 8}),
    )
    in_triton: tuple[tuple[tuple[int, ...], dict[str, Value]], ...] = (
        ((512, 512), {}),
        ((1000, 77), {"BLOCK": 128, "ROWS": 4, "num_warps": 1}),
        ((64, 4096), {"BLOCK": 4096, "num_warps": 8, "num_stages": 3}),
    )
    return {
        name: tuple(PinnedCell(name, target, described_type, sizes, values) for sizes, values in those)
        for name, target, described_type, those in (
            ("Custom", HOST, STENCIL_TYPE, asked),
            ("CustomCuda", H200, STENCIL_TYPE, asked),
            ("CustomTriton", H200, SOFTMAX_TYPE, in_triton),
        )
    }


CELLS: dict[str, tuple[PinnedCell, ...]] = {**_gemm(), **_random(), **_custom()}
"""By family."""
