"""The jobs that a run gives to the bench, in their order, and its looks at the device."""

from __future__ import annotations

import pytest

from portblas_fakes import TILES
from tunesmith.bench import Bench, Policy
from tunesmith.devices.fake import fake_target
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem
from tunesmith.session.frame import events
from tunesmith.session.frame.health import HealthWatch
from tunesmith.session.frame.measure import Ledger, RecordedMeasure
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.tuning_file import tune
from tunesmith.store import Store
from tuning_runs import FAKE_STEPS, fake_file

KIND = gemm_type()
PROBLEM = Problem(KIND, (256, 64, 192), scalars=Configuration({"alpha": 1.0, "beta": 0.0}))
OTHER = Problem(KIND, (64, 64, 64), scalars=PROBLEM.scalars)


class Asked(Bench):
    """A bench that records the jobs it gets, and measures nothing."""

    def __init__(self):
        self.keys = []

    def run(self, batch):
        self.keys = [[job.key for job in race.jobs] for race in batch.races]
        return iter(())


@pytest.mark.parametrize(("kind", "sorts"), [("GPU", True), ("CPU", False)])
def test_a_device_of_its_own_gets_the_best_guess_first(tmp_path, kind, sorts):
    bench, judge = Asked(), ConfigurationOracle(KIND, fake_target(kind))
    legal = [config for config in TILES if not judge.rejections(config)]
    guesses = [judge.guess(config, PROBLEM) for config in legal]
    assert guesses != sorted(guesses)
    with Store.open(tmp_path / "store.sqlite") as store:
        measure = RecordedMeasure(judge, bench, store, Policy(), Ledger())
        measure.screen([legal], [PROBLEM], racing=True)
        in_order = sorted(legal, key=lambda config: judge.guess(config, PROBLEM)) if sorts else legal
        assert bench.keys == [[measure.key((config, PROBLEM)) for config in in_order]]


def test_cells_of_different_groups_are_races_of_their_own(tmp_path):
    """Each race has its own problem, and the configurations that are tried on this problem only."""
    bench, judge = Asked(), ConfigurationOracle(KIND, fake_target("CPU"))
    first, second = [config for config in TILES if not judge.rejections(config)][:2]
    groups = [[(first, PROBLEM)], [(first, OTHER), (second, OTHER)]]
    with Store.open(tmp_path / "store.sqlite") as store:
        measure = RecordedMeasure(judge, bench, store, Policy(), Ledger())
        measure.screen_cells(groups, racing=True)
        assert bench.keys == [[measure.key(cell) for cell in group] for group in groups]


@pytest.mark.parametrize(("device", "looks"), [("fake:GPU:8", True), ("fake:CPU:8", False)])
def test_a_gpu_is_looked_at_while_it_is_tuned_on(tmp_path, monkeypatch, device, looks):
    """All events are passed on. The load of a host is mostly our own, so there is no look at it."""
    looked_at: list[str] = []
    observed: list[events.Event] = []
    monkeypatch.setattr(HealthWatch, "look_if_due", lambda self: looked_at.append(self._target.kind))
    done = tune(fake_file(tmp_path), tmp_path / "run", device=device, observe=observed.append)
    assert bool(looked_at) == looks
    assert sum(isinstance(event, events.CellMeasured) for event in observed) == done.ledger.measured


def test_the_replay_of_a_finished_run_asks_the_store_once_a_step(tmp_path, monkeypatch):
    """Tables, records, finalists and the anchor use the answer to the step's first query."""
    tune(fake_file(tmp_path), tmp_path / "run", device="fake:GPU:8")
    queries: list[int] = []
    answer = Store.rounds
    monkeypatch.setattr(Store, "rounds", lambda self, keys: queries.append(1) or answer(self, keys))
    done = tune(fake_file(tmp_path), tmp_path / "run", device="fake:GPU:8")
    measuring = [step for step in FAKE_STEPS if "Fork" not in step and "Join" not in step]
    assert done.ledger.measured == 0
    assert len(queries) == len(measuring)
