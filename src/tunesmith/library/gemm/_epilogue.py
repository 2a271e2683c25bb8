"""What follows a product where no kernel was tuned that does it at once: activation(product + bias) + beta c."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tunesmith.library.arrays._libraries import Array

from ._call import Arguments
from ._request import GemmRequest


def _gelu(x: Array) -> Array:
    from scipy.special import erf

    gelu: Array = 0.5 * x * (1 + erf(x / np.sqrt(x.dtype.type(2))))
    return gelu


def _silu(x: Array) -> Array:
    with np.errstate(over="ignore"):  # exp(-x) is infinite where the quotient is 0
        silu: Array = x / (1 + np.exp(-x))
    return silu


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"relu": lambda x: np.maximum(x, 0, out=x), "gelu": _gelu, "silu": _silu}
)
"""By NumPy; torch has functions of the same names."""


def finished(torch: Any, product: Any, left: GemmRequest, beta: float, given: Arguments) -> Any:
    """A product with what is `left` to be done, in the precision of the sums; without torch by NumPy."""
    sums = left.sums
    wide: Any = product.to(getattr(torch, sums), copy=True) if torch else product.astype(sums)
    for scale in (given.scale_a, given.scale_b) if left.scaled else ():
        if scale is not None:
            wide *= scale
    if left.bias:
        wide += given.bias
    if left.activation != "none":
        by_torch = torch and getattr(torch.nn.functional, left.activation)
        wide = (by_torch or ACTIVATIONS[left.activation])(wide)
    if left.beta and torch:
        wide.add_(given.c, alpha=int(beta) if left.data == "i8" else beta)
    elif left.beta:
        wide += np.asarray(beta, wide.dtype) * given.c
    return wide
