"""The launches that the benchmark times are legal, and it knows the line of the kernel that it changes."""

from __future__ import annotations

import pytest

from cuda_runner import H200

pytest.importorskip("torch")

from hopper_launches import CASES, WAITING, plan_and_modules


@pytest.mark.parametrize(("layout", "sizes", "values"), CASES, ids=str)
def test_each_launch_is_legal_and_waits_in_the_line_that_is_replaced(layout, sizes, values):
    problem, plan, (product, *_) = plan_and_modules(layout, sizes, values, H200)
    assert problem.sizes == sizes
    assert plan.steps[-1].early
    assert product.text.count(WAITING) == 1
