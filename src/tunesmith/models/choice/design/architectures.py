"""Products of published kinds of models, by formula: hidden sizes, heads, ratios of the MLP, and counts of tokens.

The numbers are those that papers and configuration files of such models have. A family mixes sizes of several models,
so a product need not be in any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunesmith.problems.gemm.listed import ListedGemm

from .draws import log_uniform, pick, tokens

Units = Sequence[float]


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """The products of a kind of model. `draw` makes a product from eight numbers from 0 to 1."""

    name: str
    draw: Callable[[Units], ListedGemm]

    def product(self, units: Units) -> ListedGemm:
        drawn = self.draw(units)
        return ListedGemm(drawn.m, drawn.n, drawn.k, drawn.batch, drawn.trans_a, drawn.trans_b, self.name)


def linear(rows: int, outputs: int, inputs: int, unit: float) -> ListedGemm:
    """A linear layer of `rows` vectors, in one of the ways in which frameworks ask for it."""
    match int(unit * 20):
        case 0 | 1 | 2:  # weights stored k x n
            return ListedGemm(rows, outputs, inputs)
        case 3 | 4:  # the gradient of the inputs
            return ListedGemm(rows, inputs, outputs)
        case 5 | 6 | 7:  # the gradient of the weights
            return ListedGemm(outputs, inputs, rows, trans_a=True)
        case 8 | 9:  # features first: a row for each output
            return ListedGemm(outputs, rows, inputs)
        case 10 | 11:
            return ListedGemm(outputs, rows, inputs, trans_a=True)
        case _:
            return ListedGemm(rows, outputs, inputs, trans_b=True)


def _llama(units: Units) -> ListedGemm:
    """Grouped query attention and a gated MLP."""
    hidden = pick(units[0], (1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192))
    heads = pick(units[1], (2, 4, 8, hidden // 128))
    ratio = pick(units[1] * 4 % 1, (8 / 3, 3, 3.5, 4, 5.4))
    wide = round(hidden * ratio / 256) * 256
    layers = ((hidden + 256 * heads, hidden), (hidden, hidden), (2 * wide, hidden), (wide, hidden), (hidden, wide))
    return linear(tokens(units[2], units[3]), *pick(units[4], layers), units[5])


def _gpt(units: Units) -> ListedGemm:
    """One projection for queries, keys and values, an MLP of four times the width, and the vocabulary."""
    hidden = pick(units[0], (768, 1024, 1280, 1600, 2048, 2304, 2560, 4096, 5120, 6144, 12288))
    words = pick(units[1], (30522, 32000, 50257, 50304, 51200, 100277, 128256))
    layers = ((3 * hidden, hidden), (hidden, hidden), (4 * hidden, hidden), (hidden, 4 * hidden), (words, hidden))
    return linear(tokens(units[2], units[3]), *pick(units[4], layers), units[5])


def _experts(units: Units) -> ListedGemm:
    """One expert of a mixture, whose rows are what the router sends to it, and the router itself."""
    hidden = pick(units[0], (1024, 2048, 2880, 4096, 5120, 6144, 7168))
    wide = pick(units[1], (512, 768, 1024, 1408, 1536, 2048, 2880, 4864, 10752, 16384))
    experts = pick(units[1] * 10 % 1, (8, 16, 32, 60, 64, 128, 160, 256))
    layers = ((2 * wide, hidden), (wide, hidden), (hidden, wide), (hidden, wide), (experts, hidden))
    rows = max(1, round(log_uniform(units[2], 1, 4096)))
    return linear(rows, *pick(units[4], layers), units[5])


def _vision(units: Units) -> ListedGemm:
    """Patches of images: their number is seldom a multiple of anything."""
    hidden = pick(units[0], (192, 384, 512, 768, 1024, 1152, 1280, 1408, 1664))
    patches = pick(units[1], (49, 50, 196, 197, 256, 257, 576, 577, 1024, 1025))
    images = int(2 ** round(units[2] * 6))
    layers = ((3 * hidden, hidden), (hidden, hidden), (4 * hidden, hidden), (hidden, 4 * hidden), (1000, hidden))
    return linear(patches * images, *pick(units[4], layers), units[5])


def _recurrent(units: Units) -> ListedGemm:
    """Gates of recurrent layers: a few rows in each step, or all steps at once."""
    hidden = 64 * round(log_uniform(units[0], 4, 64))
    gates = pick(units[1], (1, 3, 4, 6))
    rows = round(log_uniform(units[2], 4, 512)) if units[3] < 0.5 else 8 * round(log_uniform(units[2], 64, 4096))
    return linear(rows, gates * hidden, hidden, units[5])


def _recommender(units: Units) -> ListedGemm:
    """Towers of narrow layers over large batches."""
    widths = (1, 13, 16, 26, 32, 64, 80, 128, 256, 367, 415, 479, 512, 1024, 2048)
    outputs, inputs = pick(units[0], widths), pick(units[1], widths)
    return linear(int(2 ** round(9 + 7 * units[2])), outputs, inputs, units[5])


def _convolution(units: Units) -> ListedGemm:
    """A convolution as one product: pixels times filters."""
    side = pick(units[0], (7, 14, 28, 56, 112))
    images = int(2 ** round(units[1] * 5))
    taps = pick(units[2], (1, 1, 9, 9, 25, 49))
    channels, filters = (
        pick(unit, (3, 16, 24, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048)) for unit in units[3:5]
    )
    return linear(side * side * images, filters, channels * taps, units[5])


def _attention(units: Units) -> ListedGemm:
    """Scores and values of one head."""
    width = pick(units[0], (32, 40, 64, 72, 80, 96, 128, 192, 256))
    queries, keys = tokens(units[1], units[2]), tokens(0.4 + 0.6 * units[3], units[4])
    if units[5] < 0.5:
        return ListedGemm(queries, keys, width, trans_b=True)
    return ListedGemm(queries, width, keys) if units[5] < 0.8 else ListedGemm(keys, width, queries, trans_a=True)


MODELS = (
    ModelFamily("llama", _llama),
    ModelFamily("gpt", _gpt),
    ModelFamily("experts", _experts),
    ModelFamily("vision", _vision),
    ModelFamily("recurrent", _recurrent),
    ModelFamily("recommender", _recommender),
    ModelFamily("convolution", _convolution),
    ModelFamily("attention", _attention),
)


def _heads(units: Units) -> ListedGemm:
    """Scores and values of all heads of a batch of sequences: for few new tokens, or for as many as there are keys; and
    the products that give the gradients of keys and values."""
    width = pick(units[0], (32, 40, 64, 64, 72, 80, 96, 128, 128, 192, 256))
    keys = tokens(0.4 + 0.6 * units[1], units[2], 4096)
    queries = pick(units[3] * 4, (1, 1, 4, 8, 16)) if units[3] < 0.25 else keys
    heads = pick(units[4], (4, 6, 8, 12, 16, 20, 24, 32, 40, 64))
    batch = heads * int(2 ** round(units[5] * 6))
    if units[6] < 0.35:
        return ListedGemm(queries, keys, width, batch, trans_b=True)
    if units[6] < 0.7:
        return ListedGemm(queries, width, keys, batch)
    return ListedGemm(keys, width, keys, batch, trans_a=True)


def _expert_batch(units: Units) -> ListedGemm:
    """All experts of a mixture at once, each with as many rows as it has room for."""
    hidden = pick(units[0], (512, 768, 1024, 1536, 2048, 2880, 4096))
    wide = pick(units[1], (256, 512, 768, 1024, 1408, 2048, 2880, 4096))
    experts = pick(units[2], (4, 8, 16, 32, 60, 64, 128))
    rows = tokens(units[3], units[4], 1024)
    drawn = linear(rows, *pick(units[5], ((2 * wide, hidden), (wide, hidden), (hidden, wide))), units[6])
    return ListedGemm(drawn.m, drawn.n, drawn.k, experts, drawn.trans_a, drawn.trans_b)


def _chunks(units: Units) -> ListedGemm:
    """Chunks of a sequence in linear attention and state-space models, a batch of all heads and chunks."""
    chunk, state = pick(units[0], (16, 32, 64, 128, 256)), pick(units[1], (16, 32, 64, 128, 256))
    width, batch = pick(units[2], (32, 64, 96, 128, 256)), round(log_uniform(units[3], 16, 8192))
    products = (
        ListedGemm(chunk, chunk, state, batch, trans_b=True),
        ListedGemm(chunk, width, chunk, batch),
        ListedGemm(state, width, chunk, batch, trans_a=True),
        ListedGemm(chunk, width, state, batch),
    )
    return pick(units[4], products)


BATCHED_MODELS = (
    ModelFamily("heads", _heads),
    ModelFamily("expert-batch", _expert_batch),
    ModelFamily("chunks", _chunks),
)
