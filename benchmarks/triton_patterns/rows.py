"""Kernels that go over rows: softmax, normalisations, losses, scans and look-ups."""

# ruff: noqa: N803  # constants of Triton functions have names in capitals

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812
import triton
import triton.language as tl

from .pattern import Arguments, Pattern, blocks, each_row, normal


@triton.jit
def softmax(y, x, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest, total = -float("inf"), 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
        larger = tl.maximum(largest, tl.max(values, axis=0))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(values - larger), axis=0)
        largest = larger
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
        tl.store(y + row * columns + column, tl.exp(values - largest) / total, mask=column < columns)


def matrix_call(device: str, large: bool) -> Arguments:
    rows, columns = (4096, 4000) if large else (7, 300)
    x = normal(device, rows, columns)
    return {"y": torch.empty_like(x), "x": x, "rows": rows, "columns": columns}


@triton.jit
def layer_norm(y, x, weight, bias, rows, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total, squares = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + column, mask=column < columns, other=0.0)
        total += values
        squares += values * values
    mean = tl.sum(total, axis=0) / columns
    inverse = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns - mean * mean + eps)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        values = (tl.load(x + row * columns + column, mask=inside, other=0.0) - mean) * inverse
        scaled = values * tl.load(weight + column, mask=inside, other=0.0) + tl.load(bias + column, mask=inside)
        tl.store(y + row * columns + column, scaled, mask=inside)


def layer_norm_call(device: str, large: bool) -> Arguments:
    arguments = matrix_call(device, large)
    columns = arguments["columns"]
    y, x = arguments.pop("y"), arguments.pop("x")
    weight, bias = 1 + normal(device, columns, scale=0.1), normal(device, columns)
    return {"y": y, "x": x, "weight": weight, "bias": bias, **arguments, "eps": 1e-5}


def layer_normed(arguments: Arguments) -> Mapping[str, torch.Tensor]:
    x, weight, bias = (arguments[name] for name in ("x", "weight", "bias"))
    return {"y": F.layer_norm(x, x.shape[-1:], weight, bias, arguments["eps"])}


@triton.jit
def rms_norm(y, x, weight, rows, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + column, mask=column < columns, other=0.0).to(tl.float32)
        squares += values * values
    inverse = tl.rsqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        values = tl.load(x + row * columns + column, mask=inside, other=0.0) * inverse
        tl.store(y + row * columns + column, values * tl.load(weight + column, mask=inside, other=0.0), mask=inside)


def rms_norm_call(device: str, large: bool) -> Arguments:
    arguments = layer_norm_call(device, large)
    del arguments["bias"]
    return arguments


def rms_normed(arguments: Arguments) -> Mapping[str, torch.Tensor]:
    x = arguments["x"]
    inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + arguments["eps"])
    return {"y": x * inverse * arguments["weight"]}


@triton.jit
def cross_entropy(loss, logits, labels, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest, total = -float("inf"), 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(logits + row * columns + column, mask=column < columns, other=-float("inf"))
        larger = tl.maximum(largest, tl.max(values, axis=0))
        total = total * tl.exp(largest - larger) + tl.sum(tl.exp(values - larger), axis=0)
        largest = larger
    chosen = tl.load(logits + row * columns + tl.load(labels + row))
    tl.store(loss + row, tl.log(total) + largest - chosen)


def cross_entropy_call(device: str, large: bool) -> Arguments:
    rows, columns = (2048, 32000) if large else (6, 500)
    labels = torch.arange(rows, dtype=torch.int64, device=device) * 31 % columns
    logits = normal(device, rows, columns)
    loss = torch.empty(rows, device=device)
    return {"loss": loss, "logits": logits, "labels": labels, "rows": rows, "columns": columns}


@triton.jit
def running_sum(y, x, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carried = 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + column, mask=column < columns, other=0.0)
        tl.store(y + row * columns + column, carried + tl.cumsum(values, axis=0), mask=column < columns)
        carried += tl.sum(values, axis=0)


@triton.jit
def largest_of_row(position, x, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best, where = -float("inf"), 0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
        value = tl.max(values, axis=0)
        where = tl.where(value > best, start + tl.argmax(values, axis=0), where)
        best = tl.maximum(best, value)
    tl.store(position + row, where)


def largest_call(device: str, large: bool) -> Arguments:
    arguments = matrix_call(device, large)
    del arguments["y"]
    position = torch.empty(arguments["rows"], dtype=torch.int32, device=device)
    return {"position": position, **arguments}


@triton.jit
def embedding(out, table, indices, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(indices + row)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        tl.store(out + row * columns + column, tl.load(table + source * columns + column, mask=inside), mask=inside)


def embedding_call(device: str, large: bool) -> Arguments:
    rows, columns, words = (16384, 1024, 30000) if large else (9, 150, 40)
    indices = torch.arange(rows, dtype=torch.int64, device=device) * 17 % words
    table = normal(device, words, columns)
    out = torch.empty(rows, columns, device=device)
    return {"out": out, "table": table, "indices": indices, "rows": rows, "columns": columns}


WIDE = blocks(256, 512, 1024, 2048)

PATTERNS: dict[str, Pattern] = {
    "softmax": Pattern(
        softmax, blocks(512, 1024, 2048, 4096, stages=(1, 3)), ("columns",), matrix_call, each_row,
        lambda call: {"y": call["x"].softmax(1)},
    ),
    "layer norm": Pattern(layer_norm, WIDE, ("columns",), layer_norm_call, each_row, layer_normed),
    "RMS norm": Pattern(rms_norm, WIDE, ("columns",), rms_norm_call, each_row, rms_normed),
    "cross entropy": Pattern(
        cross_entropy, WIDE, ("columns",), cross_entropy_call, each_row,
        lambda call: {"loss": F.cross_entropy(call["logits"], call["labels"], reduction="none")},
    ),
    "running sum": Pattern(
        running_sum, WIDE, ("columns",), matrix_call, each_row, lambda call: {"y": call["x"].cumsum(1)}
    ),
    "largest of a row": Pattern(
        largest_of_row, WIDE, ("columns",), largest_call, each_row,
        lambda call: {"position": call["x"].argmax(1).to(torch.int32)}, tolerance=0.0,
    ),
    "embedding": Pattern(
        embedding, WIDE, ("columns",), embedding_call, each_row,
        lambda call: {"out": call["table"][call["indices"]]}, tolerance=0.0,
    ),
}  # fmt: skip
