"""OpenCL C, compiled by the device's own driver."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyopencl as cl

from tunesmith.records import Binary, CompiledFacts, Module, Target

from .base import CompileError, Toolchain
from .opencl_devices import context

_END = b"\0"
"""Of the JSON in a payload."""

POLLING_SECONDS = 0.002
"""From one look at whether a command runs to the next."""


class OpenCLToolchain(Toolchain):
    """The driver's compiler, which is there wherever a target is. The payload is the source with its options, as JSON;
    then, once the driver was asked for its program after a launch (`completed`), a zero byte and that program.

    Before, the driver's program is not complete: PoCL compiles to machine code only at the first launch. A bench does
    not ask for it, since PoCL takes as long to answer as to compile; PoCL and NVIDIA keep a cache of their own by
    source and options, for other drivers PyOpenCL keeps one, so that loading the source in a second process costs
    some 30 ms (`devices.opencl` says what must be equal for that). Loading a complete payload costs 5 ms on PoCL, and
    nothing is compiled then, whatever PoCL's cache holds.
    """

    language = "OpenCL"

    def version(self, target: Target) -> str:
        return f"OpenCL C of {target.driver}"

    def compile(self, module: Module, target: Target) -> Binary:
        try:
            here = context(target.selector)
        except LookupError as error:
            raise CompileError("no device", f"{target.selector} is not there any more") from error
        options = (*module.options, *(("-cl-nv-verbose",) if target.architecture.startswith("sm_") else ()))
        payload = json.dumps({"source": module.text, "options": options}).encode()
        program = build(here, payload)
        device = here.devices[0]
        told = parse_nvidia_log(program.get_build_info(device, cl.program_build_info.LOG))
        facts = tuple(_facts(program, entry, device, told) for entry in module.entries)
        return Binary(module.digest(), self.language, payload, facts)

    def keeps(self, module: Module) -> bool:
        """Not where an option names a folder whose files are in no digest."""
        return not any(option.startswith("-I") for option in module.options)

    def conditions(self, target: Target) -> tuple[str, ...]:
        """The platform with the driver's version, and the device: PoCL's name for it holds the CPU that LLVM knows."""
        return (self.version(target), target.name)

    def is_complete(self, binary: Binary) -> bool:
        return _END in binary.payload


def completed(binary: Binary, program: Any) -> Binary:
    """The binary of a program that was launched, with the driver's program; the same where the driver gives none."""
    if _END in binary.payload:
        return binary
    try:
        (made,) = program.get_info(cl.program_info.BINARIES)
    except (cl.Error, ValueError):
        return binary
    return replace(binary, payload=binary.payload + _END + made) if made else binary


def wait_until_running(event: Any) -> None:
    """Wait until a command runs or has run: PoCL compiles a kernel while its event says that it is submitted."""
    while event.command_execution_status > cl.command_execution_status.RUNNING:
        time.sleep(POLLING_SECONDS)


def build(here: Any, payload: bytes) -> Any:
    """A payload's program, built for the device of the context `here`; raises CompileError with the build log.

    The driver's own program if the payload holds one that this driver takes, else from source.
    """
    head, _, made = payload.partition(_END)
    raw = json.loads(head)
    with warnings.catch_warnings():
        # Some drivers write a log for every build, which PyOpenCL takes for a warning.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        if made:
            with suppress(cl.Error):
                return cl.Program(here, here.devices, [made]).build()
        try:
            return cl.Program(here, raw["source"]).build(options=list(raw["options"]))
        except cl.Error as error:
            raise CompileError(_REASONS.get(error.code, "build failed"), str(error)) from error


def parse_nvidia_log(log: str) -> Mapping[str, tuple[int, int]]:
    """Registers and spilled bytes (stores plus loads) a work-item, by entry, from what `-cl-nv-verbose` prints.

    The log names an entry ("Compiling entry function 'f'"), then its spills, then its registers. {} for other drivers.
    """
    facts = {}
    for entry, rest in re.findall(r"entry function '(\w+)'(.*?)(?=entry function '|\Z)", log, re.DOTALL):
        registers = re.search(r"Used (\d+) registers", rest)
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", rest)
        if registers:
            facts[entry] = int(registers[1]), int(spills[1]) + int(spills[2]) if spills else 0
    return facts


def _facts(program: Any, entry: str, device: Any, told: Mapping[str, tuple[int, int]]) -> CompiledFacts:
    info = cl.kernel_work_group_info
    try:
        kernel = cl.Kernel(program, entry)
    except cl.Error as error:
        raise CompileError("no such entry", f"the source has no kernel {entry!r}") from error
    registers, spills = told.get(entry, (None, None))
    return CompiledFacts(
        entry,
        registers,
        spills,
        local_bytes=kernel.get_work_group_info(info.LOCAL_MEM_SIZE, device),
        max_work_group_size=kernel.get_work_group_info(info.WORK_GROUP_SIZE, device),
    )


_REASONS: dict[int, str] = {
    cl.status_code.COMPILER_NOT_AVAILABLE: "no compiler",
    cl.status_code.OUT_OF_HOST_MEMORY: "out of memory",
    cl.status_code.INVALID_BUILD_OPTIONS: "invalid build options",
}
