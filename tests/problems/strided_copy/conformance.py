from pathlib import Path

from copy_kernel import CopyKernel
from copy_problem import CopyOperation

from tunesmith.devices import choose, open_device
from tunesmith.records import Problem
from tunesmith.testing import KernelSuite, OperationSuite

COPY = Problem(CopyOperation().type_of({}, str, Path()), (33, 65), (80,))


class TestCopyOperation(OperationSuite):
    operation, problems = CopyOperation(), (COPY,)


class TestCopyKernel(KernelSuite):
    kernel, problems = CopyKernel(), (COPY,)

    def device(self):
        return open_device(choose("OpenCL"))
