"""How a jit function's parameters are filled: which are constants, and the others' types with what a launch gives.

The parameters are read from the source itself, so that the order stands there alone. A parameter that a problem type
has no use for (a bias, a scale) is the constant 0: no code reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tunesmith.kernels.base import source as packaged
from tunesmith.problems.gemm import Gemm
from tunesmith.records import (
    Argument,
    Configuration,
    Launch,
    Module,
    OperandArgument,
    ScalarArgument,
    TensorMapArgument,
    Value,
    WorkspaceArgument,
)

TRITON_TYPES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
}
"""NumPy's name of a type to Triton's."""

CONSTANT = "constexpr"


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter's type as Triton writes it, and what a launch gives for it."""

    kind: str
    argument: Argument


def operand(name: str, dtype: str) -> Given:
    return Given("*" + TRITON_TYPES[dtype], OperandArgument(name))


def workspace(dtype: str, offset: int = 0) -> Given:
    return Given("*" + TRITON_TYPES[dtype], WorkspaceArgument(offset))


def scalar(value: float, dtype: str) -> Given:
    number = int(value) if dtype.startswith("int") else value
    return Given(TRITON_TYPES[dtype], ScalarArgument(number, dtype))


def integers(**values: int) -> dict[str, Given]:
    return {name: scalar(value, "int32") for name, value in values.items()}


def longs(**values: int) -> dict[str, Given]:
    return {name: scalar(value, "int64") for name, value in values.items()}


def descriptor(
    name: str, dtype: str, shape: tuple[int, int, int], strides: tuple[int, int, int], block: tuple[int, int, int]
) -> Given:
    """A TMA descriptor of batch x outer x contiguous; 8-bit types are bytes to the copy engine."""
    sizes = ",".join(map(str, block))
    plain = "uint8" if dtype == "int8" or dtype.startswith("float8") else dtype
    return Given(f"tensordesc<{TRITON_TYPES[dtype]}[{sizes}]>", TensorMapArgument(name, plain, shape, strides, block))


def loaded(name: str, dtype: str, gemm: Gemm, side: int, depth: int) -> Given:
    """The descriptor of A or B; `side` is that of a tile along M or N, `depth` that along K."""
    if name == "A":
        rows, leading, stride, along_k = gemm.m, gemm.lda, gemm.stride_a, gemm.transpose_a
    else:
        rows, leading, stride, along_k = gemm.n, gemm.ldb, gemm.stride_b, not gemm.transpose_b
    shape = (gemm.batch, rows, gemm.k) if along_k else (gemm.batch, gemm.k, rows)
    block = (1, side, depth) if along_k else (1, depth, side)
    return descriptor(name, dtype, shape, (stride, leading, 1), block)


def epilogue(gemm: Gemm) -> dict[str, Given]:
    """What every function that finishes elements of D takes, but for D itself and where it lies."""
    given = {"c": operand("C", gemm.dest), "alpha": scalar(gemm.alpha, gemm.sums), "beta": scalar(gemm.beta, gemm.sums)}
    if gemm.bias:
        given["bias"] = operand("Bias", gemm.dest)
    if gemm.scaled:
        given |= {"scale_a": operand("ScaleA", "float32"), "scale_b": operand("ScaleB", "float32")}
    return given


def launch(
    module: int, source: str, entry: str, groups: tuple[int, int, int], items: int, given: Mapping[str, Given]
) -> Launch:
    """The entry of a source, on work-groups of so many work-items."""
    arguments = tuple(given[name].argument for name in _parameters(source, entry) if name in given)
    return Launch(module, entry, groups, (items, 1, 1), arguments)


def module(
    sources: Sequence[str],
    entry: str,
    given: Mapping[str, Given],
    constants: Mapping[str, Value],
    options: Mapping[str, Value],
    aligned: Sequence[str] | None = (),
) -> Module:
    """The function `entry` of the last of `sources`, which calls functions of the others. `aligned` are addresses that
    are multiples of 16 bytes; None leaves that to the compiler's own default."""
    names = _parameters(sources[-1], entry)
    signature = tuple((name, given[name].kind if name in given else CONSTANT) for name in names)
    constexprs = tuple((name, constants.get(name, 0)) for name in names if name not in given)
    promised: dict[str, Value] = {}
    if aligned is not None:
        pointers = [name for name in names if name in given and given[name].kind.startswith("*")]
        promised["divisible_by_16"] = tuple(name for name in pointers if name in aligned)
    return Module(
        "Triton",
        "\n".join(text(source) for source in sources),
        (entry,),
        python=f"{__package__}.{sources[-1]}:{entry}",
        constants=Configuration({"signature": signature, "constexprs": constexprs, **promised, **options}),
    )


def text(source: str) -> str:
    return packaged(__package__, f"{source}.py")


@cache
def _parameters(source: str, entry: str) -> tuple[str, ...]:
    functions = (one for one in ast.parse(text(source)).body if isinstance(one, ast.FunctionDef))
    return next(tuple(one.arg for one in function.args.args) for function in functions if function.name == entry)
