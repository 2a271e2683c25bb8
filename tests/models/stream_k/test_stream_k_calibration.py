"""Calibration files: round trip, adjustments of a person, and mistakes with their line."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from stream_k_fakes import calibration, runs_on
from tunesmith.models.stream_k.calibration_file import dump, read
from tunesmith.models.stream_k.costs import COSTS
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    DeviceCapacity,
    MacroTile,
    StreamKCalibration,
    TiledProduct,
    merged,
)
from tunesmith.records import UserError

ROOM = DeviceCapacity(132, 2)


@pytest.fixture
def written(tmp_path):
    """A file with one calibration, its text, and the calibration."""
    original = calibration(ROOM)
    path = tmp_path / "calibration.yaml"
    path.write_text(dump([original]))
    return path, path.read_text(), original


def test_a_file_gives_its_calibration_back(written, tmp_path):
    path, text, original = written
    (again,) = read(path)
    assert again.subject == original.subject
    assert again.subject.tile.block == original.subject.tile.block > 1
    assert again.origin == original.origin
    assert [(run.work, run.choice) for run in again.runs] == [(run.work, run.choice) for run in original.runs]
    np.testing.assert_allclose(again.values, original.values, rtol=1e-5)
    np.testing.assert_allclose(again.covariance, original.covariance, rtol=1e-5)
    assert dump([again]) == text


def test_decisions_from_the_file_are_those_from_the_fit(written):
    path, _, original = written
    (again,) = read(path)
    for tiles in (1, 7, 131, 133, 200, 264, 265, 1001):
        work = TiledProduct(tiles, 64, 64)
        assert CalibratedModel(again).choose(work) == CalibratedModel(original).choose(work)


def test_a_person_can_read_it(written):
    """Each cost has a line, in microseconds, with its meaning."""
    _, text, original = written
    for (name, doc), cost in zip(COSTS.items(), original.costs, strict=True):
        (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{name}: {{fitted")]
        assert f"fitted: {cost.fitted * 1e6:.6g}" in line.replace(".0,", ",") or cost.fitted * 1e6 < 1e-3
        assert line.endswith(f"# {doc}")
    assert "adjusted: 3.9" in text.partition("calibrations:")[0]


# --- adjusted -------------------------------------------------------------------------------------------------------


def adjusted(text, name, micro):
    """The text after a person adjusted a cost."""
    return re.sub(rf"({name}: {{fitted: [^}}]*)}}", rf"\1, adjusted: {micro}}}", text, count=1)


def test_an_adjustment_counts_and_stays_over_refits(written):
    path, text, original = written
    path.write_text(adjusted(text, "peer", 5))
    (read_again,) = read(path)
    assert read_again.adjusted == {"peer": pytest.approx(5e-6)}
    assert read_again.costs[list(COSTS).index("peer")].fitted == pytest.approx(original.costs[6].fitted, rel=1e-5)
    runs = runs_on(ROOM, noise=0.05)
    fresh = StreamKCalibration.of(original.subject, original.origin, runs, np.random.default_rng(1))
    (kept,) = merged([read_again], [fresh])
    assert kept.adjusted == {"peer": pytest.approx(5e-6)}
    assert kept.costs[6].fitted == fresh.costs[6].fitted
    path.write_text(dump([kept]))
    assert "adjusted: 5.0" in path.read_text()
    assert read(path)[0].adjusted == {"peer": pytest.approx(5e-6)}


def test_an_adjustment_changes_decisions_and_has_no_doubt(written):
    path, text, original = written
    few = TiledProduct(8, 1024, 64)
    path.write_text(adjusted(text, "peer", 1000))
    (expensive_peer,) = read(path)
    assert CalibratedModel(original).choose(few).grid > 8
    assert CalibratedModel(expensive_peer).choose(few).grid == 8
    assert not expensive_peer.doubt[6].any()
    assert not expensive_peer.doubt[:, 6].any()
    assert expensive_peer.doubt[0, 0] == pytest.approx(original.covariance[0, 0], rel=1e-5)


def test_a_newer_calibration_replaces_only_that_of_its_subject():
    older, other = calibration(ROOM), calibration(DeviceCapacity(64))
    newer = replace(older, scatter=0.5)
    assert [kept.scatter for kept in merged([older, other], [newer])] == [0.5, other.scatter]
    another_tile = replace(older, subject=replace(older.subject, tile=MacroTile(64, 64, 64)))
    assert len(merged([older], [another_tile])) == 2


# --- wrong ----------------------------------------------------------------------------------------------------------

MISTAKES = [
    ("tunesmith-stream-k: 2", "tunesmith-stream-k: 1", "format 1"),
    ("tunesmith-stream-k: 2", "tunesmith-logic: 2", "tunesmith-logic"),
    ("kernel: SomeGemm", "kernal: SomeGemm", "kernal"),
    ("multiprocessors: 132", "multiprocessors: 0", "multiprocessors cannot be 0"),
    ("occupancy: 2", "occupancy: two", "occupancy cannot be two"),
    ("tile: [128, 128, 64]", "tile: [128, 128]", "tile has 2 numbers"),
    ("start: {fitted", "begin: {fitted", "begin"),
    ("scatter: ", "scatter: -", "scatter cannot be -"),
    ("WorkGroupMapping: 4", "WorkGroupMapping: 0", "WorkGroupMapping cannot be 0"),
    ("- [1, 1, 4, 1, 0, 1,", "- [1, 1, 4, 0, 0, 1,", "a run cannot be 0"),
    ("- [1, 1, 4, 1, 0, 1,", "- [1, 1, 4, 1, 3, 1,", "3 streamed tiles of 1"),
    ("- [1, 1, 4, 1, 0, 1,", "- [1, 2, 4, 1, 0, 1,", "1 tiles, 2 of them along M"),
    ("  costs:", "  costs: 5\n  other:", "other"),
]


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES)
def test_a_mistake_is_reported_with_its_line(written, right, wrong, message):
    path, text, _ = written
    assert right in text
    path.write_text(text.replace(right, wrong, 1))
    with pytest.raises(UserError) as error:
        read(path)
    assert re.match(rf"{re.escape(str(path))}:\d+$", error.value.location)
    assert any(message in mistake.what for mistake in error.value.errors)


def test_a_remedy_names_the_least_number_where_there_is_one(written):
    path, text, original = written
    path.write_text(text.replace("scatter: ", "scatter: -", 1))
    with pytest.raises(UserError, match=r"give a number of at least 0$"):
        read(path)
    covariance = original.covariance.copy()
    covariance[0, 1] = np.nan
    path.write_text(dump([replace(original, covariance=covariance)]))
    with pytest.raises(UserError, match=r"give a number$"):
        read(path)


def test_a_negative_adjustment_is_refused(written):
    path, text, _ = written
    path.write_text(adjusted(text, "start", -1))
    with pytest.raises(UserError, match=r"start: adjusted cannot be -1"):
        read(path)


def test_two_calibrations_of_one_subject_are_refused(written):
    path, _, original = written
    path.write_text(dump([original, original]))
    with pytest.raises(UserError, match="a second calibration of SomeGemm s 128x128x64 on a GPU"):
        read(path)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "nothing.yaml")


@pytest.mark.parametrize("index", [(0, 0), (0, 1)])
def test_an_invalid_covariance_between_costs_gives_no_error_when_it_is_used(written, index):
    """A negative variance is refused. Between two costs, rounding may make a covariance too large."""
    path, _, original = written
    covariance = original.covariance.copy()
    covariance[index] = covariance[index[::-1]] = -1e18
    path.write_text(dump([replace(original, covariance=covariance)]))
    if index == (0, 0):
        with pytest.raises(UserError, match=r"calibration\.yaml:\d+: covariance cannot be -1e\+30"):
            read(path)
        return
    (again,) = read(path)
    work = TiledProduct(133, 64, 64)
    model = CalibratedModel(again)
    seconds, (low, high) = model.expect(work, model.choose(work))
    assert low <= seconds <= high
