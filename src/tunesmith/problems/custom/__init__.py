"""The user's own computation: a description, its sources and its reference, all held by the problem type itself.

The user's function (`reference.py` calls it) gives the values of a result's check. The tolerance is the description's
`Tolerance`, which `operation.py` multiplies by the roundoff and the magnitude.
"""

from .description import FLOATS, LIMITS, ArrayArgument, Description, LocalMemoryArgument, ValueArgument
from .launches import DescribedLaunch
from .operation import CustomOperation, sizes_of
from .reference import FIRST_ROUNDINGS
from .texts import description_of
from .triton_check import MAXNREG, NUM_CTAS, NUM_WARPS, OPTIONS, launch_parameters, triton_entry
from .triton_source import TRITON, TritonFunction

__all__ = [
    "FIRST_ROUNDINGS",
    "FLOATS",
    "LIMITS",
    "MAXNREG",
    "NUM_CTAS",
    "NUM_WARPS",
    "OPTIONS",
    "TRITON",
    "ArrayArgument",
    "CustomOperation",
    "DescribedLaunch",
    "Description",
    "LocalMemoryArgument",
    "TritonFunction",
    "ValueArgument",
    "description_of",
    "launch_parameters",
    "sizes_of",
    "triton_entry",
]
