"""A run on a device whose speed changes: the alarm, and first times taken anew."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from test_session import one_step, rounds, tune

from tunesmith.bench import Drift, Policy
from tunesmith.devices.fake import fake_target
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate, Measurement, Outcome, Problem
from tunesmith.session.frame import events
from tunesmith.session.frame.drift import SECONDS_BETWEEN, Anchor
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.run import RunPlan, carry_out
from tunesmith.store import Store


def test_a_device_that_drifts_raises_the_alarm_also_when_the_run_is_repeated(tmp_path):
    sizes = "- Range: [[16, 16, 64], [16, 16, 64], [16]]"
    text = one_step("VectorWidth: [1, 2, 4]", sizes, before="      ForkParameters:\n        - FakeDrift: [10]")
    observed: list[events.Event] = []
    done = tune(text, tmp_path, observe=observed.append)
    assert done.drift is not None
    assert done.drift.alarm
    assert done.drift.ratio > 1.05
    assert any("the anchor drifted to" in sentence for sentence in done.look_at)
    assert [event.alarm for event in observed if isinstance(event, events.DriftMeasured)] == [True]
    again = tune(text, tmp_path)
    assert (again.ledger.measured, again.drift) == (0, done.drift), "its tables are of the same measurements"


@pytest.mark.parametrize(("drift", "renewed"), [(0, 0), (10, 2)])
def test_first_times_from_before_and_after_a_change_of_speed_are_taken_anew(tmp_path, monkeypatch, drift, renewed):
    """The device slows down by 10 % in 1,000 executions, of which a candidate takes 200."""
    monkeypatch.setattr("tunesmith.session.frame.drift.SECONDS_BETWEEN", 0.0)
    settings = ", MinimumSamples: 200, MaximumSamples: 200, SamplingSeconds: 9"
    steps = f"VectorWidth: [1, 4]\n        - LoopUnroll: [8, 16]\n          FakeDrift: [{drift}]"
    observed: list[events.Event] = []
    text = one_step(steps, more=settings).replace(", SamplingSeconds: 0.02", "")
    done = tune(text, tmp_path, observe=observed.append)
    again = [e for e in observed if isinstance(e, events.BatchBegan) and "again after a change of speed" in e.purpose]
    assert sum(event.cells for event in again) == rounds(done.folder)["race/recheck"] == renewed
    with Store.open(done.folder / "measurements.sqlite") as store:
        taken = {(e.key, e.round): e.measurement.estimate.seconds for e in store.entries()}  # type: ignore[union-attr]
    later = {key: seconds for (key, name), seconds in taken.items() if name == "race/recheck"}
    assert all(seconds > taken[key, "race"] for key, seconds in later.items())
    step = next(e.result for e in observed if isinstance(e, events.StepEnded) and "LoopUnroll" in e.result.name)
    assert {time.seconds for time in step.table.cells.values()} >= set(later.values()), "the new times decide"
    assert tune(text, tmp_path).ledger.measured == 0


class WritesCautions(RunPlan):
    """Measures nothing, and writes the cautions of the time."""

    measures = False

    def __init__(self):
        self.target, self.policy = fake_target(), Policy()

    def carry_out(self, run):
        run.decided()

    def outputs(self, run):
        yield Output(Path("cautions"), lambda path: path.write_text("; ".join(run.cautions())))


@pytest.mark.parametrize(("ratio", "expected"), [(1.0, ""), (1.25, "the anchor drifted to 1.25 of its first time")])
def test_an_alarm_of_the_last_visit_is_in_what_is_written(monkeypatch, tmp_path, ratio, expected):
    visits: list[Drift] = []
    monkeypatch.setattr(Anchor, "visit", lambda anchor: visits.append(Drift(ratio, ratio > 1.05)))
    monkeypatch.setattr(Anchor, "worst", property(lambda anchor: visits[-1] if visits else None))
    carry_out(WritesCautions(), tmp_path)
    assert visits, "the run ended with a visit"
    assert (tmp_path / "cautions").read_text().startswith(expected)
    assert bool((tmp_path / "cautions").read_text()) == bool(expected)


CELL = (Configuration({}), Problem(gemm_type("s"), (8, 8, 8)))


class Screened:
    """Stands for a measure whose anchor takes the given seconds, visit by visit. `renewed` counts renewals."""

    def __init__(self, seconds):
        self.seconds, self.renewed = iter(seconds), 0
        self.bench, self.ledger = None, SimpleNamespace(measured=1)
        self.questions, self.is_measured = SimpleNamespace(come_together=True), True

    def lookup(self, cells, racing):
        return dict.fromkeys(cells) if self.is_measured else {}

    def rounds(self, cell):
        return {}

    def everywhere(self, cell, round_of):
        self.ledger.measured += 1
        seconds = next(self.seconds)
        return {"": Measurement(Outcome.OK, estimate=Estimate(seconds, seconds * 0.999, seconds * 1.001, 9))}

    def times(self, cells, racing):
        return {cell: Estimate(1.0, 1.0, 1.0, 9) for cell in cells}

    def renew(self, cells, racing):
        self.renewed += len(cells)


@pytest.fixture
def together():
    """An anchor that was visited once, by the first of two measures whose screenings are measured at the same time. The
    next visit is due, and shows that the machine is slower."""
    now = iter([0.0, *[SECONDS_BETWEEN + 1] * 9])
    anchor, parts = Anchor(lambda event: None, clock=lambda: next(now)), (Screened([1.0, 1.3]), Screened([]))
    anchor.visit_if_due(parts[0], [CELL])
    for part in parts:
        anchor.before_screening(part, [CELL], True, True)
        part.ledger.measured += 1
    return anchor, parts


def test_a_change_that_one_part_finds_lets_each_part_renew_its_own(together):
    """Before the part looks at its times, and in its own thread."""
    anchor, (first, second) = together
    anchor.visit_if_due(first)
    assert (first.renewed, second.renewed) == (1, 0)
    anchor.visit_if_due(second)
    assert (first.renewed, second.renewed) == (1, 1)


def test_a_change_renews_everything_at_once_if_no_parts_go_together(together):
    anchor, (first, second) = together
    first.questions.come_together = False
    anchor.visit_if_due(first)
    assert (first.renewed, second.renewed) == (1, 1)


def test_what_is_not_measured_yet_waits_for_the_next_visit(together):
    anchor, (first, second) = together
    first.seconds, second.is_measured = iter([1.3, 1.0, 1.0]), False
    anchor.visit_if_due(first)
    assert (first.renewed, second.renewed) == (1, 0)
    second.is_measured, first.ledger.measured = True, 9
    anchor._last = 0.0
    anchor.visit_if_due(first)
    anchor.visit_if_due(second)
    assert second.renewed == 1


def test_what_is_decided_is_not_renewed(together):
    anchor, (first, second) = together
    anchor.decided(first)
    anchor.visit_if_due(first, [CELL])
    anchor.decided(second)
    anchor.visit_if_due(second, [CELL])
    assert (first.renewed, second.renewed) == (0, 0)
