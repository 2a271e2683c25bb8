"""Each promise of the strategy suite is broken by a strategy that is wrong in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice

import pytest

from broken_promises import assert_all_can_be_broken, assert_broken
from tunesmith.search import (
    LARGEST_LISTED,
    STRATEGIES,
    CandidateBatch,
    Candidates,
    MeasureMode,
    Search,
    Strategy,
)
from tunesmith.testing import StrategySuite

Script = Callable[[Candidates, "ScriptedSearch"], Iterator[CandidateBatch]]


class ScriptedSearch(Search):
    """Asks for what a generator yields, and remembers as it should."""

    def __init__(self, script, candidates):
        super().__init__()
        self._batches = script(candidates, self)

    def ask(self):
        return next(self._batches, None)


class Scripted(Strategy):
    def __init__(self, script):
        self._script = script

    def start(self, candidates, random):
        return ScriptedSearch(self._script, candidates)


def legal(candidates):
    return list(islice(filter(candidates.legal, candidates), candidates.trials))


def batch(configs, mode=MeasureMode.RACED):
    return CandidateBatch(tuple(configs), mode)


def asks_for_illegal_ones(candidates, search):
    yield batch(list(candidates))


def repeats_itself(candidates, search):
    yield batch(legal(candidates))
    yield batch(legal(candidates)[:1])


def never_ends(candidates, search):
    while True:
        yield batch(legal(candidates))


def begins_with_nothing(candidates, search):
    yield batch([])
    yield batch(legal(candidates))


def asks_for_all_whatever_it_may(candidates, search):
    yield batch(list(filter(candidates.legal, candidates)))


def leaves_one_out(candidates, search):
    yield batch(legal(candidates)[:-1])


def asks_again_until_something_runs(candidates, search):
    while not any(search.told.values()):
        yield batch(legal(candidates))


def always_races(candidates, search):
    yield batch(legal(candidates), MeasureMode.RACED)


def asks_too_often(candidates, search):
    first = next(filter(candidates.legal, candidates))
    yield batch([first for _ in range(LARGEST_LISTED) if candidates.legal(first)][:1])


NUMBERS = count()


def goes_on_where_the_last_search_ended(candidates, search):
    every = legal(candidates)
    first = next(NUMBERS) % len(every)
    yield batch(every[first:] + every[:first])


class OneSearch(Strategy):
    """All its searches ask the one that was started last."""

    def start(self, candidates, random):
        self._last = STRATEGIES["exhaustive"].start(candidates, random)

        def asks_the_last(candidates, search):
            while batch := self._last.ask():
                yield batch

        return ScriptedSearch(asks_the_last, candidates)


class Miscounts(Scripted):
    def count(self, candidates, trials):
        return candidates + 1


class Forgets(Strategy):
    def start(self, candidates, random):
        class Forgetful(ScriptedSearch):
            def tell(self, batch, rows):
                """Nothing is kept."""

        return Forgetful(always_races, candidates)


BROKEN: dict[str, Strategy] = {
    "test_it_asks_only_for_legal_candidates": Scripted(asks_for_illegal_ones),
    "test_it_asks_for_nothing_twice_in_one_mode": Scripted(repeats_itself),
    "test_it_asks_for_as_many_as_it_says_beforehand": Miscounts(always_races),
    "test_it_asks_for_no_more_than_it_may": Scripted(asks_for_all_whatever_it_may),
    "test_with_time_for_all_it_asks_for_everything_legal": Scripted(leaves_one_out),
    "test_it_ends_and_asks_for_nothing_afterwards": Scripted(never_ends),
    "test_it_never_asks_for_an_empty_batch": Scripted(begins_with_nothing),
    "test_without_legal_candidates_it_asks_for_nothing": Scripted(asks_for_illegal_ones),
    "test_the_same_seed_and_the_same_times_give_the_same_search": Scripted(goes_on_where_the_last_search_ended),
    "test_two_searches_share_nothing": OneSearch(),
    "test_batches_are_measured_as_the_candidates_say": Scripted(always_races),
    "test_it_survives_configurations_that_do_not_run": Scripted(asks_again_until_something_runs),
    "test_it_remembers_what_it_was_told": Forgets(),
    "test_of_a_space_too_large_to_list_few_are_looked_at": Scripted(asks_too_often),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_strategy_is_found_out(promise):
    suite = StrategySuite()
    suite.strategy = BROKEN[promise]
    assert_broken(suite, promise)


def test_every_promise_can_be_broken():
    assert_all_can_be_broken(StrategySuite, BROKEN)
