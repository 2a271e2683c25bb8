"""Causal attention by running maxima."""

# ruff: noqa: N803  # constants of Triton functions have names in capitals

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812
import triton
import triton.language as tl

from .pattern import Arguments, Pattern, half, normal


@triton.jit
def attention(out, q, k, v, HEADS, length, scale, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Causal attention of each head (program 1), BLOCK_M queries a program, by running maxima."""
    first = tl.program_id(1).to(tl.int64) * length * HEAD
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    width = tl.arange(0, HEAD)
    queries = tl.load(q + first + rows[:, None] * HEAD + width[None, :], mask=rows[:, None] < length, other=0.0)
    largest, total = tl.full((BLOCK_M,), -1.0e30, tl.float32), tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, HEAD), tl.float32)
    for start in range(0, tl.minimum((tl.program_id(0) + 1) * BLOCK_M, length), BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        at, inside = first + columns[:, None] * HEAD + width[None, :], columns[:, None] < length
        products = tl.dot(queries, tl.trans(tl.load(k + at, mask=inside, other=0.0))) * scale
        visible = (columns[None, :] <= rows[:, None]) & (columns[None, :] < length)
        products = tl.where(visible, products, -1.0e30)
        larger = tl.maximum(largest, tl.max(products, axis=1))
        weights, shrink = tl.exp(products - larger[:, None]), tl.exp(largest - larger)
        values = tl.load(v + at, mask=inside, other=0.0)
        sums = sums * shrink[:, None] + tl.dot(weights.to(values.dtype), values)
        total = total * shrink + tl.sum(weights, axis=1)
        largest = larger
    result = sums / total[:, None]
    tl.store(out + first + rows[:, None] * HEAD + width[None, :], result, mask=rows[:, None] < length)


def attention_call(device: str, large: bool) -> Arguments:
    heads, length, head = (32, 2048, 64) if large else (2, 50, 16)
    q, k, v = (normal(device, heads, length, head, dtype=half(device), scale=scale) for scale in (1.0, 0.9, 0.8))
    sizes = {"HEADS": heads, "length": length, "scale": head**-0.5, "HEAD": head}
    return {"out": torch.empty_like(q), "q": q, "k": k, "v": v, **sizes}


ATTENTIONS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps, num_stages=stages)
    for m in (32, 64, 128)
    for n in (32, 64)
    for warps in (4, 8)
    for stages in (2, 3)
]


def attended(arguments: Arguments) -> Mapping[str, torch.Tensor]:
    q, k, v = (arguments[name].float() for name in "qkv")
    return {"out": F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=arguments["scale"])}


PATTERNS: dict[str, Pattern] = {
    "attention": Pattern(
        attention, ATTENTIONS, ("HEADS", "length"), attention_call,
        lambda meta: (triton.cdiv(meta["length"], meta["BLOCK_M"]), meta["HEADS"]), attended,
    ),
}  # fmt: skip
