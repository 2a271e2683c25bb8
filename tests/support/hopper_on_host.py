"""Kernels for Hopper's tensor cores run by the host: `hopper_on_host.cpp` stands in for the hardware."""

from __future__ import annotations

import atexit
import ctypes
import platform
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import cuda_on_host
from cuda_runner import H200
from tunesmith.devices.cuda.arguments import Convention, Parameters, TensorMap, packed
from tunesmith.kernels import Kernel
from tunesmith.kernels.gemm.cuda.aligned import aligned_module
from tunesmith.kernels.gemm.cuda.wgmma.text import text
from tunesmith.problems.gemm import GemmOperation, strided
from tunesmith.records import (
    Configuration,
    Launch,
    Module,
    Plan,
    Problem,
    Zero,
)

HARDWARE = Path(__file__).with_name("hopper_on_host.cpp")
INSTRUCTION = re.compile(
    r"__device__ __forceinline__ void multiply_add\("
    r".*?m64n(\d+)k(\d+)\.(\w+)\.(\w+)\.(\w+) .*?, (keeps[^;]*); \}.*?\n\}\n",
    re.DOTALL,
)
LAUNCH = """
extern "C" const char *run(const int *grid, int items, int shared, int together, void **arguments)
{
    return launch(gemm, grid, items, shared, together, arguments);
}
"""


def host_library(module: Module, folder: Path) -> ctypes.CDLL:
    """The module for the host: one function `run`, which returns what went wrong, or nothing."""
    compiler = shutil.which("g++")
    if not compiler or platform.machine() != "x86_64":
        pytest.skip("no g++ for x86-64 here")
    source = module.text.replace(text("hardware.cu"), "")
    source = source.replace("extern __shared__ unsigned char memory[];", "unsigned char *memory = nullptr;")
    source, count = INSTRUCTION.subn(_product, source)
    assert count == 1
    assert "asm" not in source
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cpp").write_text(f'#include "{HARDWARE}"\n{source}{LAUNCH}')
    macros = [option for option in module.options if option.startswith("-D")]
    command = [
        *_compiler(compiler),
        "-shared",
        "-include",
        _headers(compiler),
        *macros,
        "kernel.cpp",
        "-o",
        "kernel.so",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(folder / "kernel.so"))
    library.run.restype = ctypes.c_char_p
    return library


def _compiler(compiler: str) -> list[str]:
    return [compiler, "-std=c++20", "-O1", "-w", "-mf16c", "-ffp-contract=off", "-fPIC", "-pthread"]


@cache
def _headers(compiler: str) -> str:
    """A header with all of the standard library that the stand-in includes, compiled once for all programs: that is
    half of what a program takes. Without `headers.h.gch` the compiler would read the header."""
    folder = Path(tempfile.mkdtemp(prefix="hopper-on-host-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    texts = "".join(path.read_text() for path in (HARDWARE, HARDWARE.with_name("hopper_waiting.h")))
    header = folder / "headers.h"
    header.write_text("\n".join(sorted(set(re.findall(r"^#include <.*>$", texts, re.MULTILINE)))) + "\n")
    subprocess.run([*_compiler(compiler), header, "-o", f"{header}.gch"], check=True)
    return str(header)


def _product(found: re.Match[str]) -> str:
    """The instruction's text as a call of its stand-in."""
    columns, depth, _, x, y, flags = found.groups()
    assert x == y
    transposes = flags.split(", ")[3:] or ["0", "0"]
    arguments = ", ".join((x, depth, *transposes))
    return f"""inline void multiply_add(Sum (&sums)[{columns} / 2], u64 x, u64 y, int keep)
{{
    multiply_add_as<{arguments}>(sums, x, y, keep);
}}
"""


def run_on_host(
    library: ctypes.CDLL, plan: Plan, memory: dict[str, np.ndarray], workspace: np.ndarray, together: int = 1
) -> None:
    """Carry out a plan whose operands are `memory`, `together` work-groups at a time in the order of their numbers;
    what it found zeroed must be so again."""
    for step in plan.from_scratch.steps:
        match step:
            case Zero(operand="", offset=offset, size=size):
                workspace[offset : offset + size] = 0
            case Launch(entry="align" | "transpose"):
                cuda_on_host.run_on_host(_copies(), Plan((step,)), memory, workspace)
            case Launch():
                addresses = {name: array.ctypes.data for name, array in {**memory, "": workspace}.items()}
                parameters = packed(step.arguments, Convention(), addresses, _encoded)
                arguments = Parameters([value for value, _ in parameters])
                grid = (ctypes.c_int * 3)(*step.grid)
                pointer = ctypes.c_void_p(arguments.pointer)
                wrong = library.run(grid, step.work_group[0], step.shared_bytes, together, pointer)
                assert wrong == b"", wrong.decode()
            case _:
                raise AssertionError(step)
    assert not workspace[: plan.zeroed].any(), "a flag is still raised"


@cache
def _copies() -> ctypes.CDLL:
    """What copies or transposes operands that lie as they cannot be fetched."""
    with tempfile.TemporaryDirectory() as folder:
        return cuda_on_host.host_library(aligned_module(), Path(folder))


def _encoded(tensor_map: TensorMap) -> bytes:
    """A view in the words that the stand-in reads."""
    sizes = {"UINT8": 1, "FLOAT16": 2, "BFLOAT16": 2, "FLOAT32": 4}
    words = (
        tensor_map.address,
        sizes[tensor_map.element_type],
        *tensor_map.shape,
        *tensor_map.strides,
        *tensor_map.box,
        tensor_map.swizzle,
    )
    return struct.pack("<11Q", *words).ljust(128, b"\0")


def aligned(storage: np.ndarray) -> np.ndarray:
    """A copy whose first element lies at a multiple of 256 bytes."""
    room = np.empty(storage.nbytes + 512, np.uint8)
    start = -room.ctypes.data % 256
    copy = room[start : start + storage.nbytes].view(storage.dtype)
    copy[...] = storage
    return copy


def result_on_host(
    family: Kernel,
    config: Configuration,
    asked: Problem,
    library: ctypes.CDLL,
    inputs: Mapping[str, np.ndarray],
    together: int = 1,
) -> np.ndarray:
    """D's storage, all of whose bits were set before, between its columns and behind them too."""
    plan = family.plan(config, asked, H200)
    operands = {operand.name: operand for operand in GemmOperation().operands(asked)}
    guard = 64
    out = np.full((operands["D"].storage_elements + guard) * np.dtype(operands["D"].dtype).itemsize, 0xFF, np.uint8)
    memory = {name: aligned(storage) for name, storage in inputs.items()}
    memory["D"] = aligned(out.view(operands["D"].dtype))
    garbage = aligned(np.full(plan.workspace_bytes, 0xFF, np.uint8))
    run_on_host(library, plan, memory, garbage, together)
    return memory["D"]


def verify_on_host(
    family: Kernel, config: Configuration, asked: Problem, library: ctypes.CDLL, together: int = 1
) -> None:
    """Every check of the problem: within the bound, and nothing but D's elements written."""
    operation = GemmOperation()
    for check in operation.checks(asked):
        inputs = operation.inputs(check, np.random.default_rng(3))
        expected = operation.reference(check, inputs)["D"]
        operand = next(operand for operand in operation.operands(check) if operand.name == "D")
        out = result_on_host(family, config, check, library, inputs, together)
        got = strided(operand, out).astype(np.float64)[expected.where]
        wrong = ~(np.abs(got - expected.value) <= expected.bound)
        assert not wrong.any(), f"{wrong.sum()} of {wrong.size} wrong, first at {np.argwhere(wrong)[0]}"
        untouched = np.ones(out.size, bool)
        strided(operand, untouched, writeable=True)[...] = False
        assert (out.view(np.uint8).reshape(out.size, -1)[untouched] == 0xFF).all()
