"""Imported before NumPy: its BLAS has one thread, and OpenMP's threads sleep while they wait, in this process and
in those that it starts.

The files of the tests share the processors already. A second thread of BLAS computes little of small matrices and
spends processor time on waiting: a quarter of a run on the fake device. Two fits of scikit-learn side by side, each of
which waited on all processors, took more than 300 seconds instead of 5.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "passive"
