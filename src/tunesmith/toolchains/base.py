"""The interface of a compiler, which may work without the device."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tunesmith.records import Binary, Module, Target


class CompileError(Exception):
    """The compiler failed. `reason` is a constant, `log` the compiler's output."""

    def __init__(self, reason: str, log: str) -> None:
        super().__init__(reason, log)
        self.reason, self.log = reason, log


class Toolchain(ABC):
    """One compiler. Every process that compiles makes its own; the parent process never calls `compile`."""

    language: str

    def unavailable(self) -> str | None:
        """Why the compiler cannot be used on this machine, with the remedy; None if it can be used."""
        return None

    @abstractmethod
    def version(self, target: Target) -> str:
        """Name and version of the compiler. They are part of a measurement's key."""

    @abstractmethod
    def compile(self, module: Module, target: Target) -> Binary:
        """Compile for the target. Raises CompileError."""

    def architectures(self) -> tuple[str, ...]:
        """Architectures, as targets name them, that it compiles for without a device; none if it needs the device."""
        return ()

    def keeps(self, module: Module) -> bool:
        """Whether binaries of this module may be kept on disk for other processes: they depend on nothing but the
        architecture, `Module.digest` and `conditions`."""
        return False

    def conditions(self, target: Target) -> tuple[str, ...]:
        """Whatever a binary depends on beside its module and the architecture, such as the compiler's version."""
        return (self.version(target),)

    def is_complete(self, binary: Binary) -> bool:
        """Whether a device compiles nothing more when it loads and launches the binary."""
        return True
