"""What the tests of portBLAS's kernels share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuda_runner import H200
from tunesmith.kernels import KERNELS, Kernel
from tunesmith.kernels.base import Facts
from tunesmith.kernels.gemm.portblas import PortBlasGemm
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Plan, Problem, ProblemType, Target, Value

OPENCL, CUDA = KERNELS["PortBlasGemm"], KERNELS["PortBlasCuda"]
GPU = replace(H200, api="OpenCL", selector="OpenCL:0:0", local_memory_bytes=48 * 1024)
CPU = replace(GPU, kind="CPU", max_work_group_size=4096)
ALGORITHMS = ("local", "non_local", "interleaved", "naive", "tall_skinny")
TRANSPOSES = {"nn": (False, False), "tn": (True, False), "nt": (False, True), "tt": (True, True)}
SMALL = {
    "WorkItem": (2, 2),
    "WorkGroup": (4, 4, 1),
    "CacheLine": 16,
    "VectorSize": 2,
    "BatchTile": (2, 2),
    "TopTile": (2, 3),
}
"""Blocks of 8 x 8, quick to compile."""


class OnGpu(PortBlasGemm):
    """The OpenCL source as GPUs see it, on any device: vectors of 16 bytes at aligned addresses, and stages ahead."""

    options = (*PortBlasGemm.options, "-DANY_ADDRESS=0")


class ManyUnits(PortBlasGemm):
    """Plans as for a device with many compute units, for which K is split into many parts."""

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        return super().plan(config, problem, replace(target, compute_units=40), facts)


def type_for(algorithm: str, data_type: str = "s", transposes: str = "nn", **fields: Any) -> ProblemType:
    a, b = TRANSPOSES[transposes]
    interleaved = algorithm == "interleaved"
    return gemm_type(data_type, transpose_a=a, transpose_b=b, batched=True, interleaved=interleaved, **fields)


def config(algorithm: str = "local", family: Kernel = OPENCL, **values: Value) -> Configuration:
    return family.space(type_for(algorithm)).defaults | {"PortBlasAlgorithm": algorithm, **values}


def problem(type_: ProblemType, *sizes: int, pad: int = 0, alpha: float = 1.5, beta: float = 0.5) -> Problem:
    """With leading dimensions `pad` larger than they must be."""
    m, n, _, k = sizes
    a = k if type_.fields.flag("TransposeA") else m
    b = n if type_.fields.flag("TransposeB") else k
    leading = (m + pad, m + 2 * pad, a + 3 * pad, b + pad) if pad else ()
    return Problem(type_, sizes, leading, Configuration({"alpha": alpha, "beta": beta}))
