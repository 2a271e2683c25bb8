"""Quantiles of Student's t distribution agree with SciPy's."""

from __future__ import annotations

import pytest
from scipy.special import stdtrit

from tunesmith.records import student_quantile

FREEDOMS = [1, 2, 3, 4, 5, 6, 7, 10, 19, 64, 333, 999, 1000, 1001, 5000, 100_000]
PROBABILITIES = [0.5, 0.6, 0.75, 0.9, 0.95, 0.975, 0.995, 0.9995, 1 - 1e-6, 1 - 1e-9]


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_are_scipys(freedom, probability):
    # Beyond the quantile lies 1 - probability, which a float close to 1 holds with this relative error only.
    rounding = 2.0**-53 / (1 - probability)
    # A sum of at most 500 terms and Newton's last step: no more than 2000 roundings, here or in SciPy.
    tolerance = 2000 * 2.0**-53 + 4 * rounding
    assert student_quantile(freedom, probability) == pytest.approx(
        float(stdtrit(freedom, probability)), rel=tolerance, abs=1e-15
    )


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_below_the_middle_mirror_those_above(freedom):
    assert student_quantile(freedom, 0.25) == -student_quantile(freedom, 0.75)
    assert student_quantile(freedom, 0.5) == 0


def test_the_first_two_have_closed_forms():
    assert student_quantile(1, 0.75) == pytest.approx(1.0, rel=1e-14)
    assert student_quantile(2, 0.75) == pytest.approx((2 / 3) ** 0.5, rel=1e-14)
