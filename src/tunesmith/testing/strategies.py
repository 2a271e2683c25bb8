"""What every search strategy promises: see `search.Strategy` and `search.Search`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product, zip_longest

import numpy as np

from tunesmith.records import Configuration, Estimate, Problem, ProblemType
from tunesmith.search import LARGEST_LISTED, CandidateBatch, Candidates, MeasureMode, Search, Strategy
from tunesmith.spaces import Combinations

_PROBLEM = Problem(ProblemType("Toy", "toy", ("N",), Configuration()), (1,))
_MOST_BATCHES = 1000
"""A search of the small space that asks for more is taken for endless."""


def _choices(**values: Sequence[int | str]) -> Combinations:
    return Combinations(
        tuple(tuple(Configuration({name: value}) for value in listed) for name, listed in values.items())
    )


def _is_legal(config: Configuration) -> bool:
    return config.integer("tile") * config.integer("width") <= 64


_SMALL = Candidates(
    _choices(tile=(16, 32, 64), width=(1, 2, 4), edge=("Branch", "ShiftPtr")),
    base=Configuration({"tile": 1, "depth": 8}),
    legal=_is_legal,
)
"""18 combinations, of which 12 are legal, over a base."""
_LEGAL = frozenset(config for config in _SMALL if _is_legal(config))
_LARGE = Candidates(_choices(**{f"p{number}": range(10) for number in range(9)}))
"""10^9 combinations."""


class StrategySuite:
    """Set `strategy`. The suite brings its own candidates: a space of 12 legal ones, and one of 10^9."""

    strategy: Strategy

    def start(self, candidates: Candidates = _SMALL, seed: int = 1) -> Search:
        return self.strategy.start(candidates, np.random.default_rng(seed))

    def test_it_asks_only_for_legal_candidates(self) -> None:
        for config in _screened(_carry(self.start(), _seconds)):
            assert config in _LEGAL, f"a search must ask only for legal candidates, over their base; it asked: {config}"

    def test_it_asks_for_nothing_twice_in_one_mode(self) -> None:
        for trials in (None, 5, 100):
            batches = _carry(self.start(replace(_SMALL, trials=trials)), _seconds)
            asked = Counter((batch.mode, config) for batch in batches for config in batch.configurations)
            repeated = [config for (_, config), times in asked.items() if times > 1]
            assert not repeated, f"a search must ask for each configuration once in a mode; it repeated {repeated[0]}"

    def test_it_asks_for_as_many_as_it_says_beforehand(self) -> None:
        for trials in (None, 1, 5, 100):
            asked = len(_screened(_carry(self.start(replace(_SMALL, trials=trials)), _seconds)))
            promised = self.strategy.count(len(_LEGAL), trials)
            assert asked == promised, (
                f"count({len(_LEGAL)}, {trials}) must say how many are asked for: it says {promised}, they are {asked}"
            )

    def test_it_asks_for_no_more_than_it_may(self) -> None:
        for trials in (1, 5, 100):
            asked = len(_screened(_carry(self.start(replace(_SMALL, trials=trials)), _seconds)))
            assert asked <= trials, f"a search must ask for at most `trials` candidates: {trials}, it asked for {asked}"

    def test_with_time_for_all_it_asks_for_everything_legal(self) -> None:
        asked = _screened(_carry(self.start(replace(_SMALL, trials=100)), _seconds))
        missing = _LEGAL - set(asked)
        assert not missing, f"with more trials than candidates, a search must ask for all; {len(missing)} are missing"

    def test_it_ends_and_asks_for_nothing_afterwards(self) -> None:
        search = self.start()
        batches = _carry(search, _seconds)
        assert len(batches) < _MOST_BATCHES, f"a search must end; after {_MOST_BATCHES} batches it still asks"
        assert batches, "a search must ask for something where there are legal candidates"
        for _ in range(3):
            assert search.ask() is None, "a search that is over must answer None from then on"

    def test_it_never_asks_for_an_empty_batch(self) -> None:
        for batch in _carry(self.start(), _seconds):
            assert batch.configurations, "a batch must have configurations; a search that has none left answers None"

    def test_without_legal_candidates_it_asks_for_nothing(self) -> None:
        search = self.start(replace(_SMALL, legal=lambda config: False))
        assert search.ask() is None, "where no candidate is legal, a search must answer None at once"

    def test_the_same_seed_and_the_same_times_give_the_same_search(self) -> None:
        first, second = (_carry(self.start(seed=3), _seconds_of_some) for _ in range(2))
        assert first == second, "what is asked must follow from candidates, seed and times; two equal searches differ"

    def test_two_searches_share_nothing(self) -> None:
        """One strategy starts both; they are carried out by turns, and each is as if it were alone."""
        alone = [_carry(self.start(seed=seed), _seconds) for seed in (1, 2)]
        turns: list[list[CandidateBatch]] = [[], []]
        searches = [self.start(seed=seed) for seed in (1, 2)]
        for _ in zip_longest(*alone):
            for search, batches in zip(searches, turns, strict=True):
                batches.extend(_carry(search, _seconds, most=1))
        assert turns == alone, "a strategy must be stateless: two searches at once disturb each other"

    def test_batches_are_measured_as_the_candidates_say(self) -> None:
        for mode in (MeasureMode.RACED, MeasureMode.FULL):
            modes = {batch.mode for batch in _carry(self.start(replace(_SMALL, mode=mode)), _seconds)}
            wrong = modes - {MeasureMode.CONFIRMED, mode}
            assert not wrong, f"batches must have the mode of the candidates, {mode}, or be CONFIRMED; one has {wrong}"

    def test_it_survives_configurations_that_do_not_run(self) -> None:
        """Some, then all of them; told by no row and by an empty one."""
        for seconds, empty_rows in product((_seconds_of_some, _never), (False, True)):
            batches = _carry(self.start(), seconds, empty_rows=empty_rows)
            assert 0 < len(batches) < _MOST_BATCHES, "a search must go on, and end, where configurations do not run"
            assert set(_screened(batches)) <= _LEGAL, "a search must stay legal where configurations do not run"

    def test_it_remembers_what_it_was_told(self) -> None:
        search = self.start()
        asked = _screened(_carry(search, _seconds_of_some))
        assert list(search.told) == asked, "`told` must have every configuration that was asked for, in that order"
        ran = {config: row[_PROBLEM].seconds for config, row in search.told.items() if row}
        expected = {config: seconds for config in asked if (seconds := _seconds_of_some(config)) is not None}
        assert ran == expected, "`told` must have the time of each configuration that ran, and no time of another"

    def test_of_a_space_too_large_to_list_few_are_looked_at(self) -> None:
        looked_at = 0

        def is_even(config: Configuration) -> bool:
            nonlocal looked_at
            looked_at += 1
            return config.integer("p0") % 2 == 0

        search = self.start(replace(_LARGE, legal=is_even, trials=20))
        first = search.ask()
        assert first is not None, "of 10^9 candidates, half of them legal, a search must find some"
        assert looked_at <= LARGEST_LISTED, (
            f"before the first batch a search must look at no more than {LARGEST_LISTED} combinations of a large "
            f"space; it looked at {looked_at}"
        )
        assert len(first.configurations) <= 20, "a search must ask for at most `trials` candidates"
        illegal = [config for config in first.configurations if config.integer("p0") % 2]
        assert not illegal, f"a search must ask only for legal candidates; it asked: {illegal[0]}"


def _carry(
    search: Search,
    seconds: Callable[[Configuration], float | None],
    most: int = _MOST_BATCHES,
    empty_rows: bool = False,
) -> list[CandidateBatch]:
    """The batches that a search asks for, told the times of what runs; of the rest an empty row, or none."""
    batches: list[CandidateBatch] = []
    while len(batches) < most and (batch := search.ask()) is not None:
        batches.append(batch)
        rows: dict[Configuration, dict[Problem, Estimate]] = {}
        for config in batch.configurations:
            if (time := seconds(config)) is not None:
                rows[config] = {_PROBLEM: Estimate(time, time, time, 1)}
            elif empty_rows:
                rows[config] = {}
        search.tell(batch, rows)
    return batches


def _screened(batches: Sequence[CandidateBatch]) -> list[Configuration]:
    """What was asked for in another mode than CONFIRMED, in order."""
    return [config for batch in batches if batch.mode is not MeasureMode.CONFIRMED for config in batch.configurations]


def _seconds(config: Configuration) -> float | None:
    return 1.0 / config.integer("tile") + 0.001 * config.integer("width")


def _seconds_of_some(config: Configuration) -> float | None:
    return None if config["tile"] == 32 and config["edge"] == "Branch" else _seconds(config)


def _never(config: Configuration) -> float | None:
    return None
