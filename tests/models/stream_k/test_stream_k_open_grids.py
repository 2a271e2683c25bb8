"""Grids that a tuning file leaves open, and the parameters that a decision sets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS
from tunesmith.models.stream_k.costs import SPLITS
from tunesmith.models.stream_k.decision_models import Calibrations, StreamKOverride
from tunesmith.models.stream_k.launch_decisions import LaunchDecisions, tile_of, with_decision
from tunesmith.models.stream_k.open_grids import OpenGrids, is_open, with_arbitrary_grid
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem, Solution

FAMILY, TYPE = KERNELS["RegisterGemm"], gemm_type("s", transpose_b=False)
TARGET = replace(fake_target(), compute_units=8)
SCALARS = Configuration({"alpha": 1.0, "beta": 0.0})
SHARED = Problem(TYPE, (16, 6, 4096), (), SCALARS)
"""A single tile with many iterations, which several work-groups share."""


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("FULL_TILES", "FIXED_GRID", "CALIBRATION"):
        monkeypatch.delenv(f"TUNESMITH_STREAMK_{name}", raising=False)


def solution(grid):
    small = {"WorkGroup": (2, 2, 1), "ThreadTile": (8, 3), "VectorWidth": 4, "LoopUnroll": 4, "StreamKGrid": grid}
    return Solution(TYPE, FAMILY.name, FAMILY.space(TYPE).defaults | small)


def test_an_open_grid_is_measured_as_it_is_decided_and_not_as_the_fallback():
    decided = OpenGrids(TARGET).decided(solution(-1), SHARED)
    first, fallback = LaunchDecisions.of(TARGET, (), {}, print).solutions(solution(-1), SHARED)
    assert decided == first
    assert decided.configuration.integer("StreamKGrid") > 1
    assert fallback.configuration.integer("StreamKGrid") == 0


@pytest.mark.parametrize("grid", [0, 1, 5])
def test_a_grid_that_a_tuning_file_sets_is_measured_as_it_is(grid):
    assert OpenGrids(TARGET).decided(solution(grid), SHARED) == solution(grid)


@pytest.mark.parametrize(
    ("config", "is_left_open", "arbitrary"),
    [({"StreamKGrid": -1}, True, 1), ({"StreamKGrid": 0}, False, 0), ({"StreamKGrid": 7}, False, 7), ({}, False, None)],
)
def test_only_an_open_grid_is_replaced_where_no_problem_is_known(config, is_left_open, arbitrary):
    config = Configuration({**config, "Tile": 8})
    assert is_open(config) is is_left_open
    assert with_arbitrary_grid(config).get("StreamKGrid") == arbitrary
    assert with_arbitrary_grid(config)["Tile"] == 8


@pytest.mark.parametrize(
    ("grid", "splits", "schedule"),
    [(0, 1, "DataParallel"), (0, 2, "SplitK"), (1, 1, "StreamK"), (8, 1, "StreamK")],
)
def test_a_schedule_matches_the_decision(grid, splits, schedule):
    parameters = Configuration({"StreamKGrid": grid, "StreamKFullTiles": 0, "GlobalSplitU": splits})
    config = Configuration({"Schedule": "any", "StreamKGrid": -1, "GlobalSplitU": 1, "Tile": 8})
    expected = {"Schedule": schedule, "StreamKGrid": grid, "GlobalSplitU": splits}
    assert with_decision(config, parameters) == config | expected, "other parameters stay, none is added"


class Offered(Calibrations):
    """Keeps the numbers of parts of K that a model was asked to consider."""

    def model(self, subject, driver, splits=()):
        self.splits = splits
        return super().model(subject, driver, splits)


@pytest.mark.parametrize(
    ("family", "may_split"),
    [
        ("RegisterGemm", False),  # the number of parts is compiled in
        ("CudaWgmmaGemm", True),
        ("TritonGemm", False),  # the schedule is compiled in
    ],
)
def test_split_k_is_considered_only_if_it_needs_no_other_program(family, may_split):
    problem_type = gemm_type("h", transpose_b=False)
    any_solution = Solution(problem_type, family, KERNELS[family].space(problem_type, TARGET).defaults)
    calibrations = Offered()
    product = Problem(problem_type, (512, 512, 4096), (), SCALARS)
    LaunchDecisions(TARGET, calibrations, StreamKOverride.of({})).decide(any_solution, product)
    assert calibrations.splits == (SPLITS if may_split else ())


def test_a_family_that_groups_no_tiles_walks_them_in_blocks_of_one():
    parameters = KERNELS["CudaSimtGemm"].space(TYPE, TARGET).defaults
    assert "WorkGroupMapping" not in parameters
    assert tile_of(Solution(TYPE, "CudaSimtGemm", parameters)).block == 1
