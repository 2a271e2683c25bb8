"""The judge's figures on matrices small enough to work out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tunesmith.models.intensity.distance import distance, same_tile
from tunesmith.models.intensity.scoring import (
    TimeMatrix,
    best_of_first,
    clustered_interval,
    scored,
    scored_by,
    scored_column,
)
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem, Solution

PROBLEM_TYPE = gemm_type("s", transpose_b=False)
SHAPES = ((1, 1), (1, 1, 2), (1, 1, 4), (1, 2))
"""Clusters of one work-group, of two and four along K, and of two along N."""


def solution(tile, kernel="TiledGemm", **more):
    return Solution(PROBLEM_TYPE, kernel, Configuration({"Tile": (tile, tile), "Depth": 16, **more}))


SMALL, MEDIUM, LARGE, VENDOR = solution(16), solution(64), solution(256), solution(0, "VendorBlas")
NAN = math.nan
MATRIX = TimeMatrix(
    tuple(Problem(PROBLEM_TYPE, (size, size, size)) for size in (64, 128, 256, 512)),
    ("toy", "toy", "other", "other"),
    (SMALL, MEDIUM, LARGE, VENDOR),
    np.array([[1.0, 2.0, NAN, 4.0], [1.0, 1.0, 2.0, 2.0], [4.0, 2.0, 1.0, 2.0], [8.0, 4.0, 1.0, 0.5]]),
)


def score(*choices):
    return scored(MATRIX, choices)


def test_efficiency_is_the_best_time_over_that_of_the_choice():
    result = score(MEDIUM, MEDIUM, MEDIUM, MEDIUM)
    assert result.efficiencies.tolist() == [0.5, 1.0, 0.5, 0.125]
    assert result.geomean == pytest.approx(2 ** (-5 / 4))
    assert (result.worst, result.good, result.unmeasured, result.unanswered) == (0.125, 0.25, 0.0, 0)
    assert result.percentile_10 == pytest.approx(0.125 + 0.3 * (0.5 - 0.125)), "between the first and second"


def test_an_unmeasured_choice_is_scored_by_its_neighbour_of_the_same_kernel():
    """48 is 0.42 doublings from 64 and 1.58 from 16, in both directions of the tile."""
    pick = scored_column(solution(48), MATRIX, 0)
    assert pick is not None
    assert (pick.column, pick.is_measured) == (1, False)
    assert distance(solution(48), MEDIUM) == pytest.approx(2 * math.log2(64 / 48))
    assert scored_column(solution(48), MATRIX, 0, by_neighbour=False) is None
    result = score(solution(48), SMALL, SMALL, SMALL)
    assert result.unmeasured == 0.25
    assert result.efficiencies[0] == 0.5


def test_a_choice_that_did_not_run_on_a_problem_is_scored_by_a_neighbour_that_ran():
    pick = scored_column(LARGE, MATRIX, 0)
    assert pick is not None
    assert (pick.column, pick.is_measured) == (1, False)


def test_a_choice_that_is_known_to_have_failed_has_no_score():
    """LARGE did not run on the first problem. If the failure is known, LARGE is not scored by a neighbour."""
    matrix = replace(MATRIX, failed=np.isnan(MATRIX.seconds))
    assert scored_column(LARGE, matrix, 0) is None
    assert scored_column(solution(200), matrix, 0) is not None, "its neighbour did not fail"
    result = scored(matrix, (LARGE, SMALL, LARGE, LARGE))
    assert (result.rows, result.unanswered, result.unmeasured) == ((1, 2, 3), 1, 0.0)
    ranked = [(LARGE, SMALL), (SMALL,), (LARGE,), (LARGE,)]
    assert best_of_first(matrix, ranked, 2) == pytest.approx(0.5**0.25), "the second guess ran, and is the fastest"


def test_another_kernel_is_no_neighbour():
    assert scored_column(solution(64, "RegisterGemm"), MATRIX, 0) is None
    assert score(solution(64, "RegisterGemm"), SMALL, None, LARGE).unanswered == 2
    with pytest.raises(ValueError, match="no choice ran"):
        score(None, None, None, None)


def test_words_that_differ_count_one_each():
    assert distance(solution(16, Store="TMA"), solution(16, Store="Direct")) == 1
    assert distance(solution(16, Store="TMA"), solution(16)) == 1


def wgmma(groups, columns, along, **more):
    parameters = {"WarpGroups": groups, "InstructionColumns": columns, "RowsAlong": along, "GlobalSplitU": 1, **more}
    return Solution(PROBLEM_TYPE, "CudaWgmmaGemm", Configuration(parameters))


def test_the_effect_of_a_parameter_decides_its_weight():
    """Two ways to write the same macro tile have distance 0; another load path is further away than half the tile."""
    assert distance(wgmma(2, 128, "N"), wgmma(2, 128, "M")) == 0
    assert distance(wgmma(2, 256, "N"), wgmma(2, 128, "M")) == pytest.approx(1)
    assert same_tile(wgmma(2, 128, "N"), wgmma(2, 128, "M", StorePath="TMA"))
    assert not same_tile(wgmma(2, 128, "N"), wgmma(2, 128, "N", GlobalSplitU=2))
    whole, halves, quarters, pair = (wgmma(2, 128, "N", ClusterShape=shape) for shape in SHAPES)
    assert [distance(whole, other) for other in (halves, quarters, pair)] == pytest.approx([1, 2, 1])
    assert [same_tile(whole, other) for other in (halves, quarters, pair)] == [False, False, True]
    shallow, single = solution(16, DepthU=32), solution(16, DepthU=64, LoadPath="Pointer")
    assert distance(shallow, solution(16, DepthU=64)) == pytest.approx(0.25)
    assert distance(single, solution(16, DepthU=64, LoadPath="TMA")) == 3


def test_a_kernel_that_is_not_known_here_may_have_a_cluster_and_a_tile():
    alone, beside = (
        Solution(PROBLEM_TYPE, "Gone", Configuration({"MacroTile": (64, 64), "ClusterShape": shape}))
        for shape in ((1, 1), (2, 1))
    )
    assert distance(alone, beside) == 1
    assert same_tile(alone, beside)


def test_among_equally_near_neighbours_the_median_time_counts():
    """Half the tile, twice the tile, and two different words are all at distance 2."""
    equally_near = (solution(32), solution(128), solution(64, Store="TMA", Load="x"))
    matrix = TimeMatrix(MATRIX.problems[:1], ("toy",), equally_near, np.array([[1.0, 9.0, 3.0]]))
    pick = scored_column(solution(64), matrix, 0)
    assert pick is not None
    assert (pick.column, pick.is_measured, pick.has_tile) == (2, False, True)


def test_families_are_scored_apart():
    whole = scored(MATRIX, (SMALL, SMALL, LARGE, None))
    result = scored_by(MATRIX, whole, MATRIX.families)
    assert {family: part.efficiencies.tolist() for family, part in result.items()} == {
        "toy": [1.0, 1.0],
        "other": [1.0],
    }
    assert {family: part.unanswered for family, part in result.items()} == {"toy": 0, "other": 1}
    assert list(scored_by(MATRIX, scored(MATRIX, (SMALL, None, None, None)), MATRIX.families)) == ["toy"]


def test_the_best_of_a_kernel_is_apart_from_the_best_of_all():
    """On the last problem the vendor's library is twice as fast as the best tile."""
    result = scored(MATRIX, (None, None, None, LARGE))
    assert (result.geomean, result.within_kernel) == (0.5, 1.0)


def test_more_guesses_take_the_fastest_of_them():
    ranked = [(LARGE, SMALL), (LARGE, SMALL), (SMALL, LARGE), (SMALL, LARGE, VENDOR)]
    assert best_of_first(MATRIX, ranked, 1) == pytest.approx((0.5 * 0.5 * 0.25 * 0.0625) ** 0.25)
    assert best_of_first(MATRIX, ranked, 2) == pytest.approx(0.5**0.25)
    assert best_of_first(MATRIX, ranked, 3) == 1.0


def test_one_half_of_the_samples_chooses_the_best_and_the_other_times_it():
    """Two solutions are equally fast, so the least time of a half is luck; the times of the other half are 1.2 and
    1.1."""
    halves = np.array([[1.0, 1.1]]), np.array([[1.2, 0.9]])
    seconds = np.sqrt(halves[0] * halves[1])
    matrix = TimeMatrix(MATRIX.problems[:1], ("toy",), (SMALL, MEDIUM), seconds, halves)
    assert matrix.best[0] == pytest.approx(math.sqrt(1.2 * 1.1))
    assert matrix.best_of("TiledGemm")[0] == matrix.best[0]
    assert scored(matrix, [SMALL]).geomean == pytest.approx(math.sqrt(1.1))
    assert scored(matrix, [SMALL]).against_least == pytest.approx(math.sqrt(0.99 / 1.2)), "0.99 and 1.2 are the times"
    assert best_of_first(matrix, [(SMALL,)], 1) == pytest.approx(math.sqrt(1.1))
    assert best_of_first(matrix, [(SMALL, MEDIUM)], 3) == pytest.approx(1)


def test_an_interval_draws_families_whole():
    """With two families, one at 1 and one at 1/4, half of the draws have both; the others have one family twice."""
    values = np.array([1.0, 1.0, 0.25, 0.25])
    assert clustered_interval(values, ("a", "a", "b", "b")) == (pytest.approx(0.25), pytest.approx(1.0))
    low, high = clustered_interval(values, ("a", "b", "a", "b"))
    assert low == high == pytest.approx(0.5)
    assert clustered_interval(values, ("a",) * 4) == (0.0, 1.0), "one family tells nothing about others"


def test_parts_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="families"):
        TimeMatrix(MATRIX.problems, ("toy",), MATRIX.solutions, MATRIX.seconds)
    with pytest.raises(ValueError, match="failures"):
        replace(MATRIX, failed=np.zeros((1, 1), bool))
