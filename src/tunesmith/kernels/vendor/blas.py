"""GEMM by the BLAS that comes with the device: cuBLAS on NVIDIA's GPUs, SciPy's BLAS (OpenBLAS) on the host's CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm.parameters import language
from tunesmith.kernels.gemm.types import gemm_of_type
from tunesmith.problems import storage_bytes
from tunesmith.problems.gemm import Gemm, GemmOperation, is_interleaved
from tunesmith.records import Configuration, LibraryCall, Module, Plan, Problem, ProblemType, Rejection, Step, Target
from tunesmith.spaces import Space

PLAIN = {
    ("CUDA", "GPU"): (
        *(("float32", "float32"), ("float64", "float64"), ("float16", "float16"), ("bfloat16", "bfloat16")),
        *(("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32")),
    ),
    ("OpenCL", "CPU"): (("float32", "float32"), ("float64", "float64")),
}
"""The types of the operands and of D that the BLAS computes, by a device's API and kind. Other devices have no BLAS
that we can call. Source for cuBLAS: its documentation of cublasGemmEx."""

EXTENDED = (
    *(("float16", "float16"), ("bfloat16", "bfloat16"), ("float32", "float32")),
    *(("float8_e4m3fn", "bfloat16"), ("float8_e4m3fn", "float16"), ("float8_e4m3fn", "float32")),
)
"""The types that cuBLASLt computes with an epilogue, or with float8 operands. It does not multiply e5m2 by e5m2.
Source: its documentation of cublasLtMatmul."""

EXTENDED_ACTIVATIONS = ("none", "relu")
"""The activations of cuBLASLt that equal ours. Its gelu is the approximation by a hyperbolic tangent, ours is exact; it
has no silu."""

EXTENDED_WORKSPACE = 32 * 2**20
"""Bytes that cuBLASLt's algorithms may use: what NVIDIA's documentation of cublasSetWorkspace recommends for Hopper."""

INT8_ALIGNMENT = 4
"""Leading dimensions of int8 operands must be multiples of so many elements (cublasGemmEx)."""

FLOAT8_ALIGNMENT = 16
"""Columns of float8 products, and the extents along them, must be multiples of so many bytes. Source: NVIDIA's cuBLAS
documentation, cublasLtMatmul, the requirements of its FP8 kernels."""

PARAMETERS = (
    *("dtype", "transpose_a", "transpose_b", "m", "n", "k", "batch"),
    *("lda", "ldb", "ldc", "ldd", "stride_a", "stride_b", "stride_c", "stride_d"),
    *("alpha", "beta", "dest", "tf32", "bias", "activation", "scaled"),
)
"""The parameters of a call, in this order, which is part of keys; `devices/gemm_call.py` says what each means."""


class VendorBlas(Kernel):
    """One call of the BLAS, or on the CPU one call for each matrix of a batch. It has no parameters to tune.

    cuBLAS's extension cuBLASLt serves types that plain BLAS does not have. The library's version and its number of
    threads stand for the compiler's version of these solutions, and so are part of every key.
    """

    name, operation, language = "VendorBlas", "GEMM", "BLAS"

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space((language(self.language),))

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        gemm = gemm_of_type(problem_type)
        offered = EXTENDED if _is_extended(gemm) and target.api == "CUDA" else PLAIN.get((target.api, target.kind))
        if is_interleaved(problem_type):
            yield Rejection("batch layout", "BLAS takes no interleaved batch")
        if offered is None:
            yield Rejection("no BLAS", f"none can be called on the memory of {target.name} through {target.api}")
        elif (gemm.dtype, gemm.dest) not in offered:
            pairs = ", ".join(f"{dtype} to {dest}" for dtype, dest in offered)
            yield Rejection("data type", f"the BLAS of {target.name} has {pairs}, not {gemm.dtype} to {gemm.dest}")
        yield from _wrong_epilogue(gemm, target)
        if gemm.dtype == "float8_e4m3fn" and (not gemm.transpose_a or gemm.transpose_b):
            yield Rejection("layout", "cuBLASLt takes float8 operands with K contiguous in both only")

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        gemm = Gemm.of(problem)
        if gemm.dtype == "int8" and (gemm.lda % INT8_ALIGNMENT or gemm.ldb % INT8_ALIGNMENT):
            what = f"A and B have leading dimensions {gemm.lda} and {gemm.ldb}"
            yield Rejection("alignment", f"{what}, cuBLAS takes multiples of {INT8_ALIGNMENT} of int8")
        dest_bytes = np.dtype(gemm.dest).itemsize
        in_bytes = (gemm.m, gemm.k, gemm.lda, gemm.ldb, gemm.ldc * dest_bytes, gemm.ldd * dest_bytes)
        if gemm.dtype.startswith("float8") and any(extent % FLOAT8_ALIGNMENT for extent in in_bytes):
            what = f"M, K or a leading dimension of {problem}"
            yield Rejection("alignment", f"{what} is no multiple of {FLOAT8_ALIGNMENT} bytes, as cuBLASLt asks")
        for operand in GemmOperation().operands(problem):
            if (need := storage_bytes(operand)) > target.max_allocation_bytes:
                have = target.max_allocation_bytes
                yield Rejection("maximum allocation", f"{operand.name} has {need} bytes, the device allows {have}")

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        return (Module(self.language, "", ("gemm",)),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        gemm = Gemm.of(problem)
        if not gemm.m * gemm.n * gemm.batch:
            return Plan(())
        workspace = EXTENDED_WORKSPACE if _is_extended(gemm) else 0
        parameters = Configuration({name: getattr(gemm, name) for name in PARAMETERS} | {"workspace_bytes": workspace})
        return Plan((LibraryCall(0, "gemm", parameters),), workspace_bytes=workspace)

    def timed(self, plan: Plan) -> Plan:
        """With sums of halves as loose as torch's default, since that is how the library makes products of torch's
        tensors. Such sums are outside of the bound of a check, so the same call with strict sums is checked."""
        return replace(plan, steps=tuple(_with_loose_sums(step) for step in plan.steps))


def _with_loose_sums(step: Step) -> Step:
    """A call of cuBLAS for numbers of 16 bits with parts of its sums rounded. Others have no such setting."""
    if not isinstance(step, LibraryCall):
        return step
    values = step.parameters
    is_plain = not values.flag("bias") and values.word("activation") == "none"
    has_halves = np.dtype(values.word("dtype")).itemsize == 2
    return replace(step, parameters=values | {"loose_sums": True}) if is_plain and has_halves else step


def _is_extended(gemm: Gemm) -> bool:
    """Whether only cuBLASLt computes the type, not plain BLAS."""
    return gemm.dtype.startswith("float8") or gemm.bias or gemm.activation != "none"


def _wrong_epilogue(gemm: Gemm, target: Target) -> Iterator[Rejection]:
    if target.api != "CUDA" and (gemm.bias or gemm.activation != "none" or gemm.scaled):
        yield Rejection("epilogue", f"the BLAS of {target.name} has neither bias nor activation nor scales")
    elif gemm.activation not in EXTENDED_ACTIVATIONS:
        yield Rejection("epilogue", f"cuBLASLt has {', '.join(EXTENDED_ACTIVATIONS)}, not {gemm.activation}")
    elif gemm.activation != "none" and gemm.use_beta:
        yield Rejection("epilogue", "cuBLASLt adds beta C before the activation; leave UseBeta out")
    elif gemm.bias and gemm.dtype.startswith("float8") and gemm.dest == "float32":
        yield Rejection("epilogue", "cuBLASLt takes a bias in bfloat16 there, not in float32")
