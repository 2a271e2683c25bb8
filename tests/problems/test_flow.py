"""A value that is written as a line of YAML is read back by the project's own reader."""

from __future__ import annotations

import pytest

from tunesmith.problems.yaml import flow, parse_yaml


@pytest.mark.parametrize(
    "value", ["1e3", "1e3x", "012", "1.5", "on", "~", "a\nb.csv", "x: y #z", "é", "a b " * 80, 1e-5, 7, True]
)
def test_a_value_is_read_back_from_one_line(value):
    line = flow({"key": value})
    assert "\n" not in line
    found = parse_yaml(line, "here").mapping("a line")["key"].content
    assert found == value
    assert type(found) is type(value)
