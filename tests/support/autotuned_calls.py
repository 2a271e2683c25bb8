"""A call of `scaled_copy` as a problem to tune, and outcomes of its run without a device."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
import triton

from tunesmith.autotuning.call_problem import CallProblem, call_problem, listed_config
from tunesmith.autotuning.jit_text import JitText
from tunesmith.logic import TableCell
from tunesmith.records import Configuration, Estimate, Outcome, ProblemType, Solution


def problem_of(kernel: Any, arguments: dict[str, Any], configs: Sequence[triton.Config], **changes: Any) -> CallProblem:
    """A call with these arguments as a problem; `grid` and arguments of `call_problem` may be changed."""
    grids = {"grid": lambda meta: (triton.cdiv(100, meta["BLOCK"]),), **changes}
    grid = grids.pop("grid")
    listed = [listed_config(config, {}, grid(config.kwargs), False, "program.py:1") for config in configs]
    return call_problem(JitText(kernel), arguments, listed, location="program.py:1", **grids)


CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((64, 2), (128, 4), (256, 4))]


def copy_arguments(**changes: Any) -> dict[str, Any]:
    """The arguments of `scaled_copy`."""
    arguments = {
        "y": torch.zeros(100),
        "x": torch.arange(100.0),
        "count": 100,
        "factor": 2.5,
        "bias": None,
        "MODE": "plain",
    }
    return {**arguments, **changes}


def outcome_of(problem: CallProblem, cells: Sequence[TableCell], decided: Sequence[int]) -> Any:
    """A run's outcome with a cell for each listed configuration; the decided ones are named by position."""
    problem_type = ProblemType("Custom", problem.name, ("Calls",), Configuration())
    solutions = [Solution(problem_type, "CustomTriton", Configuration(member)) for member in problem.listed]
    size = "the only size"
    table = SimpleNamespace(
        problems=[size],
        solutions=solutions,
        decided={size: tuple(solutions[position] for position in decided)} if decided else {},
        cell=lambda _, solution: cells[solutions.index(solution)],
    )
    return SimpleNamespace(plan=SimpleNamespace(groups=[SimpleNamespace(table=table)]), look_at=["look here"])


RAN = TableCell(Outcome.OK, estimate=Estimate(1e-5, 0.9e-5, 1.1e-5, 5))
HANGS = TableCell(Outcome.TIMEOUT, "hangs", "after 10 s")
