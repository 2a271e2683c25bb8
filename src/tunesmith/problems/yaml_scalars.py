"""The values of YAML's scalars, for every reader of YAML here: numbers, truth values, words and nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from .keys import shortened

Scalar = None | bool | int | float | str

TAG = "tag:yaml.org,2002:"
MOST_BITS = 1024
"""The longest whole number, in bits: as long as a float's exponent allows. Python refuses to print much longer ones."""

_CONSTRUCT = SafeConstructor()
SCALARS: dict[str, Callable[[yaml.ScalarNode], Any]] = {
    f"{TAG}null": lambda node: None,
    f"{TAG}bool": _CONSTRUCT.construct_yaml_bool,
    f"{TAG}int": _CONSTRUCT.construct_yaml_int,
    f"{TAG}float": _CONSTRUCT.construct_yaml_float,
    f"{TAG}str": lambda node: node.value,
    f"{TAG}timestamp": lambda node: node.value,
    f"{TAG}value": lambda node: node.value,
}
"""The tags that are read, each with the function that makes the value. A date is a word here."""
# YAML 1.1, which PyYAML follows, reads 1e-3 as a word: its numbers with an exponent must have a dot.
EXPONENT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]{1,3}")


class ScalarError(ValueError):
    """A text that is no value of its tag. `remedy` says what would be right."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


def scalar_value(tag: str, text: str, is_plain: bool) -> Scalar:
    """The value of a scalar with a tag of `SCALARS`. `is_plain`: the text stands without quotes.

    Raises ScalarError for a text without a value, and for a whole number that is too long.
    """
    if is_plain and EXPONENT.fullmatch(text):
        return float(text)
    try:
        value: Scalar = SCALARS[tag](yaml.ScalarNode(tag, text))
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise ScalarError(f"{shortened(text)} is no value", "write a number, a word or a truth value") from error
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ScalarError(f"a number of {value.bit_length()} bits", f"write one of at most {MOST_BITS}")
    return value
