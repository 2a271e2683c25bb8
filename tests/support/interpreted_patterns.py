"""Calls every pattern of `benchmarks/triton_patterns` under `tunesmith.autotune` in Triton's interpreter.

It is a program of its own, started with TRITON_INTERPRET=1: Triton's own functions, such as `tl.sum`, ask for the
interpreter when Triton is imported. It prints, as JSON by the pattern's name, whether the result is right, and whether
the comparison notices a result that is off by one. For each pattern that is named on the command line, after a folder,
it also prints what faults the planted pattern has, and whether the first three configurations give the right result
(the one that hangs is not run).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

import tunesmith
from triton_patterns import PATTERNS, Pattern
from triton_patterns.planted import FAULT, HANGS, planted


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


def planted_outcome(pattern: Pattern, folder: Path) -> dict[str, list[object]]:
    spoilt = planted(pattern, folder)
    first = [config for config in spoilt.configs[:3] if config.kwargs[FAULT] != HANGS]
    right: list[object] = []
    for config in first:
        arguments = spoilt.call("cpu", False)
        spoilt.kernel[spoilt.grid({**arguments, **config.kwargs})](**arguments, **config.kwargs)
        right.append(is_right(spoilt, arguments))
    return {"faults": [config.kwargs[FAULT] for config in spoilt.configs], "right": right}


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    found: dict[str, object] = {name: outcome(pattern) for name, pattern in PATTERNS.items()}
    found |= {f"planted {name}": planted_outcome(PATTERNS[name], Path(folder)) for name in names}
    print(json.dumps(found))
