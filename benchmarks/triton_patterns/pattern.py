"""A pattern: a kernel with its configurations, a call and the right result; and what patterns share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Pattern:
    """A kernel, what `triton.autotune` is told of it, and a call.

    `call(device, large)` gives the arguments by name, in the kernel's order; `grid` takes the launch's meta data.
    `expected` gives the tensors that the kernel writes, by name, computed by torch. `tolerance` is relative and
    absolute.
    """

    kernel: Any
    configs: Sequence[triton.Config]
    key: tuple[str, ...]
    call: Callable[[str, bool], Arguments]
    grid: Callable[[Mapping[str, Any]], tuple[int, ...]]
    expected: Callable[[Arguments], Mapping[str, torch.Tensor]]
    reset_to_zero: tuple[str, ...] = ()
    tolerance: float = 2e-3


def blocks(*sizes: int, warps: Sequence[int] = (2, 4, 8), stages: Sequence[int] = (3,)) -> list[triton.Config]:
    """Configurations of kernels with one BLOCK."""
    return [
        triton.Config({"BLOCK": size}, num_warps=count, num_stages=depth)
        for size in sizes
        for count in warps
        for depth in stages
    ]


def tiles(depth: Sequence[int] = (32, 64), stages: Sequence[int] = (2, 3, 4)) -> list[triton.Config]:
    """Configurations of products: BLOCK_M, BLOCK_N and BLOCK_K."""
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=warps, num_stages=count)
        for m, n in ((32, 32), (64, 64), (128, 64), (128, 128))
        for k in depth
        for warps in (4, 8)
        for count in stages
    ]


def normal(device: str, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    """Normal numbers, the same for the same shape."""
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
    return (scale * drawn).to(device=device, dtype=dtype)


def half(device: str) -> torch.dtype:
    """The 16-bit type of products; single precision where an interpreter stands in for a GPU."""
    return torch.float16 if device.startswith("cuda") else torch.float32


def each_row(meta: Mapping[str, Any]) -> tuple[int, ...]:
    """A program for each row."""
    return (meta["rows"],)


def flat(meta: Mapping[str, Any]) -> tuple[int, ...]:
    """A program for each BLOCK of `count` elements."""
    return (triton.cdiv(meta["count"], meta["BLOCK"]),)


def tiled(meta: Mapping[str, Any]) -> tuple[int, ...]:
    """A program for each tile of the result."""
    return (triton.cdiv(meta["M"], meta["BLOCK_M"]), triton.cdiv(meta["N"], meta["BLOCK_N"]))
