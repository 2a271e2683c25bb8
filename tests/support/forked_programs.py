"""Short programs that tests execute by `forked.run_forked`."""

from __future__ import annotations

import warnings

import numpy as np

import tunesmith
from tunesmith.bench.injected_faults import pass_point
from tunesmith.records import Binary, Module, Target
from tunesmith.toolchains import TOOLCHAINS, Toolchain


def pass_two_points(times: int) -> None:
    """Print how often both points were passed, before each time."""
    for passed in range(times):
        print(passed, flush=True)
        pass_point("writing")
        pass_point("committing")


def multiply_untuned() -> None:
    """Multiply half-precision matrices with no logic loaded. Print whether an OpenCL program was compiled."""
    compiled: list[str] = []
    compiler = type(TOOLCHAINS["OpenCL"])
    compile_module = compiler.compile

    def counting(self: Toolchain, module: Module, target: Target) -> Binary:
        compiled.append(module.language)
        return compile_module(self, module, target)

    compiler.compile = counting  # type: ignore[method-assign]
    a, b = np.ones((17, 5), np.float16), np.ones((5, 31), np.float16)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert (tunesmith.matmul(a, b) == 5).all()
        assert tunesmith.matmul(a[:3], b, np.zeros((3, 31), np.float16), alpha=2.0).max() == 10
    assert len(warned) == 1, warned
    print(len(compiled) > 0, flush=True)
