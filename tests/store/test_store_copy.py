"""Copying a store adds what the other lacks, loses nothing without saying so, and may be stopped and repeated."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from test_store import END, START, STEP, entry, timed

from tunesmith.records import Measurement, Outcome
from tunesmith.store import CopyReport, FolderStore, Store, StoreLocation, copy_store
from tunesmith.store import copying as module

pytestmark = pytest.mark.usefixtures("small_pages")


@pytest.fixture
def stores(location_of):
    with Store.open(location_of("from")) as source, Store.open(location_of("to")) as target:
        yield source, target


def at(seconds, started):
    return dataclasses.replace(timed(seconds), started=started)


def filled(store):
    run = store.begin_run(START)
    store.commit(entry(str(number), tile=number % 3, size=64 + number % 5) for number in range(123))
    store.commit([entry("again", "full", at(1.0, 1.0))])
    store.commit([entry("again", "full", at(2.0, 2.0))], replacing={("again", "full")})
    store.commit([entry("odd", measurement=Measurement(Outcome.COMPILE_ERROR, "refused", "NUL \0 and \ue000"))])
    store.record_step(run, STEP)
    store.end_run(run, END)
    return run


def content(store):
    runs = store.runs()
    return list(store.entries()), runs, [store.steps(run.id) for run in runs], store.cost(), store.count()


def test_a_copy_has_everything_and_a_second_copy_adds_nothing(stores):
    source, target = stores
    filled(source)
    before = content(source)
    assert copy_store(source, target) == CopyReport(measurements=126, runs=1, steps=1)
    assert content(target) == before
    assert [found.run for found in target.entries()] == [found.run for found in source.entries()]
    assert copy_store(source, target) == CopyReport(present=126)
    assert copy_store(target, source) == CopyReport(present=126)
    assert content(target) == content(source) == before


def test_between_the_two_kinds_of_databases_nothing_changes(tmp_path, postgresql):
    with (
        Store.open(tmp_path / "a") as store_a,
        Store.open(postgresql.fresh()) as store_b,
        Store.open(tmp_path / "b") as store_c,
    ):
        filled(store_a)
        assert copy_store(store_a, store_b) == copy_store(store_b, store_c) == CopyReport(126, 0, 0, 1, 1)
        assert content(store_a) == content(store_b) == content(store_c)


def test_what_was_measured_since_is_added(stores):
    source, target = stores
    run = source.begin_run(START)
    source.commit([entry("a")])
    copy_store(source, target)
    source.commit([entry("b")])
    source.record_step(run, STEP)
    source.record_step(run, dataclasses.replace(STEP, number=4))
    copy_store(source, target)
    source.record_step(run, dataclasses.replace(STEP, number=5))
    source.end_run(run, END)
    assert copy_store(source, target) == CopyReport(present=2, steps=1)
    assert content(target) == content(source)


def test_of_two_measurements_of_the_same_thing_the_newer_counts_and_an_older_one_is_counted(stores):
    source, target = stores
    source.commit([entry("newer here", "full", at(1.0, 20.0)), entry("older here", "full", at(1.0, 10.0))])
    target.commit([entry("newer here", "full", at(2.0, 10.0)), entry("older here", "full", at(2.0, 20.0))])
    assert copy_store(source, target) == CopyReport(measurements=1, older=1)
    assert target.rounds(["newer here", "older here"]) == {
        "newer here": {"full": at(1.0, 20.0)},
        "older here": {"full": at(2.0, 20.0)},
    }
    assert target.count() == 3, "what was replaced stays in the store"
    assert copy_store(source, target) == CopyReport(present=1, older=1)
    assert source.count() == 2


def test_copies_of_two_hosts_stores_add_up_in_either_order(location_of):
    """Both hosts measured some of the same things, one of them twice."""
    with Store.open(location_of("one")) as store_a, Store.open(location_of("two")) as store_b:
        store_a.commit([entry("both", "full", at(1.0, 1.0)), entry("one", "full", at(1.0, 1.0))])
        store_b.commit([entry("both", "full", at(2.0, 2.0)), entry("two", "full", at(2.0, 2.0))])
        store_b.commit([entry("both", "full", at(3.0, 3.0))], replacing={("both", "full")})
        for number, order in enumerate(itertools.permutations((store_a, store_b))):
            with Store.open(location_of(f"to {number}")) as target:
                for source in (*order, *order):
                    copy_store(source, target)
                keys = ["both", "one", "two"]
                assert {key: rounds["full"].samples for key, rounds in target.rounds(keys).items()} == {
                    "both": (3.0,),
                    "one": (1.0,),
                    "two": (2.0,),
                }


def test_a_copy_that_is_stopped_keeps_what_it_copied_and_goes_on(stores, monkeypatch):
    source, target = stores
    filled(source)
    monkeypatch.setattr(module, "CHUNK", 10)
    progress = []

    def stop(done, total):
        progress.append((done, total))
        if done == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(source, target, stop)
    assert progress == [(0, 126), (10, 126), (20, 126), (30, 126)]
    assert target.count() == 30
    assert copy_store(source, target) == CopyReport(measurements=96, present=30, runs=1, steps=1)
    assert content(target) == content(source)


def test_a_folders_copy_has_what_is_the_folders(location_of):
    location = StoreLocation.of(location_of("shared"))
    with (
        Store.open(FolderStore(location, "a")) as store_a,
        Store.open(FolderStore(location, "b")) as store_b,
        Store.open(location_of("to")) as target,
    ):
        store_a.begin_run(START)
        run = store_b.begin_run(START)
        store_b.ask_for(["k", "of two"])
        store_a.commit([entry("k"), entry("of one")])
        store_b.commit([entry("of two")])
        store_b.record_step(run, STEP)
        assert copy_store(store_b, target) == CopyReport(measurements=2, runs=1, steps=1)
        assert [found.key for found in target.entries()] == ["k", "of two"]
        assert [found.id for found in target.runs()] == [run]


def test_a_copy_into_a_folders_shared_store_is_the_folders(location_of):
    with (
        Store.open(location_of("from")) as source,
        Store.open(FolderStore(StoreLocation.of(location_of("shared")), "a")) as folder,
        Store.open(FolderStore(StoreLocation.of(location_of("shared")), "b")) as other,
    ):
        filled(source)
        copy_store(source, folder)
        entries, runs, steps, cost, count = content(source)
        assert content(folder)[0] == entries
        assert content(folder)[2:] == (steps, cost, count)
        assert [run.id for run in folder.runs()] == [run.id for run in runs]
        assert (list(other.entries()), other.runs()) == ([], [])


def test_a_copy_of_a_whole_shared_store_keeps_folders_apart(location_of):
    with Store.open(FolderStore(StoreLocation.of(location_of("shared")), "a")) as store_a:
        store_a.ask_for(["k"])
        store_a.commit([entry("k"), entry("other")])
        store_a.begin_run(START)
    with Store.read(location_of("shared")) as shared, Store.open(location_of("to")) as target:
        assert copy_store(shared, target).measurements == 2
    with Store.read(FolderStore(StoreLocation.of(location_of("to")), "a")) as store_a:
        assert [found.key for found in store_a.entries()] == ["k"]
        assert len(store_a.runs()) == 1
