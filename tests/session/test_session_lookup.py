"""Which of a cell's measurements in the store answers a run, and what is measured in spite of one."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tunesmith.bench import Bench, Job, Policy
from tunesmith.devices.fake import fake_target
from tunesmith.kernels.fake import FakeGemm
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, Measurement, Outcome, Problem
from tunesmith.session.frame.measure import Ledger, RecordedMeasure
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.store import FULL, RACE, RECHECK, Store

KIND = gemm_type(transpose_b=False)
DEFAULT = FakeGemm().space(KIND).defaults
SIZE = Problem(KIND, (64, 32, 16))
CELL = (DEFAULT, SIZE)
CRASHED = Measurement(Outcome.CRASH, "SIGSEGV")


def ran(seconds, raced=False):
    return Measurement(Outcome.OK, samples=(seconds,), estimate=Estimate(seconds, seconds, seconds, 1), raced=raced)


class Answering(Bench):
    """A bench that gives each job what is next for it, all of it at once."""

    def __init__(self, *answers):
        self.answers, self.requests = answers, list[tuple[Job, ...]]()
        self.rivals: list[Mapping[Problem, float]] = []

    def run(self, batch):
        for race in batch.races:
            self.requests.append(race.jobs)
            self.rivals.append(race.rivals)
            yield from ((job, answer) for job in race.jobs for answer in self.answers)

    def interleave(self, jobs, until_clear=False):
        self.requests.append(tuple(jobs))
        return [self.answers[0] for _ in jobs]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


def measure(store, *answers):
    """As a new run on the store does it."""
    oracle = ConfigurationOracle(KIND, fake_target())
    return RecordedMeasure(oracle, Answering(*answers), store, Policy(), Ledger())  # type: ignore[arg-type]


def committed(store, **rounds):
    names = {"race": RACE, "full": FULL, "race_recheck": RACE + RECHECK, "full_recheck": FULL + RECHECK}
    made = measure(store)
    for name, measurement in rounds.items():
        made.commit([(CELL, measurement)], names[name])
    return made


def seconds(found):  # type: ignore[type-arg]
    return found[CELL].estimate.seconds if CELL in found else None


def test_a_race_is_replayed_as_it_was_and_outside_of_one_the_full_measurement_answers(store):
    made = committed(store, race=ran(1.0), full=ran(2.0))
    assert seconds(made.lookup([CELL], racing=True)) == 1.0
    assert seconds(made.lookup([CELL], racing=False)) == 2.0


def test_what_was_stopped_early_answers_in_races_alone(store):
    made = committed(store, race=ran(1.0, raced=True))
    assert seconds(made.lookup([CELL], racing=True)) == 1.0
    assert made.lookup([CELL], racing=False) == {}


@pytest.mark.parametrize("round_", ["race", "full"])
@pytest.mark.parametrize("racing", [True, False])
def test_a_crash_that_came_later_is_the_answer(store, round_, racing):
    made = committed(store, **{round_: ran(1.0), f"{round_}_recheck": CRASHED})
    assert made.lookup([CELL], racing)[CELL].outcome is Outcome.CRASH


def test_a_second_result_of_the_bench_is_kept_beside_the_first(store):
    """It ran, and then broke the worker for another: no later run takes its time."""
    assert measure(store, ran(1.0), CRASHED).screen([[DEFAULT]], [SIZE], racing=False).cells == {}
    again = measure(store, ran(1.0))
    assert set(again.rounds(CELL)) == {FULL, FULL + RECHECK}
    assert again.screen([[DEFAULT]], [SIZE], racing=False).cells == {}
    assert again.bench.requests == []  # type: ignore[attr-defined]
    assert list(again.ledger.failures.values()) == ["crash: SIGSEGV"]


@pytest.mark.parametrize(("racing", "jobs"), [(True, 0), (False, 1)])
def test_a_full_step_measures_again_what_a_race_stopped(store, racing, jobs):
    committed(store, race=ran(1.0, raced=True))
    run = measure(store, ran(3.0))
    table = run.screen([[DEFAULT]], [SIZE], racing)
    assert table.cells[CELL].seconds == (1.0 if racing else 3.0)
    assert (sum(map(len, run.bench.requests)), run.ledger.reused) == (jobs, 1 - jobs)  # type: ignore[attr-defined]


def test_of_a_step_only_what_is_missing_is_measured(store):
    committed(store, full=ran(1.0))
    other = DEFAULT | {"LoopUnroll": 16}
    run = measure(store, ran(2.0))
    table = run.screen([[DEFAULT, other]], [SIZE], racing=False)
    assert [table.cells[config, SIZE].seconds for config in (DEFAULT, other)] == [1.0, 2.0]
    ((job,),) = run.bench.requests  # type: ignore[attr-defined]
    assert job.solution.configuration["LoopUnroll"] == 16


def test_what_is_known_of_a_race_is_a_rival_of_what_is_not(store):
    """A race that goes on stops the slow ones as it would have done, by the upper end of the best interval."""
    known = Measurement(Outcome.OK, samples=(1.0,), estimate=Estimate(1.0, 0.9, 1.2, 1))
    committed(store, race=known)
    run = measure(store, ran(2.0))
    run.screen([[DEFAULT, DEFAULT | {"LoopUnroll": 16}]], [SIZE], racing=True)
    assert run.bench.rivals == [{SIZE: 1.2}]  # type: ignore[attr-defined]


def test_finalists_are_measured_together_once_and_together_again_in_other_company(store):
    two = [DEFAULT, DEFAULT | {"LoopUnroll": 16}]
    three = [*two, DEFAULT | {"LoopUnroll": 32}]
    for finalists, together in ((two, [2]), (two, []), (two[::-1], []), (three, [3]), (three, [])):
        run = measure(store, replace(ran(1.0), samples=(1.0, 1.0)))
        table = run.confirm(finalists, [SIZE])
        assert [len(jobs) for jobs in run.bench.requests] == together  # type: ignore[attr-defined]
        assert len(table.paired) == len(finalists)


def test_blocks_of_which_a_part_is_lost_are_measured_again_as_a_whole(store):
    """Samples of one block belong together: what is left of the first ones counts no more."""
    two = [DEFAULT, DEFAULT | {"LoopUnroll": 16}]
    measure(store, replace(ran(1.0), samples=(1.0, 1.0))).confirm(two, [SIZE])
    with sqlite3.connect(store.location) as database:
        lost = database.execute("DELETE FROM measurements WHERE id = (SELECT max(id) FROM measurements)")
        assert lost.rowcount == 1
    table = measure(store, replace(ran(2.0), samples=(2.0, 2.0))).confirm(two, [SIZE])
    assert table.paired == {(config, SIZE): (2.0, 2.0) for config in two}
    assert measure(store).confirm(two, [SIZE]).paired == table.paired, "so it is in the store"
