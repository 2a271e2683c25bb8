"""Where a plan is carried out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Binary, Plan, Target

Bytes = NDArray[np.uint8]
Buffer = Any
"""A device's own handle for memory; opaque to everyone but the device that made it."""
Program = Any
"""A loaded binary; opaque likewise."""


class LaunchError(Exception):
    """The device refused a launch or an allocation: `reason` is a constant, `detail` what it said.

    `poisoned` says that the context cannot be trusted any more, so that the worker that owns it must end.
    """

    def __init__(self, reason: str, detail: str, poisoned: bool = False) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail, self.poisoned = reason, detail, poisoned


NOT_SUPPORTED = "not supported"
"""The reason where a vendor's library does not compute what it is asked for: nothing went wrong."""


class Prepared(ABC):
    """A plan bound to programs and memory, ready to run any number of times."""

    @abstractmethod
    def enqueue(self) -> None:
        """Start one execution of the whole plan; returns at once. Raises LaunchError."""


class Device(ABC):
    """A live device with one in-order queue. One process owns it; it is closed with that process.

    Memory is untyped: a Buffer of bytes, of which `view` gives a part. Nothing here knows about operands.
    """

    target: Target

    @property
    def lost(self) -> bool:
        """Whether its driver stayed in the process that this one was forked from: then every call raises UserError, and
        giving something back does nothing."""
        return False

    @abstractmethod
    def allocate(self, size: int) -> Buffer:
        """At least `size` bytes, aligned for any use. Raises LaunchError("out of memory")."""

    @abstractmethod
    def view(self, buffer: Buffer, offset: int, size: int) -> Buffer:
        """Part of a buffer; `offset` is a multiple of `alignment`."""

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
        """Copy `size` bytes from one buffer to another, or to another place of the same; returns at once.

        It comes after what was enqueued, as what is enqueued next comes after it. The two places do not overlap.
        """

    def wrap(self, array: NDArray[Any]) -> Buffer | None:
        """Use a contiguous host array as a buffer without a copy, where the device shares the host's memory.

        It is aligned as its elements are and no better, so it serves kernels that address elements (`vload`, not
        pointers to vectors). What the device wrote is in the array once the buffer is released. None where it cannot
        be done; a read-only array gives a buffer that must not be written.
        """
        return None

    @abstractmethod
    def load(self, binary: Binary) -> Program:
        """Make a compiled module ready to launch."""

    def completed(self, binary: Binary, program: Program) -> Binary:
        """The binary from which this program was loaded, with what the driver made of it at a launch that is over.

        Where loading and launching a binary compiles nothing, that is the binary itself. Else a cache can keep the
        result, so that the next process compiles nothing. On PoCL this takes as long as compiling.
        """
        return binary

    @abstractmethod
    def prepare(
        self, plan: Plan, programs: Sequence[Program], operands: Mapping[str, Buffer], workspace: Buffer | None
    ) -> Prepared:
        """Bind a plan: `programs[i]` is module i of its launches. Raises LaunchError."""

    @abstractmethod
    def time(self, executions: Sequence[Prepared]) -> float:
        """Device seconds from the start of the first to the end of the last of these executions, run back to back.

        By device events, so that the host's time is left out. Waits.
        """

    def run(self, prepared: Prepared, running: Callable[[bool], None]) -> None:
        """Execute a plan once and wait; `running(True)` when a launch begins to run, `running(False)` when it is over.

        Where the driver compiles at a launch, that comes before its launch runs. Raises LaunchError.
        """
        running(True)
        prepared.enqueue()
        self.synchronize()
        running(False)

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for everything enqueued; raises LaunchError if any of it failed."""

    @abstractmethod
    def release(self, *buffers: Buffer) -> None:
        """Give memory back."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back. Closing again does nothing."""
