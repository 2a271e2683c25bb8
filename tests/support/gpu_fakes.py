"""A GPU for the tests of `matmul` where there is none: its memory is the host's, its kernels are the reference."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from library_fakes import ORIGIN
from tunesmith.devices import Bytes, Program
from tunesmith.devices.cuda.device import CudaDevice, CudaMemory
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS
from tunesmith.kernels.base import Facts
from tunesmith.kernels.fake import FakeGemm
from tunesmith.library import Library
from tunesmith.logic import Document, Logic, NamedSolution, SizeRow
from tunesmith.problems.gemm import Gemm, GemmOperation, gemm_type, strided
from tunesmith.records import (
    Binary,
    Configuration,
    Estimate,
    Launch,
    Module,
    OperandArgument,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    ScalarArgument,
    Solution,
    Target,
    TensorMapArgument,
)
from tunesmith.spaces import Parameter, Space

WORKSPACE = 4096
"""Bytes that solutions with a `Workspace` ask for."""

_PROBLEMS: list[Problem] = []
"""What launches are for: their argument is a place in here."""

_ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}
"""Written down once more, so that the library's own are tested against them."""


class OnePlan(FakeGemm):
    """Any GEMM whatever. `Maps`: A comes by a tensor map, so that its address has to be aligned; `Promises`: a compiler
    was promised that it is."""

    name = "OnePlan"

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space(
            (
                Parameter("Maps", False, (False, True), "A comes by a tensor map."),
                Parameter("Promises", False, (False, True), "Addresses are multiples of 16."),
                Parameter("Workspace", 0, (0, WORKSPACE), "Bytes."),
                Parameter("Zeroed", 0, (0, 64), "Of these, zeroed bytes.", accepts="natural number"),
            )
        )

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        yield from ()

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        promises = {"signature": (("a", "*fp32"), ("n", "i32")), "divisible_by_16": ("n", "a")}
        constants = config | promises if config.flag("Promises") else config
        return (Module("fake", problem_type.name, ("gemm",), constants=constants),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        _PROBLEMS.append(problem)
        operands = [OperandArgument(operand.name) for operand in GemmOperation().operands(problem)]
        maps = [TensorMapArgument("A", "float32", (1,), (1,), (1,))] if config.flag("Maps") else []
        location = ScalarArgument(len(_PROBLEMS) - 1, "int64")
        launch = Launch(0, "gemm", (1, 1, 1), (1, 1, 1), (location, *operands, *maps))
        return Plan((launch,), config.integer("Workspace"), zeroed=config.integer("Zeroed"))


KERNELS._loaded["OnePlan"] = OnePlan()  # known to this process alone, and in no list


class HostGpu(CudaDevice):
    """`log` has the stream, the problem and the workspace of each launch and whether that is known to be zeroed, and
    what was allocated and loaded."""

    def __init__(self, number: int = 0) -> None:
        self.target = replace(fake_target("GPU"), selector=f"CUDA:{number}")
        self.log: list[tuple[object, ...]] = []
        self.captured: set[int] = set()
        self._present: int | None = None
        self._kept: dict[int, np.ndarray] = {}

    @contextlib.contextmanager
    def on(self, stream: int | None) -> Iterator[None]:
        before, self._present = self._present, stream
        yield
        self._present = before

    def capturing(self) -> bool:
        return self._present in self.captured

    def allocate(self, size: int) -> CudaMemory:
        array = np.full(size, 0xAB, np.uint8)
        self._kept[array.ctypes.data] = array
        self.log.append(("allocate", size))
        return CudaMemory(array.ctypes.data, size, owned=True)

    def write(self, buffer: CudaMemory, data: Bytes, offset: int = 0) -> None:
        self._kept[buffer.address][offset : offset + len(data)] = data

    def release(self, *buffers: CudaMemory) -> None:
        for buffer in buffers:
            if buffer.owned:
                del self._kept[buffer.address]

    def load(self, binary: Binary) -> Program:
        self.log.append(("load", binary.module))
        return binary

    def close(self) -> None:
        assert not self._kept, "memory was not given back"

    def repeated_plan(  # type: ignore[override]
        self, plan: Plan, programs: Sequence[Program], addresses: Mapping[str, int]
    ) -> SimpleNamespace:
        (launch,) = plan.steps
        return SimpleNamespace(enqueue=lambda stream, at, on_zeros=False: self._run(launch, stream, at, on_zeros))

    def wrap(self, array: np.ndarray) -> CudaMemory:
        return CudaMemory(array.ctypes.data, array.nbytes, owned=False)

    def prepare(  # type: ignore[override]
        self, plan: Plan, programs: Sequence[Program], operands: Mapping[str, CudaMemory], workspace: CudaMemory | None
    ) -> SimpleNamespace:
        (launch,) = plan.steps
        addresses = {name: memory.address for name, memory in operands.items()} | {"": 0}
        return SimpleNamespace(enqueue=lambda: self._run(launch, 0, addresses, False))

    def synchronize(self) -> None:
        self.log.append(("wait",))

    def record(self, mark: object) -> None:
        self.log.append(("record", self._present))

    def follow(self, mark: object) -> None:
        self.log.append(("follow", self._present))

    @property
    def launches(self) -> list[tuple[object, ...]]:
        return [entry for entry in self.log if entry[0] == "launch"]

    @property
    def problems(self) -> list[Problem]:
        return [entry[2] for entry in self.launches]

    def _run(self, launch: Launch, stream: int, addresses: Mapping[str, int], on_zeros: bool) -> None:
        problem = _PROBLEMS[launch.arguments[0].value]
        self.log.append(("launch", stream, problem, addresses[""], on_zeros))
        g = Gemm.of(problem)
        arrays = {
            operand.name: strided(
                operand, at(addresses[operand.name], operand.storage_elements, operand.dtype), writeable=True
            )
            for operand in GemmOperation().operands(problem)
            if operand.name != "C" or g.beta
        }
        scale = float(arrays["ScaleA"][0] * arrays["ScaleB"][0]) if g.scaled else 1.0
        a, b = (np.moveaxis(np.atleast_3d(arrays[name].astype(float)), 2, 0) for name in "AB")
        sums = np.moveaxis(g.alpha * scale * (a @ b), 0, 2).reshape(arrays["D"].shape)
        bias = arrays["Bias"].astype(float) if g.bias else np.zeros(g.m)
        sums += bias.reshape((-1,) + (1,) * (sums.ndim - 1))
        result = _ACTIVATIONS[g.activation](sums)
        arrays["D"][...] = result + (g.beta * arrays["C"].astype(float) if g.beta else 0)


def at(address: int, count: int, dtype: str) -> np.ndarray:
    """The memory at an address."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8).view(dtype)


def logic(kind: ProblemType, *configs: dict[str, object], sizes: tuple[int, ...] = ()) -> Logic:
    """With a size, else 64 of each, that the first solution won; the last one is the fallback."""
    configs = configs or ({},)
    named = tuple(
        NamedSolution(
            f"S{index}", Solution(kind, "OnePlan", KERNELS["OnePlan"].space(kind).defaults | Configuration(config))
        )
        for index, config in enumerate(configs)
    )
    row = SizeRow(sizes or (64,) * len(kind.indices), (), 0, Estimate(1e-3, 1e-3, 1e-3, 7), 1.0)
    return Logic(Document(ORIGIN, kind, named, (row,), len(configs) - 1))


def every_type(data_type: str = "s", **more: object) -> list[ProblemType]:
    """All transposes, with and without a batch."""
    flags = (False, True)
    return [
        gemm_type(data_type, transpose_a=a, transpose_b=b, batched=batched, **more)  # type: ignore[arg-type]
        for a in flags
        for b in flags
        for batched in flags
    ]


class Rig:
    """torch with a GPU that is not there: `on_gpu` makes a tensor that says it lies on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.stream, self.captures = 7, False
        self.device = HostGpu()
        self._torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
        if self._torch:
            monkeypatch.setattr(self._torch.cuda, "is_current_stream_capturing", lambda: self.captures)
            for module in ("gemm._torch_matmul", "launch._named_operands"):
                name = f"tunesmith.library.{module}.current_handle"
                monkeypatch.setattr(name, lambda _: lambda ordinal: self.stream)

    @property
    def torch(self) -> ModuleType:
        """Skips where it is not installed."""
        return self._torch or pytest.skip("torch is not installed")

    @cached_property
    def _kind(self) -> type:
        class Tensor(self.torch.Tensor):
            is_cuda, is_cpu = True, False

            def get_device(self) -> int:
                return 0

        return Tensor

    def torch_empty(self, made: list[tuple[int, ...]]) -> None:
        """From now on `made` has the shape of each tensor that the library makes."""
        empty = self.torch.empty

        def noted(shape: tuple[int, ...], **options: Any) -> Any:
            made.append(shape)
            return empty(shape, **options)

        self._patch.setattr(self.torch, "empty", noted)

    def library(self, *kinds: ProblemType | Logic, **named: Any) -> Library:
        logics = [kind if isinstance(kind, Logic) else logic(kind) for kind in kinds]
        files = [Path(f"{index}.yaml") for index, _ in enumerate(logics)]
        return Library(list(zip(files, logics, strict=True)), device=self.device, **named)

    def on_gpu(self, tensor: Any) -> Any:
        return tensor.as_subclass(self._kind)

    def normal(self, *shape: int, dtype: str = "float32") -> Any:
        values = np.random.default_rng(sum(shape)).standard_normal(shape)
        return self.on_gpu(self.torch.from_numpy(values).to(getattr(self.torch, dtype)))


def numbers(tensor: Any) -> np.ndarray:
    """A tensor's values in double precision."""
    return tensor.detach().double().numpy()


def close(found: Any, expected: ArrayLike, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(numbers(found), expected, rtol=tolerance, atol=tolerance)


def product(a: Any, b: Any) -> np.ndarray:
    return numbers(a) @ numbers(b)


def expected(
    a: Any, b: Any, bias: Any = None, activation: str = "none", c: Any = None, beta: float = 1.0, scale: float = 1.0
) -> np.ndarray:
    wide = scale * product(a, b) + (0 if bias is None else numbers(bias))
    wide = {"none": wide, "relu": np.maximum(wide, 0), "silu": wide / (1 + np.exp(-wide))}[activation]
    return wide + (0 if c is None else beta * numbers(c))
