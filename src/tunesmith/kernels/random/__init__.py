"""Kernels that fill a buffer with random numbers.

Their texts lie in `source/`, one text for OpenCL C and CUDA C++. A distribution's text is `distributions.h`, with
`normal.h` and `quantile.h` for normal numbers. A generator's text has the generator's name (`threefry.h` and `sobol.h`
serve several, `mrg.h` is shared). `programs.py` says which texts make a program.
"""

from .family import CudaRandom, OpenCLRandom
from .launches import COUNT, changed, groups, start_argument

__all__ = ["COUNT", "CudaRandom", "OpenCLRandom", "changed", "groups", "start_argument"]
