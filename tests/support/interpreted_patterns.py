"""Calls every pattern of `benchmarks/triton_patterns` under `tunesmith.autotune` in Triton's interpreter.

It is a program of its own, started with TRITON_INTERPRET=1: Triton's own functions, such as `tl.sum`, ask for the
interpreter when Triton is imported. It prints, as JSON by the pattern's name, whether the result is right, and whether
the comparison notices a result that is off by one.
"""

from __future__ import annotations

import json

import torch

import tunesmith
from triton_patterns import PATTERNS, Pattern


def is_right(pattern: Pattern, arguments: dict[str, object]) -> bool:
    """Whether the tensors that the kernel wrote are as torch computes them."""
    close = {"rtol": pattern.tolerance, "atol": pattern.tolerance}
    expected = pattern.expected(arguments)
    return all(torch.allclose(arguments[name].float(), value.float(), **close) for name, value in expected.items())  # type: ignore[attr-defined]


def outcome(pattern: Pattern) -> dict[str, bool]:
    decorate = tunesmith.autotune(pattern.configs, pattern.key, reset_to_zero=pattern.reset_to_zero)
    kernel = decorate(pattern.kernel)
    arguments = pattern.call("cpu", False)
    kernel[pattern.grid](*arguments.values())
    found = {"right": is_right(pattern, arguments), "first": kernel.best_config == pattern.configs[0]}
    for name in pattern.expected(arguments):
        arguments[name].add_(1)
    return {**found, "noticed": not is_right(pattern, arguments)}


if __name__ == "__main__":
    print(json.dumps({name: outcome(pattern) for name, pattern in PATTERNS.items()}))
