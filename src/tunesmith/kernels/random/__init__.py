"""Kernels that fill a buffer with random numbers.

Their texts lie in `source/`, one text for OpenCL C and CUDA C++. A distribution's text is `distributions.h`, with
`normal.h` and `quantile.h` for normal numbers. A generator's text has the generator's name (`threefry.h` and `sobol.h`
serve several, `mrg.h` is shared). `programs.py` says which texts make a program.
"""

from .family import CudaRandom, OpenCLRandom
from .launches import COUNT_ARGUMENT, start_argument, with_arguments, work_groups_of_fill

__all__ = ["COUNT_ARGUMENT", "CudaRandom", "OpenCLRandom", "start_argument", "with_arguments", "work_groups_of_fill"]
