"""What the tests of the random kernels do in processes of their own: each task gives what it found wrong."""

from __future__ import annotations

from itertools import product

import numpy as np

from random_runner import SEED, Shape, fill, mistakes, problem, small, verified
from tunesmith.problems.random import GENERATORS, WIDTHS, Kind

BLOCKS = (1, 8, 32, 64, 96, 128, 160, 192, 256, 320, 640, 1024)
"""Powers of two, other multiples of a sub-group of 32, and less than one."""


def offered(generator: str, distribution: str, value_type: str) -> list[str]:
    return verified(problem(generator, distribution, value_type, 5000), small(generator))


def under_launches(generator: str, distribution: str, value_type: str, many: int) -> list[str]:
    """Which of `many` launches give other bytes than the smallest, which is compared with the reference."""
    shapes = [Shape(block, grid) for block, grid in product(BLOCKS, range(1, 81))]
    legal = [shape for shape in shapes if not shape.reasons(generator)]
    asked = problem(generator, distribution, value_type, 2048)
    first = fill(asked, legal[0])
    chosen = [legal[i] for i in np.random.default_rng(SEED).permutation(len(legal))[:many]]
    if len(chosen) < many or {shape.block for shape in chosen} != set(BLOCKS):
        return [f"only {len(chosen)} launches are legal"]
    others = [str(shape) for shape in chosen if fill(asked, shape).tobytes() != first.tobytes()]
    return mistakes(asked, first) + others


def for_engines(generator: str, distribution: str, value_type: str) -> list[str]:
    """Several shapes, powers of two where they must be, the last of so many engines that high powers are jumped."""
    blocks, grids = ((GENERATORS[generator].block,), (1, 3, 7)) if GENERATORS[generator].block else (BLOCKS, (1, 3, 4))
    shapes = [Shape(block, grid) for block, grid in product(blocks, grids)]
    legal = [shape for shape in shapes if not shape.reasons(generator)]
    chosen = legal[:: max(1, len(legal) // 6)]
    found = []
    for shape in chosen:
        asked = problem(generator, distribution, value_type, 2048, engines=shape.engines)
        found += [f"{shape}: {one}" for one in mistakes(asked, fill(asked, shape))]
    return found if len(chosen) > 2 else ["too few launches are legal"]


def at_edges(generator: str, distribution: str, value_type: str) -> list[str]:
    """All counts up to 40 from all elements up to 7, with few engines, so that they have several turns."""
    kind = GENERATORS[generator].kind
    shape = small(generator) if generator == "mtgp32" or kind is not Kind.ENGINE else Shape(8, 1)
    found = []
    for count, at in product(range(41), range(8)):
        offset = count % 3 if GENERATORS[generator].skips else 0
        asked = problem(generator, distribution, value_type, count, engines=shape.engines, offset=offset)
        found += [f"{count} from {at}: {one}" for one in mistakes(asked, fill(asked, shape, at))]
    return found


def offset(generator: str) -> list[str]:
    found = []
    for skipped in (1, 2, 3, 5, 256, 259, 2**32 - 3, 2**32 + 1, 2**33 - 7, 2**34 - 5, 2**34, 2**40 + 7, 2**63 - 8192):
        asked = problem(generator, "uniform", "unsigned_int", 2000, offset=skipped)
        found += [f"{skipped}: {one}" for one in mistakes(asked, fill(asked, small(generator)))]
    return found


def seeded(generator: str) -> list[str]:
    """Short ones, long ones, ones with halves that are zero or alike, and those that would leave recurrences at zero."""
    seeds = [0, 1, 7, 2**31 - 1, 2**32 - 209, 2**32 - 22853, 2**32 - 1, 2**32, 2**63, 2**64 - 1, (2**32 - 209) << 31]
    found = []
    for seed in [*seeds, 0x55555555, 0xAAAAAAAA << 32, 0xAAAAAAAA55555555, 0x1234567812345678]:
        asked = problem(generator, "uniform", "unsigned_int", 1000, seed=seed)
        found += [f"{seed}: {one}" for one in mistakes(asked, fill(asked, small(generator)))]
    return found


def continued(generator: str, distribution: str, value_type: str) -> list[str]:
    shape, calls = small(generator), 3
    once = 2 * shape.engines * WIDTHS[distribution][value_type].values
    asked = problem(generator, distribution, value_type, once)
    return mistakes(problem(generator, distribution, value_type, calls * once), fill(asked, shape, calls=calls))
