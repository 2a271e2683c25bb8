"""A logic made from a table of times: the solution for each size, and its regret."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith.logic import FinalTable, Logic, Origin, Rule, TableCell
from tunesmith.logic.build import build, merge
from tunesmith.logic.cover import cover
from tunesmith.records import Configuration, Estimate, Outcome, Problem, ProblemType, Solution

GEMM = ProblemType("GEMM", "Cijk_Ailk_Bljk_SB", ("M", "N", "Batch", "K"), Configuration({"DataType": "s"}))
ORIGIN = Origin("fake", "a fake device", "CPU", "none", "1.0", "compiler 1", "0.1.0", "2026-11-20T12:00:00Z")


def solution(tile):
    return Solution(GEMM, "tiled", Configuration({"Tile": tile}))


def problem(size):
    return Problem(GEMM, (size, size, 1, size))


def ok(seconds, count=7):
    return TableCell(Outcome.OK, estimate=Estimate(seconds, seconds * 0.9, seconds * 1.1, count))


def table(times, count=7):
    """A table from seconds by size, one for each of the solutions 0, 1, ...; None for a solution that does not run."""
    problems = tuple(map(problem, times))
    solutions = tuple(solution(tile) for tile in range(len(next(iter(times.values())))))
    cells = {
        (problem(size), solution(tile)): TableCell(Outcome.REJECTED, "too small") if time is None else ok(time, count)
        for size, line in times.items()
        for tile, time in enumerate(line)
    }
    return FinalTable(GEMM, problems, tuple(2.0 * size**3 for size in times), solutions, cells)


def tiles(logic):
    return [named.solution.configuration.integer("Tile") for named in logic.document.solutions]


def chosen(logic, size):
    return logic.choose((size, size, 1, size)).solution.configuration.integer("Tile")


def test_each_measured_size_gets_its_fastest():
    logic = build([table({64: [1.0, 2.0], 512: [9.0, 4.0]})], ORIGIN)
    assert (chosen(logic, 64), chosen(logic, 512)) == (0, 1)
    row = logic.document.rows[0]
    assert (row.estimate.seconds, row.estimate.low, row.estimate.count) == (1.0, 0.9, 7)
    assert (row.others, logic.document.rows[1].others) == ({1: 2.0}, {0: 9.0})
    assert row.rate == pytest.approx(2 * 64**3 / 1e9, rel=1e-5)


def test_the_protocols_winner_stands_where_it_is_not_the_fastest():
    """In a tie the incumbent wins. The protocol knows the incumbent, the table does not."""
    final_table = table({64: [1.0, 1.001], 512: [1.0, 2.0]})
    logic = build([replace(final_table, decided={problem(64): (solution(1), solution(0))})], ORIGIN)
    assert (chosen(logic, 64), chosen(logic, 512)) == (1, 0)
    assert [row.ties for row in logic.document.rows] == [(0,), ()], "what could not be told from it stands beside it"


def test_what_is_not_kept_or_did_not_run_there_stands_beside_no_winner():
    """Solution 2 wins nowhere. Solution 1 wins at the other size, and did not run at this size."""
    final_table = table({64: [1.0, None, 1.001], 512: [2.0, 1.0, 3.0]})
    decided = {problem(64): (solution(0), solution(1), solution(2))}
    logic = build([replace(final_table, decided=decided)], ORIGIN)
    assert tiles(logic) == [0, 1]
    assert [row.ties for row in logic.document.rows] == [(), ()]


def test_a_winner_that_did_not_run_there_is_not_believed():
    final_table = replace(table({64: [1.0, None]}), decided={problem(64): (solution(1),)})
    logic = build([final_table], ORIGIN)
    assert chosen(logic, 64) == 0


def test_only_what_is_chosen_somewhere_is_kept_and_the_fallback():
    """Solution 2 wins nowhere, but only solution 2 runs everywhere."""
    logic = build([table({64: [1.0, None, 3.0, 9.0], 512: [None, 1.0, 2.0, 9.0]})], ORIGIN)
    assert tiles(logic) == [0, 1, 2]
    assert tiles(logic)[logic.document.fallback] == 2


def test_the_fallback_is_the_best_geomean_among_those_that_run_everywhere():
    # Geometric mean of the loss: 2 for solution 1, sqrt(1.5 * 1.5) for solution 2; solution 0 misses a size.
    logic = build([table({64: [1.0, 1.5, 1.5], 512: [None, 4.0, 1.5], 2048: [1.0, 2.0, 3.0]})], ORIGIN)
    assert tiles(logic)[logic.document.fallback] == 2


def test_a_fallback_is_judged_only_at_the_sizes_where_it_ran():
    """Each runs at two sizes. Solution 1 is the fastest at both of its sizes, of which one is a very long product."""
    logic = build([table({64: [1.0, None], 512: [2.0, 1.0], 2048: [None, 100.0]})], ORIGIN)
    assert tiles(logic)[logic.document.fallback] == 1


def test_a_fallback_that_runs_at_more_sizes_comes_before_a_faster_one():
    logic = build([table({64: [1.0, 3.0], 512: [1.0, 3.0], 2048: [None, 3.0]})], ORIGIN)
    assert tiles(logic)[logic.document.fallback] == 1


def test_a_fallback_that_is_legal_anywhere_need_not_have_run_twice():
    logic = build([table({64: [1.0, 2.0], 512: [1.0, None]})], ORIGIN, general=lambda s: s == solution(1))
    assert tiles(logic)[logic.document.fallback] == 1


def test_a_fallback_that_is_legal_anywhere_but_ran_nowhere_is_none():
    logic = build([table({64: [1.0, None], 512: [2.0, None]})], ORIGIN, general=lambda s: s == solution(1))
    assert tiles(logic) == [0]


def test_a_size_without_any_work_has_no_rate():
    final_table = replace(table({64: [1.0], 512: [2.0]}), work=(0.0, 4e9))
    assert [row.rate for row in build([final_table], ORIGIN).document.rows] == [0.0, 2.0]


def test_a_fallback_that_is_legal_anywhere_comes_before_a_faster_one_that_is_not():
    final_table = table({64: [1.0, 2.0], 512: [1.0, 2.0]})
    logic = build([final_table], ORIGIN, general=lambda s: s == solution(1))
    assert tiles(logic)[logic.document.fallback] == 1
    assert chosen(logic, 64) == 0


def test_sizes_at_which_nothing_ran_are_left_out():
    logic = build([table({64: [1.0, 2.0], 512: [None, None]})], ORIGIN)
    assert [row.sizes[0] for row in logic.document.rows] == [64]
    with pytest.raises(ValueError, match="nothing ran"):
        build([table({64: [None]})], ORIGIN)


def test_leave_one_out_regret_is_that_of_what_the_other_sizes_say():
    """64 and 128 are 1.7 apart and speak to each other. To 4096 they are 10.4 and 8.7 away and speak alike: 128,
    the nearer, says that solution 0 takes twice as long, 64 that solution 1 takes three times. Worked out by hand."""
    logic = build([table({64: [1.0, 3.0], 128: [2.0, 1.0], 4096: [1.0, 1.5]})], ORIGIN)
    regret = logic.document.regret
    assert regret is not None
    assert dict(regret.sizes) == {(64, 64, 1, 64): 3.0, (128, 128, 1, 128): 2.0, (4096, 4096, 1, 4096): 1.0}
    assert regret.geomean == pytest.approx(6.0 ** (1 / 3), rel=1e-5)
    assert (regret.worst, regret.worst_at) == (3.0, (64, 64, 1, 64))
    assert "3.000 at 64x64x1x64" in str(regret)


def test_regret_asks_the_next_where_the_nearest_does_not_run():
    logic = build([table({64: [1.0, None, 4.0], 128: [9.0, 1.0, 9.0], 4096: [9.0, 9.0, 1.0]})], ORIGIN)
    regret = logic.document.regret
    assert regret is not None
    assert dict(regret.sizes)[64, 64, 1, 64] == 4.0, "solution 1, of size 128, does not run at 64; solution 2 does"


def test_one_size_has_no_regret():
    assert build([table({64: [1.0]})], ORIGIN).document.regret is None


times = st.lists(st.lists(st.none() | st.floats(0.5, 8.0), min_size=3, max_size=3), min_size=2, max_size=6)


@settings(max_examples=80, deadline=None)
@given(times)
def test_regret_is_what_a_logic_built_without_the_size_would_lose(lines):
    """The fast computation with one set of neighbours agrees with logics that are built without each size."""
    final_table = {
        2 ** (5 + 2 * index): [1.0 if all(t is None for t in line) else line[0], *line[1:]]
        for index, line in enumerate(lines)
    }
    whole = build([table(final_table)], ORIGIN)
    regret = whole.document.regret
    assert regret is not None
    for size, line in final_table.items():
        others = Logic(_without(whole, size))
        answers = [c.solution.configuration.integer("Tile") for c in others.candidates((size, size, 1, size))]
        ran = [line[tile] for tile in answers if line[tile] is not None]
        expected = (ran[0] if ran else math.inf) / min(t for t in line if t is not None)
        assert dict(regret.sizes)[size, size, 1, size] == pytest.approx(expected, rel=1e-4)


def _without(logic, size):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    rows = tuple(row for row in logic.document.rows if row.sizes[0] != size)
    return replace(logic.document, rows=rows)


class TestMerging:
    def test_size_groups_become_one_logic_with_equal_solutions_as_one(self):
        first, second = table({64: [1.0, 2.0]}), table({512: [4.0, 1.0], 1024: [1.0, 3.0]})
        logic = build([first, second], ORIGIN)
        assert tiles(logic) == [0, 1]
        assert [chosen(logic, size) for size in (64, 512, 1024)] == [0, 1, 0]

    def test_of_two_times_of_a_cell_the_better_sampled_stays_not_the_faster(self):
        lucky, careful = table({64: [1.0]}, count=3), table({64: [2.0]}, count=30)
        for order in ([lucky, careful], [careful, lucky]):
            time = merge(order).time(problem(64), solution(0))
            assert time is not None
            assert time.seconds == 2.0

    def test_a_time_stays_before_a_reason(self):
        failed = table({64: [None]})
        for ran in (table({64: [2.0]}), table({64: [2.0]}, count=0)):
            for order in ([failed, ran], [ran, failed]):
                assert merge(order).time(problem(64), solution(0)) is not None

    def test_of_two_times_with_as_many_samples_the_first_stays(self):
        for first, second in ((1.0, 2.0), (2.0, 1.0)):
            time = merge([table({64: [first]}), table({64: [second]})]).time(problem(64), solution(0))
            assert time is not None
            assert time.seconds == first

    def test_tables_of_two_types_are_refused(self):
        other = ProblemType("GEMM", "another", GEMM.indices, GEMM.fields)
        with pytest.raises(ValueError, match="one problem type"):
            merge([table({64: [1.0]}), FinalTable(other, (), (), (), {})])


class TestTolerance:
    def test_a_solution_that_wins_by_a_hair_is_left_out(self):
        final_table = table({64: [1.0, 1.005], 128: [2.0, 1.0], 512: [3.0, 1.0]})
        assert tiles(build([final_table], ORIGIN)) == [0, 1]
        pruned = build([final_table], ORIGIN, tolerance=0.01)
        assert tiles(pruned) == [1]
        assert chosen(pruned, 64) == 1

    def test_a_solution_that_is_needed_stays(self):
        pruned = build([table({64: [1.0, 1.5], 128: [2.0, 1.0]})], ORIGIN, tolerance=0.1)
        assert tiles(pruned) == [0, 1]

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.lists(st.floats(1.0, 2.0) | st.just(math.inf), min_size=4, max_size=4), min_size=1, max_size=5),
        st.floats(0.001, 0.8),
    )
    def test_the_cover_is_a_smallest_one(self, lines, tolerance):
        matrix = np.array([line if min(line) < math.inf else [1.0, *line[1:]] for line in lines])
        enough = matrix <= matrix.min(axis=1, keepdims=True) * (1 + tolerance)
        sizes = [
            count
            for count in range(1, 5)
            if any(enough[:, list(c)].any(axis=1).all() for c in itertools.combinations(range(4), count))
        ]
        kept = cover(matrix, tolerance)
        assert enough[:, kept].any(axis=1).all()
        assert len(kept) == sizes[0]


def test_a_measured_size_answers_by_the_exact_rule_with_its_own_time():
    choice = build([table({64: [1.0, 2.0], 512: [9.0, 4.0]})], ORIGIN).choose((512, 512, 1, 512))
    assert (choice.rule, choice.expected_seconds, choice.distance) == (Rule.EXACT, 4.0, 0.0)
