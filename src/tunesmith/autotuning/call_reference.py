"""The user's reference of a call, and the contents of its arrays.

Without a reference, all configurations are compared with the first that runs (`Reference: first`), by the processes
that measure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunesmith.problems.custom import FIRST_ROUNDINGS
from tunesmith.problems.custom.caller import PromisedContents

from .call_problem import CallArray, CallProblem, dtype_name
from .tensors import FlatArray, copy_contents, flat_contents, strided_tensor

Expectation = dict[str, tuple[FlatArray, FlatArray]]
"""Value and magnitude of each array after a launch."""

CallReference = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""The user's reference: it gets the call's arguments by name, with copies of the tensors. It changes these as the
kernel would, or returns the tensors that the kernel would have changed, by name."""


@dataclass(frozen=True)
class ReferenceResult:
    """The arrays after a call of the user's reference, in the user's process."""

    problem: CallProblem
    reference: CallReference
    arguments: Mapping[str, Any]

    def __call__(self, sizes: dict[str, Any], arrays: dict[str, FlatArray]) -> Expectation:
        """Value and magnitude of each array, from the arrays before the launch."""
        before = {
            array.name: np.ascontiguousarray(arrays[array.name]).astype(array.dtype) for array in self.problem.arrays
        }
        copies = {array.name: strided_tensor(before[array.name], array.tensor) for array in self.problem.arrays}
        returned = self.reference({**self.arguments, **copies}) or {}
        for name, tensor in returned.items():
            copies[name].copy_(tensor)
        after = {
            array.name: flat_contents(_base(copies[array.name]), array.extent).view(array.dtype)
            for array in self.problem.arrays
        }
        return expectation(before, after)


def contents_of(array: CallArray) -> PromisedContents:
    """What a flat array of the problem holds at first. It is copied when it is needed."""

    def fill(flat: FlatArray) -> None:
        if not array.is_zeroed:
            copy_contents(array.tensor, flat.view(dtype_name(array.tensor)))

    return PromisedContents((array.extent,), array.dtype, fill)


def expectation(before: Mapping[str, FlatArray], after: Mapping[str, FlatArray]) -> Expectation:
    """Value and magnitude of each array. The magnitude of a float is its own and the root mean square of all that the
    launch changed, times the roundings that are allowed."""
    return {name: (_wide(after[name]), _magnitude(array, after[name])) for name, array in before.items()}


def _magnitude(before: FlatArray, after: FlatArray) -> FlatArray:
    roundings = FIRST_ROUNDINGS.get(after.dtype.name)
    if roundings is None:
        return np.zeros(after.shape)
    value = np.abs(_wide(after))
    changed = value[_wide(before) != _wide(after)]
    typical = float(np.sqrt(np.mean(changed**2))) if changed.size else 0.0
    return roundings * (value + typical)


def _wide(array: FlatArray) -> FlatArray:
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def _base(tensor: Any) -> Any:
    """The tensor from which a strided view was made, so that gaps are kept."""
    return tensor._base if tensor._base is not None else tensor
