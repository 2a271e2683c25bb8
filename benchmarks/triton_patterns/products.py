"""Products of matrices: plain, with epilogues, batched, quantised, with a split K, and with a vector."""

# ruff: noqa: N803  # constants of Triton functions have names in capitals

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
import triton
import triton.language as tl

from .pattern import Arguments, Pattern, half, normal, tiled, tiles


@triton.jit
def product(c, a, b, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            a + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0
        )
        right = tl.load(
            b + depth[:, None] * N + columns[None, :], mask=(depth[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * N + columns[None, :], sums, mask=(rows[:, None] < M) & (columns[None, :] < N))


def product_call(device: str, large: bool) -> Arguments:
    m, n, k = (2048, 2048, 2048) if large else (40, 50, 60)
    a, b = normal(device, m, k, dtype=half(device)), normal(device, k, n, dtype=half(device))
    return {"c": torch.empty(m, n, dtype=half(device), device=device), "a": a, "b": b, "M": m, "N": n, "K": k}


@triton.jit
def linear_gelu(c, a, w, bias, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """gelu(a w' + bias), weights of N x K, tiles of the result in the order of their program's number."""
    across = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // across * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) % across * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            a + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0
        )
        right = tl.load(
            w + columns[None, :] * K + depth[:, None], mask=(columns[None, :] < N) & (depth[:, None] < K), other=0.0
        )
        sums = tl.dot(left, right, sums)
    sums += tl.load(bias + columns, mask=columns < N, other=0.0)[None, :]
    sums = 0.5 * sums * (1 + tl.erf(sums * 0.7071067811865476))
    tl.store(c + rows[:, None] * N + columns[None, :], sums, mask=(rows[:, None] < M) & (columns[None, :] < N))


def linear_call(device: str, large: bool) -> Arguments:
    arguments = product_call(device, large)
    m, n, k = (arguments[name] for name in "MNK")
    w, bias = normal(device, n, k, dtype=half(device), scale=k**-0.5), normal(device, n)
    return {"c": arguments["c"], "a": arguments["a"], "w": w, "bias": bias, "M": m, "N": n, "K": k}


def all_tiles(meta: Mapping[str, Any]) -> tuple[int, ...]:
    down, across = tiled(meta)
    return (down * across,)


@triton.jit
def fused_mlp(c, x, gate, up, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """silu(x gate) * (x up): two products that share their left operand."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    gates, ups = tl.zeros((BLOCK_M, BLOCK_N), tl.float32), tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            x + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0
        )
        at = depth[:, None] * N + columns[None, :]
        inside = (depth[:, None] < K) & (columns[None, :] < N)
        gates = tl.dot(left, tl.load(gate + at, mask=inside, other=0.0), gates)
        ups = tl.dot(left, tl.load(up + at, mask=inside, other=0.0), ups)
    result = gates * tl.sigmoid(gates) * ups
    tl.store(c + rows[:, None] * N + columns[None, :], result, mask=(rows[:, None] < M) & (columns[None, :] < N))


def mlp_call(device: str, large: bool) -> Arguments:
    m, n, k = (512, 4096, 2048) if large else (20, 40, 70)
    x = normal(device, m, k, dtype=half(device))
    gate, up = (normal(device, k, n, dtype=half(device), scale=scale * k**-0.5) for scale in (1.0, 0.7))
    c = torch.empty(m, n, dtype=half(device), device=device)
    return {"c": c, "x": x, "gate": gate, "up": up, "M": m, "N": n, "K": k}


@triton.jit
def quantised(c, a, w, scales, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """a times weights of int8 with a scale for each column."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            a + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0
        )
        right = tl.load(
            w + depth[:, None] * N + columns[None, :], mask=(depth[:, None] < K) & (columns[None, :] < N), other=0
        )
        sums = tl.dot(left, right.to(left.dtype), sums)
    sums *= tl.load(scales + columns, mask=columns < N, other=0.0)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], sums, mask=(rows[:, None] < M) & (columns[None, :] < N))


def quantised_call(device: str, large: bool) -> Arguments:
    arguments = product_call(device, large)
    m, n, k = (arguments[name] for name in "MNK")
    w = (torch.arange(k * n, device=device).reshape(k, n) * 29 % 255 - 127).to(torch.int8)
    scales = 0.01 * (1 + normal(device, n).abs())
    return {"c": arguments["c"], "a": arguments["a"], "w": w, "scales": scales, "M": m, "N": n, "K": k}


@triton.jit
def batched(c, a, b, BATCH, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    matrix = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left_at, right_at = matrix * M * K + rows[:, None] * K + depth[None, :], matrix * K * N + depth[:, None] * N
        left = tl.load(a + left_at, mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0)
        right = tl.load(b + right_at + columns[None, :], mask=(depth[:, None] < K) & (columns[None, :] < N), other=0.0)
        sums = tl.dot(left, right, sums)
    at = matrix * M * N + rows[:, None] * N + columns[None, :]
    tl.store(c + at, sums, mask=(rows[:, None] < M) & (columns[None, :] < N))


def batched_call(device: str, large: bool) -> Arguments:
    count, m, n, k = (64, 256, 256, 512) if large else (3, 20, 30, 40)
    a, b = normal(device, count, m, k, dtype=half(device)), normal(device, count, k, n, dtype=half(device))
    c = torch.empty(count, m, n, dtype=half(device), device=device)
    return {"c": c, "a": a, "b": b, "BATCH": count, "M": m, "N": n, "K": k}


@triton.jit
def split_k(c, a, b, M, N, K, PARTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Each program adds its part of K to the result, which must be zero before."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(tl.program_id(2) * BLOCK_K, K, PARTS * BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            a + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0
        )
        right = tl.load(
            b + depth[:, None] * N + columns[None, :], mask=(depth[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        sums = tl.dot(left, right, sums)
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], sums, mask=(rows[:, None] < M) & (columns[None, :] < N))


def split_k_call(device: str, large: bool) -> Arguments:
    m, n, k = (64, 512, 16384) if large else (20, 30, 200)
    a, b = normal(device, m, k, dtype=half(device)), normal(device, k, n, dtype=half(device), scale=k**-0.5)
    return {"c": torch.zeros(m, n, device=device), "a": a, "b": b, "M": m, "N": n, "K": k}


SPLITS = [
    triton.Config({"PARTS": parts, "BLOCK_M": 32, "BLOCK_N": n, "BLOCK_K": k}, num_warps=4, num_stages=stages)
    for parts in (2, 8, 16)
    for n in (32, 64)
    for k in (32, 64)
    for stages in (2, 4)
]


@triton.jit
def matrix_vector(y, a, x, rows, columns, BLOCK_R: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    sums = tl.zeros((BLOCK_R,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        at, inside = row[:, None] * columns + column[None, :], (row[:, None] < rows) & (column[None, :] < columns)
        vector = tl.load(x + column, mask=column < columns, other=0.0)
        sums += tl.sum(tl.load(a + at, mask=inside, other=0.0) * vector[None, :], axis=1)
    tl.store(y + row, sums, mask=row < rows)


def vector_call(device: str, large: bool) -> Arguments:
    rows, columns = (8192, 4096) if large else (37, 90)
    a, x = normal(device, rows, columns), normal(device, columns)
    return {"y": torch.empty(rows, device=device), "a": a, "x": x, "rows": rows, "columns": columns}


VECTORS = [
    triton.Config({"BLOCK_R": rows, "BLOCK": columns}, num_warps=warps)
    for rows in (1, 4, 16)
    for columns in (64, 256, 512)
    for warps in (2, 4)
]


def of_a_and_b(arguments: Arguments) -> Mapping[str, torch.Tensor]:
    return {"c": arguments["a"].float() @ arguments["b"].float()}


PATTERNS: dict[str, Pattern] = {
    "product": Pattern(product, tiles(stages=(2, 3, 4, 5)), ("M", "N", "K"), product_call, tiled, of_a_and_b),
    "linear with gelu": Pattern(
        linear_gelu, tiles(), ("M", "N", "K"), linear_call, all_tiles,
        lambda call: {"c": F.gelu(call["a"].float() @ call["w"].float().T + call["bias"])},
    ),
    "fused MLP": Pattern(
        fused_mlp, tiles(stages=(2, 3)), ("M", "N", "K"), mlp_call, tiled,
        lambda call: {
            "c": F.silu(call["x"].float() @ call["gate"].float()) * (call["x"].float() @ call["up"].float())
        },
    ),
    "quantised product": Pattern(
        quantised, tiles(stages=(2, 3)), ("M", "N", "K"), quantised_call, tiled,
        lambda call: {"c": call["a"].float() @ call["w"].float() * call["scales"]},
    ),
    "batched product": Pattern(
        batched, tiles(stages=(2, 3)), ("M", "N", "K"), batched_call, lambda meta: (*tiled(meta), meta["BATCH"]),
        of_a_and_b,
    ),
    "split K": Pattern(
        split_k, SPLITS, ("M", "N", "K"), split_k_call, lambda meta: (*tiled(meta), meta["PARTS"]), of_a_and_b,
        reset_to_zero=("c",),
    ),
    "matrix times vector": Pattern(
        matrix_vector, VECTORS, ("rows", "columns"), vector_call,
        lambda meta: (triton.cdiv(meta["rows"], meta["BLOCK_R"]),), lambda call: {"y": call["a"] @ call["x"]},
    ),
}  # fmt: skip
