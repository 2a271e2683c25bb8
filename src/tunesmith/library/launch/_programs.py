"""Compiles configurations into programs on one device, and keeps the programs in memory and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tunesmith.devices import Device, Program
from tunesmith.kernels import Kernel
from tunesmith.records import Binary, CompiledFacts, Configuration, Module, ProblemType, Rejection, Target
from tunesmith.toolchains import TOOLCHAINS, BinaryCache, CompileError, compile_cached, user_cache

from ._locks import call_lock


@dataclass(frozen=True, slots=True)
class CompiledPrograms:
    """A configuration's programs, one for each module, and the compiler's facts about them. `aligned`: the programs
    read memory in pieces of `ALIGNMENT` bytes."""

    programs: tuple[Program, ...]
    facts: tuple[CompiledFacts, ...]
    aligned: bool


class Programs:
    """The programs that were compiled and loaded on one device so far. Hold `lock` to use them from several threads."""

    def __init__(self) -> None:
        self.lock = call_lock()
        self._loaded: dict[str, tuple[Program, Binary]] = {}
        self._new: list[tuple[Module, Program, Binary]] = []

    def compiled(
        self, device: Device, kernel: Kernel, config: Configuration, kind: ProblemType
    ) -> CompiledPrograms | Rejection:
        """The programs of a configuration without `rejections`, or why it cannot be compiled or run."""
        modules = kernel.modules(config, kind)
        try:
            loaded = [self._load(device, module) for module in modules]
        except CompileError as error:
            return Rejection(error.reason, error.log)
        facts = tuple(fact for _, binary in loaded for fact in binary.facts)
        rejection = next(kernel.rejections_compiled(config, facts, device.target), None)
        aligned = any(map(_assumes_alignment, modules))
        return rejection or CompiledPrograms(tuple(program for program, _ in loaded), facts, aligned)

    def loaded(self, device: Device, module: Module) -> Program:
        """The program of a module that belongs to no configuration. Raises CompileError."""
        return self._load(device, module)[0]

    def keep_new(self, device: Device) -> None:
        """Write the programs that were loaded since the last call to disk, for other processes. To be called after a
        launch: some drivers finish a program at its first launch."""
        while self._new:
            module, program, binary = self._new.pop()
            cache = _cache(user_cache(), device.target)
            if cache.keeps(module) and (complete := device.completed(binary, program)) is not binary:
                cache.keep(module, complete)

    def clear(self) -> None:
        self._loaded.clear()
        self._new.clear()

    def _load(self, device: Device, module: Module) -> tuple[Program, Binary]:
        digest = module.digest()
        if digest not in self._loaded:
            if missing := TOOLCHAINS[module.language].unavailable():
                raise CompileError("no compiler", missing)
            binary = compile_cached(module, device.target, _cache(user_cache(), device.target))
            program = device.load(binary)
            self._loaded[digest] = program, binary
            self._new.append((module, program, binary))
        return self._loaded[digest]


@cache
def _cache(folder: Path, target: Target) -> BinaryCache:
    """One cache for each folder and target: making one asks compilers for their versions."""
    return BinaryCache(folder, target)


def _assumes_alignment(module: Module) -> bool:
    """Whether a Triton module is compiled for addresses that are multiples of 16 (see `toolchains.triton`)."""
    pairs: Any = module.constants.get("signature", ())
    pointers = {name for name, kind in pairs if kind.startswith("*")}
    divisible: Any = module.constants.get("divisible_by_16", ())
    return not pointers.isdisjoint(divisible)
