"""A compiler for tests: makes "binaries" for the fake device, or fails in every way in which a compiler can fail.

A module's constants say what the compiler does; see `tunesmith.devices.fake`.
"""

from __future__ import annotations

import os
import signal

from tunesmith.records import Binary, CompiledFacts, Module, Target

from .base import CompileError, Toolchain

COMPILE_FAULTS = ("compile error", "compiler segfault", "compiler hang")


class FakeToolchain(Toolchain):
    language = "fake"

    def version(self, target: Target) -> str:
        return "fake 1.0"

    def architectures(self) -> tuple[str, ...]:
        return ("fake",)

    def compile(self, module: Module, target: Target) -> Binary:
        fault = module.constants.get("Fault", "")
        if fault == "compile error":
            raise CompileError("compile error", "fake.c:1: the fake compiler was told to refuse this")
        if fault == "compiler segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "compiler hang":
            while True:
                signal.pause()
        facts = tuple(CompiledFacts(entry, registers=32, spill_bytes=0, local_bytes=0) for entry in module.entries)
        return Binary(module.digest(), "fake", module.constants.to_json().encode(), facts)
