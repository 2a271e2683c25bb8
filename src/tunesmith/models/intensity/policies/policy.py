"""The one interface of all policies: a problem, a target and a kernel family in, a configuration or a reason out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import ClassVar, Self

from tunesmith.kernels import Kernel
from tunesmith.records import Configuration, Problem, Rejection, Target, UserError

from .answers import PolicyChoice, PolicyRefusal, ReasonLine
from .legal import legal_configuration
from .mappings import FamilyMapping, mapping_of
from .matrix_vector import vector_wish
from .seed_steps import SEED_STEPS
from .situation import Situation
from .tile_steps import TILE_STEPS
from .wish import TileWish

ALIGNMENT, MATRIX_VECTOR = "alignment", "matrix-vector"
STEPS = (*SEED_STEPS, ALIGNMENT, *TILE_STEPS, MATRIX_VECTOR)
"""Every step that can be switched on and off, in the order in which they act."""


class TilePolicy(ABC):
    """Decides without a device and without a measurement. Stateless but for its steps, and pure.

    `acts` are the steps that mean something to the policy, `steps` those that are on.
    """

    name: str
    acts: ClassVar[tuple[str, ...]] = STEPS
    ranks: ClassVar[bool] = False
    """Whether there are further wishes."""
    steps: frozenset[str] = frozenset()

    @abstractmethod
    def wish(self, situation: Situation, mapping: FamilyMapping, lines: list[ReasonLine]) -> TileWish:
        """The tile that the policy wants; each stage is appended to `lines`, whose last says why."""

    def tuned(
        self, situation: Situation, problem: Problem, kernel: Kernel, lines: list[ReasonLine]
    ) -> PolicyChoice | None:
        """A legal configuration of the family that was tuned for such products, where the policy knows of one; it is
        taken as it is, and no tile is wished for. Each stage is appended to `lines`."""
        return None

    def with_steps(self, steps: Iterable[str]) -> Self:
        """The policy with exactly these steps on. Raises UserError for a step that it does not have."""
        asked = frozenset(steps)
        for step in sorted(asked - frozenset(self.acts)):
            raise UserError("--steps", f"{self.name} has no step {step!r}", f"give some of {', '.join(self.acts)}")
        made = copy.copy(self)
        made.steps = asked
        return made

    def choose(self, problem: Problem, target: Target, kernel: Kernel) -> PolicyChoice | PolicyRefusal:
        """A full configuration of `kernel` that its own rules call legal, or why there is none. Never raises for a
        problem that an operation made."""
        lines: list[ReasonLine] = []
        mapping = mapping_of(kernel.name)
        if problem.type.operation != "GEMM" or mapping is None:
            what = f"no policy knows how tiles become parameters of {kernel.name}"
            return self._refused(kernel, Rejection("no mapping", what), lines)
        if not all(problem.sizes):
            return self._refused(kernel, Rejection("empty", f"sizes {problem}: there is nothing to compute"), lines)
        situation = Situation.of(problem, target)
        if situation.is_vector and MATRIX_VECTOR in self.steps:
            wish = vector_wish(situation, mapping.is_for_vectors)
            lines.append(ReasonLine(MATRIX_VECTOR, f"one side of D is 1: {wish}"))
        elif tuned := self.tuned(situation, problem, kernel, lines):
            return tuned
        else:
            wish = self.wish(situation, mapping, lines)
        reason = lines[-1].text
        found = legal_configuration(kernel, mapping, wish, situation, problem, lines)
        if isinstance(found, Configuration):
            return PolicyChoice(self.name, kernel.name, found, reason, tuple(lines))
        return self._refused(kernel, found, lines)

    def further_wishes(self, situation: Situation, mapping: FamilyMapping) -> Iterable[TileWish]:
        """What the policy wants after `wish`, the best guess first; nothing of a policy that does not rank tiles."""
        return ()

    def ranked(self, problem: Problem, target: Target, kernel: Kernel, count: int) -> tuple[PolicyChoice, ...]:
        """Up to `count` different choices, the best guess first, which is `choose`'s; none where that refuses."""
        answer, mapping = self.choose(problem, target, kernel), mapping_of(kernel.name)
        if isinstance(answer, PolicyRefusal) or mapping is None:
            return ()
        found, situation = {answer.configuration: answer}, Situation.of(problem, target)
        if situation.is_vector and MATRIX_VECTOR in self.steps:
            return (answer,)
        for wish in self.further_wishes(situation, mapping):
            if len(found) >= count:
                break
            lines = [ReasonLine("tile", str(wish))]
            config = legal_configuration(kernel, mapping, wish, situation, problem, lines)
            if isinstance(config, Configuration):
                found.setdefault(config, PolicyChoice(self.name, kernel.name, config, lines[0].text, tuple(lines)))
        return tuple(found.values())

    def choose_among(
        self, problem: Problem, target: Target, kernels: Collection[Kernel]
    ) -> PolicyChoice | PolicyRefusal | None:
        """The choice of the first family that can compute the problem; else the last refusal; None without a family."""
        answer: PolicyChoice | PolicyRefusal | None = None
        for kernel in kernels:
            answer = self.choose(problem, target, kernel)
            if isinstance(answer, PolicyChoice):
                break
        return answer

    def _refused(self, kernel: Kernel, rejection: Rejection, lines: list[ReasonLine]) -> PolicyRefusal:
        return PolicyRefusal(self.name, kernel.name, rejection, tuple(lines))
