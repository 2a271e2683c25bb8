"""A program of a user's, which `mypy --strict` checks and nobody runs: what it says of types is right."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import torch

import tunesmith
from tunesmith import In, Out, Tuned

Floats = npt.NDArray[np.float64]


def doubled(x: Floats) -> Floats:
    return 2 * x


tuned = tunesmith.tune(
    "kernel.cl", "out", arguments={"y": Out("float32", "N"), "x": In("float32", "N"), "n": "N"}, sizes={"N": 4096},
    parameters={"GROUP": [32, 64]}, constraints=lambda p: p.GROUP <= 64, work_group="GROUP", work_items="N",
    reference=doubled,
)  # fmt: skip
assert_type(tuned, Tuned)
assert_type(tuned.seconds(4096), float)

array: npt.NDArray[np.float32] = np.ones((8, 8), np.float32)
tensor = torch.ones((8, 8))

assert_type(tunesmith.matmul(array, array), npt.NDArray[Any])
assert_type(tunesmith.matmul(array, array, array, alpha=2.0, activation="relu"), npt.NDArray[Any])
assert_type(tunesmith.matmul(tensor, tensor), torch.Tensor)
assert_type(tunesmith.matmul(tensor, tensor.T, bias=tensor[0], beta=1, c=tensor), torch.Tensor)

with tunesmith.load("out", strict=True) as library:
    assert_type(library.matmul(array, array), npt.NDArray[Any])
    assert_type(library.matmul(tensor, tensor), torch.Tensor)
    library.launch("softmax", x=array).sum()
    library.launch("softmax", {"x": tensor}, sizes={"N": 8}).sum()
    assert_type(library.select(8, 8, 8).name, str)

tuned.launch(x=array).sum()
tuned.launch(x=tensor).sum()

generator = tunesmith.random.Generator("philox4_32_10", seed=1)
assert_type(generator.uniform(array), npt.NDArray[np.float32])
assert_type(generator.normal(tensor), torch.Tensor)

tunesmith.matmul(array, array, alpha="two")  # type: ignore[call-overload]
tunesmith.matmul(array, array, gamma=1.0)  # type: ignore[call-overload]
tuned.winner.append(1)  # type: ignore[attr-defined]
