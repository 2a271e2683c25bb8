"""Triton kernels in the patterns that public programs have, each with configurations, a call and its right result.

Tests tune and compare them (`tests/autotuning/test_patterns.py`), and `autotune_beside_triton.py` times them. All texts
are ours.
"""

from . import attentions, elements, products, rows, sums
from .pattern import Pattern

PATTERNS: dict[str, Pattern] = {
    **elements.PATTERNS, **rows.PATTERNS, **sums.PATTERNS, **products.PATTERNS, **attentions.PATTERNS
}  # fmt: skip
"""By name."""

__all__ = ["PATTERNS", "Pattern"]
