"""Libraries on the fake device, for the tests of the library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tunesmith.devices import Device
from tunesmith.devices.fake import FakeDevice, fake_target
from tunesmith.kernels.fake import FakeGemm
from tunesmith.library import LaunchRecord, Library
from tunesmith.logic import Document, Logic, NamedSolution, Origin, SizeRow
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, ProblemType, Solution

TARGET = fake_target("CPU")
ORIGIN = Origin.of(TARGET, "fake 1.0", "0.1.0", "2026-11-20T12:00:00Z")


def solution(kind: ProblemType, **changes: object) -> Solution:
    return Solution(kind, "FakeGemm", FakeGemm().space(kind).defaults | changes)  # type: ignore[operator]


def logic(
    kind: ProblemType, configs: Sequence[dict[str, object]] = ({},), rows: dict[tuple[int, ...], int] | None = None
) -> Logic:
    """A logic. `rows` maps sizes to the index of their solution; by default the size is 64 everywhere, with the
    first."""
    rows = rows or {(64,) * len(kind.indices): 0}
    named = tuple(NamedSolution(f"S{index}", solution(kind, **config)) for index, config in enumerate(configs))
    estimate = Estimate(1e-3, 0.9e-3, 1.1e-3, 7)
    measured = tuple(SizeRow(sizes, (), index, estimate, math.prod(sizes) * 2e-6) for sizes, index in rows.items())
    return Logic(Document(ORIGIN, kind, named, measured, 0))


def library(
    *logics: Logic, device: Device | None = None, launched: Callable[[LaunchRecord], None] | None = None
) -> Library:
    files = [(Path(f"{index}.yaml"), logic_) for index, logic_ in enumerate(logics)]
    return Library(files, device=device or FakeDevice(TARGET), launched=launched)


class WithoutSharedMemory(FakeDevice):
    """Like a GPU, it copies every array to the device and back."""

    def wrap(self, array: np.ndarray) -> None:
        return None


DEVICES = [FakeDevice, WithoutSharedMemory]
TYPES = [gemm_type(transpose_a=a, transpose_b=b) for a, b in itertools.product([False, True], repeat=2)]
random = np.random.default_rng(5)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return random.standard_normal(shape).astype(dtype)


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
