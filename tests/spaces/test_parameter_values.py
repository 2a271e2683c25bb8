"""Which values a parameter takes from a tuning file, and how it says so."""

from __future__ import annotations

import pytest

from tunesmith.records import UserError
from tunesmith.spaces import Parameter


@pytest.mark.parametrize(
    ("accepts", "right", "wrong"),
    [
        ("positive integer", [1, 7], [0, -1, True, 1.0, "1", (1,)]),
        ("natural number", [0, 7], [-1, False, (0,)]),
        ("natural number or -1", [-1, 0], [-2]),
        ("list of 2 positive integers", [(1, 2)], [(1,), (1, 2, 3), (0, 1), (1, True), 1]),
        ("list of 2 or 3 natural numbers", [(1, 2), (1, 1, 0)], [(1,), (1, 1, 1, 1), (1, -1), 1]),
        ("truth value", [True, False, 0, 1], [2, "yes"]),
        ("one of the values", ["a", 4], ["b", 5, True]),
    ],
)
def test_a_value_is_taken_or_refused_with_a_remedy(accepts, right, wrong):
    parameter = Parameter("Size", "a", ("a", 4), "A size.", accepts=accepts)
    for value in right:
        assert parameter.check(value, "line 3") == value
    for value in wrong:
        with pytest.raises(UserError, match="Size cannot be") as refused:
            parameter.check(value, "line 3")
        assert refused.value.remedy.startswith(("give a ", "give one of "))
