"""Random numbers: generators, distributions, the operation that fills a buffer, and its reference."""

from .generators import DTYPES, GENERATORS, WIDTHS, FillWidth, GeneratorKind, GeneratorSpec, width_of
from .operation import RandomFill, RandomOperation, random_type, scalars_for
from .poisson import poisson_table

__all__ = [
    "DTYPES",
    "GENERATORS",
    "WIDTHS",
    "FillWidth",
    "GeneratorKind",
    "GeneratorSpec",
    "RandomFill",
    "RandomOperation",
    "poisson_table",
    "random_type",
    "scalars_for",
    "width_of",
]
