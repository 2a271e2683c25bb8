"""The judge's figures on matrices small enough to work out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tunesmith.models.intensity.distance import distance, same_tile
from tunesmith.models.intensity.judge import (
    SelectionScore,
    TimeMatrix,
    best_of_first,
    clustered_interval,
    scored,
    scored_by,
    scored_column,
)
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem, Solution, Value

KIND = gemm_type("s", transpose_b=False)


def solution(tile: int, kernel: str = "TiledGemm", **more: Value) -> Solution:
    return Solution(KIND, kernel, Configuration({"Tile": (tile, tile), "Depth": 16, **more}))


SMALL, MEDIUM, LARGE, VENDOR = solution(16), solution(64), solution(256), solution(0, "VendorBlas")
NAN = math.nan
MATRIX = TimeMatrix(
    tuple(Problem(KIND, (size, size, size)) for size in (64, 128, 256, 512)),
    ("toy", "toy", "other", "other"),
    (SMALL, MEDIUM, LARGE, VENDOR),
    np.array([[1.0, 2.0, NAN, 4.0], [1.0, 1.0, 2.0, 2.0], [4.0, 2.0, 1.0, 2.0], [8.0, 4.0, 1.0, 0.5]]),
)


def score(*choices: Solution | None) -> SelectionScore:
    return scored(MATRIX, choices)


def test_efficiency_is_the_best_time_over_that_of_the_choice() -> None:
    found = score(MEDIUM, MEDIUM, MEDIUM, MEDIUM)
    assert found.efficiencies.tolist() == [0.5, 1.0, 0.5, 0.125]
    assert found.geomean == pytest.approx(2 ** (-5 / 4))
    assert (found.worst, found.good, found.unmeasured, found.unanswered) == (0.125, 0.25, 0.0, 0)
    assert found.percentile_10 == pytest.approx(0.125 + 0.3 * (0.5 - 0.125)), "between the first and the second of four"


def test_what_nobody_measured_is_scored_by_its_neighbour_of_the_same_kernel() -> None:
    """48 is 0.42 doublings from 64 and 1.58 from 16, in both directions of the tile."""
    pick = scored_column(solution(48), MATRIX, 0)
    assert pick is not None
    assert (pick.column, pick.is_measured) == (1, False)
    assert distance(solution(48), MEDIUM) == pytest.approx(2 * math.log2(64 / 48))
    assert scored_column(solution(48), MATRIX, 0, by_neighbour=False) is None
    found = score(solution(48), SMALL, SMALL, SMALL)
    assert found.unmeasured == 0.25
    assert found.efficiencies[0] == 0.5


def test_a_choice_that_did_not_run_there_is_scored_by_what_ran() -> None:
    pick = scored_column(LARGE, MATRIX, 0)
    assert pick is not None
    assert (pick.column, pick.is_measured) == (1, False)


def test_a_choice_that_is_known_to_have_failed_has_no_score() -> None:
    """LARGE did not run on the first problem: with the failure known, no neighbour stands in for it."""
    matrix = replace(MATRIX, failed=np.isnan(MATRIX.seconds))
    assert scored_column(LARGE, matrix, 0) is None
    assert scored_column(solution(200), matrix, 0) is not None, "its neighbour did not fail"
    found = scored(matrix, (LARGE, SMALL, LARGE, LARGE))
    assert (found.rows, found.unanswered, found.unmeasured) == ((1, 2, 3), 1, 0.0)
    ranked = [(LARGE, SMALL), (SMALL,), (LARGE,), (LARGE,)]
    assert best_of_first(matrix, ranked, 2) == pytest.approx(0.5**0.25), "the second guess ran, and is the fastest"


def test_another_kernel_is_no_neighbour() -> None:
    assert scored_column(solution(64, "RegisterGemm"), MATRIX, 0) is None
    assert score(solution(64, "RegisterGemm"), SMALL, None, LARGE).unanswered == 2
    with pytest.raises(ValueError, match="no choice ran"):
        score(None, None, None, None)


def test_words_that_differ_count_one_each() -> None:
    assert distance(solution(16, Store="TMA"), solution(16, Store="Direct")) == 1
    assert distance(solution(16, Store="TMA"), solution(16)) == 1


def wgmma(groups: int, columns: int, along: str, **more: Value) -> Solution:
    named = {"WarpGroups": groups, "InstructionColumns": columns, "RowsAlong": along, "GlobalSplitU": 1, **more}
    return Solution(KIND, "CudaWgmmaGemm", Configuration(named))


def test_what_a_parameter_does_decides_its_weight() -> None:
    """Two ways to write one macro tile are no distance; loads of single elements are further off than half a tile."""
    assert distance(wgmma(2, 128, "N"), wgmma(2, 128, "M")) == 0
    assert distance(wgmma(2, 256, "N"), wgmma(2, 128, "M")) == pytest.approx(1)
    assert same_tile(wgmma(2, 128, "N"), wgmma(2, 128, "M", StorePath="TMA"))
    assert not same_tile(wgmma(2, 128, "N"), wgmma(2, 128, "N", GlobalSplitU=2))
    shallow, single = solution(16, DepthU=32), solution(16, DepthU=64, LoadPath="Pointer")
    assert distance(shallow, solution(16, DepthU=64)) == pytest.approx(0.25)
    assert distance(single, solution(16, DepthU=64, LoadPath="TMA")) == 3


def test_of_neighbours_as_near_the_middle_time_counts() -> None:
    """Half and twice the tile are as far away, and so is another store of the same half."""
    alike = (solution(32), solution(128), solution(64, Store="TMA", Load="x"))
    matrix = TimeMatrix(MATRIX.problems[:1], ("toy",), alike, np.array([[1.0, 9.0, 3.0]]))
    pick = scored_column(solution(64), matrix, 0)
    assert pick is not None
    assert (pick.column, pick.is_measured, pick.has_tile) == (2, False, True)


def test_families_are_scored_apart() -> None:
    whole = scored(MATRIX, (SMALL, SMALL, LARGE, None))
    found = scored_by(MATRIX, whole, MATRIX.families)
    assert {name: one.efficiencies.tolist() for name, one in found.items()} == {"toy": [1.0, 1.0], "other": [1.0]}
    assert {name: one.unanswered for name, one in found.items()} == {"toy": 0, "other": 1}
    assert list(scored_by(MATRIX, scored(MATRIX, (SMALL, None, None, None)), MATRIX.families)) == ["toy"]


def test_the_best_of_a_kernel_is_apart_from_the_best_of_all() -> None:
    """On the last problem the vendor is twice as fast as the best tile."""
    found = scored(MATRIX, (None, None, None, LARGE))
    assert (found.geomean, found.within_kernel) == (0.5, 1.0)


def test_more_guesses_take_the_fastest_of_them() -> None:
    ranked = [(LARGE, SMALL), (LARGE, SMALL), (SMALL, LARGE), (SMALL, LARGE, VENDOR)]
    assert best_of_first(MATRIX, ranked, 1) == pytest.approx((0.5 * 0.5 * 0.25 * 0.0625) ** 0.25)
    assert best_of_first(MATRIX, ranked, 2) == pytest.approx(0.5**0.25)
    assert best_of_first(MATRIX, ranked, 3) == 1.0


def test_one_half_of_the_samples_chooses_the_best_and_the_other_times_it() -> None:
    """Of two solutions that are equally fast, the least time of a half is luck: the other half gives 1.2 and 1.1."""
    halves = np.array([[1.0, 1.1]]), np.array([[1.2, 0.9]])
    seconds = np.sqrt(halves[0] * halves[1])
    matrix = TimeMatrix(MATRIX.problems[:1], ("toy",), (SMALL, MEDIUM), seconds, halves)
    assert matrix.best[0] == pytest.approx(math.sqrt(1.2 * 1.1))
    assert matrix.best_of("TiledGemm")[0] == matrix.best[0]
    assert scored(matrix, [SMALL]).geomean == pytest.approx(math.sqrt(1.1))
    assert scored(matrix, [SMALL]).against_least == pytest.approx(math.sqrt(0.99 / 1.2)), "0.99 and 1.2 are the times"
    assert best_of_first(matrix, [(SMALL,)], 1) == pytest.approx(math.sqrt(1.1))
    assert best_of_first(matrix, [(SMALL, MEDIUM)], 3) == pytest.approx(1)


def test_an_interval_draws_families_whole() -> None:
    """Of two families, one at 1 and one at 1/4, every other draw has both, and the rest have one of them twice."""
    values = np.array([1.0, 1.0, 0.25, 0.25])
    assert clustered_interval(values, ("a", "a", "b", "b")) == (pytest.approx(0.25), pytest.approx(1.0))
    low, high = clustered_interval(values, ("a", "b", "a", "b"))
    assert low == high == pytest.approx(0.5)
    assert clustered_interval(values, ("a",) * 4) == (0.0, 1.0), "one family says nothing of others"


def test_parts_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="families"):
        TimeMatrix(MATRIX.problems, ("toy",), MATRIX.solutions, MATRIX.seconds)
    with pytest.raises(ValueError, match="failures"):
        replace(MATRIX, failed=np.zeros((1, 1), bool))
