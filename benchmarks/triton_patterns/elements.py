"""Kernels that compute element by element: a sum, dropout, a gate and rotary embeddings."""

# ruff: noqa: N803  # constants of Triton functions have names in capitals

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812
import triton
import triton.language as tl

from .pattern import Arguments, Pattern, blocks, each_row, flat, half, normal


@triton.jit
def add(out, x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def add_call(device: str, large: bool) -> Arguments:
    count = 1 << 24 if large else 1000
    x, y = normal(device, count), normal(device, count, scale=0.5)
    return {"out": torch.empty_like(x), "x": x, "y": y, "count": count}


@triton.jit
def dropout(out, x, count, probability, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    kept = tl.rand(seed, at) >= probability
    tl.store(out + at, tl.where(kept, tl.load(x + at, mask=inside) / (1 - probability), 0.0), mask=inside)


def dropout_call(device: str, large: bool) -> Arguments:
    count = 1 << 22 if large else 600
    x = 1.0 + normal(device, count).abs()
    return {"out": torch.empty_like(x), "x": x, "count": count, "probability": 0.25, "seed": 7}


def dropped(arguments: Arguments) -> Mapping[str, torch.Tensor]:
    """Only the result shows which elements are kept: each has its value. If not about a quarter is dropped (six
    deviations of a binomial count), nothing is right."""
    out, x = arguments["out"], arguments["x"]
    kept = out != 0
    deviation = (0.25 * 0.75 / x.numel()) ** 0.5
    is_plausible = abs(kept.float().mean().item() - 0.75) < 6 * deviation
    return {"out": torch.where(kept, x / 0.75, 0.0) if is_plausible else torch.full_like(x, float("nan"))}


@triton.jit
def gated(out, x, rows, columns, BLOCK: tl.constexpr):
    """SiLU of the left half of each row, times the right half."""
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        left = tl.load(x + row * 2 * columns + column, mask=inside, other=0.0).to(tl.float32)
        right = tl.load(x + row * 2 * columns + columns + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row * columns + column, left * tl.sigmoid(left) * right, mask=inside)


def gated_call(device: str, large: bool) -> Arguments:
    rows, columns = (4096, 11008) if large else (5, 200)
    x = normal(device, rows, 2 * columns, dtype=half(device))
    return {"out": torch.empty_like(x[:, :columns].contiguous()), "x": x, "rows": rows, "columns": columns}


@triton.jit
def rotary(out, x, angles, rows, heads, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """Rotates the halves of each head's vector by the angles of its position; BLOCK heads a program."""
    row = tl.program_id(0).to(tl.int64)
    width = tl.arange(0, HALF)
    angle = tl.load(angles + row * HALF + width)[None, :]
    for first in range(0, heads, BLOCK):
        head = first + tl.arange(0, BLOCK)
        at = (row * heads + head[:, None]) * 2 * HALF + width[None, :]
        inside = head[:, None] < heads
        left, right = tl.load(x + at, mask=inside, other=0.0), tl.load(x + at + HALF, mask=inside, other=0.0)
        tl.store(out + at, left * tl.cos(angle) - right * tl.sin(angle), mask=inside)
        tl.store(out + at + HALF, right * tl.cos(angle) + left * tl.sin(angle), mask=inside)


def rotary_call(device: str, large: bool) -> Arguments:
    rows, heads, half_width = (8192, 32, 64) if large else (6, 5, 16)
    x = normal(device, rows, heads, 2 * half_width)
    angles = normal(device, rows, half_width)
    return {"out": torch.empty_like(x), "x": x, "angles": angles, "rows": rows, "heads": heads, "HALF": half_width}


def rotated(arguments: Arguments) -> Mapping[str, torch.Tensor]:
    left, right = arguments["x"].chunk(2, dim=-1)
    cosine, sine = arguments["angles"].cos()[:, None], arguments["angles"].sin()[:, None]
    return {"out": torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1)}


WIDE = blocks(256, 512, 1024, 2048)

PATTERNS: dict[str, Pattern] = {
    "add": Pattern(
        add, blocks(256, 1024, 4096), ("count",), add_call, flat, lambda call: {"out": call["x"] + call["y"]}
    ),
    "dropout": Pattern(dropout, blocks(256, 1024, 4096), ("count",), dropout_call, flat, dropped),
    "gated": Pattern(
        gated, WIDE, ("columns",), gated_call, each_row,
        lambda call: {"out": F.silu(call["x"][:, : call["columns"]].float()) * call["x"][:, call["columns"] :].float()},
    ),
    "rotary": Pattern(
        rotary, blocks(4, 8, 16, 32), ("heads", "HALF"), rotary_call, each_row, rotated
    ),
}  # fmt: skip
