"""Calls of the vendor's BLAS to test with, and a library that keeps what it is called with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from cuda_runner import H200
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, LibraryCall, Problem

FAMILY = KERNELS["VendorBlas"]
CONFIG = FAMILY.space(gemm_type()).defaults
TRANSPOSES = [(False, False), (False, True), (True, False), (True, True)]
ADDRESSES = {"A": 0xA000, "B": 0xB000, "C": 0xC000, "D": 0xD000}


def problem(*sizes, kind=None, leading=(), **scalars) -> Problem:
    return Problem(kind or gemm_type("s", batched=True), sizes, leading, Configuration(scalars))


def call(**changes) -> LibraryCall:
    """An NT call in a batch of three, with something of everything."""
    kind = gemm_type("s", transpose_b=True, batched=True)
    made = problem(5, 7, 3, 11, kind=kind, leading=(6, 8, 9, 10), alpha=1.5, beta=0.5)
    (step,) = FAMILY.plan(CONFIG, made, H200).steps
    return changed(step, **changes)


def changed(step: LibraryCall, **changes) -> LibraryCall:
    return replace(step, parameters=step.parameters | changes)


@dataclass
class FakeCuBlas:
    """Stands in for the loaded library: keeps what it is called with, and answers with `status`."""

    status: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[str, tuple[object, ...]]] = field(default_factory=list)

    def __getattr__(self, name: str):
        def called(*arguments: object) -> int:
            self.calls.append((name, tuple(map(plain, arguments))))
            return self.status.get(name, 0)

        return called

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def plain(argument: object) -> object:
    """What a ctypes argument holds; for one by reference, what it refers to."""
    held = getattr(argument, "_obj", argument)
    return getattr(held, "value", held)


def bound(blas, step, addresses, stream):
    """What enqueues one call on a stream and on memory."""
    return partial(blas.repeated(step, addresses), stream, addresses)
