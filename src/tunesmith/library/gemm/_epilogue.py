"""The epilogue after a product whose kernel does not compute it: activation(product + bias) + beta c."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tunesmith.library.arrays._libraries import Array

from ._checked_call import Arguments
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
"""In NumPy; torch has functions of the same names."""


def finished(torch: Any, product: Any, remaining: GemmRequest, beta: float, arguments: Arguments) -> Any:
    """The product with the `remaining` part of the request applied, in the precision of the sums. Computed by torch, or
    by NumPy if `torch` is None."""
    sums = remaining.sums
    values: Any = product.to(getattr(torch, sums), copy=True) if torch else product.astype(sums)
    for scale in (arguments.scale_a, arguments.scale_b) if remaining.scaled else ():
        if scale is not None:
            values *= scale
    if remaining.bias:
        values += arguments.bias
    if remaining.activation != "none":
        by_torch = torch and getattr(torch.nn.functional, remaining.activation)
        values = (by_torch or ACTIVATIONS[remaining.activation])(values)
    if remaining.beta and torch:
        values.add_(arguments.c, alpha=int(beta) if remaining.data == "i8" else beta)
    elif remaining.beta:
        values += np.asarray(beta, values.dtype) * arguments.c
    return values
