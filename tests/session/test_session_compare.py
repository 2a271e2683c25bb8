"""The comparison with NumPy: both sides on the same arrays, every tuned size, and a ratio that says who is faster."""

from __future__ import annotations

import importlib

import pytest

from library_fakes import logic
from tunesmith.logic import write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError
from tunesmith.session.tuning_file import compare_with_numpy
from tunesmith.session.tuning_file.compare import compare

TYPES = [gemm_type(), gemm_type("d", transpose_a=True, transpose_b=False), gemm_type(batched=True, use_beta=False)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    module = importlib.import_module("tunesmith.session.tuning_file.compare")
    monkeypatch.setattr(module, "BLOCK_SECONDS", 1e-3)
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_every_tuned_size_is_compared_through_the_library(kind, tmp_path):
    batch = (2,) if kind.fields.flag("Batched") else ()
    rows = {(16, 24, *batch, 8): 0, (32, 8, *batch, 8): 1}
    write_logic(logic(kind, [{}, {"VectorWidth": 2}], rows).document, tmp_path / "logic.yaml")
    found = list(compare_with_numpy(tmp_path))
    assert [(comparison.problem.sizes, comparison.solution, comparison.rule) for comparison in found] == [
        (sizes, f"S{location}", "exact") for sizes, location in rows.items()
    ]
    assert all(comparison.ratio.low <= comparison.ratio.ratio <= comparison.ratio.high for comparison in found)


class Clock:
    """Stands in for the module `time`; each side's calls take as long as they say."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_the_ratio_is_the_peers_time_over_ours(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(importlib.import_module("tunesmith.session.tuning_file.compare"), "time", clock)
    found = compare([lambda: clock.sleep(0.25)], [lambda: clock.sleep(1.0)], blocks=6)
    assert (found.ours.seconds, found.peer.seconds, found.ratio) == pytest.approx((0.25, 1.0, 4.0))
    assert (found.ours.count, found.peer.count) == (6, 6)


def test_a_folder_without_a_gemm_is_the_users_to_put_right(tmp_path):
    with pytest.raises(UserError, match="holds no library logic"):
        list(compare_with_numpy(tmp_path))
