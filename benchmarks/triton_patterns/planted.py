"""A pattern with two faults planted: one configuration hangs, and one gives a wrong result."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import triton

from .pattern import Pattern

FAULT = "FAULT"
RIGHT, HANGS, WRONG = range(3)

HANGING = """
if FAULT == 1:
    turns = 0
    while tl.load({first}, volatile=True) < 2000000000:
        turns += 1
"""
SPOILING = """
if FAULT == 2:
    tl.store({first}, tl.load({first}) + 1000)
"""


def planted(pattern: Pattern, folder: Path) -> Pattern:
    """The pattern with another parameter, FAULT, and with two more configurations, which are the first one but for it.

    The kernel's text goes to a file in `folder`. A kernel's first argument must be its output, which holds small
    numbers.
    """
    first, *_ = pattern.configs
    configs = [*(_with_fault(config, RIGHT) for config in pattern.configs)]
    configs[1:1] = [_with_fault(first, HANGS), _with_fault(first, WRONG)]
    return replace(pattern, kernel=_planted_kernel(pattern.kernel, folder), configs=configs)


def _with_fault(config: triton.Config, fault: int) -> triton.Config:
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages, "num_ctas": config.num_ctas}
    return triton.Config({**config.kwargs, FAULT: fault}, **options)


def _planted_kernel(kernel: Any, folder: Path) -> Any:
    function = kernel.fn
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    output = tree.args.args[0].arg
    tree.args.args.append(ast.arg(FAULT, annotation=ast.parse("tl.constexpr", mode="eval").body))
    tree.body[:0] = ast.parse(HANGING.format(first=output)).body
    tree.body += ast.parse(SPOILING.format(first=output)).body
    used = sorted(set(function.__code__.co_names) & function.__globals__.keys() - {"tl", "triton"})
    lines = ["import triton", "import triton.language as tl"]
    lines += [f"from {function.__module__} import {name}" for name in used]
    path = folder / f"planted_{function.__name__}.py"
    path.write_text("\n".join([*lines, "", "", ast.unparse(tree), ""]), encoding="utf-8")
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return getattr(module, function.__name__)
