"""Lineages, determined parameters, deferral, forks and the final step in the protocol."""

from __future__ import annotations

from zlib import crc32

import pytest

from protocol_fakes import (
    LEGAL,
    TILED,
    Exact,
    FakeOracle,
    benchmark,
    by,
    choices,
    final,
    fork,
    join,
    kept,
    phases,
    same,
    size,
    sizes,
    tiles,
)
from tunesmith.protocol import (
    NOTHING_RAN,
    Benchmark,
    Lineage,
    Objective,
    Phase,
    StepResult,
    candidates,
    run,
    step_names,
)
from tunesmith.records import Configuration, UserError

# Lineages and determined parameters


def test_each_fork_keeps_its_own_winner():
    """A common step comes first: after it, Tensile shared one dict of winners among all forks."""
    best = {16: 4, 64: 8, 256: 4}
    measure = Exact(lambda c, p: 1.0 if c["width"] == best[c.integer("tile")] else 2.0)
    group = phases(
        {"edge": 0, "tile": 16, "width": 1},
        benchmark(Phase.COMMON, edge=[0, 1]),
        fork(tile=[16, 64, 256]),
        benchmark(width=[4, 8]),
        final(),
    )
    assert kept(run(group, measure, LEGAL), "tile", "width") == [(16, 4), (64, 8), (256, 4)]


def test_a_winner_is_what_later_steps_are_measured_with():
    """A parameter before its own step is measured with its initial value."""
    measure = by({(a, b): 1.0 + (a != 2) + (b != 20) for a in (1, 2) for b in (5, 10, 20)}, "a", "b")
    group = phases({"a": 1, "b": 5}, benchmark(a=[1, 2]), benchmark(b=[10, 20]), final())
    run(group, measure, LEGAL)
    asked = [[(c["a"], c["b"]) for c in groups[0]] for groups, _, _ in measure.screens]
    assert asked == [[(1, 5), (2, 5)], [(2, 10), (2, 20)], [(2, 20)]]


def test_several_parameters_in_one_step_have_one_winner():
    measure = by({(1, 1): 2.0, (2, 1): 3.0, (1, 2): 3.0, (2, 2): 1.0}, "a", "b")
    assert kept(run(phases({"a": 1, "b": 1}, benchmark(a=[1, 2], b=[1, 2]), final()), measure, LEGAL), "a", "b") == [
        (2, 2)
    ]


def test_the_last_word_on_a_parameter_is_the_latest_step():
    measure = by({(1, 1): 1.0, (2, 1): 2.0, (1, 2): 4.0, (2, 2): 3.0}, "a", "b")
    group = phases({"a": 1, "b": 1}, benchmark(a=[1, 2]), fork(b=[2]), benchmark(a=[1, 2]), final())
    assert kept(run(group, measure, LEGAL), "a", "b") == [(2, 2)]


def test_a_second_pass_finds_what_one_pass_cannot():
    """`a` was settled under b = 1; under b = 2, which only then turns out to be better, another `a` is."""
    measure = by({(1, 1): 2.0, (2, 1): 3.0, (1, 2): 1.5, (2, 2): 1.0}, "a", "b")
    one_pass = [benchmark(a=[1, 2]), benchmark(b=[1, 2])]
    start = {"a": 1, "b": 1}
    assert kept(run(phases(start, *one_pass, final()), measure, LEGAL), "a", "b") == [(1, 2)]
    assert kept(run(phases(start, *one_pass, *one_pass, final()), measure, LEGAL), "a", "b") == [(2, 2)]


def test_all_lineages_of_a_step_are_asked_for_in_one_call_and_race_apart():
    measure = Exact(same)
    run(phases({"a": 1, "b": 1}, fork(a=[1, 2, 3]), benchmark(b=[1, 2]), final()), measure, LEGAL)
    (groups, _, racing), (last, _, racing_last) = measure.screens
    assert [[(c["a"], c["b"]) for c in group] for group in groups] == [
        [(1, 1), (1, 2)],
        [(2, 1), (2, 2)],
        [(3, 1), (3, 2)],
    ]
    assert (racing, racing_last) == (True, False)
    assert len(last) == 1


# What cannot run


def test_illegal_candidates_are_left_out_with_their_reasons():
    oracle = FakeOracle(illegal=lambda c: "too wide" if c.integer("a") > 2 else "")
    measure = Exact(same)
    step, _ = run(phases({"a": 1}, benchmark(a=[1, 2, 3, 4]), final()), measure, oracle).steps
    assert step.rejected == {"too wide": 2}
    assert [c["a"] for c in measure.screens[0][0][0]] == [1, 2]


def test_a_candidate_that_no_size_admits_is_illegal_and_one_that_some_size_admits_is_not():
    oracle = FakeOracle(illegal_for=lambda c, p: "too small" if p.sizes[0] < c.integer("a") else "")
    step = run(phases({"a": 1}, benchmark(on=(1, 2), a=[1, 2, 3])), Exact(same), oracle).steps[0]
    assert step.rejected == {"too small": 1}
    assert [c["a"] for c in step.trials[0].proposal.configurations] == [1, 2]


def test_configurations_that_are_one_solution_are_measured_once_and_the_first_stands_for_all():
    oracle = FakeOracle(same=lambda c: (c["a"], c["b"] if c["a"] == 2 else "whatever b is"))
    measure = Exact(same)
    step = run(phases({"a": 2, "b": 1}, benchmark(a=[1, 2], b=[1, 2])), measure, oracle).steps[0]
    assert [(c["a"], c["b"]) for c in measure.screens[0][0][0]] == [(1, 1), (2, 1), (2, 2)]
    assert [(config["b"], original["b"]) for config, original in step.trials[0].proposal.duplicates] == [(2, 1)]


def test_one_solution_in_two_lineages_is_asked_for_once_and_serves_both():
    oracle = FakeOracle(same=lambda c: c["b"])
    measure = by({(1,): 2.0, (2,): 1.0}, "b")
    result = run(phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(b=[1, 2])), measure, oracle)
    assert {c["a"] for group in measure.screens[0][0] for c in group} == {1}
    assert result.steps[1].cells == 2
    assert kept(result, "a", "b") == [(1, 2), (2, 2)]


def test_survivors_that_are_one_solution_are_one_column():
    oracle = FakeOracle(same=lambda c: "one")
    result = run(phases({"a": 1}, fork(a=[1, 2]), final()), Exact(same), oracle)
    assert kept(result, "a") == [(1,)]
    assert not result.dropped


def test_a_lineage_of_which_nothing_ran_is_dropped_and_its_sisters_go_on():
    measure = by({(2, 1): 1.0, (2, 2): 2.0}, "a", "b")
    result = run(phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(b=[1, 2]), final()), measure, LEGAL)
    assert kept(result, "a", "b") == [(2, 1)]
    assert [(d.step, d.lineage.fixed["a"], d.rejection.reason) for d in result.dropped] == [("02_BF_b", 1, NOTHING_RAN)]


def test_when_no_lineage_is_left_the_run_still_ends_with_its_reasons():
    oracle = FakeOracle(illegal=lambda c: "never")
    measure = Exact(same)
    result = run(phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(b=[1, 2]), join("a"), final()), measure, oracle)
    assert (result.survivors, measure.screens, len(result.dropped), len(result.steps)) == ((), [], 2, 4)


# Deferral


def test_a_parameter_tuned_later_takes_its_first_legal_value_where_the_initial_one_is_illegal():
    """The parameter is tuned as usual in its own step."""
    oracle = FakeOracle(illegal=lambda c: "tile too big" if c["tile"] == 256 and c.integer("unroll") < 16 else "")
    measure = Exact(lambda c, p: 100.0 / c.integer("unroll") + c.integer("loads"))
    group = phases(
        {"tile": 64, "loads": 1, "unroll": 4},
        fork(tile=[64, 256]),
        benchmark(loads=[1, 2]),
        benchmark(Phase.BENCHMARK_JOIN, unroll=[8, 16, 32]),
        final(),
    )
    result = run(group, measure, oracle)
    assert [(c["tile"], c["unroll"]) for g in measure.screens[0][0] for c in g] == [
        (64, 4),
        (64, 4),
        (256, 16),
        (256, 16),
    ]
    assert kept(result, "tile", "loads", "unroll") == [(64, 1, 32), (256, 1, 32)]
    assert [dict(t.proposal.substituted) for t in result.steps[1].trials] == [{}, {"unroll": 16}]
    assert any("unroll=16" in note for note in result.steps[1].notes)
    assert not result.steps[1].rejected
    assert not result.dropped


def test_a_substitute_stays_until_its_own_step():
    oracle = FakeOracle(illegal=lambda c: "no" if c["late"] == 0 else "")
    measure = Exact(same)
    group = phases(
        {"a": 0, "b": 0, "late": 0}, benchmark(a=[0, 1]), benchmark(b=[0, 1]), benchmark(late=[3, 5]), final()
    )
    result = run(group, measure, oracle)
    assert [{c["late"] for g in groups for c in g} for groups, _, _ in measure.screens] == [{3}, {3}, {3, 5}, {3}]
    assert [bool(step.trials[0].proposal.substituted) for step in result.steps] == [True, False, False, False]


def test_single_parameters_are_substituted_before_pairs_and_the_first_of_a_pair_moves_fastest():
    def needs(*legal):
        oracle = FakeOracle(illegal=lambda c: "" if (c["x"], c["y"]) in legal else "no")
        group = phases({"a": 0, "x": 0, "y": 0}, benchmark(a=[0, 1]), benchmark(x=[1, 2]), benchmark(y=[1, 2, 3]))
        trial = run(group, Exact(same), oracle).steps[0].trials[0]
        return [tuple(trial.proposal.substituted.items())]

    assert needs((0, 1), (1, 1), (1, 0)) == [(("x", 1),)]
    assert needs((0, 2), (1, 1)) == [(("y", 2),)]
    assert needs((1, 2), (2, 1), (2, 2)) == [(("x", 2), ("y", 1))]
    assert needs((2, 3), (1, 3)) == [(("x", 1), ("y", 3))]


def test_a_parameter_without_a_step_to_come_is_not_substituted():
    """`a` is settled already, and no step tunes `b`: the lineage is dropped with the reason."""
    oracle = FakeOracle(illegal=lambda c: "clash" if c["a"] == c["c"] else "")
    measure = by({(1, 3): 1.0, (2, 3): 2.0}, "a", "c")
    group = phases({"a": 2, "b": 0, "c": 3}, benchmark(a=[1, 2]), benchmark(c=[1]), final())
    result = run(group, measure, oracle)
    assert [(d.step, d.rejection.reason) for d in result.dropped] == [("02_BF_c", "clash")]


def test_a_forked_value_is_not_lost_to_a_substitute():
    oracle = FakeOracle(illegal=lambda c: "no" if c["tile"] == 0 else "")
    group = phases({"edge": 0, "tile": 0}, benchmark(Phase.COMMON, edge=[0, 1]), fork(tile=[5, 6]), final())
    assert kept(run(group, Exact(same), oracle), "tile") == [(5,), (6,)]


def test_a_hopeless_lineage_costs_bounded_patience():
    questions = 0

    def never(config):
        nonlocal questions
        questions += 1
        return "never"

    many = {f"p{i}": list(range(1, 9)) for i in range(8)}
    later = [Benchmark(Phase.BENCHMARK_FORK, choices({name: values}), sizes(1)) for name, values in many.items()]
    group = phases({"a": 0} | dict.fromkeys(many, 0), benchmark(a=[0, 1]), *later)
    result = run(group, Exact(same), FakeOracle(illegal=never))
    assert questions < 50_000
    assert "no substitute found" in result.dropped[0].rejection.detail


def test_a_lineage_is_dropped_for_the_most_frequent_reason_with_its_first_example():
    reasons = {0: "rare", 1: "often", 2: "often", 3: "as often", 4: "as often"}
    oracle = FakeOracle(illegal=lambda c: reasons[c.integer("a")])
    (dropped,) = run(phases({"a": 0}, benchmark(a=list(reasons))), Exact(same), oracle).dropped
    assert (dropped.rejection.reason, dropped.rejection.detail) == ("often", str(Configuration({"a": 1})))


@pytest.mark.parametrize(("most", "candidates_listed"), [(4, [0, 1, 3]), (5, [0, 1, 3]), (3, [0])])
def test_choices_are_all_examined_up_to_the_number_that_may_be_listed(most, candidates_listed, monkeypatch):
    """Four choices, of which one is illegal. Of more than may be listed, the search tries the incumbent, and asks for
    the others itself."""
    monkeypatch.setattr(candidates, "LARGEST_LISTED", most)
    oracle = FakeOracle(illegal=lambda c: "even" if c["a"] == 2 else "")
    four, problems = choices({"a": [0, 1, 2, 3]}), sizes(1)
    proposal = candidates.propose(Lineage(Configuration({"a": 0})), [], four, problems, oracle)
    assert [config["a"] for config in proposal.configurations] == candidates_listed
    assert [rejection.reason for _, rejection in proposal.rejected] == (["even"] if most > 3 else [])
    searched = candidates.candidates_of(proposal, four, problems, oracle)
    assert [config["a"] for config in searched] == (candidates_listed if most > 3 else [0, 1, 2, 3])
    assert [searched.legal(config) for config in searched] == ([True] * 3 if most > 3 else [True, True, False, True])
    assert [config["a"] for config in searched.first] == [0]


@pytest.mark.parametrize(
    ("patience", "tries", "gave_up"), [(6, 6, True), (7, 9, True), (30, 30, True), (31, 30, False), (1, 3, True)]
)
def test_substitutes_are_tried_until_patience_is_used_up_or_none_is_left(patience, tries, gave_up, monkeypatch):
    """The step has three candidates, none of which is legal with any of the later parameter's ten values."""
    monkeypatch.setattr(candidates, "PATIENCE", patience)
    questions = []
    oracle = FakeOracle(illegal=lambda c: questions.append(c) or "never")
    group = phases({"a": 0, "late": 0}, benchmark(a=[0, 1, 2]), benchmark(late=list(range(10))))
    (dropped,) = run(group, Exact(same), oracle).dropped
    assert len(questions) == tries
    assert dropped.rejection.detail.endswith(f"(no substitute found in {tries} tries)") == gave_up


# The final step


def test_the_final_step_measures_every_survivor_on_every_problem_and_names_each_winner():
    times = {(1, 1): 1.0, (1, 2): 5.0, (2, 1): 2.0, (2, 2): 3.0, (2, 3): 1.0}
    measure = Exact(lambda c, p: times.get((c.integer("a"), p.sizes[0])))
    result = run(phases({"a": 1}, fork(a=[1, 2]), final(1, 2, 3, 4)), measure, LEGAL)
    assert {p.sizes[0]: d.winner["a"] for p, d in result.decisions.items()} == {1: 1, 2: 2, 3: 2}
    assert len(result.table.cells) == 5
    assert len(result.survivors) == 2


def test_the_final_step_confirms_only_what_is_close_problem_by_problem():
    times = {(1, 1): 1.0, (1, 2): 2.0, (2, 1): 1.0, (2, 2): 3.0, (3, 1): 5.0, (3, 2): 5.0}
    measure = Exact(lambda c, p: times[c.integer("a"), p.sizes[0]])
    result = run(phases({"a": 1}, fork(a=[1, 2, 3]), final(1, 2)), measure, LEGAL)
    assert [([c["a"] for c in configs], problems) for configs, problems in measure.confirms] == [([1, 2], [size(1)])]
    tied = result.decisions[size(1)]
    assert (tied.winner["a"], [c["a"] for c in tied.ties]) == (1, [2])
    assert set(result.table.paired) == {(config, size(1)) for config in measure.confirms[0][0]}


# Around it


def test_steps_are_numbered_named_and_observed_as_they_end():
    observed: list[StepResult] = []
    group = tiles(join("MacroTile"), benchmark(Phase.BENCHMARK_JOIN, Depth=[8, 16], loads=[1, 2]), final())
    result = run(group, Exact(same), TILED, observed.append)
    assert [step.name for step in observed] == [
        "01_Fork_WorkGroup_ThreadTile_Depth",
        "02_BF_loads",
        "03_Join_MacroTile",
        "04_BJ_Depth_loads",
        "05_Final",
    ]
    assert tuple(observed) == result.steps
    assert [len(step.after) for step in observed] == [9, 9, 5, 5, 5]


def test_a_step_of_many_parameters_is_named_after_the_first_of_them():
    """The step's name is used as a file name, which may have 255 bytes."""
    many = {f"Parameter{number}": [1] for number in range(30)}
    assert step_names(phases(dict.fromkeys(many, 1), benchmark(**many))) == (
        "01_BF_Parameter0_Parameter1_Parameter2_and_27_more",
    )


def test_the_same_measurements_give_the_same_result_and_ask_for_nothing_else():
    """A run that was killed and started again relies on this."""
    group = tiles(join("MacroTile"), benchmark(Phase.BENCHMARK_JOIN, Depth=[8, 16]), final(1, 2, 3))
    measures = [Exact(lambda c, p: 1.0 + crc32(f"{c} {p}".encode()) % 3) for _ in range(2)]
    first, second = (run(group, measure, TILED) for measure in measures)
    assert first == second
    assert measures[0].screens == measures[1].screens
    assert measures[0].confirms == measures[1].confirms


def test_the_objective_max_needs_work():
    group = phases({"a": 1}, benchmark(a=[1, 2]), objective=Objective.MAX)
    with pytest.raises(UserError, match="FLOP"):
        run(group, Exact(same), FakeOracle(flops=lambda problem: 0.0))
