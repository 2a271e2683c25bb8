"""Folders that share a store find each other's measurements, and keep their runs and results apart."""

from __future__ import annotations

import dataclasses

import pytest
from test_store import END, START, STEP, entry, timed

from tunesmith.records import Configuration, Cost, Measurement, Outcome
from tunesmith.session.frame.reuse import Reuse, ReuseRule
from tunesmith.store import FolderStore, RunEnd, RunState, Store, StoreLocation

SPENT = dataclasses.replace(timed(1.0), cost=Cost(1.0, 2.0, 4.0))
CRASH = Measurement(Outcome.CRASH, "signal 11")


@pytest.fixture
def folders(place):
    """The stores of two folders, and the whole store."""
    location = StoreLocation.of(place())
    with (
        Store.open(FolderStore(location, "a")) as one,
        Store.open(FolderStore(location, "b")) as two,
        Store.open(location) as whole,
    ):
        yield one, two, whole


def test_a_folder_finds_what_another_folder_measured(folders):
    one, two, _ = folders
    one.commit([entry("k", measurement=timed(1.0))])
    assert two.rounds(["k"]) == {"k": {"screen": timed(1.0)}}
    assert two.commit([entry("k", measurement=timed(2.0))]) == 0


def test_a_folder_shows_its_own_runs_and_what_its_runs_asked_for(folders):
    one, two, whole = folders
    first, second = one.begin_run(START), two.begin_run(START)
    for store, keys in ((one, ["shared", "of one"]), (two, ["shared", "of two"])):
        store.ask_for(keys)
        store.ask_for(keys)
    one.commit([entry("shared", measurement=CRASH), entry("of one", measurement=SPENT, size=8)])
    two.commit([entry("of two", measurement=SPENT, size=16), entry("shared", measurement=timed(1.0))])
    assert [run.id for run in one.runs()] == [first]
    assert [run.id for run in two.runs()] == [second]
    assert {found.key for found in one.entries()} == {"shared", "of one"}
    assert {found.key for found in two.entries()} == {"shared", "of two"}
    assert {problem.sizes[0] for problem in two.best()} == {16}
    assert [failure.reason for failure in two.failures()] == ["signal 11"], "it asked for what the other saw crash"
    assert (one.cost(), two.cost()) == (SPENT.cost, SPENT.cost)
    assert (one.count(), two.count(), whole.count()) == (2, 2, 3)
    assert [count.measurements for count in two.devices()] == [2]
    assert {run.id for run in whole.runs()} == {first, second}
    assert whole.cost() == Cost(2.0, 4.0, 8.0)


def test_a_run_that_measures_everything_again_goes_on_with_its_own_folders_measurements_only(folders):
    one, two, _ = folders
    again = dataclasses.replace(START, remeasures=True)
    stopped = RunEnd(RunState.INTERRUPTED, 1.0, 1, 0)
    one.end_run(one.begin_run(START), END)
    for store, key in ((one, "of one"), (two, "of two")):
        run = store.begin_run(again)
        store.commit([entry(key, "full", dataclasses.replace(timed(1.0), started=1e12))])
        store.end_run(run, stopped)
    rule = ReuseRule.of(one, Reuse.NONE)
    made = one.made_by(rule.resumed, ["of one", "of two"])
    assert made == {("of one", "full")}
    late = dataclasses.replace(timed(1.0), started=rule.since - 1)
    rule.measured_now |= made
    assert [rule.reuses(key, "full", late) for key in ("of one", "of two")] == [True, False]
    one.end_run(one.begin_run(again), END)
    assert ReuseRule.of(one, Reuse.NONE).resumed == [], "a finished run is not gone on with"


def test_hosts_and_devices_are_told_apart(folders):
    one, _, whole = folders
    hosts = ("node1 CUDA:0", "node1 CUDA:1", "node1 CUDA:1", "node2 CUDA:0")
    made = [dataclasses.replace(timed(1.0), host=host) for host in hosts]
    one.commit([entry(str(number), measurement=measurement) for number, measurement in enumerate(made)])
    one.commit([entry("c", measurement=dataclasses.replace(CRASH, host="node2 CUDA:0"))])
    assert [(count.host, count.measurements, count.ran) for count in whole.devices()] == [
        ("node1 CUDA:0", 1, 1),
        ("node1 CUDA:1", 2, 2),
        ("node2 CUDA:0", 2, 1),
    ]
    assert [found.measurement.host for found in whole.entries()] == [*hosts, "node2 CUDA:0"]


def test_steps_are_those_of_a_run(folders):
    one, two, _ = folders
    first, second = one.begin_run(START), two.begin_run(START)
    one.record_step(first, STEP)
    assert (one.steps(first), two.steps(second)) == ([STEP], [])
    assert STEP.winners[0].lineage == Configuration({"Tile": (8, 8), "Flag": True})
