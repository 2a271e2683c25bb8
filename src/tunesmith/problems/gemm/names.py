"""The GEMM type with a given name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import product

from tunesmith.records import ProblemType

from .fields import ACTIVATIONS, DATA_TYPES, INPUTS
from .type import GemmTypeError, gemm_type

FLAGS = ("transpose_a", "transpose_b", "batched", "use_beta", "interleaved", "bias", "scaled", "tf32")


def gemm_type_named(name: str) -> ProblemType | None:
    """The type with Tensile's name, such as `Cijk_Ailk_Bljk_SB`; None if no GEMM type has this name."""
    return _by_name().get(name)


@cache
def _by_name() -> Mapping[str, ProblemType]:
    return {problem_type.name: problem_type for problem_type in _every_type()}


def _every_type() -> Iterator[ProblemType]:
    every_flags = [dict(zip(FLAGS, values, strict=True)) for values in product((False, True), repeat=len(FLAGS))]
    for letter, activation, flags in product(INPUTS, ACTIVATIONS, every_flags):
        for dest in DATA_TYPES[letter].dest:
            with suppress(GemmTypeError):
                yield gemm_type(letter, dest=dest, activation=activation, **flags)
