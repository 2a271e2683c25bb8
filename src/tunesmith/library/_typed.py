"""The types of arrays, for programs that are checked: NumPy's arrays, and torch's tensors by attributes that no other
array has, since torch need not be installed. Nobody imports this file at run time."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypedDict, TypeVar


class TorchTensor(Protocol):
    """A `torch.Tensor`."""

    @property
    def is_cuda(self) -> bool: ...

    @property
    def requires_grad(self) -> bool: ...

    def numel(self) -> int: ...


TensorT = TypeVar("TensorT", bound=TorchTensor)
ArrayT = TypeVar("ArrayT")


class MatmulOptions(TypedDict, Generic[ArrayT], total=False):
    """The keywords of `Library.matmul`."""

    bias: ArrayT | None
    activation: str | None
    residual: ArrayT | None
    alpha: float
    beta: float
    c: ArrayT | None
    scale_a: ArrayT | float | None
    scale_b: ArrayT | float | None
    out_dtype: Any
    stream: Any
