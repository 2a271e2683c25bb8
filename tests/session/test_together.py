"""Parts of a plan at once: what all of them ask for is measured together, and however one ends, all end."""

from __future__ import annotations

import itertools

import pytest

from cluster_runs import two_types
from golden_bench import nothing_measured
from many_fakes import FakeManyDevices, factory
from tunesmith import session
from tunesmith.devices.fake import fake_target
from tunesmith.session.frame import events
from tunesmith.session.frame import together as together_module
from tunesmith.session.frame.ledger import OutOfBudgetError
from tunesmith.session.frame.together import Together
from tuning_runs import results, rows

SPREAD = 0.5


class Measures:
    """Stands for a measure; the answers to its questions are only noted."""

    def __init__(self, name):
        self.purpose, self.bench = name, None


@pytest.fixture
def answered(monkeypatch):
    """The requests that are carried out: the names of the measures of each."""
    requests = []

    def note(asked, round_, racing):
        requests.append(("races", round_, [measure.purpose for measure, _ in asked]))

    def finalists(asked):
        if asked:
            requests.append(("finalists", [measure.purpose for measure, *_ in asked]))

    monkeypatch.setattr(together_module, "run_announced", note)
    monkeypatch.setattr(together_module, "interleave_ahead", finalists)
    return requests


def part(together, name, steps, log=None):
    """A part that asks for races of these rounds and, at `finalists`, for finalists."""
    measure, log = Measures(name), [] if log is None else log

    def work():
        for step in steps:
            log.append(f"{name} {step}")
            if step == "finalists":
                together.interleave([(measure, (), ())])
            else:
                together.measure_races(measure, (), step, True)

    return work


def test_what_all_parts_ask_for_is_measured_by_one_request(answered):
    together, log = Together(), []
    steps = ("race", "finalists", "race")
    together.carry_out([part(together, name, steps[:count], log) for name, count in (("a", 3), ("b", 2), ("c", 3))])
    assert answered == [
        ("races", "race", ["a", "b", "c"]),
        ("finalists", ["a", "b", "c"]),
        ("races", "race", ["a", "c"]),
    ]
    assert log[:6] == ["a race", "b race", "c race", "a finalists", "b finalists", "c finalists"], "in turn"


def test_parts_that_ask_for_different_things_are_all_answered(answered):
    together = Together()
    together.carry_out([part(together, "a", ["finalists", "race"]), part(together, "b", ["race", "full"])])
    assert answered == [
        ("races", "race", ["b"]),
        ("finalists", ["a"]),
        ("races", "race", ["a"]),
        ("races", "full", ["b"]),
    ]


@pytest.mark.parametrize("error", [OutOfBudgetError, KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("fails", ["measuring", "a part"])
def test_an_exception_ends_all_parts_and_is_raised(answered, monkeypatch, error, fails):
    together, unwound = Together(), []

    def other():
        try:
            part(together, "b", ["race"] * 9)()
        finally:
            unwound.append("b")

    def failing():
        part(together, "a", ["race"])()
        raise error

    def measuring(*_):
        raise error

    if fails == "measuring":
        monkeypatch.setattr(together_module, "run_announced", measuring)
    with pytest.raises(error):
        together.carry_out([failing, other])
    assert unwound == ["b"]


def test_a_part_is_not_begun_after_the_end(answered):
    together, begun = Together(), []

    def failing():
        raise OutOfBudgetError

    with pytest.raises(OutOfBudgetError):
        together.carry_out([failing, lambda: begun.append("b")])
    assert not begun


def test_an_interruption_while_a_part_works_waits_for_its_next_question(answered, monkeypatch):
    together, went_on = Together(), []
    asks = itertools.count()

    def interrupted(running):
        running.rests = False
        running.turn.release()
        raise KeyboardInterrupt

    def working():
        part(together, "a", ["race"] if not next(asks) else [])()
        went_on.append("a")

    monkeypatch.setattr(together, "_let_go_on", interrupted)
    with pytest.raises(KeyboardInterrupt):
        together.carry_out([working])
    assert not went_on, "the question was the part's end"


class Interrupted(FakeManyDevices):
    """The person presses Ctrl-C at the third batch."""

    __hash__ = FakeManyDevices.__hash__

    def run(self, batch):
        if len(self.batches) == 2:
            raise KeyboardInterrupt
        yield from super().run(batch)


@pytest.mark.parametrize("is_resumed", [False, True])
def test_two_types_on_several_devices_come_to_the_end_of_one(tmp_path, is_resumed):
    """The steps of both types are measured together; the tables, the logic and the times are those of one device."""
    file = two_types(tmp_path)
    bench, speeds = FakeManyDevices(dict.fromkeys("abc", 1.0), SPREAD), dict.fromkeys("abc", 1.0)
    with nothing_measured(SPREAD):
        session.tune(file, tmp_path / "one", device="fake:GPU:8")
        if is_resumed:
            stopped = factory(Interrupted(speeds, SPREAD))
            with pytest.raises(KeyboardInterrupt):
                session.tune(file, tmp_path / "many", device=fake_target(), benches=stopped)
            assert rows(tmp_path / "many")
        observed: list[events.Event] = []
        session.tune(file, tmp_path / "many", device=fake_target(), benches=factory(bench), observe=observed.append)
    found, expected = (
        {key: row["seconds"] for key, row in rows(tmp_path / name).items() if not key[1].startswith("anchor")}
        for name in ("many", "one")
    )
    assert found == expected
    assert results(tmp_path / "many") == results(tmp_path / "one")
    types = [{job.problem.type for race in batch.races for job in race.jobs} for batch in bench.batches]
    assert max(map(len, types)) == 2
    assert bench.alone == 0
    named = {event.type_name for event in observed if isinstance(event, events.StepEnded)}
    assert named == {"Cij_Aik_Bjk_SB", "Cij_Aki_Bjk_SB"}, "a line of progress says whose step it is"


def test_with_a_budget_types_are_carried_out_one_after_another(tmp_path):
    """If it ends early, some types are decided."""
    bench = FakeManyDevices(dict.fromkeys("abc", 1.0), SPREAD)
    with nothing_measured(SPREAD):
        session.tune(
            two_types(tmp_path), tmp_path / "run", device=fake_target(), benches=factory(bench), budget_minutes=9
        )
    types = [{job.problem.type for race in batch.races for job in race.jobs} for batch in bench.batches]
    assert max(map(len, types)) == 1
