"""The library's file of launch shapes: its text, its bounds, and how two tables become one."""

from __future__ import annotations

import json
import re

import pytest

from tunesmith.logic.random.table import RandomTable, TunedShapes, read_table, write_table
from tunesmith.records import LaunchShape, UserError

COMMON, OTHER = LaunchShape(256, 1024), LaunchShape(64, 512)
PAIRS = {("uniform", "float"): OTHER, ("normal", "double"): LaunchShape(128, 2048)}

TEXT = """{
 "tunesmith-random": 1,
 "architectures": {
  "gfx90a": {
   "mt19937": {
    "shape": [256, 1024]
   },
   "xorwow": {
    "shape": [64, 512]
   }
  },
  "sm_90": {
   "philox4_32_10": {
    "shape": [256, 1024],
    "pairs": {
     "normal/double": [128, 2048],
     "uniform/float": [64, 512]
    },
    "cautions": [
     "the clock changed"
    ]
   }
  }
 }
}
"""
TABLE = RandomTable(
    {
        "sm_90": {"philox4_32_10": TunedShapes(COMMON, PAIRS, ("the clock changed",))},
        "gfx90a": {"xorwow": TunedShapes(OTHER), "mt19937": TunedShapes(COMMON)},
    }
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table.json"


def read(path, shape=(1, 1), **more):
    document = {"tunesmith-random": 1, "architectures": {"a": {"g": {"shape": list(shape), **more}}}}
    path.write_text(json.dumps(document))
    return read_table(path).entries["a"]["g"]


def test_a_table_is_written_sorted_with_each_shape_on_a_line(path):
    write_table(TABLE, path)
    assert path.read_text() == TEXT
    assert read_table(path) == TABLE


def test_the_smallest_shape_is_a_single_thread(path):
    tuned = read(path, pairs={"uniform/float": [1, 1]})
    assert tuned.shape == tuned.pairs["uniform", "float"] == LaunchShape(1, 1)


@pytest.mark.parametrize("shape", [(0, 1), (1, 0), (-1, 1), (1.0, 1), (True, 1), (1, True), (1,), (1, 1, 1), ("1", 1)])
def test_what_is_no_shape_is_refused_where_it_stands(path, shape):
    with pytest.raises(UserError, match=re.escape("is no [block, grid] of whole numbers")) as caught:
        read(path, shape)
    assert caught.value.location == f"{path}: a.g.shape"
    with pytest.raises(UserError, match="is no") as caught:
        read(path, pairs={"uniform/float": list(shape)})
    assert caught.value.location == f"{path}: a.g.pairs.uniform/float"


@pytest.mark.parametrize("cautions", ["words", [1], {"a": 1}, ["words", None]])
def test_cautions_are_a_list_of_sentences(path, cautions):
    with pytest.raises(UserError, match="is no list of sentences"):
        read(path, cautions=cautions)
    assert read(path, cautions=["one", "two"]).cautions == ("one", "two")


@pytest.mark.parametrize(("version", "words"), [(0, "has no key"), (2, "is format 2"), ("1", "is format 1, this")])
def test_another_version_is_refused(path, version, words):
    path.write_text(json.dumps({"tunesmith-random": version, "architectures": {}}))
    with pytest.raises(UserError, match=words):
        read_table(path)


def test_of_two_tables_the_newer_ones_generators_are_kept():
    newer = RandomTable({"gfx90a": {"xorwow": TunedShapes(COMMON)}, "gfx942": {"xorwow": TunedShapes(OTHER)}})
    both = (TABLE | newer).entries
    assert list(both) == ["gfx90a", "gfx942", "sm_90"]
    assert both["gfx90a"] == {"xorwow": TunedShapes(COMMON), "mt19937": TunedShapes(COMMON)}
    assert both["gfx942"] == newer.entries["gfx942"]
    assert both["sm_90"] == TABLE.entries["sm_90"]


@pytest.mark.parametrize(
    ("where", "shape"),
    [
        (("sm_90", "philox4_32_10"), COMMON),
        (("sm_90", "philox4_32_10", "uniform", "float"), OTHER),
        (("sm_90", "philox4_32_10", "uniform", "double"), COMMON),
        (("sm_90", "xorwow"), None),
        (("sm_80", "philox4_32_10"), None),
        (("gfx90a:sramecc+:xnack-", "xorwow"), OTHER),
    ],
)
def test_a_shape_is_that_of_the_pair_else_of_the_generator(where, shape):
    assert TABLE.shape(*where) == shape
