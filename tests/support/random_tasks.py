"""What the tests of the random kernels do in processes of their own: each task gives what it found wrong.

Programs are optimised where all seeds and offsets of a generator share one, and elsewhere only if the task says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from opencl_runner import unoptimised
from random_runner import FAMILY, SEED, Shape, fill, mistakes, problem, small, verified
from tunesmith.problems.random import GENERATORS, WIDTHS, GeneratorKind

BLOCKS = (1, 8, 32, 64, 96, 128, 160, 192, 256, 320, 640, 1024)
"""Powers of two, other multiples of a sub-group of 32, and less than one."""

FIRST_BLOCKS = {"sobol32": 1, "scrambled_sobol64": 2, "threefry4_64_20": 3}
"""The first of `BLOCKS` that a generator is launched with; every fourth follows, and is compiled for it."""

MOST_WORK_ITEMS = 1 << 16
"""PoCL compiles a kernel once more for a launch of so many."""


UNOPTIMISED = unoptimised(FAMILY)


def offered(generator: str, distribution: str, value_type: str) -> list[str]:
    return verified(problem(generator, distribution, value_type, 5000), small(generator))


def offered_unoptimised(generator: str, distribution: str, value_type: str) -> list[str]:
    return verified(problem(generator, distribution, value_type, 5000), small(generator), family=UNOPTIMISED)


def legal(generator: str, blocks: Iterable[int], grids: Iterable[int]) -> list[Shape]:
    shapes = [Shape(block, grid) for block, grid in product(blocks, grids) if block * grid < MOST_WORK_ITEMS]
    return [shape for shape in shapes if not shape.reasons(generator)]


def under_launches(generator: str, distribution: str, value_type: str, many: int) -> list[str]:
    """Which of `many` launches give other bytes than the smallest, which is compared with the reference."""
    shapes = legal(generator, BLOCKS[FIRST_BLOCKS.get(generator, 0) :: 4], range(1, 129))
    asked = problem(generator, distribution, value_type, 70_001, dimensions=2)
    first = fill(asked, shapes[0], family=UNOPTIMISED)
    chosen = [shapes[i] for i in np.random.default_rng(SEED).permutation(len(shapes))[:many]]
    if len(chosen) < many:
        return [f"only {len(chosen)} launches are legal"]
    others = [str(shape) for shape in chosen if fill(asked, shape, family=UNOPTIMISED).tobytes() != first.tobytes()]
    return mistakes(asked, first) + others


def for_engines(generator: str, distribution: str, value_type: str) -> list[str]:
    """Several shapes up to 16,384 engines, from the last ones on where the beginning can be left out."""
    block = GENERATORS[generator].block
    shapes = legal(generator, (block,) if block else (8, 64, 160, 1024), (1, 3, 4, 16))
    found = []
    for shape in shapes:
        skipped = 5 * shape.engines - 3 if GENERATORS[generator].skips else 0
        many = 2 * shape.engines * WIDTHS[distribution][value_type].values + 7
        asked = problem(generator, distribution, value_type, many, engines=shape.engines, offset=skipped)
        found += [f"{shape}: {mistake}" for mistake in mistakes(asked, fill(asked, shape, family=UNOPTIMISED))]
    return found if len(shapes) > 3 else ["too few launches are legal"]


def at_edges(generator: str, distribution: str, value_type: str, which: str) -> list[str]:
    """All counts up to 40 or some of them, and those around a turn of all engines, from all elements up to 7."""
    shape, values = small(generator), WIDTHS[distribution][value_type].values
    counts = {"all": list(range(41)), "some": [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40]}[which]
    if GENERATORS[generator].kind is GeneratorKind.ENGINE:
        turn = shape.engines * values
        counts += [turn - 1, turn, turn + 1, 2 * turn + 3]
    found = []
    for count, at in product(counts, range(8)):
        skipped = count % 3 if GENERATORS[generator].skips else 0
        asked = problem(generator, distribution, value_type, count, offset=skipped)
        found += [
            f"{count} from {at}: {mistake}" for mistake in mistakes(asked, fill(asked, shape, at, family=UNOPTIMISED))
        ]
    return found


def offset(generator: str) -> list[str]:
    found = []
    for skipped in (1, 2, 3, 5, 256, 259, 2**32 - 3, 2**32 + 1, 2**33 - 7, 2**34 - 5, 2**34, 2**40 + 7, 2**63 - 8192):
        asked = problem(generator, "uniform", "unsigned_int", 2000, offset=skipped)
        found += [f"{skipped}: {mistake}" for mistake in mistakes(asked, fill(asked, small(generator)))]
    return found


def seeded(generator: str) -> list[str]:
    """Short and long ones, with halves that are zero or alike, and those that would leave recurrences at zero."""
    seeds = [0, 1, 7, 2**31 - 1, 2**32 - 209, 2**32 - 22853, 2**32 - 1, 2**32, 2**63, 2**64 - 1, (2**32 - 209) << 31]
    found = []
    for seed in [*seeds, 0x55555555, 0xAAAAAAAA << 32, 0xAAAAAAAA55555555, 0x1234567812345678]:
        asked = problem(generator, "uniform", "unsigned_int", 1000, seed=seed)
        found += [f"{seed}: {mistake}" for mistake in mistakes(asked, fill(asked, small(generator)))]
    return found


def poisson(generator: str) -> list[str]:
    """Means with a table of any size, up to the largest, and those for which a rounded normal number does."""
    found = []
    for lam in (1e-6, 0.5, 31.9, 32.0, 1000.0, 3999.0, 4000.0, 4000.5, 5000.0, 1e6, 2e9):
        asked = problem(generator, "poisson", "unsigned_int", 2000, **{"lambda": lam})
        found += [f"{lam}: {mistake}" for mistake in mistakes(asked, fill(asked, small(generator), family=UNOPTIMISED))]
    return found


def continued(generator: str, distribution: str, value_type: str) -> list[str]:
    shape, calls = small(generator), 3
    once = 2 * shape.engines * WIDTHS[distribution][value_type].values
    asked, whole = (problem(generator, distribution, value_type, count) for count in (once, calls * once))
    return mistakes(whole, fill(asked, shape, calls=calls, family=UNOPTIMISED))
