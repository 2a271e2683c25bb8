"""Steps of plans as the compiled distribution `tunesmith_native` takes them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base import LaunchError
from .cublas_names import failure
from .driver import error_of_status

Writes = tuple[tuple[int, int, int], ...]
"""Where an address goes: the index of a word or a parameter, the slot of the address (`STREAM` to `SCALE_B`), and an
offset in bytes."""

STREAM, A, B, OUT, WORKSPACE, SCALE_A, SCALE_B = range(7)
"""The slots: the stream's handle, and addresses."""


class NativeStep(NamedTuple):
    """A call of a C function: its name, its address and its arguments as 8-byte words, into which `writes` go before
    each call. A launch of a kernel has a `kernel`: the launch configuration, the offset of the stream in it, the
    parameters, and the writes into parameters that are pointers and into parameters that are tensor maps. `kept` is
    what words point to."""

    name: str
    function: int
    words: tuple[int, ...]
    writes: Writes
    kernel: tuple[bytes, int, tuple[bytes, ...], Writes, Writes] | None = None
    kept: Any = None

    @property
    def described(self) -> tuple[Any, ...]:
        """The step as `tunesmith_native` takes it."""
        return self.function, self.words, self.writes, self.kernel

    def error(self, status: int) -> LaunchError:
        """The error for a status that is not 0."""
        return failure(self.name, status) if self.name.startswith("cublas") else error_of_status(self.name, status)


def address_of(function: Callable[..., int]) -> int:
    """The address of a function that ctypes loaded."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # it is a function pointer


def word(argument: Any) -> int:
    """A ctypes argument as an 8-byte word: a number, an address, or the address of what a reference refers to."""
    if hasattr(argument, "_obj"):  # ctypes.byref
        return ctypes.addressof(argument._obj)
    return int(argument.value or 0)
