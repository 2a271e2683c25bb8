"""Measurements of an earlier version are found under the keys of today."""

from __future__ import annotations

import dataclasses

import pytest
from test_store import TARGET, found, timed

from tunesmith.records import Configuration, Cost, Problem, ProblemType, Solution
from tunesmith.store import RenewedKey, Store, StoreEntry, confirm_round, measurement_key


@pytest.fixture
def store(location_of):
    with Store.open(location_of()) as opened:
        yield opened


def formerly(size):
    """A problem as an earlier version wrote it: its type contains the path of a file."""
    return Problem(ProblemType("Custom", "mine", ("N",), Configuration({"Kernel": "/a", "Hash": "0"})), (size,))


def today(problem):
    return dataclasses.replace(
        problem, type=dataclasses.replace(problem.type, fields=Configuration({"Text": "x\n", "Digest": "1"}))
    )


def of_custom(problem, round_, measurement):
    parts = {"target": TARGET, "toolchain": "compiler 1", "identity": "identity 8"}
    key = measurement_key(**parts, plan_digest="p", problem=problem, policy="quick")  # type: ignore[arg-type]
    solution = Solution(problem.type, "Custom", Configuration({"Tile": 8}))
    return StoreEntry(key, round_, parts["identity"], solution, problem, TARGET, "compiler 1", measurement)  # type: ignore[arg-type]


def renewal(entries):
    new = [of_custom(today(entry.problem), "", entry.measurement) for entry in entries]
    return {
        old.key: RenewedKey(today.key, today.solution, today.problem) for old, today in zip(entries, new, strict=True)
    }


def test_every_round_of_a_former_key_is_found_under_the_key_of_today(store):
    """The copies have no cost. The old keys still have their measurements."""
    spent = dataclasses.replace(timed(2.0), cost=Cost(1.0, 2.0, 3.0))
    old = [of_custom(formerly(64), round_, spent) for round_ in ("race", "full", "anchor/1", "full/recheck")]
    other = of_custom(formerly(65), "full", timed(9.0))
    store.commit([*old, other])
    assert store.carry_over(renewal(old)) == 4
    (new,) = renewal(old).values()
    for entry in old:
        assert found(store, [new.key], entry.round) == {new.key: timed(2.0)}
        assert found(store, [entry.key], entry.round) == {entry.key: spent}
    assert store.cost() == Cost(4.0, 8.0, 12.0)
    copies = [entry for entry in store.entries() if entry.key == new.key]
    assert {(entry.problem, entry.solution) for entry in copies} == {(new.problem, new.solution)}
    assert len(list(store.entries())) == 9, "what is not asked for stays as it is"


def test_carrying_over_again_adds_nothing(store):
    old = [of_custom(formerly(size), "full", timed(2.0)) for size in range(1, 600)]
    assert store.carry_over(renewal(old)) == 0, "nothing is there yet"
    store.commit(old)
    assert (store.carry_over(renewal(old)), store.carry_over(renewal(old))) == (599, 0)
    assert len(list(store.entries())) == 1198


def test_what_was_measured_under_todays_key_stays(store):
    old = of_custom(formerly(64), "full", timed(2.0))
    new = of_custom(today(formerly(64)), "full", timed(1.0))
    store.commit([old, new])
    assert store.carry_over(renewal([old])) == 0
    assert found(store, [new.key], "full") == {new.key: timed(1.0)}


def test_a_round_of_finalists_is_carried_over_under_the_name_that_their_new_keys_make(store):
    """This happens once all of their keys are known, since the name is a hash of all keys."""
    keys = [of_custom(formerly(size), "", timed(1.0)).key for size in (1, 2)]
    old = [of_custom(formerly(size), confirm_round(keys), timed(float(size))) for size in (1, 2)]
    store.commit(old)
    assert store.carry_over(renewal(old[:1])) == 0
    assert store.carry_over(renewal(old)) == 2
    new = [renewal(old)[key].key for key in keys]
    copies = found(store, new, confirm_round(new))
    assert [copies[key] for key in new] == [timed(1.0), timed(2.0)]
