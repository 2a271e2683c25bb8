"""A CUDA driver that is not there: it keeps what the device asks of it, and answers what a test wants."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cuda_runner import H200
from tunesmith.devices import LaunchError
from tunesmith.devices.cuda import device as _device
from tunesmith.devices.cuda import driver as _driver
from tunesmith.devices.cuda import program as _program
from tunesmith.devices.cuda import target as _target
from tunesmith.devices.cuda.device import CudaDevice
from tunesmith.toolchains.forked import CUDA


class Constant(str):
    """A constant of the driver; its value is its name."""

    __slots__ = ()

    @property
    def value(self) -> str:
        return str(self)


class Constants:
    """An enumeration of the driver. A number of it is itself."""

    def __getattr__(self, name: str) -> Constant:
        return Constant(name)

    def __call__(self, value: int) -> int:
        return value


class FakeDriver:
    """`calls` are names and arguments, in order. `answers` has what functions return, or a function of the arguments; a
    function that is in `refused` fails with that reason."""

    cuuint32_t, cuuint64_t = int, int

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.refused: dict[str, LaunchError] = {}
        self._gate_word = ctypes.c_uint32()
        handles = {"cuDeviceGet": 3, "cuDevicePrimaryCtxRetain": 0xC0, "cuStreamCreate": 5, "cuEventCreate": "event"}
        gate = {"cuMemHostAlloc": self.gate_address, "cuMemHostGetDevicePointer": 0x6000}
        self._answers = {**handles, **gate, **answers}
        for module in (_device, _driver, _program, _target):
            monkeypatch.setattr(module, "call", self.call)
            monkeypatch.setattr(module, "bindings", lambda: self)
        monkeypatch.setattr(CUDA, "used", CUDA.used)

    def __getattr__(self, name: str) -> Constants | Constant:
        """Enumerations are named in small letters too; other constants are not."""
        return Constant(name) if name.isupper() else Constants()

    def CUstream(self, handle: int) -> int:  # noqa: N802  (the driver's name)
        return handle

    def call(self, name: str, *arguments: Any) -> Any:
        self.calls.append((name, *arguments))
        if name in self.refused:
            raise self.refused[name]
        answer = self._answers.get(name)
        return answer(*arguments) if isinstance(answer, Callable) else answer  # type: ignore[arg-type]

    def calls_of(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for called, *arguments in map(list, self.calls) if called == name]  # type: ignore[misc]

    @property
    def names(self) -> list[str]:
        return [name for name, *_ in self.calls]

    @property
    def gate_address(self) -> int:
        return ctypes.addressof(self._gate_word)

    @property
    def gate(self) -> int:
        """The number that the host has written: streams wait for their own to be reached."""
        return self._gate_word.value

    @gate.setter
    def gate(self, value: int) -> None:
        self._gate_word.value = value

    def opened(self, ordinal: int = 0) -> CudaDevice:
        """A device of this driver; forgets the calls that opened it."""
        opened = CudaDevice(replace(H200, selector=f"CUDA:{ordinal}"), ordinal)
        self.calls.clear()
        return opened
