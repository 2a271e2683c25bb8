"""Choices for problem types without a logic: on a GPU the vendor's BLAS, then a policy's unmeasured choice in each
kernel family.

The vendor comes first since it is the safer choice: on an H100, the policy's choices alone had 0.94 of cuBLAS's speed
in the geometric mean, and 0.36 at worst (74 products in two layouts, 2026-11-25)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tunesmith.kernels import KERNELS, VENDOR, Kernel
from tunesmith.logic import Choice, Rule
from tunesmith.records import Configuration, Problem, Rejection, Solution, Target, solution_names
from tunesmith.toolchains import TOOLCHAINS


def policies_know(target: Target) -> bool:
    """Whether policies know a kernel family for such a device."""
    # Imported in the functions: a program whose logic serves all of its calls does not load the models.
    from tunesmith.models.intensity.policies.family_order import ORDER

    return (target.api, target.kind) in ORDER


def heuristic_choices(problem: Problem, target: Target) -> Iterator[Choice]:
    """The choice in each family that computes the problem on the device, the preferred family first: the default
    policy's, or the vendor's BLAS. Every choice is legal by the rules of its family. Empty for an operation or a device
    that policies do not know."""
    for family in _families(problem, target):
        answer = _answer(problem, target, family)
        if not isinstance(answer, Rejection):
            yield answer


def heuristic_refusals(problem: Problem, target: Target) -> dict[str, Rejection]:
    """Why families have no configuration for the problem on the device, by the families' names."""
    answers = {family.name: _answer(problem, target, family) for family in _families(problem, target)}
    return {name: answer for name, answer in answers.items() if isinstance(answer, Rejection)}


def _families(problem: Problem, target: Target) -> tuple[Kernel, ...]:
    """The families in the policies' order, on a GPU after the vendor's BLAS. On a CPU, where the library's floor has
    chosen the BLAS before if it is quicker, the BLAS comes last."""
    if problem.type.operation != "GEMM":
        return ()
    from tunesmith.models.intensity.policies import DEFAULT_POLICY, policy_named
    from tunesmith.models.intensity.policies.family_order import kernel_order

    order = policy_named(DEFAULT_POLICY).ordered(problem, target, kernel_order(problem, target))
    vendors = KERNELS[VENDOR]
    return tuple(dict.fromkeys((vendors, *order) if target.kind == "GPU" else (*order, vendors))) if order else ()


def _answer(problem: Problem, target: Target, family: Kernel) -> Choice | Rejection:
    from tunesmith.models.intensity.policies import DEFAULT_POLICY, PolicyRefusal, policy_named

    answer = policy_named(DEFAULT_POLICY).choose(problem, target, family)
    if isinstance(answer, PolicyRefusal):
        return answer.rejection
    if missing := _missing_compiler(family.language):
        return Rejection("no compiler", missing)
    solution = Solution(problem.type, family.name, answer.configuration)
    rule = Rule.VENDOR if family.name == VENDOR else Rule.HEURISTIC
    return Choice(solution, name_of(solution, family.space(problem.type, target).defaults), rule)


def name_of(solution: Solution, defaults: Configuration) -> str:
    """A name made of the type, the family, and the parameters that differ from the family's defaults."""
    changed = [name for name, value in solution.configuration.items() if value != defaults[name]]
    kind, parameters = solution.type.name, solution_names([solution], changed)[0]
    return f"{kind}_{solution.kernel}{parameters.removeprefix(kind)}"


@cache
def _missing_compiler(language: str) -> str | None:
    return TOOLCHAINS[language].unavailable()
