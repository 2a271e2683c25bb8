"""Equal records have equal texts in a store, whatever the order in which they were put together."""

from __future__ import annotations

import dataclasses
import json

from test_store import START, STEP, entry

from tunesmith.records import Configuration, Cost
from tunesmith.store import RunEnd, RunState
from tunesmith.store.codec import documents_of

END = RunEnd(RunState.FINISHED, 12.5, 100, 20, Cost(1.0, 2.0, 3.0), "all well")


def test_the_keys_of_every_text_are_in_the_order_of_the_alphabet():
    """Two files of different versions then differ only in what the versions changed."""
    for text in (START.to_json(), END.to_json(), STEP.to_json(), *documents_of(entry()).values()):
        assert text == json.dumps(json.loads(text), sort_keys=True)


def test_a_step_has_one_text_whatever_reason_came_first():
    counts = {"local memory": 2, "registers": 1}
    turned = dict(reversed(counts.items()))
    for field in ("rejected", "failed"):
        texts = {dataclasses.replace(STEP, **{field: reasons}).to_json() for reasons in (counts, turned)}
        assert len(texts) == 1


def test_a_solution_has_one_text_whatever_parameter_came_first():
    parameters = {"Tile": 8, "Pad": True}
    texts = set()
    for ordered in (parameters, dict(reversed(parameters.items()))):
        solution = dataclasses.replace(entry().solution, configuration=Configuration(ordered))
        texts.add(documents_of(dataclasses.replace(entry(), solution=solution))["solution"])
    assert len(texts) == 1
