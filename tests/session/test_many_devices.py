"""A run on several devices, as the frame sees it: fair devices, confirmations ahead, and the end of a run on one."""

from __future__ import annotations

import socket

import pytest

from cluster_runs import many_sizes
from golden_bench import nothing_measured
from many_fakes import FakeManyDevices, factory
from tunesmith import session
from tunesmith.devices.fake import fake_target
from tunesmith.records import Estimate
from tunesmith.report import documents, tables
from tunesmith.session.frame.siblings import SLOWER, relative_times, slow_devices, spread
from tunesmith.store import Store
from tuning_runs import results, rows

SPREAD = 0.5
"""Of a cell's samples: no two cells can be told apart, so every size has finalists."""


@pytest.fixture(autouse=True)
def quick():
    with nothing_measured(SPREAD):
        yield


def tune(folder, bench=None):
    folder.mkdir(exist_ok=True)
    benches = {"device": fake_target(), "benches": factory(bench)} if bench else {"device": "fake:GPU:8"}
    return session.tune(many_sizes(folder), folder / "run", **benches)


def without_anchors(folder):
    return {key: row["seconds"] for key, row in rows(folder).items() if not key[1].startswith("anchor")}


def test_several_devices_come_to_the_end_of_one(tmp_path):
    single, three = tmp_path / "one", tmp_path / "three"
    tune(single)
    tune(three, FakeManyDevices(dict.fromkeys("abc", 1.0), SPREAD))
    assert without_anchors(three / "run") == without_anchors(single / "run")
    assert results(three / "run") == results(single / "run")


def test_finalists_of_all_sizes_are_measured_at_once_and_then_found(tmp_path):
    bench, single, two = FakeManyDevices(dict.fromkeys("ab", 1.0), SPREAD), tmp_path / "one", tmp_path / "two"
    done = tune(two, bench)
    assert bench.alone == 0, "no question was left to be measured by itself"
    assert max(map(len, bench.asked)) == 6, "the final has six sizes"
    assert done.ledger.measured == len(rows(two / "run"))
    assert done.ledger.reused == tune(single).ledger.reused, "what was measured ahead was not found in the store"
    again = tune(two, bench)
    assert (again.ledger.measured, again.ledger.reused) == (0, tune(single).ledger.reused)


class TogetherDevices(FakeManyDevices):
    """Results come by fours, and in each batch one cell has a second result, which comes with its first."""

    __hash__ = FakeManyDevices.__hash__

    def run_together(self, batch):
        results = list(self.run(batch))
        results.insert(1, results[0])
        yield from (results[start : start + 4] for start in range(0, len(results), 4))


class Preparing(FakeManyDevices):
    """Notes the jobs that it is to prepare, and how often a job was measured on all devices until then."""

    __hash__ = FakeManyDevices.__hash__

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.prepared, self.visits = [], 0

    def prepare(self, jobs):
        self.prepared.append((jobs, self.visits))

    def everywhere(self, job):
        self.visits += 1
        return super().everywhere(job)


def test_results_that_come_together_are_committed_together(tmp_path, monkeypatch):
    """And a batch comes to the same end. A second result has a round of its own, beside the first."""
    committed, commit = [], Store.commit

    def counted(store, entries, **options):
        committed.append([entry.round for entry in entries])
        return commit(store, entries, **options)

    single, two = tmp_path / "one", tmp_path / "two"
    tune(single)
    monkeypatch.setattr(Store, "commit", counted)
    tune(two, TogetherDevices(dict.fromkeys("ab", 1.0), SPREAD))
    first = {key: seconds for key, seconds in without_anchors(two / "run").items() if not key[1].endswith("/recheck")}
    assert first == without_anchors(single / "run")
    assert ["race"] * 4 in committed
    assert ["race/recheck"] in committed


def test_every_batch_names_its_step(tmp_path):
    """By the step the cluster knows which cells must stay on one device."""
    bench = FakeManyDevices({"a": 1.0}, SPREAD)
    tune(tmp_path, bench)
    steps = [race.step for batch in bench.batches for race in batch.races]
    assert {"01_CM_WorkGroup", "03_BF_VectorWidth", "04_Final"} <= set(steps)


def test_each_device_has_an_anchor_of_its_own_from_the_start(tmp_path):
    bench = FakeManyDevices({"a": 1.0, "b": 1.02}, SPREAD)
    done = tune(tmp_path, bench)
    names = [name for _, name in rows(tmp_path / "run")]
    assert names[:2] == ["anchor/on a/0", "anchor/on b/0"], "before anything that they are compared for"
    assert [name for name in names if name.startswith("anchor")][-2:] == ["anchor/on a/1", "anchor/on b/1"]
    assert {share.device: share.anchor for share in done.devices} == pytest.approx({"a": 1.0, "b": 1.02})
    assert done.drift is not None
    assert not done.drift.alarm, "devices are compared with themselves, not with each other"


def test_what_the_first_step_needs_is_prepared_before_devices_are_compared(tmp_path):
    """A run that finds all of it in the store prepares nothing."""
    bench = Preparing({"a": 1.0, "b": 1.0}, SPREAD)
    tune(tmp_path, bench)
    (prepared, visits), *others = bench.prepared
    first = {job.solution for race in bench.batches[0].races for job in race.jobs}
    assert not others
    assert visits == 0
    assert {job.solution for job in prepared} == first
    tune(tmp_path, again := Preparing({"a": 1.0, "b": 1.0}, SPREAD))
    assert again.prepared == []


def test_the_report_says_how_far_devices_are_apart(tmp_path, capsys):
    done = tune(tmp_path, FakeManyDevices({"a": 1.0, "b": 1.02}, SPREAD))
    from rich.console import Console

    Console(width=200).print(tables.outcome(done))
    printed = capsys.readouterr().out
    assert "spread between the 2 devices by their anchors: 2.0 %" in printed
    assert [share["device"] for share in documents.outcome(done)["devices"]] == ["a", "b"]


def test_a_device_that_is_slower_beyond_the_bound_is_left_out_and_said(tmp_path):
    bench = FakeManyDevices({"a": 1.0, "b": 1.0, "c": 1.3}, spread=0.002)
    done = tune(tmp_path, bench)
    assert list(bench.left_out) == ["c"]
    assert [sentence for sentence in done.look_at if sentence.startswith("c was left out")]
    with Store.open(tmp_path / "run" / "measurements.sqlite") as store:
        by_c = {entry.round for entry in store.entries() if entry.measurement.host.endswith(" c")}
    assert by_c == {"anchor/on c/0"}, "it was given nothing else"


def test_the_store_says_which_device_measured(tmp_path):
    tune(tmp_path, FakeManyDevices({"a": 1.0, "b": 1.0}, SPREAD))
    found = session.summarise(tmp_path / "run")
    assert [device.device for device in found.devices] == [f"{socket.gethostname()} {name}" for name in "ab"]
    assert sum(device.measured for device in found.devices) == len(rows(tmp_path / "run"))
    assert {str(problem) for device in found.devices for problem in device.problems} >= {"32x32x32", "128x64x32"}


def test_one_device_is_not_listed_by_show(tmp_path):
    tune(tmp_path)
    assert session.summarise(tmp_path / "run").devices == ()


def test_a_device_that_joins_works_if_its_anchor_is_as_fast(tmp_path):
    bench = FakeManyDevices({"a": 1.0, "b": 1.0}, spread=0.002)
    tune(tmp_path, bench)
    assert bench.admission is not None
    job, admission = bench.admission
    bench.slow = {**bench.slow, "late": 1.0, "slow": 1.5, "broken": None}
    # The run is over, but its store is only needed for the commit.
    assert [name for name in ("late", "slow", "broken") if _admits(bench, admission, job, name)] == ["late"]


def _admits(bench, admission, job, name):
    measure = admission.__self__._chosen[0]
    with Store.open(measure.store.location) as store:
        measure.store = store
        return admission(name, bench.on(name, job))


def test_an_anchor_that_runs_nowhere_gives_way_to_the_next_cell(tmp_path):
    """The first cell of a run may hang; the comparison of devices must not hinge on it."""

    class FirstCellFails(FakeManyDevices):
        failing = None

        def on(self, device, job):
            self.failing = self.failing or job.key
            return super().on(device, job) if job.key != self.failing else self.hung(device)

        def hung(self, device):
            self.slow, slow = {**self.slow, device: None}, self.slow
            try:
                return super().on(device, type("Job", (), {})())
            finally:
                self.slow = slow

    done = tune(tmp_path, FirstCellFails({"a": 1.0, "b": 1.0}, SPREAD))
    anchors = [key for key in rows(tmp_path / "run") if key[1].startswith("anchor")]
    assert len({key for key, _ in anchors}) == 2, "the one that failed and the next"
    assert all(share.anchor == 1.0 for share in done.devices)


def test_a_device_is_slow_only_beyond_the_bound_and_its_noise():
    def anchors(*seconds, half=0.001):
        return {str(index): Estimate(s, s - half, s + half, 7) for index, s in enumerate(seconds)}

    assert slow_devices(anchors(1.0, 1.0, 1.0 + SLOWER - 0.01)) == {}
    assert slow_devices(anchors(1.0, 1.0, 1.0 + SLOWER + 0.01)) == pytest.approx({"2": 1.11})
    assert slow_devices(anchors(1.0, 1.5)) == pytest.approx({"1": 1.5}), "of two, the faster one is the measure"
    assert slow_devices(anchors(1.0, 1.0, 1.2, half=0.3)) == {}, "its interval reaches its siblings' time"
    assert slow_devices({}) == {}
    assert spread(relative_times(anchors(1.0, 2.0, 4.0))) == pytest.approx(3.0)
    assert spread(relative_times(anchors(1.0))) == 0.0
