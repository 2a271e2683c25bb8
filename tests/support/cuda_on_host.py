"""CUDA C++ run by the host's C++ compiler, with one thread for each work-item: right or wrong without a GPU."""

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
#include <barrier>
#include <thread>
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
thread_local Index threadIdx, blockIdx;
Index gridDim;
std::barrier<>* meeting;
extern "C" { long barriers; }
void __syncthreads()
{
    if (threadIdx.x == 0) ++barriers;  // a sum in every thread would write stale counts back
    meeting->arrive_and_wait();
}
"""
RUN = """
template <class... T, std::size_t... place>
void run_each(void (*kernel)(T...), const int* grid, int items, void** arguments, std::index_sequence<place...>)
{
    gridDim = {grid[0], grid[1], grid[2]};
    std::barrier<> all(items);
    meeting = &all;
    std::vector<std::thread> threads;
    for (int item = 0; item < items; ++item)
        threads.emplace_back([=] {
            threadIdx = {item, 0, 0};
            for (int z = 0; z < grid[2]; ++z)
                for (int y = 0; y < grid[1]; ++y)
                    for (int x = 0; x < grid[0]; ++x) {
                        blockIdx = {x, y, z};
                        kernel(*static_cast<std::remove_cv_t<T>*>(arguments[place])...);
                        __syncthreads();
                    }
        });
    for (auto& one : threads) one.join();
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

    `barriers` counts those that the first work-item met; one of them is between work-groups.
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
    command = [compiler, "-std=c++20", "-O1", "-w", "-mf16c", "-shared", "-fPIC", "-pthread", *macros]
    command.append(f"-I{Path(__file__).parent}")
    done = subprocess.run([*command, "kernel.cpp", "-o", "kernel.so"], cwd=folder, capture_output=True, text=True)
    if "barrier: No such file" in done.stderr:
        pytest.skip("this g++ has no std::barrier")
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "kernel.so"))


def run_on_host(library: ctypes.CDLL, plan: Plan, memory: dict[str, np.ndarray], workspace: np.ndarray) -> None:
    for step in plan.steps:
        values = [_value(argument, memory, workspace) for argument in step.arguments]
        addresses = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        getattr(library, f"run_{step.entry}")((ctypes.c_int * 3)(*step.grid), step.work_group[0], addresses)


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
