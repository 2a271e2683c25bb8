"""The arguments of jit functions: which parameters are constants, and the types and launch arguments of the others.

The parameters are read from the source itself, so that only the source has their order. A parameter that a problem type
does not use (a bias, a scale) is the constant 0; no code reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tunesmith.kernels.base import source as packaged
from tunesmith.kernels.triton_types import TRITON_TYPES
from tunesmith.problems.gemm import Gemm
from tunesmith.records import (
    Argument,
    Configuration,
    Launch,
    Module,
    OperandArgument,
    ScalarArgument,
    Target,
    TensorMapArgument,
    Value,
    WorkspaceArgument,
)

CONSTANT = "constexpr"
EARLY = "EARLY"
"""The constant of an entry that says whether it waits for the launch before it, which the toolchain sets by the target.
Only launches of entries that have it start early."""


@dataclass(frozen=True, slots=True)
class JitArgument:
    """A parameter's type as Triton writes it, and the argument of a launch."""

    triton_type: str
    argument: Argument


def operand(name: str, dtype: str) -> JitArgument:
    return JitArgument("*" + TRITON_TYPES[dtype], OperandArgument(name))


def workspace(dtype: str, offset: int = 0) -> JitArgument:
    return JitArgument("*" + TRITON_TYPES[dtype], WorkspaceArgument(offset))


def scalar(value: float, dtype: str) -> JitArgument:
    number = int(value) if dtype.startswith("int") else value
    return JitArgument(TRITON_TYPES[dtype], ScalarArgument(number, dtype))


def integers(**values: int) -> dict[str, JitArgument]:
    return {name: scalar(value, "int32") for name, value in values.items()}


def longs(**values: int) -> dict[str, JitArgument]:
    return {name: scalar(value, "int64") for name, value in values.items()}


def descriptor(
    name: str, dtype: str, shape: tuple[int, int, int], strides: tuple[int, int, int], block: tuple[int, int, int]
) -> JitArgument:
    """A TMA descriptor of batch x outer x contiguous; 8-bit types are bytes to the copy engine."""
    sizes = ",".join(map(str, block))
    plain = "uint8" if dtype == "int8" or dtype.startswith("float8") else dtype
    return JitArgument(
        f"tensordesc<{TRITON_TYPES[dtype]}[{sizes}]>", TensorMapArgument(name, plain, shape, strides, block)
    )


def loaded(name: str, dtype: str, gemm: Gemm, side: int, depth: int) -> JitArgument:
    """The descriptor of A or B. `side` is the extent of a tile along M or N, `depth` the extent along K."""
    if name == "A":
        rows, leading, stride, along_k = gemm.m, gemm.lda, gemm.stride_a, gemm.transpose_a
    else:
        rows, leading, stride, along_k = gemm.n, gemm.ldb, gemm.stride_b, not gemm.transpose_b
    shape = (gemm.batch, rows, gemm.k) if along_k else (gemm.batch, gemm.k, rows)
    block = (1, side, depth) if along_k else (1, depth, side)
    return descriptor(name, dtype, shape, (stride, leading, 1), block)


def epilogue(gemm: Gemm) -> dict[str, JitArgument]:
    """The arguments of every function that finishes elements of D, except D itself and its strides."""
    arguments = {
        "c": operand("C", gemm.dest),
        "alpha": scalar(gemm.alpha, gemm.sums),
        "beta": scalar(gemm.beta, gemm.sums),
    }
    if gemm.bias:
        arguments["bias"] = operand("Bias", gemm.dest)
    if gemm.scaled:
        arguments |= {"scale_a": operand("ScaleA", "float32"), "scale_b": operand("ScaleB", "float32")}
    return arguments


def launch(
    module: int,
    source: str,
    entry: str,
    groups: tuple[int, int, int],
    items: int,
    arguments: Mapping[str, JitArgument],
    target: Target,
) -> Launch:
    """The launch of a source's entry on work-groups of `items` work-items. It starts early if the entry can wait."""
    names = _parameters(source, entry)
    passed = tuple(arguments[name].argument for name in names if name in arguments)
    return Launch(module, entry, groups, (items, 1, 1), passed, early=EARLY in names and target.starts_early)


def module(
    sources: Sequence[str],
    entry: str,
    arguments: Mapping[str, JitArgument],
    constants: Mapping[str, Value],
    options: Mapping[str, Value],
    aligned: Sequence[str] | None = (),
) -> Module:
    """The function `entry` of the last of `sources`, which calls functions of the others.

    `aligned` names addresses that are multiples of 16 bytes; None leaves alignment to the compiler's default.
    """
    names = _parameters(sources[-1], entry)
    signature = tuple((name, arguments[name].triton_type if name in arguments else CONSTANT) for name in names)
    constexprs = tuple((name, constants.get(name, 0)) for name in names if name not in arguments)
    facts: dict[str, Value] = {"waits": EARLY} if EARLY in names else {}
    if aligned is not None:
        pointers = [name for name in names if name in arguments and arguments[name].triton_type.startswith("*")]
        facts["divisible_by_16"] = tuple(name for name in pointers if name in aligned)
    return Module(
        "Triton",
        "\n".join(text(source) for source in sources),
        (entry,),
        python=f"{__package__}.{sources[-1]}:{entry}",
        constants=Configuration({"signature": signature, "constexprs": constexprs, **facts, **options}),
    )


def text(source: str) -> str:
    return packaged(__package__, f"{source}.py")


@cache
def _parameters(source: str, entry: str) -> tuple[str, ...]:
    functions = (node for node in ast.parse(text(source)).body if isinstance(node, ast.FunctionDef))
    function = next(function for function in functions if function.name == entry)
    return tuple(parameter.arg for parameter in function.args.args)
