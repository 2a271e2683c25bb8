"""What each search strategy adds to what all promise (`tests/conformance/test_strategies.py`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from protocol_fakes import choices, size
from tunesmith.records import Configuration, Estimate
from tunesmith.search import (
    LARGEST_LISTED,
    STRATEGIES,
    CandidateBatch,
    Candidates,
    Growing,
    MeasureMode,
    RaceThenConfirm,
    surrogate,
)
from tunesmith.search.base import MOST_EXAMINED
from tunesmith.search.sampling import shuffled
from tunesmith.spaces import Combinations

PROBLEM = size(1)
VALUES = {"tile": [16, 32, 64], "width": [1, 2, 4], "edge": ["Branch", "ShiftPtr"]}


def legal(config):
    return config.integer("tile") * config.integer("width") <= 64


LEGAL = Candidates(choices(VALUES), legal=legal)
LARGE = Candidates(choices({f"p{index}": list(range(10)) for index in range(9)}))
"""10^9 combinations."""


def wider(candidates, times):
    """Doubles the largest tile while it is the best; tiles of 512 and more have no legal width."""
    best = min(times, key=lambda config: seconds(config))
    tiles = candidates.choices.values("tile")
    if best["tile"] != max(tiles):
        return candidates
    return replace(candidates, choices=choices({**VALUES, "tile": [*tiles, 2 * best.integer("tile")]}))


def two_best(times):
    return [CandidateBatch(tuple(sorted(times, key=seconds)[:2]), MeasureMode.CONFIRMED)]


def seconds(config):
    if "tile" not in config:
        return 1.0 + sum(config.integer(name) for name in config)
    return 1.0 / config.integer("tile") + 0.001 * config.integer("width")


def begin(name, candidates=LEGAL, seed=1):
    return STRATEGIES[name].start(candidates, np.random.default_rng(seed))


def run_to_end(search, most=1000):
    """Everything that a search asks for, told its times."""
    batches: list[CandidateBatch] = []
    while len(batches) < most and (batch := search.ask()):
        batches.append(batch)
        times = {config: Estimate(*[seconds(config)] * 3, 1) for config in batch.configurations}
        search.tell(batch, {config: {PROBLEM: time} for config, time in times.items()})
    return batches


def screened(batches):
    return [config for batch in batches if batch.mode is not MeasureMode.CONFIRMED for config in batch.configurations]


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_few_combinations_of_a_space_too_large_to_list_are_examined_before_the_first_batch(monkeypatch, name):
    """Every other combination is legal. The first batch of a space of 10^9 needs a bounded number of `legal` calls."""
    monkeypatch.setattr(surrogate, "MOST_CANDIDATES", 1000)
    questions = Counter[str]()

    def even(config):
        questions["asked"] += 1
        return config.integer("p0") % 2 == 0

    search = begin(name, replace(LARGE, legal=even, trials=50))
    first = search.ask()
    assert first is not None
    assert 1 <= len(first.configurations) <= 50
    assert questions["asked"] <= MOST_EXAMINED < LARGEST_LISTED
    assert len(set(screened(run_to_end(search))) | set(first.configurations)) == 50


def test_without_a_limit_a_large_space_comes_in_bounded_batches():
    search = begin("exhaustive", LARGE)
    batches = [search.ask() for _ in range(3)]
    assert [len(batch.configurations) for batch in batches if batch] == [MOST_EXAMINED] * 3


@pytest.mark.parametrize("name", ["random", "surrogate"])
@pytest.mark.parametrize("candidates", [LEGAL, replace(LARGE, trials=50)])
def test_a_sample_begins_with_the_first_configurations(monkeypatch, name, candidates):
    held = candidates.choices[3 if candidates is LEGAL else 987_654_321]
    monkeypatch.setattr(surrogate, "MOST_CANDIDATES", 1000)
    for seed in range(3):
        first = begin(name, replace(candidates, first=(held,)), seed).ask()
        assert first is not None
        assert first.configurations[0] == held


def test_exhaustive_search_is_one_batch_in_the_order_of_the_file():
    (batch,) = run_to_end(
        begin("exhaustive", Candidates(choices({"tile": [16, 32, 64], "width": [1, 2, 4]}), legal=legal))
    )
    asked = [(config["tile"], config["width"]) for config in batch.configurations]
    assert asked == [(16, 1), (32, 1), (64, 1), (16, 2), (32, 2), (16, 4)]


def test_parameters_that_do_not_vary_come_from_the_base():
    base = Configuration({"tile": 16, "width": 1, "edge": "Branch"})
    asked = screened(run_to_end(begin("exhaustive", Candidates(choices({"width": [1, 2, 4]}), base, legal))))
    assert [dict(config) for config in asked] == [{"tile": 16, "width": w, "edge": "Branch"} for w in (1, 2, 4)]


def test_a_list_counts_each_configuration_once():
    listed = list(choices(VALUES))
    assert screened(run_to_end(begin("exhaustive", Candidates.of_list([*listed, listed[0]])))) == listed


def test_random_searches_differ_by_seed():
    assert len({tuple(screened(run_to_end(begin("random", seed=seed)))) for seed in range(20)}) == 20


def test_every_order_is_equally_likely():
    random = np.random.default_rng(0)
    orders = Counter(tuple(shuffled(4, random)) for _ in range(4800))
    assert set(orders) == set(permutations(range(4)))
    assert stats.chisquare(list(orders.values())).pvalue > 0.001


@given(st.integers(0, 200), st.integers(0, 1000))
def test_a_shuffle_is_a_permutation(count, seed):
    assert sorted(shuffled(count, np.random.default_rng(seed))) == list(range(count))


@pytest.mark.parametrize("digits", [18, 30])
def test_a_space_of_any_size_can_be_sampled(digits):
    """10^30 is beyond the integers of a generator, and beyond the range of `len`."""
    huge = Candidates(choices({f"p{index}": list(range(10)) for index in range(digits)}), trials=500)
    assert huge.choices.count == 10**digits
    asked = screened(run_to_end(begin("random", huge), most=1))
    assert len(set(asked)) == 500
    assert all(len({config[name] for config in asked}) == 10 for name in huge.choices.names)


def test_a_space_grows_while_the_best_lies_on_its_edge_and_keeps_what_it_had():
    search = Growing(wider).start(replace(LEGAL, legal=lambda c: c.integer("tile") < 200), np.random.default_rng())
    batches = run_to_end(search)
    assert [sorted({config["tile"] for config in batch.configurations}) for batch in batches] == [[16, 32, 64], [128]]
    assert Counter(screened(batches)).most_common(1)[0][1] == 1
    assert list(search.told) == screened(batches)


@pytest.mark.parametrize("growths", [0, 1, 3])
def test_a_space_grows_no_more_often_than_it_may(growths):
    search = Growing(wider, growths).start(replace(LEGAL, legal=lambda config: True), np.random.default_rng())
    assert max(config.integer("tile") for config in screened(run_to_end(search))) == 64 * 2**growths


def test_finalists_are_chosen_by_the_times_and_measured_side_by_side_at_the_end():
    for inner in STRATEGIES:
        *_, last = batches = run_to_end(
            RaceThenConfirm(two_best, STRATEGIES[inner]).start(LEGAL, np.random.default_rng(0))
        )
        assert [batch.mode for batch in batches].count(MeasureMode.CONFIRMED) == 1
        assert (last.mode, list(last.configurations)) == (
            MeasureMode.CONFIRMED,
            sorted(screened(batches), key=seconds)[:2],
        )


def test_a_model_is_content_with_a_tenth():
    assert STRATEGIES["surrogate"].count(1000, None) == 100
    assert STRATEGIES["surrogate"].count(100, None) == 24
    assert STRATEGIES["surrogate"].count(10**9, None) == STRATEGIES["surrogate"].count(10**9, 10**8) == 20_000


def test_an_unknown_strategy_is_refused_with_the_names_that_exist():
    with pytest.raises(KeyError, match="exhaustive, random"):
        STRATEGIES["genetic"]


# Combinations


@given(st.lists(st.integers(1, 4), max_size=4))
def test_combinations_are_numbered_counted_and_found_without_being_listed(lengths):
    combinations = choices({f"p{index}": list(range(length)) for index, length in enumerate(lengths)})
    listed = list(combinations)
    assert [combinations[number] for number in range(combinations.count)] == listed
    assert len(combinations) == len(listed) == len(set(listed))
    assert all(config in combinations for config in listed)
    with pytest.raises(IndexError):
        combinations[combinations.count]


def test_membership_names_and_values_of_combinations():
    tied = (Configuration({"a": 1, "b": 1}), Configuration({"a": 2, "b": 2}))
    combinations = Combinations((tied, (Configuration({"c": 1}), Configuration({"c": True}))))
    assert combinations.names == ("a", "b", "c")
    assert combinations.values("a") == (1, 2)
    assert combinations.values("c") == (1, True)
    assert combinations.values("d") == ()
    assert Configuration({"c": 1, "a": 2, "b": 2}) in combinations
    for stranger in ({"a": 1, "b": 2, "c": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}):
        assert Configuration(stranger) not in combinations
    assert list(combinations.without(["a", "c"])) == [Configuration({"b": 1}), Configuration({"b": 2})]
