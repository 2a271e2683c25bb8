"""A run on a device whose speed changes: the alarm, and first times taken anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_session import one_step, rounds, tune
from tunesmith.session.frame import events
from tunesmith.store import Store


def test_a_device_that_drifts_raises_the_alarm_also_when_the_run_is_repeated(tmp_path: Path) -> None:
    sizes = "- Range: [[16, 16, 64], [16, 16, 64], [16]]"
    text = one_step("VectorWidth: [1, 2, 4]", sizes, before="      ForkParameters:\n        - FakeDrift: [10]")
    told: list[events.Event] = []
    done = tune(text, tmp_path, observe=told.append)
    assert done.drift is not None
    assert done.drift.alarm
    assert done.drift.ratio > 1.05
    assert any("the anchor drifted to" in sentence for sentence in done.look_at)
    assert [event.alarm for event in told if isinstance(event, events.DriftSeen)] == [True]
    again = tune(text, tmp_path)
    assert (again.ledger.measured, again.drift) == (0, done.drift), "its tables are of the same measurements"


@pytest.mark.parametrize(("drift", "renewed"), [(0, 0), (10, 2)])
def test_first_times_from_before_and_after_a_change_of_speed_are_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drift: int, renewed: int
) -> None:
    """The device slows down by 10 % in 1,000 executions, of which a candidate takes 200."""
    monkeypatch.setattr("tunesmith.session.frame.drift.SECONDS_BETWEEN", 0.0)
    settings = ", MinimumSamples: 200, MaximumSamples: 200, SamplingSeconds: 9"
    steps = f"VectorWidth: [1, 4]\n        - LoopUnroll: [8, 16]\n          FakeDrift: [{drift}]"
    told: list[events.Event] = []
    text = one_step(steps, more=settings).replace(", SamplingSeconds: 0.02", "")
    done = tune(text, tmp_path, observe=told.append)
    again = [e for e in told if isinstance(e, events.BatchBegan) and "again after a change of speed" in e.purpose]
    assert sum(event.cells for event in again) == rounds(done.folder)["race/recheck"] == renewed
    with Store.open(done.folder / "measurements.sqlite") as store:
        taken = {(e.key, e.round): e.measurement.estimate.seconds for e in store.entries()}  # type: ignore[union-attr]
    later = {key: seconds for (key, name), seconds in taken.items() if name == "race/recheck"}
    assert all(seconds > taken[key, "race"] for key, seconds in later.items())
    step = next(e.result for e in told if isinstance(e, events.StepEnded) and "LoopUnroll" in e.result.name)
    assert {time.seconds for time in step.table.cells.values()} >= set(later.values()), "the new times decide"
    assert tune(text, tmp_path).ledger.measured == 0
