"""The interface of a device, which carries out plans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Binary, Plan, Target

Bytes = NDArray[np.uint8]
Buffer = Any
"""A device's own handle for memory. Only the device that made it looks inside."""
Program = Any
"""A loaded binary. Only the device that loaded it looks inside."""


class LaunchError(Exception):
    """The device refused a launch or an allocation. `reason` is a constant, `detail` the driver's message.

    `poisoned` says that the context cannot be used any more, so the worker that owns it must end.
    """

    def __init__(self, reason: str, detail: str, poisoned: bool = False) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail, self.poisoned = reason, detail, poisoned


NOT_SUPPORTED = "not supported"
"""The reason if a vendor's library does not support a call. This is no failure."""


class Prepared(ABC):
    """A plan bound to programs and memory, ready to run any number of times."""

    @abstractmethod
    def enqueue(self) -> None:
        """Start one execution of the whole plan and return at once. Raises LaunchError."""


class Device(ABC):
    """A live device with one in-order queue. One process owns it; the device is closed when that process ends.

    Memory is untyped: a Buffer of bytes. `view` gives a part of a buffer.
    """

    target: Target

    @property
    def lost(self) -> bool:
        """Whether this process is a fork of the process that used the driver. Then every call raises UserError, except
        that releasing memory does nothing."""
        return False

    @abstractmethod
    def allocate(self, size: int) -> Buffer:
        """At least `size` bytes, aligned for any use. Raises LaunchError("out of memory")."""

    @abstractmethod
    def view(self, buffer: Buffer, offset: int, size: int) -> Buffer:
        """A part of a buffer. `offset` is a multiple of `alignment`."""

    @property
    @abstractmethod
    def alignment(self) -> int:
        """Bytes to which a view's offset must be rounded."""

    @abstractmethod
    def write(self, buffer: Buffer, data: Bytes, offset: int = 0) -> None:
        """Copy host bytes into a buffer and wait."""

    @abstractmethod
    def read(self, buffer: Buffer, size: int, offset: int = 0) -> Bytes:
        """Copy `size` bytes out of a buffer and wait."""

    @abstractmethod
    def copy(self, source: Buffer, target: Buffer, size: int, source_offset: int = 0, target_offset: int = 0) -> None:
        """Copy `size` bytes from one buffer to another, or within one buffer; returns at once.

        The copy runs in order with everything else that is enqueued. The two ranges must not overlap.
        """

    def wrap(self, array: NDArray[Any]) -> Buffer | None:
        """A contiguous host array as a buffer, without a copy, if the device shares the host's memory; else None.

        The buffer is only aligned to the array's elements, so kernels must address elements (`vload`, not pointers to
        vectors). After the buffer is released, the array holds what the device wrote. A read-only array gives a buffer
        that must not be written.
        """
        return None

    def lasting(self, address: int, size: int, writeable: bool) -> Buffer | None:
        """Host memory as a buffer that stays usable: at any time it is the memory that then lies at this address.

        Nothing keeps the memory alive, so the caller uses the buffer only while there is memory. None if the device
        cannot, because it does not work on the host's memory itself.
        """
        return None

    @abstractmethod
    def load(self, binary: Binary) -> Program:
        """Make a compiled module ready to launch."""

    def completed(self, binary: Binary, program: Program) -> Binary:
        """The binary of a program, with the machine code that the driver made at an earlier launch.

        If loading and launching a binary compiles nothing, the result is the binary itself. Otherwise a cache can keep
        the result, so that the next process compiles nothing. On PoCL this call takes as long as compiling.
        """
        return binary

    @abstractmethod
    def prepare(
        self, plan: Plan, programs: Sequence[Program], operands: Mapping[str, Buffer], workspace: Buffer | None
    ) -> Prepared:
        """Bind a plan: `programs[i]` is module i of its launches. Raises LaunchError."""

    @abstractmethod
    def time(self, executions: Sequence[Prepared]) -> float:
        """Run executions back to back and wait; device seconds from the first's start to the last's end.

        The time is by device events, so it does not contain the host's time.
        """

    def run(self, prepared: Prepared, running: Callable[[bool], None]) -> None:
        """Execute a plan once and wait. Calls `running(True)` when a launch starts and `running(False)` when it ends.

        If the driver compiles at a launch, it does so before `running(True)`. Raises LaunchError.
        """
        running(True)
        prepared.enqueue()
        self.synchronize()
        running(False)

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything that was enqueued. Raises LaunchError if any of it failed."""

    @abstractmethod
    def release(self, *buffers: Buffer) -> None:
        """Free memory."""

    @abstractmethod
    def close(self) -> None:
        """Free everything. Closing a device again does nothing."""
