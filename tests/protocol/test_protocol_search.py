"""Steps that ask a strategy, and the driver that carries searches to their end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protocol_fakes import LEGAL, Exact, FakeOracle, benchmark, choices, final, fork, kept, phases, size
from tunesmith.protocol import SearchPlan, SearchRun, TimeTable, carry_out, run
from tunesmith.records import Configuration, Estimate, UserError
from tunesmith.search import (
    STRATEGIES,
    CandidateBatch,
    Candidates,
    Growing,
    MeasureMode,
    RaceThenConfirm,
    sampling,
    surrogate,
)

SAMPLES = ("random", "surrogate")


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """These tests are about the steps and the driver. `tests/benchmarks` has how well the model of 200 trees guides."""
    monkeypatch.setattr(surrogate, "TREES", 20)


def bowl(config, problem):
    """The best is a = 30, b = 20, whatever x is."""
    return 1.0 + abs(config.integer("a") - 30) + abs(config.integer("b") - 20) + 0.1 * config.integer("x")


def two_lineages(strategy, trials=30, most=40, seed=0):
    """A step of `most` squared combinations in each of two lineages."""
    values = list(range(most))
    start = {"x": 0, "a": 7, "b": 9}
    return phases(
        start, fork(x=[0, 1]), benchmark(a=values, b=values), final(), search=SearchPlan(strategy, trials, seed)
    )


@pytest.mark.parametrize("strategy", SAMPLES)
def test_a_search_measures_no_more_than_it_may_and_begins_with_what_is_held(strategy):
    measure = Exact(bowl)
    step = run(two_lineages(strategy), measure, LEGAL).steps[1]
    assert [len(trial.proposal.candidates) for trial in step.trials] == [30, 30]
    assert step.cells == step.candidates == 60
    assert [(group[0]["x"], group[0]["a"], group[0]["b"]) for group in measure.screens[0][0]] == [(0, 7, 9), (1, 7, 9)]
    assert all(trial.decision and trial.decision.incumbent for trial in step.trials)


@pytest.mark.parametrize("strategy", SAMPLES)
def test_what_is_held_stays_where_the_sample_has_nothing_better(strategy):
    result = run(two_lineages(strategy), Exact(lambda c, p: 1.0 + ((c["a"], c["b"]) != (7, 9))), LEGAL)
    assert kept(result, "a", "b") == [(7, 9), (7, 9)]


def test_a_model_learns_from_what_the_judge_expects():
    """The parameter is a label, so only the guess tells about its time."""
    order = np.random.default_rng(0).permutation(400).tolist()
    oracle = FakeOracle()
    oracle.guess = lambda config, problem: float(order[config.integer("a")] + 1)
    group = phases({"a": 0}, benchmark(a=list(range(400))), search=SearchPlan("surrogate", 40))
    result = run(group, Exact(lambda c, p: 1.0 + order[c.integer("a")]), oracle)
    assert order[result.survivors[0].integer("a")] < 4


@pytest.mark.parametrize("strategy", SAMPLES)
def test_the_same_measurements_give_the_same_search_and_another_seed_another(strategy):
    measures = [Exact(bowl) for _ in range(3)]
    first, again, _ = (
        run(two_lineages(strategy, seed=seed), measure, LEGAL)
        for seed, measure in zip((1, 1, 2), measures, strict=True)
    )
    assert first == again
    assert measures[0].screens == measures[1].screens
    assert measures[0].screens != measures[2].screens


@pytest.mark.parametrize("strategy", SAMPLES)
def test_lineages_are_asked_for_together_in_every_round_and_search_apart(strategy):
    measure = Exact(bowl)
    run(two_lineages(strategy), measure, LEGAL)
    *rounds, (_, _, racing) = measure.screens
    assert not racing
    assert all([{c["x"] for c in group} for group in groups] == [{0}, {1}] for groups, _, _ in rounds)
    asked = [[(c["a"], c["b"]) for groups, _, _ in rounds for c in groups[x]] for x in (0, 1)]
    assert len(set(asked[0])) == 30
    assert asked[0] != asked[1]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_a_solution_that_two_lineages_ask_for_in_different_rounds_is_measured_once(strategy):
    measure = Exact(bowl)
    step = run(two_lineages(strategy, None, most=6), measure, FakeOracle(same=lambda c: (c["a"], c["b"]))).steps[1]
    asked = [config for groups, _, _ in measure.screens[:-1] for group in groups for config in group]
    assert len({(config["a"], config["b"]) for config in asked}) == step.cells
    assert len(set(asked)) == step.cells


@pytest.mark.parametrize("strategy", SAMPLES)
def test_rejections_of_a_small_step_are_counted_whole_whatever_is_measured(strategy):
    oracle = FakeOracle(illegal=lambda c: "odd" if c.integer("a") % 2 else "")
    step = run(two_lineages(strategy, 5), Exact(bowl), oracle).steps[1]
    assert step.rejected == {"odd": 2 * 40 * 20}
    assert step.candidates == 10


def test_a_strategy_that_lacks_something_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.tree", None)
    measure = Exact(bowl)
    with pytest.raises(UserError, match="scikit-learn"):
        run(two_lineages("surrogate"), measure, LEGAL)
    assert not measure.screens


# A space that cannot be listed


class SpentError(Exception):
    pass


class Spent(Exact):
    """Has no time left to measure."""

    def screen_cells(self, groups, racing):
        super().screen_cells(groups, racing)
        raise SpentError


def large(strategy, trials):
    """10^9 combinations for each of two lineages; `y` is tuned later."""
    values = {name: list(range(1000)) for name in "abc"}
    start = {"x": 0, "y": 0, "a": 900, "b": 5, "c": 5}
    search = SearchPlan(strategy, trials)
    return phases(start, fork(x=[0, 1]), benchmark(**values), benchmark(y=[1, 2]), final(), search=search)


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_the_first_batch_of_a_large_step_is_measured_after_few_questions(strategy, monkeypatch):
    monkeypatch.setattr(sampling, "MOST_EXAMINED", 500)
    monkeypatch.setattr(surrogate, "MOST_CANDIDATES", 1000)
    questions = 0

    def half(config):
        nonlocal questions
        questions += 1
        return "odd" if config.integer("b") % 2 else ""

    measure = Spent(lambda c, p: 1.0)
    with pytest.raises(SpentError):
        run(large(strategy, None), measure, FakeOracle(illegal=half))
    ((groups, _, _),) = measure.screens
    assert [len({c["x"] for c in group}) for group in groups] == [1, 1]
    assert questions <= 2 * (2500 if strategy == "surrogate" else 510)


def test_a_large_step_ends_with_the_best_of_its_sample():
    measure = Exact(lambda c, p: 1.0 + c.integer("a"))
    result = run(large("random", 200), measure, LEGAL)
    step = result.steps[1]
    assert step.candidates == 400
    for trial in step.trials:
        configs = trial.proposal.configurations
        assert trial.decision is not None
        assert trial.decision.winner["a"] == min(config["a"] for config in configs)
        assert configs[0]["a"] == 900
        assert dict(trial.proposal.candidates)[trial.decision.winner].keys() == {"a", "b", "c"}
    assert len(result.survivors) == 2


def test_a_large_step_defers_and_gives_up_like_a_small_one():
    """In the first lineage nothing is legal with the initial `y`. In the second, nothing is ever legal."""
    questions = 0

    def legal_later(config):
        nonlocal questions
        questions += 1
        return "never" if config["x"] == 1 else "too early" if config["y"] == 0 else ""

    result = run(large("random", 20), Exact(lambda c, p: 1.0 + c.integer("a")), FakeOracle(illegal=legal_later))
    assert [(d.step, d.lineage.fixed["x"], d.rejection.reason) for d in result.dropped] == [("02_BF_a_b_c", 1, "never")]
    assert dict(result.steps[1].trials[0].proposal.substituted) == {"y": 1}
    assert questions < 30_000


# The driver


def column(low, high):
    return Candidates(choices({"a": list(range(low, high))}), mode=MeasureMode.FULL)


def test_the_driver_carries_a_growing_space_and_its_finalists_side_by_side():
    """Two searches at once, on different problems: one grows towards the best value, the other confirms its two
    best."""

    def beyond(candidates, times):
        best = min(times, key=lambda config: next(iter(times[config].values())).seconds)
        high = max(config.integer("a") for config in times)
        return column(0, high + 3) if best["a"] == high else candidates

    def finals(times):
        ranked = sorted(times, key=lambda config: times[config][size(2)].seconds)
        return [CandidateBatch(tuple(ranked[:2]), MeasureMode.CONFIRMED)]

    random = np.random.default_rng(0)
    grown = SearchRun(Growing(beyond).start(column(0, 3), random), [size(1)])
    raced = SearchRun(RaceThenConfirm(finals).start(replace(column(4, 8), mode=MeasureMode.RACED), random), [size(2)])
    calls: list[tuple[list[list[int]], bool]] = []

    class Times(Exact):
        def screen_cells(self, groups, racing):
            calls.append(([[c.integer("a") for c, _ in group] for group in groups], racing))
            cells = dict.fromkeys(cell for group in groups for cell in group)
            return TimeTable({(c, p): Estimate(t := self.seconds(c, p) or 0.0, t, t, 1) for c, p in cells})

    measure = Times(lambda c, p: 1.0 + abs(c.integer("a") - 6))
    table, cells = carry_out([grown, raced], measure)
    assert calls == [
        ([[4, 5, 6, 7]], True),
        ([[0, 1, 2]], False),
        ([[3, 4]], False),
        ([[5, 6]], False),
        ([[7, 8]], False),
    ]
    assert measure.confirms == [([Configuration({"a": 6}), Configuration({"a": 5})], [size(2)])]
    assert cells == len(table.cells) == 13
    assert {config["a"] for config, _ in table.paired} == {5, 6}
    assert raced.finals.paired == table.paired
    assert not grown.finals.paired


def test_searches_for_the_same_problems_are_measured_in_one_call_a_round():
    measure = Exact(lambda c, p: 1.0)
    searches = [
        SearchRun(STRATEGIES["exhaustive"].start(column(low, low + 3), np.random.default_rng(0)), [size(1)])
        for low in (0, 10, 2)
    ]
    _, cells = carry_out(searches, measure)
    ((groups, problems, racing),) = measure.screens
    assert [[c["a"] for c in group] for group in groups] == [[0, 1, 2], [10, 11, 12], [2, 3, 4]]
    assert (problems, racing, cells) == ([size(1)], False, 8)


def test_what_stops_the_measuring_stops_the_search():
    search = STRATEGIES["random"].start(column(0, 3), np.random.default_rng(0))
    with pytest.raises(SpentError):
        carry_out([SearchRun(search, [size(1)])], Spent(lambda c, p: 1.0))
    assert not search.told
