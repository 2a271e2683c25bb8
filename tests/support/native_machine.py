"""Compiled products with C functions that are ours, which note their calls. Tensors lie on the host."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import pytest

from native_build import built
from tunesmith.devices.cuda.native import OUT, STREAM, WORKSPACE, A, B

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * 19)
NOT_CAPTURED = 0


class Machine:
    """C functions that note the words of their calls, and what `Products` is made from."""

    def __init__(self, torch: Any, module: ModuleType) -> None:
        self.torch = torch
        self.calls: list[tuple[str, Any]] = []
        self.statuses: dict[str, int] = {}
        self.errors: list[tuple[Any, int, int]] = []
        self.kept: list[Any] = []
        self.precision, self.loose = "highest", (True, True)
        self.products = module.Products(
            torch.Tensor.__dlpack_c_exchange_api__, (torch.Tensor, torch.nn.Parameter), torch.is_grad_enabled,
            ((2, 32, lambda: self.precision), (4, 16, lambda: self.loose)),
            torch.empty_like, torch.contiguous_format, self.fail,
            self.function("push"), self.function("pop"), NOT_CAPTURED, self.function("move"),
        )  # fmt: skip

    def function(self, name: str, read: Callable[[Any], Any] = lambda words: words) -> int:
        """The address of a function that notes its name and what `read` makes of its words."""

        def noted(*words: int) -> int:
            self.calls.append((name, read(words)))
            return self.statuses.get(name, 0)

        self.kept.append(FUNCTION(noted))
        return ctypes.cast(self.kept[-1], ctypes.c_void_p).value or 0

    def fail(self, owner: Any, step: int, status: int) -> None:
        self.errors.append((owner, step, status))
        raise LookupError(f"{owner} {step} {status}")

    def learn(
        self,
        a: Any,
        b: Any,
        out: Any = None,
        scales: Sequence[Any] = (None, None),
        steps: Any = None,
        workspace: int = 0,
        spans: tuple[int, int, int] = (0, 0, 0),
        owner: Any = "owner",
    ) -> Any:
        word_writes = ((0, A, 0), (1, B, 8), (2, OUT, 0), (3, STREAM, 1), (4, WORKSPACE, 2))
        steps = (("step", self.function("step"), tuple(range(19)), word_writes, None),) if steps is None else steps
        like = self.torch.empty((), dtype=a.dtype).expand(a.shape[0], b.shape[1])
        described = tuple(tuple(step)[1:] for step in steps)
        return self.products.learn(a, b, out, *scales, described, 77, workspace, *spans, like, owner)

    def repeat(self, a: Any, b: Any, out: Any, scale_a: Any = None, scale_b: Any = None) -> Any:
        return self.products.repeat(a, b, out, scale_a, scale_b)

    def of(self, name: str) -> list[Any]:
        return [words for called, words in self.calls if called == name]


def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The compiled module, for a fixture; a test is skipped where it cannot be built."""
    module = built(tmp_path_factory.getbasetemp())
    if isinstance(module, str):
        pytest.skip(module)
    return module


def matrices(torch: Any, rows: int = 4, inner: int = 3, columns: int = 5, dtype: Any = None) -> tuple[Any, Any]:
    """Operands full of ones, in float32 if no data type is given."""
    return torch.ones(rows, inner, dtype=dtype), torch.ones(inner, columns, dtype=dtype)
