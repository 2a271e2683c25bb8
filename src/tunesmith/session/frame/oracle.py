"""`ConfigurationOracle` answers the protocol's questions about a configuration by asking its kernel family."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from tunesmith.devices import APIS
from tunesmith.kernels import Kernel, family_for
from tunesmith.models.stream_k.open_grids import OpenGrids, is_open, with_arbitrary_grid
from tunesmith.problems import OPERATIONS
from tunesmith.records import Configuration, Problem, ProblemType, Rejection, Solution, Target, Value


class ConfigurationOracle:
    """Legality, derived values and identity of configurations of one problem type on one target.

    Only the kernel family knows what is legal, so every question goes to it. Answers are cached, since the protocol
    asks the same for many lineages.
    """

    def __init__(self, problem_type: ProblemType, target: Target, grids: OpenGrids | None = None) -> None:
        self.problem_type, self.target = problem_type, target
        self._grids = grids or OpenGrids(target)
        self._operation = OPERATIONS[problem_type.operation]
        self.family = lru_cache(maxsize=None)(self._family)
        self.solution = lru_cache(maxsize=None)(self._solution)
        self.rejections = lru_cache(maxsize=None)(self._rejections)
        self.rejections_for = lru_cache(maxsize=None)(self._rejections_for)
        self.identity = lru_cache(maxsize=None)(self._identity)

    def _family(self, config: Configuration) -> Kernel:
        return family_for(self.problem_type.operation, config)

    def _solution(self, config: Configuration) -> Solution:
        """The solution that a configuration means; parameters that its family does not have are left out."""
        family = self.family(config)
        parameters = [parameter.name for parameter in family.space(self.problem_type, self.target)]
        return Solution(self.problem_type, family.name, config.only(parameters))

    def launched(self, config: Configuration, problem: Problem) -> Solution:
        """The solution that is launched for a problem: an open stream-K grid (`StreamKGrid: -1`) is decided."""
        return self._grids.decided(self.solution(config), problem)

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        try:
            return self.family(config).derived(config)
        except LookupError:
            return {}

    def work(self, problem: Problem) -> float:
        return self._operation.work(problem)

    def guess(self, config: Configuration, problem: Problem) -> float:
        """Seconds that the family expects, infinite if it has no guess. Only for ordering candidates."""
        guessed = self.family(config).guess(self.launched(config, problem).configuration, problem, self.target)
        return math.inf if guessed is None else guessed

    def program(self, config: Configuration) -> str:
        """A text that is equal for configurations with the same compiled program."""
        solution = self.solution(config)
        modules = self.family(config).modules(solution.configuration, solution.type)
        return " ".join(module.digest() for module in modules)

    def _rejections(self, config: Configuration) -> tuple[Rejection, ...]:
        try:
            language = self.family(config).language
        except LookupError as error:
            return (Rejection("no such kernel", str(error)),)
        if language not in APIS[self.target.api].languages:
            return (Rejection("language", f"{self.target.name} is reached through {self.target.api}, not {language}"),)
        return tuple(self.family(config).rejections(with_arbitrary_grid(config), self.problem_type, self.target))

    def _rejections_for(self, config: Configuration, problem: Problem) -> tuple[Rejection, ...]:
        family, launched = self.family(config), self.launched(config, problem).configuration
        illegal = family.rejections(launched, self.problem_type, self.target) if is_open(config) else ()
        return (*illegal, *family.rejections_for(launched, problem, self.target))

    def _identity(self, config: Configuration) -> str:
        solution = self.solution(config)
        return self.family(config).identity(solution)
