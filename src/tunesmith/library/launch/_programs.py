"""Compiled programs on one device, and why a configuration has none."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from tunesmith.devices import Device, Program
from tunesmith.kernels import Kernel
from tunesmith.records import Binary, CompiledFacts, Configuration, Module, ProblemType, Rejection, Target
from tunesmith.toolchains import TOOLCHAINS, CompileError


@dataclass(frozen=True, slots=True)
class Compiled:
    """A configuration's programs, one for each module, and what the compiler said of them. `aligned` says that they
    read memory in pieces of `ALIGNMENT` bytes."""

    programs: tuple[Program, ...]
    facts: tuple[CompiledFacts, ...]
    aligned: bool


class Programs:
    """What was compiled and loaded on one device so far. Whoever uses a device from several threads holds the lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._loaded: dict[str, tuple[Program, Binary]] = {}

    def compiled(
        self, device: Device, kernel: Kernel, config: Configuration, kind: ProblemType
    ) -> Compiled | Rejection:
        """The programs of a configuration that has no `rejections`, or why they are none."""
        modules = kernel.modules(config, kind)
        try:
            loaded = [self._load(device, module) for module in modules]
        except CompileError as error:
            return Rejection(error.reason, error.log)
        facts = tuple(fact for _, binary in loaded for fact in binary.facts)
        useless = next(kernel.rejections_compiled(config, facts, device.target), None)
        return useless or Compiled(tuple(program for program, _ in loaded), facts, any(map(_promised, modules)))

    def clear(self) -> None:
        self._loaded.clear()

    def _load(self, device: Device, module: Module) -> tuple[Program, Binary]:
        digest = module.digest()
        if digest not in self._loaded:
            binary = _binary(module, device.target)
            self._loaded[digest] = device.load(binary), binary
        return self._loaded[digest]


def _binary(module: Module, target: Target) -> Binary:
    toolchain = TOOLCHAINS[module.language]
    if missing := toolchain.unavailable():
        raise CompileError("no compiler", missing)
    return toolchain.compile(module, target)


def _promised(module: Module) -> bool:
    """Whether a Triton module was promised that addresses are multiples of 16 (`toolchains.triton` has the words)."""
    pairs: Any = module.constants.get("signature", ())
    pointers = {name for name, kind in pairs if kind.startswith("*")}
    promised: Any = module.constants.get("divisible_by_16", ())
    return not pointers.isdisjoint(promised)
