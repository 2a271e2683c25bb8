"""Imported before NumPy: its BLAS has one thread, and OpenMP's threads sleep while they wait, in this process and
in those that it starts.

The files of the tests share the processors already. A second thread of BLAS computes little of small matrices and
spends processor time on waiting: a quarter of a run on the fake device. Tests of fits by scikit-learn took
more than 300 seconds where two files ran side by side, whose threads waited on all processors. Alone they take 7.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "passive"
