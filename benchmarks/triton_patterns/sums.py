"""Kernels that add into memory that must be zero before: a sum and a histogram."""

# ruff: noqa: N803  # constants of Triton functions have names in capitals

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .pattern import Arguments, Pattern, blocks, flat, normal


@triton.jit
def total_of(total, x, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + at, mask=at < count, other=0.0), axis=0))


def total_call(device: str, large: bool) -> Arguments:
    count = 1 << 22 if large else 900
    return {"total": torch.zeros(1, device=device), "x": normal(device, count).abs(), "count": count}


@triton.jit
def histogram(counts, x, count, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.atomic_add(counts + tl.load(x + at, mask=inside, other=0) % BINS, 1, mask=inside)


def histogram_call(device: str, large: bool) -> Arguments:
    count = 1 << 22 if large else 700
    x = torch.arange(count, dtype=torch.int32, device=device) * 37 % 1009
    return {"counts": torch.zeros(64, dtype=torch.int32, device=device), "x": x, "count": count, "BINS": 64}


PATTERNS: dict[str, Pattern] = {
    "sum": Pattern(
        total_of, blocks(512, 2048, 8192), ("count",), total_call, flat,
        lambda call: {"total": call["x"].double().sum().float().reshape(1)}, reset_to_zero=("total",), tolerance=1e-4,
    ),
    "histogram": Pattern(
        histogram, blocks(256, 1024, 4096), ("count",), histogram_call, flat,
        lambda call: {"counts": torch.bincount(call["x"].long() % 64, minlength=64).to(torch.int32)},
        reset_to_zero=("counts",), tolerance=0.0,
    ),
}  # fmt: skip
