"""Random numbers: generators, distributions, the operation that fills a buffer, and its reference."""

from .generators import DTYPES, GENERATORS, WIDTHS, Generator, Kind, Width
from .operation import RandomFill, RandomOperation, random_type, scalars_for
from .poisson import poisson_table

__all__ = [
    "DTYPES",
    "GENERATORS",
    "WIDTHS",
    "Generator",
    "Kind",
    "RandomFill",
    "RandomOperation",
    "Width",
    "poisson_table",
    "random_type",
    "scalars_for",
]
