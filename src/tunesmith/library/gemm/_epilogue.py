"""What follows a product where no kernel was tuned that does it at once: activation(product + bias) + beta c."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tunesmith.library.arrays._matrices import Array
from tunesmith.problems.gemm import DATA_TYPES

from ._call import Call
from ._request import Wanted


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


def finish(product: Array, call: Call[Array]) -> None:
    """Into `call.out`, from the product alone; in the precision of the sums."""
    wide = product.astype(DATA_TYPES[call.wanted.data].sums)
    if call.wanted.bias:
        wide += call.extra["Bias"]
    wide = NUMPY[call.wanted.activation](wide)
    if call.c is not None:
        wide += np.asarray(call.beta, wide.dtype) * call.c
    call.out[...] = wide


def finished(torch: Any, product: Any, wanted: Wanted, beta: float, c: Any, bias: Any, scales: tuple[Any, ...]) -> Any:
    """The same for torch tensors, on torch's current stream, as a tensor in the precision of the sums. `wanted` says
    what is still to be done."""
    wide = product.to(getattr(torch, DATA_TYPES[wanted.data].sums), copy=True)
    if wanted.scaled:
        for scale in scales:
            wide *= scale
    if wanted.bias:
        wide += bias
    wide = TORCH[wanted.activation](torch, wide)
    if wanted.beta:
        wide.add_(c, alpha=int(beta) if wanted.data == "i8" else beta)
    return wide
