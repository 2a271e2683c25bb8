"""Random numbers: generators, distributions, and the operation that fills a buffer.

`streams.py` has the random words of every generator, `distributions.py` the values of every distribution with the
tolerance of a result's check. The kernels' texts lie in `kernels/random/source/`: a generator's in a file of its name,
distributions in `distributions.h`.
"""

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
