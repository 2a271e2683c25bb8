"""The distance of a configuration from a policy's choice, to order configurations with the best guesses first."""

from __future__ import annotations

from functools import lru_cache

from tunesmith.kernels import Kernel
from tunesmith.models.intensity.distance import distance
from tunesmith.records import Configuration, Problem, Solution, Target

from .answers import PolicyChoice
from .mappings import mapping_of
from .policy import TilePolicy
from .situation import PolicyInput
from .wish import TileWish

_ANY_TILE = TileWish(64, 64, 32)


class PolicyDistance:
    """Distances from the choices of one policy on one target. Each choice is made once."""

    def __init__(self, policy: TilePolicy, target: Target) -> None:
        self.policy, self.target = policy, target
        self._decided = lru_cache(maxsize=None)(self._decide)

    def __call__(self, kernel: Kernel, config: Configuration, problem: Problem) -> float:
        """`distance` in the parameters that the policy decides. 0 if the policy does not know the family or the
        problem, so that such configurations keep their order."""
        decided = self._decided(kernel.name, kernel, problem)
        return distance(*(Solution(problem.type, kernel.name, values) for values in (config, config | decided)))

    def _decide(self, name: str, kernel: Kernel, problem: Problem) -> Configuration:
        """The parameters that the policy decides for a problem; empty if the policy refuses."""
        mapping = mapping_of(name)
        answer = self.policy.choose(problem, self.target, kernel)
        if mapping is None or not isinstance(answer, PolicyChoice):
            return Configuration()
        decided = mapping.values(_ANY_TILE, PolicyInput.of(problem, self.target))
        return answer.configuration.only(decided)
