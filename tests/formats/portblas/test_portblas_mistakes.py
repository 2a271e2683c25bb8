"""A mistake in a portBLAS parameter file is reported with its line, column and key."""

from __future__ import annotations

import json
import re

import pytest

from portblas_files import INTERLEAVED, LOCAL, of, written
from tunesmith.formats.portblas.parameter_files import RuleSet, read
from tunesmith.records import UserError

TEXT = """{
    "local": [
        {
            "cache_line_size": [64],
            "work_item_sizes": [[4, 4], %s],
            "work_group_sizes": [[8, 8]],
            "block_level_tiles": [[1, 1]],
            "double_buffer": [false, %s],
            "no_bank_conflict_a": [true],
            "no_bank_conflict_b": [true],
            "vectorization_size": %s
        }
    ]
}
"""


@pytest.mark.parametrize(
    ("values", "location", "words"),
    [
        (("[4]", "true", "[1]"), "5:41: local[0].work_item_sizes[1]", "has 1 numbers, expected 2"),
        (("[4, 0]", "true", "[1]"), "5:45: local[0].work_item_sizes[1][1]", "is 0, expected a whole number from 1"),
        (("[4, 2.5]", "true", "[1]"), "5:45: local[0].work_item_sizes[1][1]", "is 2.5, expected a whole number"),
        (("[true, 4]", "true", "[1]"), "5:42: local[0].work_item_sizes[1][0]", "is true, expected a whole number"),
        (("4", "true", "[1]"), "5:41: local[0].work_item_sizes[1]", "is 4, expected [4, 4]"),
        (("{}", "true", "[1]"), "5:41: local[0].work_item_sizes[1]", "is an object, expected [4, 4]"),
        (("[4, 4]", "2", "[1]"), "8:38: local[0].double_buffer[1]", "is 2, expected true"),
        (("[4, 4]", '"no"', "[1]"), "8:38: local[0].double_buffer[1]", 'is "no", expected true'),
        (("[4, 4]", "null", "[1]"), "8:38: local[0].double_buffer[1]", "is null, expected true"),
        (("[4, 4]", "true", "4"), "11:35: local[0].vectorization_size", "is 4, expected a list"),
        (("[4, 4]", "true", "[[1]]"), "11:36: local[0].vectorization_size[0]", "is a list, expected a whole number"),
        (("[4, 4]", "true", "[NaN]"), "11:36: local[0].vectorization_size[0]", "is NaN, expected a whole number"),
        (("[4, 4]", "true", "[1e9]"), "11:36: local[0].vectorization_size[0]", "expected a whole number"),
        (("[4, 4]", "true", "[1,]"), "11:38", "not valid JSON"),
        (("[4, 4]", "true, // both", "[1]"), "8:44", "not valid JSON"),
    ],
)
@pytest.mark.parametrize("mode", RuleSet)
def test_a_wrong_value_is_answered_with_line_column_and_key(values, location, words, mode, tmp_path):
    path = written(tmp_path, TEXT % values)
    with pytest.raises(UserError, match=re.escape(words)) as error:
        read(path, mode)
    # Python versions differ in the column that they report for a superfluous comma.
    assert error.value.location == f"{path}:{location}" or (
        "not valid" in words and f":{location.split(':')[0]}:" in str(error)
    )
    assert error.value.remedy


@pytest.mark.parametrize("key", LOCAL)
def test_a_missing_key_is_answered_with_the_element_s_place(key, tmp_path):
    path = written(tmp_path, {"local": [LOCAL, {name: value for name, value in LOCAL.items() if name != key}]})
    with pytest.raises(UserError, match=rf"c\.json:1:\d+: local\[1\]: has no {key}; give it a list"):
        read(path, RuleSet.COMPAT)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "1:1: not valid JSON"),
        ("[]", "1:1: is a list, expected an object; write an object with arrays: local"),
        ('{"local": {}}', "1:11: local: is an object, expected a list"),
        ('{"local": [\n 3]}', "2:2: local[0]: is 3, expected an object"),
        ('{"naive": [{"cache_line_size": [64]}], "about": 3}', "1:49: about: is 3, expected text"),
        ('{"naive": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"naive": [{"cache_line_size": [' + "9" * 5000 + "]}]}", "not readable JSON"),
    ],
)
def test_what_is_no_parameter_file_at_all(text, words, tmp_path):
    with pytest.raises(UserError) as error:
        read(written(tmp_path, text), RuleSet.OURS)
    assert words in str(error.value)


def test_a_file_that_cannot_be_read_is_no_traceback(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "absent.json", RuleSet.OURS)
    (tmp_path / "c.json").write_bytes(b'{"local": "\xff"}')
    with pytest.raises(UserError, match="no UTF-8 at byte 11"):
        read(tmp_path / "c.json", RuleSet.OURS)


def test_more_combinations_than_anybody_wants_are_refused_before_they_are_made(tmp_path):
    many = {**LOCAL, **{key: LOCAL[key] * 100 for key in ("cache_line_size", "work_item_sizes", "work_group_sizes")}}
    with pytest.raises(UserError, match=r"makes 1,000,000 combinations, more than 100,000"):
        of(tmp_path, local=[many])


@pytest.mark.parametrize("mode", RuleSet)
def test_what_the_original_passes_over_is_noted(mode, tmp_path):
    text = """{"locl": [],
  "naive": [{"cache_line_size": [64],
             "cache_size": [64], "cache_line_size": [128]}],
  "non_local": [{"work_item_sizes": [], "work_group_sizes": [[8, 8]], "vectorization_size": [1]}],
  "non_local_interleaved": [%s]
}"""
    path = written(tmp_path, text % json.dumps({**INTERLEAVED, "cache_line_size": [64]}))
    config = read(path, mode)
    assert sorted(note.removeprefix(f"{path}:") for note in config.notes) == [
        "1:10: locl: the file has no locl; did you mean local?",
        "3:28: naive[0].cache_size: naive has no cache_size; did you mean cache_line_size?",
        "3:53: naive[0].cache_line_size: gives a value again; only the last one counts; keep one",
        "4:37: non_local[0].work_item_sizes: lists nothing; nothing is generated here until it does",
    ]
    assert [combination.cache_line for combination in config.combinations if combination.algorithm == "naive"] == [128]


def test_a_file_without_any_array_is_noted(tmp_path):
    config = of(tmp_path, about="nothing")
    assert (config.combinations, config.about) == ((), "nothing")
    assert ["has none of the arrays" in note for note in config.notes] == [True]
