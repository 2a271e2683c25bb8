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
def folders(location_of):
    """The stores of two folders, and the whole store."""
    location = StoreLocation.of(location_of())
    with (
        Store.open(FolderStore(location, "a")) as store_a,
        Store.open(FolderStore(location, "b")) as store_b,
        Store.open(location) as whole,
    ):
        yield store_a, store_b, whole


def test_a_folder_finds_what_another_folder_measured(folders):
    store_a, store_b, _ = folders
    store_a.commit([entry("k", measurement=timed(1.0))])
    assert store_b.rounds(["k"]) == {"k": {"screen": timed(1.0)}}
    assert store_b.commit([entry("k", measurement=timed(2.0))]) == 0


def test_a_folder_shows_its_own_runs_and_what_its_runs_asked_for(folders):
    store_a, store_b, whole = folders
    first, second = store_a.begin_run(START), store_b.begin_run(START)
    for store, keys in ((store_a, ["shared", "of one"]), (store_b, ["shared", "of two"])):
        store.ask_for(keys)
        store.ask_for(keys)
    store_a.commit([entry("shared", measurement=CRASH), entry("of one", measurement=SPENT, size=8)])
    store_b.commit([entry("of two", measurement=SPENT, size=16), entry("shared", measurement=timed(1.0))])
    assert [run.id for run in store_a.runs()] == [first]
    assert [run.id for run in store_b.runs()] == [second]
    assert {found.key for found in store_a.entries()} == {"shared", "of one"}
    assert {found.key for found in store_b.entries()} == {"shared", "of two"}
    assert {problem.sizes[0] for problem in store_b.best()} == {16}
    assert [failure.reason for failure in store_b.failures()] == ["signal 11"], "it asked for what the other saw crash"
    assert (store_a.cost(), store_b.cost()) == (SPENT.cost, SPENT.cost)
    assert (store_a.count(), store_b.count(), whole.count()) == (2, 2, 3)
    assert [count.measurements for count in store_b.devices()] == [2]
    assert {run.id for run in whole.runs()} == {first, second}
    assert whole.cost() == Cost(2.0, 4.0, 8.0)


def test_a_run_that_measures_everything_again_goes_on_with_its_own_folders_measurements_only(folders):
    store_a, store_b, _ = folders
    again = dataclasses.replace(START, remeasures=True)
    stopped = RunEnd(RunState.INTERRUPTED, 1.0, 1, 0)
    store_a.end_run(store_a.begin_run(START), END)
    for store, key in ((store_a, "of one"), (store_b, "of two")):
        run = store.begin_run(again)
        store.commit([entry(key, "full", dataclasses.replace(timed(1.0), started=1e12))])
        store.end_run(run, stopped)
    rule = ReuseRule.of(store_a, Reuse.NONE)
    made = store_a.made_by(rule.resumed, ["of one", "of two"])
    assert made == {("of one", "full")}
    late = dataclasses.replace(timed(1.0), started=rule.since - 1)
    rule.measured_now |= made
    assert [rule.reuses(key, "full", late) for key in ("of one", "of two")] == [True, False]
    store_a.end_run(store_a.begin_run(again), END)
    assert ReuseRule.of(store_a, Reuse.NONE).resumed == [], "a finished run is not gone on with"


def test_hosts_and_devices_are_told_apart(folders):
    store_a, _, whole = folders
    hosts = ("node1 CUDA:0", "node1 CUDA:1", "node1 CUDA:1", "node2 CUDA:0")
    made = [dataclasses.replace(timed(1.0), host=host) for host in hosts]
    store_a.commit([entry(str(number), measurement=measurement) for number, measurement in enumerate(made)])
    store_a.commit([entry("c", measurement=dataclasses.replace(CRASH, host="node2 CUDA:0"))])
    assert [(count.host, count.measurements, count.ran) for count in whole.devices()] == [
        ("node1 CUDA:0", 1, 1),
        ("node1 CUDA:1", 2, 2),
        ("node2 CUDA:0", 2, 1),
    ]
    assert [found.measurement.host for found in whole.entries()] == [*hosts, "node2 CUDA:0"]


def test_steps_are_those_of_a_run(folders):
    store_a, store_b, _ = folders
    first, second = store_a.begin_run(START), store_b.begin_run(START)
    store_a.record_step(first, STEP)
    assert (store_a.steps(first), store_b.steps(second)) == ([STEP], [])
    assert STEP.winners[0].lineage == Configuration({"Tile": (8, 8), "Flag": True})
