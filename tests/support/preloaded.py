"""What the processes of a session of tests import, for the server that forks all of them: those of the bench, and those
that execute a command.

Nothing that is imported here opens a device.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from quick_benches import quicken_benches
from tunesmith.kernels import KERNELS
from tunesmith.problems import OPERATIONS

for _module in ("tuning_runs", "tunesmith.cli.tune", "tunesmith.library.logic_check_process"):
    import_module(_module)

for _module in ("pyopencl", "scipy.linalg.cython_blas"):
    with suppress(ImportError):
        import_module(_module)

KERNELS.complete()
OPERATIONS.complete()
quicken_benches()
