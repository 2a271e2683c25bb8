"""Run the Triton GEMM in Triton's interpreter, on the CPU, and compare; prints "right" or "wrong" for each case."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
from triton.tools.tensor_descriptor import TensorDescriptor

from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import GemmOperation, gemm_type, strided
from tunesmith.records import Configuration, OperandArgument, Problem, TensorMapArgument
from tunesmith.toolchains.triton import jit_function

FAMILY, OPERATION = KERNELS["TritonTmaGemm"], GemmOperation()


def is_right(config: Configuration, problem: Problem) -> bool:
    inputs = OPERATION.inputs(problem, np.random.default_rng(5))
    operands = {operand.name: operand for operand in OPERATION.operands(problem)}
    out = np.full(operands["D"].storage_elements, np.nan, np.float32)
    memory = {name: torch.from_numpy(array) for name, array in {**inputs, "D": out}.items()}
    (launch,) = FAMILY.plan(config, problem, None).steps
    arguments = []
    for argument in launch.arguments:
        match argument:
            case TensorMapArgument(name, _, shape, strides, block):
                view = torch.as_strided(memory[name], shape, strides)
                arguments.append(TensorDescriptor(view, list(shape), list(strides), list(block)))
            case OperandArgument(name):
                arguments.append(memory[name])
            case scalar:
                arguments.append(scalar.value)
    (module,) = FAMILY.modules(config, problem.type)
    jit_function(module.python)[launch.grid](*arguments, **dict(module.constants["constexprs"]))
    expected = OPERATION.reference(problem, inputs)["D"]
    got = strided(operands["D"], out).astype(np.float64)[expected.where]
    only_d = np.isnan(out).sum() == out.size - got.size
    return bool((np.abs(got - expected.value) <= expected.bound).all() and only_d)


for transposes in ((False, False), (True, False), (False, True), (True, True)):
    kind = gemm_type("s", transpose_a=transposes[0], transpose_b=transposes[1], batched=True)
    values = {"WorkGroup": (8, 8, 1), "ThreadTile": (4, 2), "DepthU": 16}
    config = FAMILY.space(kind).defaults | Configuration(values)
    sizes = (36, 20, 2, 44)
    leading = tuple(least + 4 for _, least in OPERATION.leading(kind, sizes))
    for check in OPERATION.checks(Problem(kind, sizes, leading, Configuration({"alpha": 1.5, "beta": 0.5}))):
        print("right" if is_right(config, check) else "wrong", kind.name, check.scalars)
