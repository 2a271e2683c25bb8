"""How source becomes a program, with or without the device present."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tunesmith.records import Binary, Module, Target


class CompileError(Exception):
    """The compiler refused: `reason` is a constant, `log` what it said."""

    def __init__(self, reason: str, log: str) -> None:
        super().__init__(reason, log)
        self.reason, self.log = reason, log


class Toolchain(ABC):
    """One compiler. Made in every process that compiles; `compile` is called there, never in the parent."""

    language: str

    def unavailable(self) -> str | None:
        """Why it cannot be used on this machine, with the remedy; None when it can. Imports nothing heavy twice."""
        return None

    @abstractmethod
    def version(self, target: Target) -> str:
        """Name and version of the compiler: part of a measurement's key."""

    @abstractmethod
    def compile(self, module: Module, target: Target) -> Binary:
        """Compile for the target; raises CompileError."""

    def architectures(self) -> tuple[str, ...]:
        """What it compiles for without a device, as targets name it; nothing where the compiler is a device's own."""
        return ()

    def keeps(self, module: Module) -> bool:
        """Whether binaries of this module may be put on disk for other processes: architecture, `Module.digest` and
        `conditions` say all that they depend on."""
        return False

    def conditions(self, target: Target) -> tuple[str, ...]:
        """What a binary depends on beside its module and the architecture: the compiler's version and more."""
        return (self.version(target),)

    def is_complete(self, binary: Binary) -> bool:
        """Whether nothing is left to compile when a device loads the binary and launches it."""
        return True
