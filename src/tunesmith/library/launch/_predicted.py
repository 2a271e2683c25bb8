"""Choices by a choice model that lies beside a logic: the solutions of the logic by their expected times."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith.logic import Choice, Logic, Rule
from tunesmith.records import Problem, ProblemType

if TYPE_CHECKING:
    from tunesmith.models.choice.model import ChoiceModel, ExpectedTimes


class PredictedChoices:
    """Chooses for problems that were not measured. `folders` may hold models; they are read when the first such problem
    comes, and not again."""

    def __init__(self, folders: Collection[Path]) -> None:
        self._folders = dict.fromkeys(folders)
        self._times: dict[ProblemType, ExpectedTimes | None] = {}

    def candidates(self, logic: Logic, problem: Problem) -> Iterator[Choice]:
        """The logic's candidates. Unless the size was measured, those come first that a model knows, by expected time.
        Raises UserError for an invalid file of a model."""
        sizes, leading = problem.sizes, problem.leading
        if logic.is_measured(sizes, leading) or not (times := self._times_of(logic)):
            yield from logic.candidates(sizes, leading)
            return
        neighbour, distance = logic.nearest(sizes)
        expected = set()
        for time in times.ranked(problem):
            named = logic.document.solutions[time.index]
            expected.add(named.solution)
            yield Choice(named.solution, named.name, Rule.PREDICTED, time.seconds, neighbour, distance, time.doubt)
        yield from (choice for choice in logic.candidates(sizes, leading) if choice.solution not in expected)

    def _times_of(self, logic: Logic) -> ExpectedTimes | None:
        """The model's expectations for a logic's solutions; None if no model is for the logic's type and device."""
        kind = logic.document.problem_type
        if kind not in self._times:
            model = next((model for model in self._models if _is_for(model, logic)), None)
            self._times[kind] = (
                model.times_of(kind, [named.solution for named in logic.document.solutions]) if model else None
            )
        return self._times[kind]

    @cached_property
    def _models(self) -> tuple[ChoiceModel, ...]:
        # Imported here: a program that launches measured sizes only does not load the models.
        from tunesmith.models.choice.model_file import choice_files, read_choice_model

        return tuple(read_choice_model(file) for folder in self._folders for file in choice_files(folder))


def _is_for(model: ChoiceModel, logic: Logic) -> bool:
    return logic.document.problem_type.name in model.types and logic.document.origin.is_of(model.target)
