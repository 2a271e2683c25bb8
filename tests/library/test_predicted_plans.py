"""A model that makes use of the library's plans is received them, once for each problem; others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from packaged_logic import packaged_model
from tunesmith.kernels import VENDOR
from tunesmith.library.launch import _predicted
from tunesmith.library.launch._predicted import PredictedChoices
from tunesmith.logic import Rule
from tunesmith.logic.shipped import FOLDER, SUFFIX, read_shipped, read_shipped_model, shipped_file
from tunesmith.models.choice import model as model_module
from tunesmith.models.choice import model_file
from tunesmith.problems.gemm import gemm_type, gemm_type_named
from tunesmith.records import LibraryPlan, Problem

FILE = Path(FOLDER / f"nvidia-h200-tf32{SUFFIX}")
PLAN = LibraryPlan(66, 24, 2, 0, 3, 35, 4, 1024, 0.5)


@pytest.fixture
def asked():
    return []


@pytest.fixture
def choices(asked):
    def foreseen(problem):
        asked.append(problem)
        return PLAN

    return PredictedChoices([FILE], foreseen)


def sizes_of(logic, *sizes):
    return Problem(logic.document.problem_type, sizes)


def test_a_model_without_trees_for_plans_does_not_ask(choices, asked, monkeypatch):
    monkeypatch.setattr(model_file, "_library", lambda *parts: None)
    logic = read_shipped(FILE).logics[0]
    assert next(choices.candidates(logic, sizes_of(logic, 72, 1000, 333))).expected_seconds
    assert asked == []


def test_a_model_with_such_trees_asks_once_for_a_problem(choices, asked, monkeypatch):
    received = []
    ranked = model_module.ExpectedTimes._ranked

    def spied(self, problem, plan=None):
        received.append(plan)
        return ranked(self, problem)

    monkeypatch.setattr(model_module.ExpectedTimes, "_ranked", spied)
    logic = read_shipped(FILE).logics[0]
    problems = [sizes_of(logic, 72, 1000, 333), sizes_of(logic, 73, 1000, 333)]
    for problem in (*problems, *problems):
        next(choices.candidates(logic, problem))
    assert asked == problems
    assert received == [PLAN, PLAN]
    measured = logic.document.rows[0]
    next(choices.candidates(logic, sizes_of(logic, *measured.sizes)))
    assert asked == problems


def test_a_part_of_a_model_expects_what_the_whole_does():
    whole = packaged_model("nvidia-h200-tf32")
    for name in whole.types:
        kind = gemm_type_named(name)
        solutions, problem = whole.solutions_of(kind), Problem(kind, (520, 264, 1000))
        part = whole.only([name])
        assert part.times_of(kind, solutions).ranked(problem) == whole.times_of(kind, solutions).ranked(problem)
        assert list(part.types) == [name]
        assert len(part.solutions) == len(whole.types[name])


def test_a_model_of_the_package_is_read_once_and_for_its_types_alone(monkeypatch):
    read, names = read_shipped_model, []
    monkeypatch.setattr(
        "tunesmith.logic.shipped.read_shipped_model", lambda path: names.append(path.name) or read(path)
    )
    files = [shipped_file("nvidia-h200-tf32"), shipped_file("nvidia-h200-fp8")]
    choices = PredictedChoices(files)
    for file, expected in ((files[1], files[1:]), (files[0], files[::-1]), (files[1], files[::-1])):
        for logic in read_shipped(file).logics:
            sizes = (520, 264, 1008)
            assert next(choices.candidates(logic, Problem(logic.document.problem_type, sizes))).rule is Rule.PREDICTED
        assert names == [path.name for path in expected]


def test_only_so_many_plans_are_kept(asked, monkeypatch):
    monkeypatch.setattr(_predicted, "REMEMBERED", 2)
    choices = PredictedChoices([FILE], lambda problem: asked.append(problem) or PLAN)
    logic = read_shipped(FILE).logics[0]
    first = sizes_of(logic, 70, 1000, 333)
    for problem in (first, sizes_of(logic, 71, 1000, 333), first, sizes_of(logic, 72, 1000, 333), first):
        next(choices.candidates(logic, problem))
    assert [problem.sizes[0] for problem in asked] == [70, 71, 72]
    next(choices.candidates(logic, sizes_of(logic, 71, 1000, 333)))
    assert len(asked) == 4


def test_for_a_sibling_the_plan_is_that_of_the_problem_itself_and_a_kernel_must_gain_more(choices, asked, monkeypatch):
    models = []
    times_of = model_module.ChoiceModel.times_of
    monkeypatch.setattr(
        model_module.ChoiceModel, "times_of", lambda self, *of: models.append(self) or times_of(self, *of)
    )
    logic = read_shipped(FILE).logics[0]
    problem = sizes_of(logic, 72, 1000, 333)
    stood_for = Problem(gemm_type("h"), problem.sizes)
    own = [choice.solution for choice in choices.candidates(logic, problem)]
    siblings = [choice.solution for choice in choices.candidates(logic, problem, stood_for)]
    assert asked == [problem, stood_for]
    assert set(own) == set(siblings)
    known, cautious = models
    assert cautious.caution == 2 * known.caution > 0
    first = [solutions.index(next(s for s in solutions if s.kernel == VENDOR)) for solutions in (own, siblings)]
    assert first[0] >= first[1]
