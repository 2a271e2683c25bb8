"""What every search strategy promises, and what each adds."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tunesmith.records import Configuration
from tunesmith.search import STRATEGIES, Candidates, Search
from tunesmith.search.random_sample import shuffled
from tunesmith.spaces import Parameter, Space

SPACE = Space(
    (
        Parameter("tile", 16, (16, 32, 64), "rows of a tile"),
        Parameter("width", 1, (1, 2, 4), "elements a load"),
        Parameter("edge", "Branch", ("Branch", "ShiftPtr"), "how edges are handled"),
    )
)


def legal(config: Configuration) -> bool:
    return config.integer("tile") * config.integer("width") <= 64


LEGAL = Candidates.of(SPACE, legal)


def walk(name: str, candidates: Candidates = LEGAL, seed: int = 1) -> Search:
    return STRATEGIES[name].start(candidates, np.random.default_rng(seed))


def everything(search: Search, batch: int = 1) -> list[Configuration]:
    asked: list[Configuration] = []
    while more := search.ask(batch):
        assert len(more) <= batch
        asked += more
        for config in more:
            search.tell(config, None)
    return asked


every_strategy = pytest.mark.parametrize("name", list(STRATEGIES))


@every_strategy
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_every_legal_candidate_is_asked_for_once_and_nothing_else(name: str, batch: int) -> None:
    asked = everything(walk(name), batch)
    assert Counter(asked) == Counter(
        Configuration({"tile": tile, "width": width, "edge": edge})
        for tile in (16, 32, 64)
        for width in (1, 2, 4)
        for edge in ("Branch", "ShiftPtr")
        if tile * width <= 64
    )


@every_strategy
def test_the_same_seed_gives_the_same_walk_whatever_the_batches(name: str) -> None:
    assert everything(walk(name), 1) == everything(walk(name), 7)


@every_strategy
def test_what_was_told_before_is_not_asked_for_again(name: str) -> None:
    """A walk that goes on from a store is told what is known, in any order."""
    first = everything(walk(name))
    search = walk(name)
    for config in first[5:2:-1]:
        search.tell(config, 1.0)
    assert everything(search) == first[:3] + first[6:]


@every_strategy
def test_the_best_is_the_fastest_that_ran(name: str) -> None:
    search = walk(name)
    assert search.best is None
    failed, slow, fast, as_fast = search.ask(4)
    search.tell(failed, None)
    assert search.best is None
    for config, seconds in ((slow, 3.0), (fast, 2.0), (as_fast, 2.0)):
        search.tell(config, seconds)
    assert search.best == fast
    assert dict(search.told) == {failed: None, slow: 3.0, fast: 2.0, as_fast: 2.0}


@every_strategy
def test_a_space_without_legal_candidates_asks_for_nothing(name: str) -> None:
    assert walk(name, Candidates.of(SPACE, lambda config: False)).ask(3) == ()


@every_strategy
def test_a_value_that_is_listed_twice_is_asked_for_once(name: str) -> None:
    assert len(walk(name, Candidates(SPACE.defaults, (("tile", (16, 16, 32)),), legal)).ask(10)) == 2


def test_exhaustive_search_goes_in_mixed_radix_order() -> None:
    asked = [
        (c["tile"], c["width"]) for c in everything(walk("exhaustive", Candidates.of(SPACE, legal, ["tile", "width"])))
    ]
    assert asked == [(16, 1), (32, 1), (64, 1), (16, 2), (32, 2), (16, 4)]


def test_what_is_not_varied_keeps_its_default() -> None:
    asked = everything(walk("exhaustive", Candidates.of(SPACE, legal, ["width"])))
    assert [dict(config) for config in asked] == [{"tile": 16, "width": w, "edge": "Branch"} for w in (1, 2, 4)]


def test_random_walks_differ_by_seed() -> None:
    assert len({tuple(everything(walk("random", seed=seed))) for seed in range(20)}) == 20


def test_every_order_is_equally_likely() -> None:
    random = np.random.default_rng(0)
    seen = Counter(tuple(shuffled(4, random)) for _ in range(4800))
    assert set(seen) == set(permutations(range(4)))
    assert stats.chisquare(list(seen.values())).pvalue > 0.001


@given(st.integers(0, 200), st.integers(0, 1000))
def test_a_shuffle_is_a_permutation(count: int, seed: int) -> None:
    assert sorted(shuffled(count, np.random.default_rng(seed))) == list(range(count))


def test_a_space_too_large_to_list_can_be_sampled() -> None:
    huge = Candidates(Configuration(), tuple((f"p{i}", tuple(range(10))) for i in range(18)), lambda config: True)
    assert huge.combinations == 10**18
    assert len(set(walk("random", huge).ask(50))) == 50


def test_an_unknown_strategy_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(KeyError, match="exhaustive, random"):
        STRATEGIES["genetic"]
