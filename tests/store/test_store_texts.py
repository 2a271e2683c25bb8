"""Equal records have equal texts in a store, in whatever order they were put together. A text whose values have other
types is no record."""

from __future__ import annotations

import dataclasses
import json

import pytest
from sqlalchemy import event
from test_store import START, STEP, entry

from tunesmith.records import Configuration, Cost
from tunesmith.store import RunEnd, RunStart, RunState, StepRecord, Store
from tunesmith.store.codec import document_to_json, documents_of
from tunesmith.store.typed import sound_problem

END = RunEnd(RunState.FINISHED, 12.5, 100, 20, Cost(1.0, 2.0, 3.0), "all well")


def test_the_keys_of_every_text_are_in_the_order_of_the_alphabet():
    """Two files of different versions then differ only in what the versions changed."""
    for text in (
        START.to_json(),
        END.to_json(),
        STEP.to_json(),
        *map(document_to_json, documents_of(entry()).values()),
    ):
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
        texts.add(document_to_json(solution))
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("record", "field", "wrong"),
    [
        (START, "device", 3),
        (START, "device", None),
        (START, "remeasures", 1),
        (START, "remeasures", "yes"),
        (STEP, "number", True),
        (STEP, "number", 3.0),
        (STEP, "number", "3"),
        (STEP, "seconds", True),
        (STEP, "seconds", "2.5"),
        (STEP, "phase", ["a"]),
        (END, "measured", False),
        (END, "seconds", None),
        (END, "state", "perhaps"),
        (END, "note", 0),
    ],
)
def test_a_text_with_a_value_of_another_type_is_no_record(record, field, wrong):
    raw = json.loads(record.to_json())
    assert field in raw
    with pytest.raises(ValueError, match=r".+"):
        type(record).from_json(json.dumps(raw | {field: wrong}))


@pytest.mark.parametrize("record", [STEP, END])
def test_a_whole_number_is_a_number_of_seconds(record):
    raw = json.loads(record.to_json()) | {"seconds": 3}
    assert type(record).from_json(json.dumps(raw)) == dataclasses.replace(record, seconds=3.0)


@pytest.mark.parametrize("text", ["[]", "3", "null", '"text"', "{", ""])
@pytest.mark.parametrize("record", [RunStart, RunEnd, StepRecord])
def test_a_text_that_is_no_object_is_no_record(record, text):
    with pytest.raises(ValueError, match=r".+"):
        record.from_json(text)


@pytest.mark.parametrize(
    ("sizes", "leading", "sound"),
    [
        ((64, 64, 1, 64), (), True),
        ((0, 0, 0, 0), (0,), True),
        ((64, 64, 1), (), False),
        ((64, 64, 1, 64, 1), (), False),
        ((64, 64, -1, 64), (), False),
        ((64, 64, 1, 64), (64, -1), False),
        ((64, 64, True, 64), (), False),
        ((64, 64, 1.0, 64), (), False),
        ((64, 64, 1, 64), ("64",), False),
    ],
)
def test_a_problem_has_a_whole_number_that_is_not_negative_for_each_index(sizes, leading, sound):
    problem = dataclasses.replace(entry().problem, sizes=sizes, leading=leading)
    if sound:
        assert sound_problem(problem) is problem
        return
    with pytest.raises(ValueError, match=r"a size is|has no size"):
        sound_problem(problem)


def test_a_handle_writes_a_document_once_and_again_if_its_transaction_failed(location_of):
    """What the handle remembers of its documents must be in the database."""
    store = Store.open(location_of())
    inserted, failing = [], ["INSERT INTO measurements"]

    @event.listens_for(store._database.engine, "before_cursor_execute")
    def watch(connection, cursor, statement, *others):
        if any(statement.startswith(words) for words in failing):
            failing.clear()
            raise RuntimeError("it failed")
        inserted.append(statement.split(" (")[0])

    with pytest.raises(RuntimeError, match="it failed"):
        store.commit([entry("a")])
    for key in ("a", "b", "c"):
        assert store.commit([entry(key)]) == 1
    assert list(store.entries()) == [entry("a"), entry("b"), entry("c")]
    assert inserted.count("INSERT INTO documents") == 2
    store.close()
