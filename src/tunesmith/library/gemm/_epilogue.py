"""What follows a product where no kernel was tuned that does it at once: activation(product + bias) + beta c."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tunesmith.library.arrays._libraries import Array
from tunesmith.problems.gemm import DATA_TYPES

from ._call import Arguments
from ._request import GemmRequest


def _relu(x: Array) -> Array:
    relu: Array = np.maximum(x, 0, out=x)
    return relu


def _gelu(x: Array) -> Array:
    from scipy.special import erf

    gelu: Array = 0.5 * x * (1 + erf(x / np.sqrt(x.dtype.type(2))))
    return gelu


def _silu(x: Array) -> Array:
    with np.errstate(over="ignore"):  # exp(-x) is infinite where the quotient is 0
        silu: Array = x / (1 + np.exp(-x))
    return silu


NUMPY: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"none": lambda x: x, "relu": _relu, "gelu": _gelu, "silu": _silu}
)
TORCH: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "none": lambda torch, x: x,
        "relu": lambda torch, x: torch.relu_(x),
        "gelu": lambda torch, x: torch.nn.functional.gelu(x),
        "silu": lambda torch, x: torch.nn.functional.silu(x),
    }
)


def finished_by_numpy(product: Array, left: GemmRequest, beta: float, given: Arguments) -> Array:
    """With what is `left` to be done, in the precision of the sums. The host's scales are in alpha."""
    wide = product.astype(DATA_TYPES[left.data].sums)
    if left.bias:
        wide += given.bias
    wide = NUMPY[left.activation](wide)
    if left.beta:
        wide += np.asarray(beta, wide.dtype) * given.c
    return wide


def finished_by_torch(torch: Any, product: Any, left: GemmRequest, beta: float, given: Arguments) -> Any:
    """The same for torch tensors, on torch's current stream."""
    wide = product.to(getattr(torch, DATA_TYPES[left.data].sums), copy=True)
    if left.scaled:
        for scale in (given.scale_a, given.scale_b):
            if scale is not None:
                wide *= scale
    if left.bias:
        wide += given.bias
    wide = TORCH[left.activation](torch, wide)
    if left.beta:
        wide.add_(given.c, alpha=int(beta) if left.data == "i8" else beta)
    return wide
