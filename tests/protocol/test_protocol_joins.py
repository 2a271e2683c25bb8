"""Joins in the protocol."""

from __future__ import annotations

import pytest

from protocol_fakes import (
    LEGAL,
    TILED,
    Exact,
    FakeOracle,
    benchmark,
    by,
    final,
    fork,
    join,
    kept,
    phases,
    same,
    size,
    tiles,
)
from tunesmith.protocol import Objective, Phase, run
from tunesmith.records import UserError


@pytest.mark.parametrize(
    ("names", "depths", "survivors"),
    [(("MacroTile",), [8], 5), (("Depth",), [8, 16], 2), (("MacroTile", "Depth"), [8, 16], 10), ((), [8, 16], 1)],
)
def test_a_join_keeps_one_lineage_for_each_combination_of_its_names(names, depths, survivors):
    result = run(tiles(join(*names), final(), depths=depths), Exact(same), TILED)
    assert len(result.survivors) == survivors


def test_tiles_of_four_sizes_at_two_depths_join_to_eight():
    start = {"WorkGroup": (16, 16, 1), "ThreadTile": (4, 4), "Depth": 8}
    forked = fork(WorkGroup=[(16, 16, 1), (8, 32, 1)], ThreadTile=[(4, 4), (8, 8)], Depth=[8, 16])
    result = run(phases(start, forked, join("MacroTile", "Depth")), Exact(same), TILED)
    assert len(result.survivors) == 8


def test_without_a_join_every_fork_survives():
    assert len(run(tiles(final()), Exact(same), TILED).survivors) == 9


def test_a_join_keeps_the_fastest_of_each_and_the_first_of_equals():
    measure = by({(1, "x"): 3.0, (2, "x"): 2.0, (1, "y"): 4.0, (2, "y"): 4.0}, "a", "kind")
    group = phases({"a": 1, "kind": "x", "b": 1}, fork(a=[1, 2], kind=["x", "y"]), benchmark(b=[1, 2]), join("kind"))
    assert kept(run(group, measure, LEGAL), "a", "kind") == [(2, "x"), (1, "y")]


def test_a_join_goes_by_the_winners_of_the_last_step():
    """Lineage 1 is ahead with b = 1, lineage 2 is ahead after b is tuned."""
    measure = by({(1, 1): 1.0, (1, 2): 9.0, (2, 1): 2.0, (2, 2): 0.5}, "a", "b")
    assert kept(
        run(phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(b=[1, 2]), join()), measure, LEGAL), "a", "b"
    ) == [(2, 2)]


def test_a_join_weighs_the_sizes_of_the_last_step_alike():
    """1.5 times slower on the long size and twice as fast on the short one: geomean and total_time disagree."""
    times = {(1, 1): 2.0, (1, 2): 100.0, (2, 1): 1.0, (2, 2): 150.0}
    measure = Exact(lambda c, p: times[c.integer("a"), p.sizes[0]])

    def winner(objective):
        group = phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(on=(1, 2), b=[1, 2]), join(), objective=objective)
        return kept(run(group, measure, LEGAL), "a")

    assert winner(Objective.GEOMEAN) == [(2,)]
    assert winner(Objective.TOTAL_TIME) == [(1,)]


def test_a_join_prefers_the_lineage_that_ran_on_every_size():
    times = {(1, 1): 1.0, (2, 1): 5.0, (2, 2): 5.0}
    measure = Exact(lambda c, p: times.get((c.integer("a"), p.sizes[0])))
    group = phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(on=(1, 2), b=[1, 2]), join())
    assert kept(run(group, measure, LEGAL), "a") == [(2,)]


def test_a_join_measures_first_where_nothing_was_measured_since_the_fork():
    measure = by({(0, 1): 1.0, (0, 2): 1.0, (1, 1): 3.0, (1, 2): 2.0}, "edge", "a")
    group = phases(
        {"edge": 1, "a": 1}, benchmark(Phase.COMMON, edge=[0, 1]), fork(a=[1, 2]), join("edge", on=(7,)), final()
    )
    result = run(group, measure, LEGAL)
    groups, problems, racing = measure.screens[1]
    assert ([c["a"] for g in groups for c in g], problems, racing) == ([1, 2], [size(7)], True)
    assert len(groups) == 1, "lineages that a join chooses between race each other"
    assert kept(result, "a") == [(1,)]


def test_a_join_does_not_measure_what_was_measured():
    measure = Exact(same)
    run(phases({"a": 1, "b": 1}, fork(a=[1, 2]), benchmark(b=[1, 2]), join("a")), measure, LEGAL)
    assert len(measure.screens) == 1


def test_a_join_that_measures_defers_and_drops_as_a_step_does():
    oracle = FakeOracle(illegal=lambda c: "no" if c["a"] == 3 or (c["a"] == 2 and c["late"] == 0) else "")
    group = phases({"a": 1, "late": 0}, fork(a=[1, 2, 3]), join("a"), benchmark(Phase.BENCHMARK_JOIN, late=[4, 5]))
    result = run(group, Exact(same), oracle)
    assert [dict(t.proposal.substituted) for t in result.steps[1].trials] == [{}, {"late": 4}, {}]
    assert [d.lineage.fixed["a"] for d in result.dropped] == [3]
    assert kept(result, "a", "late") == [(1, 4), (2, 4)]


def test_survivors_of_a_join_are_tuned_each_by_itself():
    best = {1: 8, 2: 16}
    measure = Exact(lambda c, p: 1.0 if c["unroll"] == best[c.integer("a")] else 2.0)
    group = phases(
        {"a": 1, "b": 1, "unroll": 8}, fork(a=[1, 2]), benchmark(b=[1, 2]), join("a"),
        benchmark(Phase.BENCHMARK_JOIN, unroll=[8, 16]), final(),
    )  # fmt: skip
    assert kept(run(group, measure, LEGAL), "a", "unroll") == [(1, 8), (2, 16)]


def test_an_unknown_name_in_a_join_stops_before_anything_is_measured():
    measure = Exact(same)
    with pytest.raises(UserError, match="NoSuchTile"):
        run(tiles(join("NoSuchTile"), final()), measure, TILED)
    assert not measure.screens


def test_a_derived_value_goes_before_a_parameter_of_its_name():
    """DepthU is the kernel's derived value, not the value in the file."""
    oracle = FakeOracle(derive=lambda c: {"DepthU": c.integer("LoopUnroll") * 2})
    group = phases({"DepthU": 0, "LoopUnroll": 4}, fork(LoopUnroll=[4, 8]), join("DepthU"))
    assert len(run(group, Exact(same), oracle).survivors) == 2
