"""Quantiles of Student's t distribution.

SciPy has them as well. Its import takes a quarter of a second of processor time in every process of a run that compares
two times, which is half of what such a process needs to start.
"""

from __future__ import annotations

import math
from functools import cache

_EXPANDED_FROM = 1000
"""From this many degrees of freedom on, four terms of the expansion are exact to the last digits of a float."""
_ROUNDING = 2.0**-52


@cache
def student_quantile(freedom: int, probability: float) -> float:
    """The value below which a t variable with so many degrees of freedom lies with this probability, within (0, 1).

    Source of the formulas: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.
    """
    from statistics import NormalDist  # imported here since it imports the modules of fractions and decimals

    if probability < 0.5:
        return -student_quantile(freedom, 1 - probability)
    normal = NormalDist().inv_cdf(probability)
    if freedom >= _EXPANDED_FROM:
        return _expanded(freedom, normal)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    value, step = normal, math.inf
    # The probability is concave in the value here, and the normal quantile is too small: Newton's steps only go up.
    while step > _ROUNDING * value:
        density = math.exp(log_scale - (freedom + 1) / 2 * math.log1p(value * value / freedom))
        step = (probability - 0.5 - _within(freedom, value) / 2) / density
        value += max(step, 0.0)
    return value


def _within(freedom: int, value: float) -> float:
    """The probability that a t variable lies between -value and value (26.7.3 and 26.7.4)."""
    angle = math.atan2(value, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    term = total = cosine if is_odd else 1.0
    for index in range(2 + is_odd, freedom, 2):
        term *= cosine * cosine * (index - 1) / index
        total += term
    if is_odd:
        return 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    return sine * total


def _expanded(freedom: int, normal: float) -> float:
    """The quantile by its expansion in 1 / freedom around the normal one (26.7.5)."""
    square = normal * normal
    terms = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
        ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
    )
    return normal * (1 + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1)))
