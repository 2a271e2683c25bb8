"""CUDA C++ run by the host's C++ compiler: right or wrong without a GPU.

Each work-item has a stack of its own. One runs until it meets a barrier, then the next does, from the first or from the
last in turns. So where a barrier is missing, an item reads what others have not written, always and not by chance.
"""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from cuda_runner import H200
from tunesmith.kernels import Kernel
from tunesmith.problems.gemm import GemmOperation, strided
from tunesmith.records import (
    Argument,
    Configuration,
    Module,
    OperandArgument,
    Plan,
    Problem,
    ScalarArgument,
    WorkspaceArgument,
)

SHIM = """
#include "half_on_host.h"
#include <cstddef>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>
#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __restrict__ __restrict
struct Index { int x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits)
{
    return (((unsigned long long)high << 32 | low) >> (bits & 31));
}
Index threadIdx, blockIdx, gridDim;
extern "C" { long barriers, diverged; }
const int STACK_BYTES = 1 << 16;
ucontext_t between;
struct Item { ucontext_t at; bool ended; std::vector<char> stack; };
std::vector<Item> work_items;
void __syncthreads()
{
    if (threadIdx.x == 0) ++barriers;
    swapcontext(&work_items[threadIdx.x].at, &between);
}
"""
RUN = """
void (*call)();
void run_item()
{
    call();
    work_items[threadIdx.x].ended = true;
}
// From barrier to barrier one work-item after the other, in turns from the first and from the last.
void run_group(int count)
{
    for (Item& item : work_items) {
        getcontext(&item.at);
        item.at.uc_stack.ss_sp = item.stack.data();
        item.at.uc_stack.ss_size = item.stack.size();
        item.at.uc_link = &between;
        item.ended = false;
        makecontext(&item.at, run_item, 0);
    }
    int ended = 0;
    for (bool forwards = true; ended < count; forwards = !forwards) {
        if (ended) ++diverged;
        for (int i = 0; i < count; ++i) {
            threadIdx = {forwards ? i : count - 1 - i, 0, 0};
            if (work_items[threadIdx.x].ended) continue;
            swapcontext(&between, &work_items[threadIdx.x].at);
            ended += work_items[threadIdx.x].ended;
        }
    }
    ++barriers;
}
template <class... T, std::size_t... place>
void run_each(void (*kernel)(T...), const int* grid, int items, void** arguments, std::index_sequence<place...>)
{
    static decltype(kernel) entry;
    static void** values;
    entry = kernel, values = arguments;
    call = [] { entry(*static_cast<std::remove_cv_t<T>*>(values[place])...); };
    gridDim = {grid[0], grid[1], grid[2]};
    work_items.resize(items);
    for (Item& item : work_items) item.stack.resize(STACK_BYTES);
    for (int z = 0; z < grid[2]; ++z)
        for (int y = 0; y < grid[1]; ++y)
            for (int x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                run_group(items);
            }
}
template <class... T> void run(void (*kernel)(T...), const int* grid, int items, void** arguments)
{
    run_each(kernel, grid, items, arguments, std::index_sequence_for<T...>());
}
"""
LAUNCHED_WITH = 1 << 18
"""Bytes that shared memory without a size has here."""
HALVES = {
    'asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));': "x = float_of_half(bits);",
    'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));': "bits = half_of_float(x);",
}


def host_library(module: Module, folder: Path) -> ctypes.CDLL:
    """The module compiled for the host: for each entry a `run_ENTRY` of grid, items, and addresses of arguments.

    `barriers` counts those that the first work-item met, and one for each work-group; `diverged` those at which not all
    work-items met.
    """
    compiler = shutil.which("g++")
    if not compiler or platform.machine() != "x86_64":
        pytest.skip("no g++ for x86-64 here")
    text = re.sub(r"extern __shared__ (.*)\[\];", rf"static \1[{LAUNCHED_WITH}];", module.text)
    for asm, plain in HALVES.items():
        text = text.replace(asm, plain)
    entries = "".join(
        f'extern "C" void run_{entry}(const int* grid, int items, void** arguments)\n'
        f"{{ run({entry}, grid, items, arguments); }}\n"
        for entry in module.entries
    )
    (folder / "kernel.cpp").write_text(SHIM + text + RUN + entries)
    macros = [option for option in module.options if option.startswith("-D")]
    command = [compiler, "-std=c++20", "-O1", "-w", "-mf16c", "-shared", "-fPIC", *macros]
    command.append(f"-I{Path(__file__).parent}")
    done = subprocess.run([*command, "kernel.cpp", "-o", "kernel.so"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "kernel.so"))


def run_on_host(library: ctypes.CDLL, plan: Plan, memory: dict[str, np.ndarray], workspace: np.ndarray) -> None:
    for step in plan.steps:
        values = [_value(argument, memory, workspace) for argument in step.arguments]
        addresses = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        getattr(library, f"run_{step.entry}")((ctypes.c_int * 3)(*step.grid), step.work_group[0], addresses)
        assert not ctypes.c_long.in_dll(library, "diverged").value, "some work-items ended where others met a barrier"


def _value(argument: Argument, memory: Mapping[str, np.ndarray], workspace: np.ndarray) -> np.ndarray:
    match argument:
        case OperandArgument(name):
            return np.array([memory[name].ctypes.data], np.uint64)
        case WorkspaceArgument(offset):
            return np.array([workspace.ctypes.data + offset], np.uint64)
        case ScalarArgument(value, dtype):
            return np.array([value], dtype)


def verify_on_host(family: Kernel, config: Configuration, asked: Problem, folder: Path) -> None:
    """Every check of the problem: within the bound, and nothing but D's elements written."""
    operation = GemmOperation()
    (module,) = family.modules(config, asked.type)
    library = host_library(module, folder)
    for check in operation.checks(asked):
        plan = family.plan(config, check, H200)
        inputs = operation.inputs(check, np.random.default_rng(3))
        operands = {operand.name: operand for operand in operation.operands(check)}
        out = np.full(operands["D"].storage_elements, np.nan, operands["D"].dtype)
        garbage = np.full(plan.workspace_bytes, 0xFF, np.uint8)
        run_on_host(library, plan, {**inputs, "D": out}, garbage)
        expected = operation.reference(check, inputs)["D"]
        got = strided(operands["D"], out).astype(np.float64)[expected.where]
        assert (np.abs(got - expected.value) <= expected.bound).all()
        assert np.isnan(out).sum() == out.size - got.size
