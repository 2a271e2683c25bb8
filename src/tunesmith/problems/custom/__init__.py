"""The user's own computation: a description, its sources and its reference, all held by the problem type itself.

The user's function (`reference.py` calls it) gives the values of a result's check. The tolerance is the description's
`Tolerance`, which `operation.py` multiplies by the roundoff and the magnitude.
"""

from .description import FLOATS, LIMITS, ArrayArgument, Description, LocalMemoryArgument, ValueArgument
from .launches import DescribedLaunch
from .operation import CustomOperation, sizes_of
from .texts import description_of

__all__ = [
    "FLOATS",
    "LIMITS",
    "ArrayArgument",
    "CustomOperation",
    "DescribedLaunch",
    "Description",
    "LocalMemoryArgument",
    "ValueArgument",
    "description_of",
    "sizes_of",
]
