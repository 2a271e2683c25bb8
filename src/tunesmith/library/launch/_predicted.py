"""Choices by a choice model that lies beside a logic: all solutions that it knows, by their expected times.

A logic keeps the solutions that won at some size. The model knows the others, too, and one of them may be the best at
sizes that nobody measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith.kernels import KERNELS
from tunesmith.library._configurations import mistake_in
from tunesmith.logic import Choice, Logic, NamedSolution, Rule
from tunesmith.records import LibraryPlan, Problem, ProblemType, Solution

from ._heuristic import name_of

if TYPE_CHECKING:
    from tunesmith.models.choice.model import ChoiceModel, ExpectedTimes


Foreseen = Callable[[Problem], LibraryPlan | None]
REMEMBERED = 1024
"""The most problems whose plan is kept."""
SIBLINGS_CAUTION = 2.0
"""How many times as much a kernel must gain if nobody measured it on this device or in this data type. By an H200's
model, 6 of an H100's 433 products were below 0.97 of the library's speed, and one with this and the library's plans; by
its model for bfloat16, 5 and one of 520 in float16 (benchmarks/recorded/sibling_choices)."""


@dataclass(frozen=True, slots=True)
class KnownSolutions:
    """Solutions of one problem type, and a model's expectations of them."""

    solutions: tuple[NamedSolution, ...]
    times: ExpectedTimes


class PredictedChoices:
    """Chooses for problems that were not measured. `files` are files of logic: models lie in their folders, and in
    shipped files. A shipped file's is read when the first such problem of its types comes, and not again. `foreseen`
    tells how the vendor's library would compute a problem, None if that is not known; only models that make use of it
    are told."""

    def __init__(self, files: Collection[Path], foreseen: Foreseen = lambda problem: None) -> None:
        self._files, self._plan = tuple(files), lru_cache(REMEMBERED)(foreseen)
        self._known: dict[tuple[ProblemType, bool], KnownSolutions | None] = {}
        self._shipped: dict[Path, ChoiceModel | None] = {}

    def candidates(self, logic: Logic, problem: Problem, unmeasured: Problem | None = None) -> Iterator[Choice]:
        """The logic's candidates. Unless the size was measured, those come first that a model knows, by expected time,
        also those that the logic does not have. Raises UserError for an invalid file of a model.

        `unmeasured` is the problem for which the choice stands in, if that is of another data type or on another
        device than the logic's.
        """
        sizes, leading = problem.sizes, problem.leading
        if logic.is_measured(sizes, leading) or not (known := self._known_to(logic, unmeasured is not None)):
            yield from logic.candidates(sizes, leading)
            return
        neighbour, distance = logic.nearest(sizes)
        expected = set()
        plan = self._plan(unmeasured or problem) if known.times.uses_plans else None
        for time in known.times.ranked(problem, plan):
            named = known.solutions[time.solution]
            expected.add(named.solution)
            yield Choice(named.solution, named.name, Rule.PREDICTED, time.seconds, neighbour, distance, time.doubt)
        yield from (choice for choice in logic.candidates(sizes, leading) if choice.solution not in expected)

    def _known_to(self, logic: Logic, by_sibling: bool) -> KnownSolutions | None:
        """What the model of a logic's type and device knows; None if there is no such model. For a sibling it is more
        cautious."""
        key = logic.document.problem_type, by_sibling
        if key not in self._known:
            models = self._models_with(logic.document.problem_type.name)
            model = next((model for model in models if _is_for(model, logic)), None)
            if model and by_sibling:
                model = replace(model, caution=SIBLINGS_CAUTION * model.caution)
            self._known[key] = _known(model, logic) if model else None
        return self._known[key]

    def _models_with(self, name: str) -> Iterator[ChoiceModel]:
        """The models that lie beside logics, then those of shipped files that have the type with this name."""
        from tunesmith.logic import is_shipped, read_head

        yield from self._in_folders
        for file in dict.fromkeys(filter(is_shipped, self._files)):
            if name in read_head(file).types and (model := self._shipped_model(file)):
                yield model

    # What reads models is imported where it is needed: a program that launches measured sizes only does not load it.
    @cached_property
    def _in_folders(self) -> tuple[ChoiceModel, ...]:
        from tunesmith.logic import is_shipped
        from tunesmith.models.choice.model_file import choice_files, read_choice_model

        folders = dict.fromkeys(file.parent for file in self._files if not is_shipped(file))
        return tuple(read_choice_model(file) for folder in folders for file in choice_files(folder))

    def _shipped_model(self, file: Path) -> ChoiceModel | None:
        from tunesmith.logic import read_shipped_model
        from tunesmith.models.choice.model_file import model_of

        if file not in self._shipped:
            value = read_shipped_model(file)
            self._shipped[file] = None if value is None else model_of(value, str(file))
        return self._shipped[file]


def _known(model: ChoiceModel, logic: Logic) -> KnownSolutions:
    """The logic's solutions, then the model's others. Those are left out that this version's kernels do not have."""
    kind, own = logic.document.problem_type, logic.document.solutions
    kept = {named.solution for named in own}
    others = (solution for solution in model.solutions_of(kind) if solution not in kept and not mistake_in(solution))
    named = (*own, *(NamedSolution(_name(solution), solution) for solution in others))
    return KnownSolutions(named, model.times_of(kind, [entry.solution for entry in named]))


def _name(solution: Solution) -> str:
    return name_of(solution, KERNELS[solution.kernel].space(solution.type).defaults)


def _is_for(model: ChoiceModel, logic: Logic) -> bool:
    return logic.document.problem_type.name in model.types and logic.document.origin.is_of(model.target)
