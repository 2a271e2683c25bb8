"""The fitted policy that tunesmith ships: a heuristic for each architecture and data type with data.

The files are in `heuristics/`, named by architecture and data type. docs/policies.md says what each was fitted to and
how it scores. If there is no file, the latency model decides, and the reason says so.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import ClassVar

from tunesmith.kernels import Kernel
from tunesmith.records import Problem, Target

from .answers import PolicyChoice, ReasonLine
from .chips import architecture_code
from .fitted import FittedPolicy, fitted_policy
from .latency import LatencyPolicy
from .mappings import FamilyMapping
from .policy import TilePolicy
from .situation import PolicyInput
from .wish import TileWish

FOLDER = Path(__file__).parent / "heuristics"


class PackagedPolicy(TilePolicy):
    """Decides by the packaged heuristic of the target's architecture and the product's data type; otherwise by the
    latency model."""

    name = "fitted"
    acts: ClassVar[tuple[str, ...]] = FittedPolicy.acts
    steps = FittedPolicy.steps

    def wish(self, situation: PolicyInput, mapping: FamilyMapping, lines: list[ReasonLine]) -> TileWish:
        fitted = packaged_policy(architecture_code(situation.target.architecture), situation.arithmetic)
        if fitted is not None:
            return fitted.with_steps(self.steps).wish(situation, mapping, lines)
        latency = LatencyPolicy()
        wish = latency.with_steps(self.steps & set(latency.acts)).wish(situation, mapping, lines)
        missing = f"no heuristic is packaged for {situation.target.architecture} in {situation.arithmetic}"
        lines.append(ReasonLine("fallback", f"{missing}, so the latency model decides; {lines[-1].text}"))
        return wish

    def tuned(
        self, situation: PolicyInput, problem: Problem, kernel: Kernel, lines: list[ReasonLine]
    ) -> PolicyChoice | None:
        fitted = packaged_policy(architecture_code(situation.target.architecture), situation.arithmetic)
        return fitted.tuned(situation, problem, kernel, lines) if fitted else None

    def ordered(
        self, problem: Problem, target: Target, kernels: Collection[Kernel], lines: list[ReasonLine] | None = None
    ) -> tuple[Kernel, ...]:
        fitted = None
        if problem.type.operation == "GEMM" and all(problem.sizes):
            situation = PolicyInput.of(problem, target)
            fitted = packaged_policy(architecture_code(target.architecture), situation.arithmetic)
        decider = fitted.with_steps(self.steps) if fitted else LatencyPolicy()
        return decider.ordered(problem, target, kernels, lines)


@cache
def packaged_policy(architecture: str, arithmetic: str) -> FittedPolicy | None:
    """The policy of the packaged file; None if there is no file. `architecture` is for example `gfx90a`; `arithmetic`
    is NumPy's name of the operands' type, or `tf32`."""
    if "/" in architecture or not architecture:
        return None
    path = FOLDER / f"{architecture}_{arithmetic}.yaml"
    return fitted_policy(path) if path.is_file() else None
