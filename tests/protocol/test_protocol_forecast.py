"""The forecast that `plan` prints: its counts are those of the run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol_fakes import Exact, FakeOracle, benchmark, choices, final, fork, join, phases, same, sizes
from tunesmith.protocol import Benchmark, Final, Phase, SearchPlan, candidates, forecast, run, step_forecast
from tunesmith.records import UserError


def wiki():
    """The benchmark protocol's example, with its 64 final sizes."""
    start = {
        "EdgeType": "Branch", "PrefetchGlobalRead": False, "WorkGroup": (16, 16, 1), "ThreadTile": (4, 4),
        "NumLoadsCoalescedA": 1, "NumLoadsCoalescedB": 1, "LoopUnroll": 4,
    }  # fmt: skip
    return phases(
        start,
        benchmark(Phase.COMMON, EdgeType=["Branch", "ShiftPtr"], PrefetchGlobalRead=[False, True]),
        fork(WorkGroup=[(8, 32, 1), (16, 16, 1), (32, 8, 1)], ThreadTile=[(2, 8), (4, 4), (8, 2)]),
        benchmark(NumLoadsCoalescedA=[1, 2, 4, 8]),
        benchmark(NumLoadsCoalescedB=[1, 2, 4, 8]),
        join("MacroTile"),
        benchmark(Phase.BENCHMARK_JOIN, LoopUnroll=[8, 16]),
        final(*range(64)),
    )


def tile(config):
    rows, columns, _ = config.integers("WorkGroup")
    height, width = config.integers("ThreadTile")
    return {"MacroTile": (rows * height, columns * width)}


def too_few_loads(config):
    """Every work-item loads an element of A: 256 of them for a tile of 16 rows need a depth of 16."""
    return "tile too thin" if min(tile(config)["MacroTile"]) * config.integer("LoopUnroll") < 256 else ""


def enqueues(steps):
    return [step.enqueues for step in steps.before]


def test_the_wikis_example_has_the_counts_that_the_issue_names():
    steps = forecast(wiki(), FakeOracle(derive=tile)).before
    assert [step.enqueues for step in steps] == [4, 0, 36, 36, 0, 10, 320]
    assert [(step.lineages, step.survivors) for step in steps] == [
        (1, 1), (1, 9), (9, 9), (9, 9), (9, 5), (5, 5), (5, 5)
    ]  # fmt: skip
    assert (steps[2].lineages, steps[2].choices, steps[2].sizes) == (9, 4, 1)
    assert forecast(wiki(), FakeOracle(derive=tile)).enqueues_before == 406


def test_the_exhaustive_product_multiplies_every_list_and_the_final_sizes():
    assert forecast(wiki(), FakeOracle(derive=tile)).exhaustive == 2 * 2 * 3 * 3 * 4 * 4 * 2 * 64


def test_a_parameter_that_two_steps_vary_counts_once_in_the_exhaustive_product():
    group = phases({"a": 1, "b": 1}, benchmark(a=[1, 2]), benchmark(b=[1, 2, 3]), benchmark(a=[2, 4]), final())
    assert forecast(group, FakeOracle()).exhaustive == 3 * 3


def test_without_a_final_step_the_exhaustive_product_is_that_of_the_lists():
    assert forecast(phases({"a": 1}, benchmark(on=(1, 2, 3), a=[1, 2])), FakeOracle()).exhaustive == 2


def test_rejections_are_counted_apart_and_deferral_keeps_thin_tiles():
    oracle = FakeOracle(illegal=too_few_loads, derive=tile)
    plan = forecast(wiki(), oracle)
    assert enqueues(plan) == [4, 0, 36, 36, 0, 10, 320]
    assert [step.enqueues for step in plan.after] == [4, 0, 36, 36, 0, 8, 320]
    measure = Exact(lambda config, problem: 1.0)
    assert [step.cells for step in run(wiki(), measure, oracle).steps] == [4, 0, 36, 36, 0, 8, 320]


def test_a_lineage_that_can_never_be_legal_is_counted_before_and_not_after():
    oracle = FakeOracle(illegal=lambda c: "never" if c["a"] == 2 else "")
    plan = forecast(phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(b=[1, 2]), final(1, 2)), oracle)
    assert (plan.enqueues_before, plan.enqueues_after) == (8, 4)


def test_a_solution_that_several_lineages_have_is_counted_once():
    group = phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(a=[1, 2, 3]))
    assert [step.enqueues for step in forecast(group, FakeOracle()).after] == [0, 3]
    measured = run(group, Exact(lambda config, problem: 1.0), FakeOracle()).steps
    assert [step.cells for step in measured] == [0, 3]


@pytest.mark.parametrize(("legal", "is_possible"), [((), False), ((2,), True), ((1, 2, 3), True)])
def test_a_run_is_possible_if_its_last_step_has_anything_to_measure(legal, is_possible):
    oracle = FakeOracle(illegal_for=lambda c, p: "" if p.sizes[0] in legal else "never")
    assert forecast(phases({"a": 1}, final(1, 2, 3)), oracle).is_possible == is_possible
    assert forecast(phases({"a": 1}), oracle).is_possible, "nothing is to be measured"


def test_a_cell_that_its_problem_forbids_is_not_counted_after_rejections():
    oracle = FakeOracle(illegal_for=lambda c, p: "too small" if p.sizes[0] < c.integer("a") else "")
    plan = forecast(phases({"a": 1}, benchmark(on=(1, 2, 3), a=[1, 2, 3])), oracle)
    assert (plan.enqueues_before, plan.enqueues_after) == (9, 6)


def test_a_join_over_a_tuned_value_is_bounded_by_the_values_within_reach():
    """Three tiles and two depths: which depths win is not known, but at most two lineages can be left."""
    oracle = FakeOracle(derive=lambda c: {"Depth": c.integer("unroll") * 2})
    group = phases({"tile": 1, "unroll": 1}, fork(tile=[1, 2, 3]), benchmark(unroll=[4, 8]), join("Depth"), final())
    assert [step.survivors for step in forecast(group, oracle).before] == [3, 3, 2, 2]


def test_a_join_is_bounded_by_the_values_of_every_step_that_its_names_depend_on():
    group = phases(
        {"x": 1, "a": 1, "b": 1, "c": 1},
        fork(x=list(range(20))),
        *(benchmark(**{name: [1, 2]}) for name in "abc"),
        join("a", "b"),
    )
    assert forecast(group, FakeOracle()).before[-1].survivors == 2 * 2


@pytest.mark.parametrize("kinds", [(0, 0, 1), (0, 1, 1)])
def test_a_join_is_forecast_to_keep_the_first_lineage_of_each_key(kinds):
    """As in the run, where equal times leave the first. Later, lineage 2 could try four values, the others one."""
    oracle = FakeOracle(
        illegal=lambda c: "too many" if c["tile"] != 2 and c.integer("loads") > 1 else "",
        derive=lambda c: {"Kind": kinds[c.integer("tile") - 1]},
    )
    group = phases(
        {"tile": 1, "loads": 1, "a": 1},
        fork(tile=[1, 2, 3]),
        benchmark(a=[1, 2]),
        join("Kind"),
        benchmark(Phase.BENCHMARK_JOIN, loads=[1, 2, 3, 4]),
        final(),
    )
    steps = forecast(group, oracle).after
    assert [step.enqueues for step in steps] == [step.cells for step in run(group, Exact(same), oracle).steps]
    assert (steps[3].enqueues, steps[4].enqueues) == (1 + (1 if kinds[1] == 0 else 4), 2)


def test_an_unknown_name_in_a_join_is_a_mistake_of_the_users():
    with pytest.raises(UserError, match="NoSuchTile"):
        forecast(phases({"a": 1}, fork(a=[1, 2]), join("NoSuchTile")), FakeOracle())


@st.composite
def legal_groups(draw):
    """Phases in Tensile's order in which no parameter is varied twice."""
    counts = st.integers(1, 3)

    def steps(phase, names):
        return [
            Benchmark(phase, choices({name: list(range(draw(counts)))}), sizes(*range(draw(counts))))
            for name in names[: draw(st.integers(0, len(names)))]
        ]

    forked = {name: list(range(draw(counts))) for name in "xyz"[: draw(st.integers(0, 3))]}
    over = draw(st.none() | st.sets(st.sampled_from([*forked, "sum"])))
    return phases(
        dict.fromkeys("abxyzcdef", 0),
        *steps(Phase.COMMON, "ab"),
        *([fork(**forked)] if forked else []),
        *steps(Phase.BENCHMARK_FORK, "cd"),
        *([] if over is None else [join(*sorted(over), on=range(draw(counts)))]),
        *steps(Phase.BENCHMARK_JOIN, "ef"),
        Final(sizes(*range(draw(counts)))),
    )


@given(legal_groups())
@settings(max_examples=100, deadline=None)
def test_a_run_asks_for_exactly_what_was_forecast(group):
    """This holds on a space without rejections for any times, with joins over forked and derived values."""
    oracle = FakeOracle(derive=lambda c: {"sum": c.integer("x") + c.integer("y") + c.integer("z")})
    measure = Exact(lambda c, p: 1.0 + sum(map(ord, c.to_json())) % 7)
    steps = run(group, measure, oracle).steps
    plan = forecast(group, oracle)
    assert [(s.name, len(s.before), len(s.after), s.cells) for s in steps] == [
        (s.name, s.lineages, s.survivors, s.enqueues) for s in plan.before
    ]
    assert plan.before == tuple(replace(s, fresh=0, programs=0, rejected={}) for s in plan.after), "nothing is illegal"
    assert sum(len(g) * len(p) for groups, p, _ in measure.screens for g in groups) == plan.enqueues_before


def large(trials=None, strategy="exhaustive"):
    """A step of 10^9 combinations, some of which two lineages try."""
    values = {name: list(range(1000)) for name in "abc"}
    return phases(
        {"x": 0, "a": 0, "b": 0, "c": 0},
        fork(x=[0, 1]),
        benchmark(on=(1, 2), **values),
        join("half"),
        final(),
        search=SearchPlan(strategy, trials),
    )


class Counting:
    """A quarter of the configurations is legal on one size, half of these on the other. Counts the questions."""

    def __init__(self):
        self.questions = 0
        self.oracle = FakeOracle(
            illegal=self._illegal,
            illegal_for=lambda c, p: "odd" if p.sizes[0] == 2 and c.integer("b") % 2 else "",
            derive=lambda c: {"half": c.integer("c") // 500},
        )

    def _illegal(self, config):
        self.questions += 1
        return "not a fourth" if config.integer("a") % 4 else ""


def test_a_step_of_a_thousand_million_combinations_is_forecast_from_a_sample_and_marked():
    counting = Counting()
    plan = forecast(large(), counting.oracle)
    assert counting.questions < 10_000
    _, before, *_ = plan.before
    _, after, joined, _ = plan.after
    assert (before.choices, before.candidates, before.enqueues) == (10**9, 2 * 10**9, 4 * 10**9)
    assert after.candidates == pytest.approx(2 * 10**9 / 4, rel=0.2)
    assert after.enqueues == pytest.approx(2 * 10**9 / 4 * 1.5, rel=0.2)
    assert [step.is_estimated for step in plan.after] == [False, True, True, False]
    assert not before.is_estimated
    assert joined.survivors == 2
    assert plan.exhaustive == 2 * 10**9
    assert forecast(large(), Counting().oracle) == plan


@pytest.mark.parametrize(("strategy", "trials"), [("random", 40), ("surrogate", 40)])
def test_a_search_is_forecast_to_measure_what_it_may(strategy, trials):
    counting = Counting()
    plan = forecast(large(trials, strategy), counting.oracle)
    assert (plan.before[1].candidates, plan.before[1].enqueues) == (80, 160)
    assert plan.after[1].candidates == 80
    assert plan.after[1].enqueues == pytest.approx(80 * 1.5, rel=0.2)


def test_a_search_in_a_small_space_is_forecast_exactly():
    oracle = FakeOracle(illegal=lambda c: "odd" if c.integer("a") % 2 else "")
    group = phases({"a": 0}, benchmark(on=(1, 2), a=list(range(100))), final(), search=SearchPlan("random", 30))
    plan = forecast(group, oracle)
    assert [(step.candidates, step.enqueues, step.is_estimated) for step in plan.after] == [
        (30, 60, False),
        (1, 1, False),
    ]
    assert [step.cells for step in run(group, Exact(lambda c, p: 1.0), oracle).steps] == [60, 1]


@pytest.mark.parametrize(("most", "is_estimated"), [(5, False), (4, False), (3, True)])
def test_only_what_has_more_choices_than_may_be_listed_is_estimated(most, is_estimated, monkeypatch):
    """A step of four choices, and a join over the value that it tunes."""
    for module in (candidates, step_forecast):
        monkeypatch.setattr(module, "LARGEST_LISTED", most)
    monkeypatch.setattr(step_forecast, "SAMPLE", 4)
    group = phases({"x": 0, "a": 0}, fork(x=[0]), benchmark(a=[0, 1, 2, 3]), join("a"), final())
    plan = forecast(group, FakeOracle())
    assert [step.is_estimated for step in plan.before] == [False, False, is_estimated, False]
    assert [step.is_estimated for step in plan.after] == [False, is_estimated, is_estimated, False]
    assert [(step.candidates, step.enqueues) for step in plan.after] == [(0, 0), (4, 4), (0, 0), (1, 1)]


def test_a_step_with_as_many_choices_as_may_be_listed_is_counted_and_not_sampled(monkeypatch):
    for module in (candidates, step_forecast):
        monkeypatch.setattr(module, "LARGEST_LISTED", 4)
    monkeypatch.setattr(step_forecast, "SAMPLE", 2)
    (step,) = forecast(phases({"a": 0}, benchmark(a=[0, 1, 2, 3])), FakeOracle()).after
    assert (step.candidates, step.enqueues, step.fresh, step.programs) == (4, 4, 4, 4)


@pytest.mark.parametrize(("names", "is_estimated"), [(["x"], False), (["x", "a"], True)])
def test_many_values_that_change_no_key_of_a_join_leave_its_number_exact(names, is_estimated, monkeypatch):
    monkeypatch.setattr(step_forecast, "LARGEST_LISTED", 4)
    group = phases({"x": 0, "a": 0, "b": 0}, fork(x=[0, 1]), benchmark(a=list(range(5))), join(*names))
    assert forecast(group, FakeOracle()).before[-1].is_estimated is is_estimated


def test_a_step_that_is_passed_twice_widens_a_join_once(monkeypatch):
    monkeypatch.setattr(step_forecast, "LARGEST_LISTED", 4)
    again = benchmark(a=[0, 1, 2])
    step = forecast(phases({"x": 0, "a": 0}, fork(x=[0, 1]), again, again, join("a")), FakeOracle()).before[-1]
    assert (step.survivors, step.is_estimated) == (2, False)


@pytest.mark.parametrize(("strategy", "trials"), [("exhaustive", None), ("random", 3), ("surrogate", None)])
def test_the_final_step_is_forecast_to_measure_all_whatever_the_search(strategy, trials):
    group = phases(
        {"a": 0, "b": 0},
        benchmark(a=list(range(50))),
        Final(sizes(1, 2), choices({"b": list(range(40))})),
        search=SearchPlan(strategy, trials),
    )
    searched, last = forecast(group, FakeOracle()).after
    assert searched.candidates == {"exhaustive": 50, "random": 3, "surrogate": 24}[strategy]
    assert (last.candidates, last.enqueues, last.fresh, last.survivors) == (40, 80, 79, 40)
    if strategy != "surrogate":
        measured = run(group, Exact(same), FakeOracle()).steps
        assert [step.cells for step in measured] == [searched.enqueues, last.enqueues]


def test_without_an_incumbent_lineages_are_forecast_to_go_on_with_the_first_legal_candidate():
    oracle = FakeOracle(illegal=lambda c: "no" if c["a"] == 1 or (c["a"] != 2 and c.integer("b") > 1) else "")
    group = phases({"a": 0, "b": 1}, benchmark(a=[1, 2, 3]), benchmark(b=[1, 2, 3, 4]))
    assert [step.enqueues for step in forecast(group, oracle).after] == [2, 4]


# What no earlier step has measured or compiled


def test_cells_and_programs_are_fresh_in_the_first_step_that_has_them():
    """Configurations share a program if `a` and `b` add up to the same. The step's own incumbent is measured before."""
    oracle = FakeOracle()
    group = phases(
        {"a": 1, "b": 1},
        benchmark(on=(1, 2), a=[1, 2, 3]),
        benchmark(on=(2, 3), b=[1, 2, 3, 4]),
        benchmark(on=(2, 3), b=[1, 2, 3, 4]),
        final(1, 2, 3, 4),
    )
    steps = forecast(group, oracle, lambda c: str(c.integer("a") + c.integer("b"))).after
    assert [step.enqueues for step in steps] == [6, 8, 8, 4]
    assert [step.fresh for step in steps] == [6, 7, 0, 1]
    assert [step.programs for step in steps] == [3, 1, 0, 0]
    assert [step.programs for step in forecast(group, oracle).after] == [3, 3, 0, 0], "a program for each solution"


def test_of_what_a_search_measures_as_much_is_fresh_as_of_all():
    """Of 100 configurations 10 are known from the first step, of 25 programs 10: the search takes 40 of 100."""
    group = phases(
        {"a": 0},
        benchmark(on=(1, 2), a=list(range(10))),
        benchmark(on=(2, 3), a=list(range(100))),
        search=SearchPlan("random", 40),
    )
    first, second = forecast(group, FakeOracle(), lambda c: str(c.integer("a") % 25)).after
    assert (first.candidates, first.enqueues, first.fresh, first.programs) == (10, 20, 20, 10)
    assert (second.candidates, second.enqueues) == (40, 80)
    assert second.fresh == 190 * 40 // 100
    assert second.programs == 15 * 40 // 100


def test_the_programs_of_a_sample_stand_for_those_of_all():
    """Four configurations of the million share a program. Of a sample of a thousand, hardly two do."""
    oracle = FakeOracle(derive=lambda c: {"half": 0})
    values = {name: list(range(1000)) for name in "ab"}
    group = phases({"a": 0, "b": 0}, benchmark(on=(1, 2), **values))
    (step,) = forecast(group, oracle, lambda c: f"{c.integer('a') // 4} {c['b']}").after
    assert (step.candidates, step.enqueues, step.fresh) == (10**6, 2 * 10**6, 2 * 10**6)
    assert step.programs == pytest.approx(10**6, rel=0.05)
    (step,) = forecast(group, oracle, lambda c: str(c.integer("a") % 2)).after
    assert step.programs == 2 * 10**6 // 1000


def test_where_a_sample_finds_nothing_legal_the_one_that_is_held_still_counts():
    oracle = FakeOracle(
        illegal=lambda c: "" if (c["a"], c["b"], c["c"]) == (0, 0, 0) else "alone", derive=lambda c: {"half": 0}
    )
    plan = forecast(large(5, "random"), oracle)
    assert [step.enqueues > 0 for step in plan.after] == [False, True, False, True]
    assert plan.after[-1].survivors == 1
