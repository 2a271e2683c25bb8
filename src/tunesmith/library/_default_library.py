"""`tunesmith.matmul`: products without any tuning of one's own."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, overload

from .library import Library, load

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from ._typed import MatmulOptions, TensorT


@cache
def shared_library() -> Library:
    """Shared by the whole process. It opens a device at the first call that needs the device."""
    return load()


@overload
def matmul(
    a: NDArray[Any],
    b: NDArray[Any],
    out: NDArray[Any] | None = None,
    **options: Unpack[MatmulOptions[NDArray[Any]]],
) -> NDArray[Any]: ...


@overload
def matmul(
    a: TensorT, b: TensorT, out: TensorT | None = None, **options: Unpack[MatmulOptions[TensorT]]
) -> TensorT: ...


@overload
def matmul(a: Any, b: Any, out: Any = None, **options: Unpack[MatmulOptions[Any]]) -> Any: ...


def matmul(a: Any, b: Any, out: Any = None, **more: Any) -> Any:
    """activation(alpha scale_a scale_b a b + bias) + beta c, by the logic that `load()` uses. Where that has none, a
    policy chooses the kernels, unmeasured; on the host's CPU the BLAS computes what it can.

    Arguments, result and errors are those of `Library.matmul`. Tensors on a GPU are multiplied there. Arrays on the
    host are multiplied by the device of TUNESMITH_DEVICE, else by the host's CPU through OpenCL, else by the first
    usable device. A warning is issued once for each problem type without a logic.
    """
    return shared_library().matmul(a, b, out, **more)
