"""Calls of the vendor's BLAS to test with, and a library that keeps what it is called with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from cuda_runner import H200
from tunesmith.devices.cuda.cublas import CuBlas
from tunesmith.devices.gemm_call import GemmCall
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, LibraryCall, Problem, ProblemType, Value

FAMILY = KERNELS["VendorBlas"]
CONFIG = FAMILY.space(gemm_type()).defaults
TRANSPOSES = [(False, False), (False, True), (True, False), (True, True)]
ADDRESSES = {"A": 0xA000, "B": 0xB000, "C": 0xC000, "D": 0xD000}


def problem(*sizes: int, kind: ProblemType | None = None, leading: tuple[int, ...] = (), **scalars: float) -> Problem:
    return Problem(kind or gemm_type("s", batched=True), sizes, leading, Configuration(scalars))


def call(**changes: Value) -> LibraryCall:
    """An NT call in a batch of three, with something of everything."""
    kind = gemm_type("s", transpose_b=True, batched=True)
    made = problem(5, 7, 3, 11, kind=kind, leading=(6, 8, 9, 10), alpha=1.5, beta=0.5)
    (step,) = FAMILY.plan(CONFIG, made, H200).steps
    return changed(step, **changes)


def changed(step: LibraryCall, **changes: Value) -> LibraryCall:
    return replace(step, parameters=step.parameters | changes)


@dataclass
class FakeCuBlas:
    """Stands in for the loaded library: keeps what it is called with, and answers with `status`."""

    status: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., int]:
        def called(*arguments: object) -> int:
            self.calls.append((name, tuple(map(plain, arguments))))
            return self.status.get(name, 0)

        return called

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def at(address: int, count: int, dtype: str) -> np.ndarray:
    """The memory at an address."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8).view(dtype)


def carried_out(step: LibraryCall, addresses: Mapping[str, int]) -> None:
    """What cuBLAS makes of a call on the host's memory, by the definition of its strided batches. Of an epilogue it has
    a bias here, a number for each row, and C comes into D first, as it does there."""
    g = GemmCall.of(step)
    assert (g.activation, g.scaled) == ("none", False)

    def matrices(
        name: str, shape: tuple[int, int], leading: int, stride: int, dtype: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """The places of batch x rows x columns, column-major, and the memory that they are in."""
        assert leading >= shape[0]
        batch, rows, columns = np.ogrid[: g.batch, : shape[0], : shape[1]]
        places = batch * stride + columns * leading + rows
        return places, at(addresses[name], int(places.max()) + 1, dtype)

    a, in_a = matrices("A", (g.k, g.m) if g.transpose_a else (g.m, g.k), g.lda, g.stride_a, g.dtype)
    b, in_b = matrices("B", (g.n, g.k) if g.transpose_b else (g.k, g.n), g.ldb, g.stride_b, g.dtype)
    d, in_d = matrices("D", (g.m, g.n), g.ldd, g.stride_d, g.dest)
    wide_a, wide_b = in_a[a].astype(float), in_b[b].astype(float)
    wide_a = wide_a.transpose(0, 2, 1) if g.transpose_a else wide_a
    wide_b = wide_b.transpose(0, 2, 1) if g.transpose_b else wide_b
    result = g.alpha * (wide_a @ wide_b)
    if g.beta:
        c, in_c = matrices("C", (g.m, g.n), g.ldc, g.stride_c, g.dest)
        result += g.beta * in_c[c].astype(float)
    if g.bias:
        result += at(addresses["Bias"], g.m, g.dest).astype(float)[:, None]
    in_d[d] = result


def plain(argument: object) -> object:
    """What a ctypes argument holds; for one by reference, what it refers to."""
    held = getattr(argument, "_obj", argument)
    return getattr(held, "value", held)


def bound(blas: CuBlas, step: LibraryCall, addresses: Mapping[str, int], stream: int) -> Callable[[], None]:
    """What enqueues one call on a stream and on memory."""
    return partial(blas.repeated(step, addresses), stream, addresses)
