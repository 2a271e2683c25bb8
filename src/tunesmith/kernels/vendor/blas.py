"""GEMM by the BLAS that comes with the device: cuBLAS on NVIDIA's GPUs, SciPy's BLAS (OpenBLAS) on the host's CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tunesmith.kernels._base import Kernel
from tunesmith.kernels.gemm.parameters import language
from tunesmith.kernels.gemm.types import wrong_epilogue
from tunesmith.problems.gemm import Gemm, GemmOperation, is_interleaved
from tunesmith.records import (
    CompiledFacts,
    Configuration,
    GemmCall,
    Module,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    Target,
)
from tunesmith.spaces import Space

DATA_TYPES: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {("CUDA", "GPU"): ("float32", "float64", "float16"), ("OpenCL", "CPU"): ("float32", "float64")}
)
"""What the BLAS multiplies, by a device's API and kind; other devices have none that we can call."""


class VendorBlas(Kernel):
    """One call, or on the CPU one for each matrix of a batch. Nothing may vary: what is chosen inside is the vendor's.

    The library's version and its threads are the compiler's version of these solutions, and so in every key.
    """

    name, operation, language = "VendorBlas", "GEMM", "BLAS"

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space((language(self.language),))

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        yield from wrong_epilogue(problem_type)
        offered = DATA_TYPES.get((target.api, target.kind))
        dtype = Gemm.of(_smallest(problem_type)).dtype
        if is_interleaved(problem_type):
            yield Rejection("batch layout", "BLAS takes no interleaved batch")
        if offered is None:
            yield Rejection("no BLAS", f"none can be called on the memory of {target.name} through {target.api}")
        elif dtype not in offered:
            yield Rejection("data type", f"the BLAS of {target.name} has {', '.join(offered)}, not {dtype}")

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        for operand in GemmOperation().operands(problem):
            need = operand.storage_elements * np.dtype(operand.dtype).itemsize
            if need > target.max_allocation_bytes:
                have = target.max_allocation_bytes
                yield Rejection("maximum allocation", f"{operand.name} has {need} bytes, the device allows {have}")

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        return (Module(self.language, "", ("gemm",)),)

    def plan(
        self, config: Configuration, problem: Problem, target: Target, facts: Sequence[CompiledFacts] = ()
    ) -> Plan:
        gemm = Gemm.of(problem)
        if not gemm.m * gemm.n * gemm.batch:
            return Plan(())
        call = GemmCall(
            module=0,
            dtype=gemm.dtype,
            transpose_a=gemm.transpose_a,
            transpose_b=gemm.transpose_b,
            m=gemm.m,
            n=gemm.n,
            k=gemm.k,
            batch=gemm.batch,
            lda=gemm.lda,
            ldb=gemm.ldb,
            ldc=gemm.ldc,
            ldd=gemm.ldd,
            stride_a=gemm.stride_a,
            stride_b=gemm.stride_b,
            stride_c=gemm.stride_c,
            stride_d=gemm.stride_d,
            alpha=gemm.alpha,
            beta=gemm.beta,
        )
        return Plan((call,))


def _smallest(problem_type: ProblemType) -> Problem:
    return Problem(problem_type, (1,) * len(problem_type.indices))
