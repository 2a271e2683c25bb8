"""Compiled programs on one device, and why a configuration has none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tunesmith.devices import Device, Program
from tunesmith.kernels import Kernel
from tunesmith.records import Binary, CompiledFacts, Configuration, Module, ProblemType, Rejection, Target
from tunesmith.toolchains import TOOLCHAINS, BinaryCache, CompileError, compiled, user_cache

from ._locks import call_lock


@dataclass(frozen=True, slots=True)
class CompiledPrograms:
    """A configuration's programs, one for each module, and what the compiler said of them. `aligned` says that they
    read memory in pieces of `ALIGNMENT` bytes."""

    programs: tuple[Program, ...]
    facts: tuple[CompiledFacts, ...]
    aligned: bool


class Programs:
    """What was compiled and loaded on one device so far. Whoever uses a device from several threads holds the lock."""

    def __init__(self) -> None:
        self.lock = call_lock()
        self._loaded: dict[str, tuple[Program, Binary]] = {}
        self._new: list[tuple[Module, Program, Binary]] = []

    def compiled(
        self, device: Device, kernel: Kernel, config: Configuration, kind: ProblemType
    ) -> CompiledPrograms | Rejection:
        """The programs of a configuration that has no `rejections`, or why they are none."""
        modules = kernel.modules(config, kind)
        try:
            loaded = [self._load(device, module) for module in modules]
        except CompileError as error:
            return Rejection(error.reason, error.log)
        facts = tuple(fact for _, binary in loaded for fact in binary.facts)
        useless = next(kernel.rejections_compiled(config, facts, device.target), None)
        return useless or CompiledPrograms(tuple(program for program, _ in loaded), facts, any(map(_promised, modules)))

    def keep_new(self, device: Device) -> None:
        """Put on disk what was loaded since the last time, for other processes: called when a launch is over."""
        while self._new:
            module, program, binary = self._new.pop()
            kept = _cache(user_cache(), device.target)
            if kept.keeps(module) and (complete := device.completed(binary, program)) is not binary:
                kept.keep(module, complete)

    def clear(self) -> None:
        self._loaded.clear()
        self._new.clear()

    def _load(self, device: Device, module: Module) -> tuple[Program, Binary]:
        digest = module.digest()
        if digest not in self._loaded:
            if missing := TOOLCHAINS[module.language].unavailable():
                raise CompileError("no compiler", missing)
            binary = compiled(module, device.target, _cache(user_cache(), device.target))
            program = device.load(binary)
            self._loaded[digest] = program, binary
            self._new.append((module, program, binary))
        return self._loaded[digest]


@cache
def _cache(folder: Path, target: Target) -> BinaryCache:
    """One for each folder, since it asks compilers for their versions."""
    return BinaryCache(folder, target)


def _promised(module: Module) -> bool:
    """Whether a Triton module was promised that addresses are multiples of 16 (`toolchains.triton` has the words)."""
    pairs: Any = module.constants.get("signature", ())
    pointers = {name for name, kind in pairs if kind.startswith("*")}
    promised: Any = module.constants.get("divisible_by_16", ())
    return not pointers.isdisjoint(promised)
