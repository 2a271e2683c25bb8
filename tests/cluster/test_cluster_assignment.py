"""Which cells go to which device: together by problem, longest first, in portions that leave no device idle."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith.cluster.assignment import MOST, SHARE, Assignment, CellGroup, expected_seconds, longest_idle


def groups(*sizes):
    """Groups `a`, `b`, ... of so many items, a second each."""
    named = zip("abc", sizes, strict=False)
    return [CellGroup(key, [f"{key}.{item}" for item in range(count)], 1.0) for key, count in named]


def carried_out(assignment, devices, most=MOST):
    """All items by device, when the devices ask in turn."""
    got = defaultdict(list)
    while assignment.left:
        for device in devices:
            got[device] += assignment.portion_for(device, devices, most)
    return got


@given(
    st.lists(st.tuples(st.integers(1, 40), st.floats(0.001, 10)), min_size=1, max_size=20),
    st.integers(1, 8),
    st.integers(1, MOST),
)
@settings(max_examples=100, deadline=None)
def test_each_item_goes_out_once_and_a_problem_stays_on_one_device(drawn, count, most):
    made = [
        CellGroup(index, [(index, item) for item in range(items)], seconds)
        for index, (items, seconds) in enumerate(drawn)
    ]
    devices = [f"d{number}" for number in range(count)]
    got = carried_out(Assignment.of(made, {}), devices, most)
    items = [item for portion in got.values() for item in portion]
    assert sorted(items) == sorted(item for group in made for item in group.items)
    for index in range(len(made)):
        assert len({device for device, own in got.items() if any(item[0] == index for item in own)}) == 1


def test_the_longest_problem_goes_out_first():
    assignment = Assignment.of(groups(2, 9, 5), {})
    assert [assignment.portion_for(name, ["x", "y", "z"], 1)[0][0] for name in "xyz"] == ["b", "c", "a"]


def test_of_equally_long_problems_the_one_with_more_work_goes_first():
    made = [CellGroup("small", ["s"], 1.0, work=1.0), CellGroup("large", ["l"], 1.0, work=2.0)]
    assert Assignment.of(made, {}).portion_for("x", ["x"], 1) == ["l"]


def test_a_problem_goes_to_its_home_and_otherwise_to_a_device_without_work():
    homes = {"a": "x", "b": "y", "c": "y"}
    assignment = Assignment.of(groups(9, 8, 7), homes)
    assert assignment.portion_for("y", ["x", "y"], 16)[0][0] == "b", "its own, although a is longer"
    got = [assignment.portion_for("x", ["x", "y"], 1)[0] for _ in range(10)]
    assert {item[0] for item in got[:9]} == {"a"}
    assert got[9] == "c.0", "y has more to do than x"
    assert homes == {"a": "x", "b": "y", "c": "x"}


def test_a_problem_is_expected_to_take_what_it_took_or_what_the_most_similar_one_did():
    works = {"a": 1e9, "b": 3e9, "c": 1e12, "none": 0.0}
    known = {"a": (1e9, 0.02), "other": (1e11, 0.1), "zero": (0.0, 0.01)}
    assert expected_seconds(works, known, 1.0) == {"a": 0.02, "b": 0.02, "c": 0.1, "none": 0.01}


def test_the_problem_with_the_most_work_is_expected_to_take_the_longest_if_nothing_is_known():
    assert expected_seconds({"a": 0.0, "b": 1e9, "c": 2e9}, {}, 2.0) == {"a": 2.0, "b": 3.0, "c": 4.0}
    assert expected_seconds({"a": 0.0}, {}, 2.0) == {"a": 2.0}


def test_a_device_begins_the_problem_that_it_expects_and_others_leave_it_alone():
    assignment = Assignment.of(groups(3, 2, 2), {})
    assert assignment.portion_for("x", ["x", "y"], 1) == ["a.0"]
    assert assignment.next_for("x", ["x", "y"]) == "b.0"
    assert assignment.portion_for("y", ["x", "y"], 2) == ["c.0", "c.1"], "b is as long, but x expects it"
    assert assignment.next_for("y", ["x", "y"]) is None
    assert assignment.portion_for("x", ["x", "y"], 2) == ["a.1", "a.2"]
    assert assignment.portion_for("x", ["x", "y"]) == ["b.0", "b.1"]


def test_a_problem_that_a_device_expects_goes_to_another_before_that_is_idle():
    assignment = Assignment.of(groups(9, 2), {})
    assignment.portion_for("x", ["x", "y"], 1)
    assert assignment.next_for("x", ["x", "y"]) == "b.0"
    assert assignment.portion_for("y", ["x", "y"]) == ["b.0", "b.1"]
    assert assignment.next_for("x", ["x", "y"]) is None


def test_nobody_waits_for_a_lost_device_that_expected_a_problem():
    assignment = Assignment.of(groups(9, 5, 4), {})
    assignment.portion_for("x", ["x", "y"], 1)
    assert assignment.next_for("x", ["x", "y"]) == "b.0"
    assignment.lose("x")
    assert assignment.portion_for("y", ["y"], 1) == ["a.1"]


def test_a_problem_that_was_begun_in_the_step_stays_even_if_others_wait():
    assignment = Assignment.of(groups(3), {"a": "y"}, begun={"a"})
    assert assignment.portion_for("x", ["x", "y"]) == []
    assert assignment.portion_for("y", ["x", "y"]) == ["a.0", "a.1", "a.2"], "items of one problem fill a portion"


def test_a_lost_device_gives_everything_that_is_not_measured_to_others():
    assignment = Assignment.of(groups(4), {})
    sent = assignment.portion_for("x", ["x", "y"], 2)
    assignment.lose("x")
    assignment.give_back("a", sent[1:])
    assert carried_out(assignment, ["y"])["y"] == ["a.1", "a.2", "a.3"], "in the order in which they were"


def test_a_device_that_works_no_more_keeps_no_problem():
    """A device may be left out in the middle of a step, without being lost."""
    assignment = Assignment.of(groups(40), {})
    assignment.portion_for("x", ["x", "y"], 2)
    assert assignment.portion_for("y", ["y"]), "x is not among those that work"


def test_portions_shrink_towards_the_end():
    assignment = Assignment.of([CellGroup(index, [index], 1.0) for index in range(200)], {})
    sizes = []
    while portion := assignment.portion_for("x", ["x", "y"], 1000):
        sizes.append(len(portion))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == int(SHARE * 200 / 2)
    assert sizes[-1] == 1


@pytest.mark.parametrize("devices", [2, 8, 32])
def test_the_last_device_idles_less_than_a_tenth_of_a_step(devices):
    """If problems are many enough that whole problems can be balanced: here ten for each device, of uneven length."""
    random_ = random.Random(devices)
    made = [
        CellGroup(index, [(index, item) for item in range(random_.randint(5, 40))], random_.lognormvariate(0, 0.5))
        for index in range(10 * devices)
    ]
    assert longest_idle(made, devices) < 0.1


def test_a_device_at_work_begins_none_of_the_last_problems():
    """Another device may be free for it sooner; but it goes on with its own problem, and takes one of many."""
    assignment = Assignment.of(groups(2, 2, 2), {})
    assert assignment.portion_for("x", ["x", "y"], 1) == ["a.0"]
    assert assignment.portion_for("x", ["x", "y"], 9, is_ahead=True) == ["a.1"]
    assert assignment.portion_for("x", ["x", "y"], 9, is_ahead=True) == [], "b and c are for whoever is free first"
    assert assignment.portion_for("y", ["x", "y"], 9) == ["b.0", "b.1"]
    assert assignment.portion_for("x", ["x", "y"], 9) == ["c.0", "c.1"]


def test_idling_is_counted_where_a_problem_is_longer_than_all_others():
    """Fairness goes before balance: a problem is not divided, so this step ends with one device alone."""
    made = [CellGroup("long", [("long", item) for item in range(100)], 1.0), CellGroup("short", [("short", 0)], 1.0)]
    assert longest_idle(made, 2) == pytest.approx(0.99)
