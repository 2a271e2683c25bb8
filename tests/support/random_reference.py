"""What a `tunesmith.random.Generator` must give by the NumPy reference, and a GPU's streams for where there is none."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opencl_runner import opencl_device
from tunesmith.devices import Buffer, Prepared, Program
from tunesmith.devices.cuda.device import CudaDevice
from tunesmith.kernels.random import COUNT_ARGUMENT, with_arguments
from tunesmith.library.random._buffers import VALUE_TYPES
from tunesmith.library.random._position import Position
from tunesmith.problems.random import GENERATORS, GeneratorKind, scalars_for, width_of
from tunesmith.problems.random.distributions import Values, quasi_values_of, values_of
from tunesmith.problems.random.streams import quasi_words, words
from tunesmith.records import Launch, Plan


def expected(
    name: str,
    distribution: str,
    dtype: str,
    count: int,
    *,
    seed: int,
    position: int | Position = 0,
    engines: int | None = None,
    dimensions: int = 1,
    **parameters: float,
) -> Values:
    """`count` values, flat, from that position on; of a quasi generator, in each dimension."""
    generator, value_type = GENERATORS[name], VALUE_TYPES[dtype]
    at = position if isinstance(position, Position) else Position(position)
    scalars = scalars_for(distribution, **parameters)
    if generator.kind is GeneratorKind.QUASI:
        dimension, index = np.divmod(np.arange(count * dimensions), count)
        made = quasi_words(name, seed, at.offset, index, dimension)
        values = quasi_values_of(distribution, value_type, made[:, None], scalars)
        return Values(values.value[:, 0], values.bound[:, 0])
    width = width_of(generator, distribution, value_type)
    vectors = at.vectors + np.arange(-(-count // width.values))
    taken = words(name, seed, at.offset, engines or generator.default_engines, vectors, width.words)
    values = values_of(distribution, value_type, taken, scalars)
    return Values(values.value.ravel()[:count], values.bound.ravel()[:count])


def close(found: np.ndarray, expected: Values) -> None:
    """Within the reference's bound, which is 0 for integers and uniform numbers."""
    flat = found.ravel()
    if found.dtype.kind in "iu":
        flat = flat.view(f"uint{8 * found.itemsize}")
        assert (flat == expected.value).all()
        return
    assert (np.abs(flat.astype(np.float64) - expected.value) <= expected.bound).all()


LARGEST_VALUE = 8
"""Bytes."""

Repeated = tuple[Launch, Program, Buffer | None]
"""A launch to repeat, with its program and its workspace."""


class StreamingDevice(CudaDevice):
    """The OpenCL device under a GPU's name: `log` tells which stream was waited for, and which work went where.

    Addresses of the GPU are addresses of the host.
    """

    def __init__(self) -> None:
        self._inner = opencl_device()
        self.target = replace(self._inner.target, selector="CUDA:0")
        self.log: list[tuple[str, int | str]] = []
        self.current: int | str = "own"

    def __getattribute__(self, name: str) -> Any:
        forwarded = ("allocate", "view", "write", "read", "load", "release", "alignment")
        return (
            getattr(object.__getattribute__(self, "_inner"), name)
            if name in forwarded
            else super().__getattribute__(name)
        )

    def wrap(self, array: np.ndarray) -> None:
        return None

    def external(self, address: int, size: int) -> Buffer:
        return self._inner.wrap(np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8))

    @contextlib.contextmanager
    def on(self, stream: int | None) -> Iterator[None]:
        before, self.current = self.current, "own" if stream is None else stream
        try:
            yield
        finally:
            self.current = before

    def prepare(  # type: ignore[override]
        self, plan: Plan, programs: Sequence[Program], operands: Mapping[str, Buffer], workspace: Buffer | None
    ) -> Prepared:
        self.log += [(getattr(step, "entry", "write"), self.current) for step in plan.steps]
        return self._inner.prepare(plan, programs, operands, workspace)

    def repeated(self, step: Launch, program: Program, workspace: Buffer | None) -> Repeated:  # type: ignore[override]
        return step, program, workspace

    def launch(  # type: ignore[override]
        self, repeated: Repeated, grid: int, numbers: Sequence[tuple[int, int]]
    ) -> None:
        step, program, workspace = repeated
        (_, address), *rest = numbers
        values = dict(rest)[COUNT_ARGUMENT] * step.grid[1]
        out = self.external(address, values * LARGEST_VALUE)
        plan = Plan((with_arguments(step, grid, rest),), 0)
        self.prepare(plan, [program], {"Out": out}, workspace).enqueue()
        self._inner.synchronize()
        self._inner.release(out)

    def synchronize(self) -> None:
        self.log.append(("wait", self.current))
        self._inner.synchronize()

    def record(self, mark: object) -> None:
        self.log.append(("record", self.current))

    def follow(self, mark: object) -> None:
        self.log.append(("follow", self.current))


class OnGpu:
    """An array that only shows the CUDA array interface."""

    def __init__(self, array: np.ndarray, **changes: object) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": None,
            "version": 3,
            **changes,
        }
