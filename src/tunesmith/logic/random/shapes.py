"""The launch shapes that a generator's definition allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tunesmith.problems.random.generators import GENERATORS, GeneratorKind
from tunesmith.records import LaunchShape, Rejection

DEFAULT_SHAPES: Mapping[str, LaunchShape] = {
    name: LaunchShape(generator.default_block, generator.default_grid) for name, generator in GENERATORS.items()
}
"""The launch shapes of generators that were not tuned."""

NO_POWER_OF_TWO = "threads are no power of two"


def is_free(generator: str) -> bool:
    """Whether the output is the same for every launch shape, so that every distribution may have its own shape."""
    return generator in GENERATORS and GENERATORS[generator].kind is not GeneratorKind.ENGINE


def rejections(generator: str, shape: LaunchShape) -> Iterator[Rejection]:
    """Why a generator must not be launched with a shape, even if it runs; nothing for an unknown generator."""
    if generator not in GENERATORS:
        return
    rule = GENERATORS[generator]
    if rule.block is not None and shape.block != rule.block:
        yield Rejection("block", f"a block of {generator} has {rule.block} threads")
    if rule.power_of_two and shape.threads & (shape.threads - 1):
        yield Rejection(NO_POWER_OF_TWO, "some threads would share an engine, and streams repeat")
    if shape.block % rule.block_multiple:
        yield Rejection("threads", f"{generator} needs blocks of a multiple of {rule.block_multiple} threads")
    if rule.most_engines is not None and shape.threads > rule.most_engines:
        yield Rejection("threads", f"{generator} has {rule.most_engines} engines at most")
