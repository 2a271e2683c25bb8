"""A tuning file's settings for the search in its steps, and steps that are too large to list."""

from __future__ import annotations

import pytest

from tunesmith.protocol import SearchPlan
from tunesmith.records import Configuration


def test_the_search_of_all_steps_is_the_files(group):
    assert group("").groups[0].search == SearchPlan("exhaustive", None, 0)
    named = group("", before="GlobalParameters: {SearchStrategy: random, SearchTrials: 30, Seed: 4}")
    assert named.groups[0].search == SearchPlan("random", 30, 4)


LARGE = "BenchmarkForkParameters:\n  - {DepthU: LIST, LoopUnroll: LIST, GlobalSplitU: LIST}".replace(
    "LIST", str(list(range(1, 1001)))
)


@pytest.mark.parametrize(
    ("settings", "phrase"),
    [
        ("", "1,000,000,000 combinations in one step, of which the search measures up to 1,000,000,000"),
        ("SearchStrategy: random", "measures up to 1,000,000,000; SearchStrategy and SearchTrials make it fewer"),
        ("SearchStrategy: random, SearchTrials: 50", ""),
        ("SearchStrategy: surrogate", ""),
    ],
)
def test_a_step_of_a_thousand_million_combinations_is_read_and_what_it_takes_is_said(group, settings, phrase):
    tuning_file = group(LARGE, before=f"GlobalParameters: {{{settings}}}")
    step = tuning_file.groups[0].steps[0]
    assert len(step.choices) == 10**9
    assert Configuration({"DepthU": 7, "LoopUnroll": 1000, "GlobalSplitU": 1}) in step.choices
    assert Configuration({"DepthU": 7, "LoopUnroll": 1001, "GlobalSplitU": 1}) not in step.choices
    assert step.choices[10**9 - 1] == Configuration({"DepthU": 1000, "LoopUnroll": 1000, "GlobalSplitU": 1000})
    notes = [note for note in tuning_file.notes if "combinations" in note]
    assert all(phrase in note for note in notes)
    assert len(notes) == bool(phrase)
