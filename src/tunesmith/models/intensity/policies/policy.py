"""The interface of all policies: a problem, a target and a kernel family in, a configuration or a reason out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import ClassVar, Self

from tunesmith.kernels import Kernel
from tunesmith.records import Configuration, Problem, Rejection, Target, UserError

from .answers import PolicyChoice, PolicyRefusal, ReasonLine
from .legal import legal_configuration
from .mappings import FamilyMapping, mapping_of
from .matrix_vector import vector_wish
from .seed_steps import SEED_STEPS
from .situation import PolicyInput
from .tile_steps import TILE_STEPS
from .wish import TileWish

ALIGNMENT, MATRIX_VECTOR = "alignment", "matrix-vector"
STEPS = (*SEED_STEPS, ALIGNMENT, *TILE_STEPS, MATRIX_VECTOR)
"""Every step that can be switched on and off, in the order in which the steps act."""


class TilePolicy(ABC):
    """Decides without a device and without a measurement. A policy is pure; its only state is its steps.

    `acts` are the steps that the policy has, `steps` those that are switched on.
    """

    name: str
    acts: ClassVar[tuple[str, ...]] = STEPS
    ranks: ClassVar[bool] = False
    """Whether the policy has further wishes."""
    steps: frozenset[str] = frozenset()

    @abstractmethod
    def wish(self, situation: PolicyInput, mapping: FamilyMapping, lines: list[ReasonLine]) -> TileWish:
        """The tile that the policy wants. Each stage is appended to `lines`; the last line gives the reason."""

    def tuned(
        self, situation: PolicyInput, problem: Problem, kernel: Kernel, lines: list[ReasonLine]
    ) -> PolicyChoice | None:
        """A legal configuration of the family that was tuned for such products, or None. If there is one, it is taken
        unchanged, and no tile is wished for. Each stage is appended to `lines`."""
        return None

    def with_steps(self, steps: Iterable[str]) -> Self:
        """A copy of the policy with exactly these steps on. Raises UserError for a step that the policy does not
        have."""
        requested = frozenset(steps)
        for step in sorted(requested - frozenset(self.acts)):
            raise UserError("--steps", f"{self.name} has no step {step!r}", f"give some of {', '.join(self.acts)}")
        policy = copy.copy(self)
        policy.steps = requested
        return policy

    def choose(self, problem: Problem, target: Target, kernel: Kernel) -> PolicyChoice | PolicyRefusal:
        """A full configuration of `kernel` that is legal by the family's rules, or the reason why there is none. Never
        raises for a problem that an operation made."""
        lines: list[ReasonLine] = []
        mapping = mapping_of(kernel.name)
        if problem.type.operation != "GEMM" or mapping is None:
            what = f"no policy knows how tiles become parameters of {kernel.name}"
            return self._refused(kernel, Rejection("no mapping", what), lines)
        if not all(problem.sizes):
            return self._refused(kernel, Rejection("empty", f"sizes {problem}: there is nothing to compute"), lines)
        situation = PolicyInput.of(problem, target)
        if situation.is_vector and MATRIX_VECTOR in self.steps:
            wish = vector_wish(situation, mapping.is_for_vectors)
            lines.append(ReasonLine(MATRIX_VECTOR, f"one side of D is 1: {wish}"))
        elif tuned := self.tuned(situation, problem, kernel, lines):
            return tuned
        else:
            wish = self.wish(situation, mapping, lines)
        reason = lines[-1].text
        result = legal_configuration(kernel, mapping, wish, situation, problem, lines)
        if isinstance(result, Configuration):
            return PolicyChoice(self.name, kernel.name, result, reason, tuple(lines))
        return self._refused(kernel, result, lines)

    def further_wishes(self, situation: PolicyInput, mapping: FamilyMapping) -> Iterable[TileWish]:
        """The tiles that the policy wants after `wish`, the best guess first; empty if the policy does not rank
        tiles."""
        return ()

    def ranked(self, problem: Problem, target: Target, kernel: Kernel, count: int) -> tuple[PolicyChoice, ...]:
        """Up to `count` different choices, the best guess first. The first is that of `choose`; none if `choose`
        refuses."""
        answer, mapping = self.choose(problem, target, kernel), mapping_of(kernel.name)
        if isinstance(answer, PolicyRefusal) or mapping is None:
            return ()
        choices, situation = {answer.configuration: answer}, PolicyInput.of(problem, target)
        if situation.is_vector and MATRIX_VECTOR in self.steps:
            return (answer,)
        for wish in self.further_wishes(situation, mapping):
            if len(choices) >= count:
                break
            lines = [ReasonLine("tile", str(wish))]
            config = legal_configuration(kernel, mapping, wish, situation, problem, lines)
            if isinstance(config, Configuration):
                choices.setdefault(config, PolicyChoice(self.name, kernel.name, config, lines[0].text, tuple(lines)))
        return tuple(choices.values())

    def ordered(
        self, problem: Problem, target: Target, kernels: Collection[Kernel], lines: list[ReasonLine] | None = None
    ) -> tuple[Kernel, ...]:
        """The families in the order in which the policy prefers them for a problem; here as they are given. The reason
        for another order is appended to `lines`."""
        return tuple(kernels)

    def choose_among(
        self, problem: Problem, target: Target, kernels: Collection[Kernel]
    ) -> PolicyChoice | PolicyRefusal | None:
        """The choice for the first of the ordered families that can compute the problem; otherwise the last refusal;
        None if there is no family."""
        answer: PolicyChoice | PolicyRefusal | None = None
        lines: list[ReasonLine] = []
        for kernel in self.ordered(problem, target, kernels, lines):
            answer = self.choose(problem, target, kernel)
            if isinstance(answer, PolicyChoice):
                break
        return replace(answer, lines=(*lines, *answer.lines)) if answer else None

    def _refused(self, kernel: Kernel, rejection: Rejection, lines: list[ReasonLine]) -> PolicyRefusal:
        return PolicyRefusal(self.name, kernel.name, rejection, tuple(lines))
