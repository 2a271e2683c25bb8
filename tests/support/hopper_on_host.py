"""Kernels for Hopper's tensor cores run by the host: `hopper_on_host.cpp` stands in for the hardware."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
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
PROGRAM = """
namespace program_{name} {{
#if OUTPUT_BF16
using namespace halves_of_bf16;
#elif OUTPUT_F16
using namespace halves_of_f16;
#endif
#line 1 "program_{name}"
{source}
extern "C" const char *run_{name}(
    const int *grid, int cluster, int items, int shared, int together, void **arguments)
{{
    return launch(gemm, JOINT ? cluster : SHARERS, grid, items, shared, together, arguments);
}}
}}
"""
Run = Callable[..., bytes]
"""A program for the host: of the grid, work-groups of a cluster, work-items, bytes of shared memory, how many
work-groups run together and the arguments' addresses; returns what went wrong, or nothing."""


def host_programs(modules: Iterable[Module], folder: Path) -> list[Run]:
    """The modules for the host. The compiler reads all of them at once: most of what it does is for the standard
    library and the stand-in, which they share."""
    compiler = shutil.which("g++")
    if not compiler or platform.machine() != "x86_64":
        pytest.skip("no g++ for x86-64 here")
    programs = [_program(module, index) for index, module in enumerate(modules)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernels.cpp").write_text(f'#include "{HARDWARE}"\n' + "".join(programs))
    options = ["-std=c++20", "-O1", "-w", "-mf16c", "-ffp-contract=off", "-fPIC", "-pthread", "-shared"]
    command = [compiler, *options, "kernels.cpp", "-o", "kernels.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(folder / "kernels.so"))
    runs = [getattr(library, f"run_{index}") for index in range(len(programs))]
    for run in runs:
        run.restype = ctypes.c_char_p
    return runs


def _program(module: Module, name: int) -> str:
    """A module's text in a namespace of its own, with its macros before it and without any behind it."""
    source = module.text.replace(text("hardware.cu"), "")
    source = source.replace("extern __shared__ unsigned char memory[];", "unsigned char *memory = nullptr;")
    source, count = INSTRUCTION.subn(_product, source)
    assert count == 1
    assert "asm" not in source
    assert source.count('extern "C"') == 1
    source = source.replace('extern "C"', "")
    macros = [option.removeprefix("-D").split("=", 1) for option in module.options if option.startswith("-D")]
    names = {macro for macro, _ in macros} | set(re.findall(r"^ *#define (\w+)", source, re.MULTILINE))
    before = "".join(f"#define {macro} {value}\n" for macro, value in macros)
    behind = "".join(f"#undef {macro}\n" for macro in sorted(names))
    return before + PROGRAM.format(name=name, source=source) + behind


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


def run_on_host(run: Run, plan: Plan, memory: dict[str, np.ndarray], workspace: np.ndarray, together: int = 1) -> None:
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
                wrong = run(grid, step.cluster, step.work_group[0], step.shared_bytes, together, pointer)
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
    run: Run,
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
    run_on_host(run, plan, memory, garbage, together)
    return memory["D"]


def verify_on_host(family: Kernel, config: Configuration, asked: Problem, run: Run, together: int = 1) -> None:
    """Every check of the problem: within the bound, and nothing but D's elements written."""
    operation = GemmOperation()
    for check in operation.checks(asked):
        inputs = operation.inputs(check, np.random.default_rng(3))
        expected = operation.reference(check, inputs)["D"]
        operand = next(operand for operand in operation.operands(check) if operand.name == "D")
        out = result_on_host(family, config, check, run, inputs, together)
        got = strided(operand, out).astype(np.float64)[expected.where]
        wrong = ~(np.abs(got - expected.value) <= expected.bound)
        assert not wrong.any(), f"{wrong.sum()} of {wrong.size} wrong, first at {np.argwhere(wrong)[0]}"
        untouched = np.ones(out.size, bool)
        strided(operand, untouched, writeable=True)[...] = False
        assert (out.view(np.uint8).reshape(out.size, -1)[untouched] == 0xFF).all()
