"""Plans of the Triton families carried out by Triton's interpreter on NumPy memory: right or wrong without a GPU.

Triton decides at import whether it interprets, so this runs in a process of its own: `interpreting` makes one.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuda_runner import H200, toolchain
from tunesmith.kernels import KERNELS
from tunesmith.problems import Expected
from tunesmith.problems.custom import CustomOperation
from tunesmith.problems.gemm import GemmOperation, strided
from tunesmith.records import (
    Argument,
    Configuration,
    Launch,
    Module,
    Operand,
    OperandArgument,
    Plan,
    Problem,
    ScalarArgument,
    TensorMapArgument,
    WorkspaceArgument,
    Zero,
)

POISON = 0xA5
TORCH_TYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "i8": "int8",
    "i32": "int32",
    "i64": "int64",
    "fp64": "float64",
}


@contextmanager
def interpreting() -> Iterator[ProcessPoolExecutor]:
    """The process, or a skip with what is missing for it. `conftest.py` keeps one for all tests of a session."""
    toolchain("Triton")
    pytest.importorskip("torch")
    skip_unless_loops_are_interpreted()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _interpret) as process:
        yield process


def _interpret() -> None:
    os.environ["TRITON_INTERPRET"] = "1"
    import triton.language as tl
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    cast, dot, splat = builder.cast_impl, builder.create_dot, builder.create_splat

    def rounding_cast(self: Any, source: Any, to: Any) -> Any:
        """To bfloat16 to the nearest even number, as GPUs do; the interpreter cuts off."""
        if source.dtype.scalar == tl.float32 and to.scalar == tl.bfloat16:
            bits = np.ascontiguousarray(source.data).view(np.uint32)
            rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
            return interpreter.TensorHandle(rounded.astype(np.uint16), tl.bfloat16)
        return cast(self, source, to)

    def widening_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        """The interpreter would multiply the bits of bfloat16."""
        if a.dtype.scalar == tl.bfloat16:
            a, b = cast(self, a, tl.float32), cast(self, b, tl.float32)
        return dot(self, a, b, *rest)

    def splat_of_truth(self: Any, kind: Any, value: Any) -> Any:
        """A comparison of integers stays a truth value; the interpreter takes it for an integer."""
        if value.data.dtype == np.bool_:
            return interpreter.TensorHandle(np.full(kind.shape, value.data), tl.int1)
        return splat(self, kind, value)

    builder.cast_impl, builder.create_dot, builder.create_splat = rounding_cast, widening_dot, splat_of_truth
    interpreter._patch_lang = cache_patches(interpreter._patch_lang)


def cache_patches(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The interpreter's `_patch_lang`, which replaces the functions of `triton.language`, and does so once here.

    The interpreter searches the modules again for each call of each function, a quarter of its time, and takes the
    replacements back after each kernel. A process that only interprets can keep them.
    """
    patched = set()

    def patch_once(function: Any) -> Any:
        modules = frozenset(value.__name__ for value in function.__globals__.values() if inspect.ismodule(value))
        language = frozenset(name for name in modules if name in ("triton.language", "triton.language.core"))
        if language not in patched:
            patch(function)
            patched.add(language)
        return SimpleNamespace(restore=lambda: None)

    return patch_once


def skip_unless_loops_are_interpreted() -> None:
    """Triton 3.6 interprets loops by `int` of an array with one element, which NumPy no longer does."""
    from triton import __version__

    try:
        int(np.ones(1))
    except TypeError:
        if tuple(map(int, __version__.split(".")[:2])) < (3, 9):
            pytest.skip(f"Triton {__version__} interprets with NumPy before 2.5 only")


def wrong_on_host(kernel: str, config: Configuration, asked: Problem) -> list[str]:
    """What is wrong with each check of the problem; called in the process of `interpreting`."""
    family, operation = KERNELS[kernel], GemmOperation()
    found = [reason.reason for reason in family.rejections(config, asked.type, H200)]
    modules = family.modules(config, asked.type)
    for check in () if found else operation.checks(asked):
        found += [reason.reason for reason in family.rejections_for(config, check, H200)]
        inputs = operation.inputs(check, np.random.default_rng(3))
        operands = {operand.name: operand for operand in operation.operands(check)}
        d = operands["D"]
        out = np.full(d.storage_elements * np.dtype(d.dtype).itemsize, POISON, np.uint8).view(d.dtype)
        if not found:
            carry_out(family.plan(config, check, H200), modules, {**inputs, "D": out})
            found += _wrong(d, out, operation.reference(check, inputs)["D"])
    return found


def described_wrong_on_host(config: Configuration, asked: Problem) -> list[str]:
    """What is wrong with each output of a described kernel; called in the process of `interpreting`."""
    family, operation = KERNELS["CustomTriton"], CustomOperation()
    found = [*family.rejections(config, asked.type, H200), *family.rejections_for(config, asked, H200)]
    if found:
        return [reason.reason for reason in found]
    inputs = operation.inputs(asked, np.random.default_rng(3))
    outputs = {
        operand.name: np.full(operand.shape, POISON, np.uint8).astype(operand.dtype)
        for operand in operation.operands(asked)
        if operand.role == "out"
    }
    carry_out(family.plan(config, asked, H200), family.modules(config, asked.type), {**inputs, **outputs})
    expected = operation.reference(asked, inputs)
    errors = {name: np.abs(output - expected[name].value) for name, output in outputs.items()}
    return [name for name, error in errors.items() if not (error <= expected[name].bound).all()]


def _wrong(d: Operand, out: np.ndarray, expected: Expected) -> Iterator[str]:
    got = strided(d, out)[expected.where].astype(np.float64)
    if not (np.abs(got - expected.value) <= expected.bound).all():
        worst = np.nanmax(np.abs(got - expected.value) - expected.bound)
        yield f"wrong by {worst} beyond the bound, {np.isnan(got).sum()} NaN"
    outside = np.ones(out.size, bool)
    strided(d, outside, writeable=True)[...] = False
    if (out.view(np.uint8).reshape(-1, out.itemsize)[outside] != POISON).any():
        yield "wrote between the columns of D"


def carry_out(plan: Plan, modules: tuple[Module, ...], memory: Mapping[str, np.ndarray]) -> None:
    import torch

    workspace = torch.full((max(1, plan.workspace_bytes),), 0xFF, dtype=torch.uint8)
    places = {name: torch.from_numpy(array.view(np.uint8)) for name, array in memory.items()}
    for step in plan.steps:
        match step:
            case Zero("", offset, size):
                workspace[offset : offset + size] = 0
            case Launch():
                _launch(step, modules[step.module], places, workspace)


def _launch(step: Launch, module: Module, memory: Mapping[str, Any], workspace: Any) -> None:
    from tunesmith.toolchains.triton import function_of

    types = {name: kind for name, kind in module.constants["signature"] if kind != "constexpr"}
    values = {
        name: _value(argument, types[name], memory, workspace)
        for name, argument in zip(types, step.arguments, strict=True)
    }
    function_of(module)[step.grid](**values, **dict(module.constants["constexprs"]))


def _value(argument: Argument, kind: str, memory: Mapping[str, Any], workspace: Any) -> Any:
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    element = kind.removeprefix("*").removeprefix("tensordesc<").partition("[")[0]
    match argument:
        case OperandArgument(name):
            return memory[name].view(getattr(torch, TORCH_TYPES[element]))
        case WorkspaceArgument(offset):
            return workspace[offset:].view(getattr(torch, TORCH_TYPES[element]))
        case ScalarArgument(value):
            return value
        case TensorMapArgument(name, _, shape, strides, block):
            whole = memory[name].view(getattr(torch, TORCH_TYPES[element]))
            return TensorDescriptor(torch.as_strided(whole, shape, strides), list(shape), list(strides), list(block))
