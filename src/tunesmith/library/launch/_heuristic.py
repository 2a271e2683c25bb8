"""What is launched where no logic is for a type: a policy's choice in each kernel family, which nobody measured."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tunesmith.kernels import KERNELS, VENDOR, Kernel
from tunesmith.logic import Choice, Rule
from tunesmith.records import Configuration, Problem, Rejection, Solution, Target, solution_names
from tunesmith.toolchains import TOOLCHAINS


def policies_know(target: Target) -> bool:
    """Whether there are kernels that a policy may choose on such a device."""
    # A program whose logic serves all of its calls is spared the models, here and below.
    from tunesmith.models.intensity.policies.family_order import ORDER

    return (target.api, target.kind) in ORDER


def heuristic_choices(problem: Problem, target: Target) -> Iterator[Choice]:
    """The default policy's configuration in each family that can compute the problem on the device, the preferred
    family first; nothing for an operation or a device that policies do not know. Each is legal by its family's own
    rules."""
    for family in _families(problem, target):
        answer = _answer(problem, target, family)
        if not isinstance(answer, Rejection):
            yield answer


def heuristic_refusals(problem: Problem, target: Target) -> dict[str, Rejection]:
    """Why families, by name, have no configuration for the problem on the device."""
    answers = {family.name: _answer(problem, target, family) for family in _families(problem, target)}
    return {name: answer for name, answer in answers.items() if isinstance(answer, Rejection)}


def _families(problem: Problem, target: Target) -> tuple[Kernel, ...]:
    """In the policies' order; the vendor's BLAS comes last where that order lacks it."""
    if problem.type.operation != "GEMM":
        return ()
    from tunesmith.models.intensity.policies.family_order import kernel_order

    order = kernel_order(problem, target)
    return tuple(dict.fromkeys((*order, KERNELS[VENDOR]))) if order else ()


def _answer(problem: Problem, target: Target, family: Kernel) -> Choice | Rejection:
    from tunesmith.models.intensity.policies import DEFAULT_POLICY, PolicyRefusal, policy_named

    answer = policy_named(DEFAULT_POLICY).choose(problem, target, family)
    if isinstance(answer, PolicyRefusal):
        return answer.rejection
    if missing := _missing_compiler(family.language):
        return Rejection("no compiler", missing)
    solution = Solution(problem.type, family.name, answer.configuration)
    return Choice(solution, _name(solution, family.space(problem.type, target).defaults), Rule.HEURISTIC)


def _name(solution: Solution, defaults: Configuration) -> str:
    """The type, the family, and the parameters that the policy changed."""
    changed = [name for name, value in solution.configuration.items() if value != defaults[name]]
    kind, parameters = solution.type.name, solution_names([solution], changed)[0]
    return f"{kind}_{solution.kernel}{parameters.removeprefix(kind)}"


@cache
def _missing_compiler(language: str) -> str | None:
    return TOOLCHAINS[language].unavailable()
