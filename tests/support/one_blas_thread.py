"""Imported before NumPy: its BLAS has one thread, in this process and in those that it starts.

The files of the tests share the processors already. A second thread computes little of small matrices and spends
processor time on waiting: a quarter of a run on the fake device.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
