"""OpenCL C, compiled by the device's own driver."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyopencl as cl

from tunesmith.records import Binary, CompiledFacts, Module, Target

from .base import CompileError, Toolchain
from .opencl_devices import context

_END = b"\0"
"""Ends the JSON in a payload."""

POLLING_SECONDS = 0.002
"""Pause between two checks whether a command runs."""

MOST_JUST_BUILT = 8
_just_built: OrderedDict[tuple[Any, bytes], Any] = OrderedDict()
"""Programs by context and payload that this process compiled and has not loaded yet. `build` hands each out once, so
that a program is not built a second time to be loaded where it was compiled."""


class OpenCLToolchain(Toolchain):
    """The driver's compiler, which exists for every target. The payload is the source with its options, as JSON. In a
    complete payload (`completed`) a zero byte and the driver's program follow.

    The driver's program is complete only after a launch: PoCL compiles to machine code at the first launch. A bench
    does not fetch the program, since PoCL takes as long to return it as to compile it. Loading the source in a second
    process costs some 30 ms: PoCL and NVIDIA have a cache by source and options, and PyOpenCL has one for other drivers
    (`devices.opencl.device` says which launches share it). Loading a complete payload costs 5 ms on PoCL and compiles
    nothing, whatever PoCL's cache holds.
    """

    language = "OpenCL"

    def version(self, target: Target) -> str:
        return f"OpenCL C of {target.driver}"

    def compile(self, module: Module, target: Target) -> Binary:
        try:
            target_context = context(target.selector)
        except LookupError as error:
            raise CompileError("no device", f"{target.selector} is not there any more") from error
        options = (*module.options, *(("-cl-nv-verbose",) if target.architecture.startswith("sm_") else ()))
        payload = json.dumps({"source": module.text, "options": options}).encode()
        program = build(target_context, payload)
        _just_built[target_context, payload] = program
        if len(_just_built) > MOST_JUST_BUILT:
            _just_built.popitem(last=False)
        device = target_context.devices[0]
        resources = parse_nvidia_log(program.get_build_info(device, cl.program_build_info.LOG))
        facts = tuple(_facts(program, entry, device, resources) for entry in module.entries)
        return Binary(module.digest(), self.language, payload, facts)

    def keeps(self, module: Module) -> bool:
        """Not if an option names a folder, since its files are in no digest."""
        return not any(option.startswith("-I") for option in module.options)

    def conditions(self, target: Target) -> tuple[str, ...]:
        """The platform with the driver's version, and the device's name; in PoCL it contains LLVM's name of the CPU."""
        return (self.version(target), target.name)

    def is_complete(self, binary: Binary) -> bool:
        return _END in binary.payload


def completed(binary: Binary, program: Any) -> Binary:
    """The binary of a program that was launched, with the driver's program; unchanged if the driver returns none."""
    if _END in binary.payload:
        return binary
    try:
        (driver_program,) = program.get_info(cl.program_info.BINARIES)
    except (cl.Error, ValueError):
        return binary
    return replace(binary, payload=binary.payload + _END + driver_program) if driver_program else binary


def wait_until_running(event: Any) -> None:
    """Wait until a command runs or has run. While PoCL compiles a kernel, its event says `submitted`."""
    while event.command_execution_status > cl.command_execution_status.RUNNING:
        time.sleep(POLLING_SECONDS)


def build(context: Any, payload: bytes) -> Any:
    """A payload's program, built for the context's device. Raises CompileError with the build log.

    The driver's own program is loaded if the payload has one and the driver accepts it; else the source is compiled.
    """
    if program := _just_built.pop((context, payload), None):
        return program
    head, _, driver_program = payload.partition(_END)
    raw = json.loads(head)
    with warnings.catch_warnings():
        # Some drivers write a log for every build, and PyOpenCL makes it a warning.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        if driver_program:
            with suppress(cl.Error):
                return cl.Program(context, context.devices, [driver_program]).build()
        try:
            return cl.Program(context, raw["source"]).build(options=list(raw["options"]))
        except cl.Error as error:
            # Without its cause: PyOpenCL's errors do not come through pickle.
            refused = CompileError(_REASONS.get(error.code, "build failed"), str(error))
        raise refused


def parse_nvidia_log(log: str) -> Mapping[str, tuple[int, int]]:
    """Registers and spilled bytes (stores plus loads) of a work-item, by entry, from the log of `-cl-nv-verbose`.

    The log names an entry ("Compiling entry function 'f'"), then its spills, then its registers. {} for other drivers.
    """
    facts = {}
    for entry, rest in re.findall(r"entry function '(\w+)'(.*?)(?=entry function '|\Z)", log, re.DOTALL):
        registers = re.search(r"Used (\d+) registers", rest)
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", rest)
        if registers:
            facts[entry] = int(registers[1]), int(spills[1]) + int(spills[2]) if spills else 0
    return facts


def _facts(program: Any, entry: str, device: Any, resources: Mapping[str, tuple[int, int]]) -> CompiledFacts:
    info = cl.kernel_work_group_info
    try:
        kernel = cl.Kernel(program, entry)
    except cl.Error as error:
        raise CompileError("no such entry", f"the source has no kernel {entry!r}") from error
    registers, spills = resources.get(entry, (None, None))
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
