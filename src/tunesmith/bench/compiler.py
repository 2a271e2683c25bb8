"""A process of the compile pool: compiles what the parent sends, until the parent is gone."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable

import numpy as np

from tunesmith.devices import Device, LaunchError, open_device
from tunesmith.problems import OPERATIONS
from tunesmith.records import Binary, Target, UserError
from tunesmith.toolchains import TOOLCHAINS, CompileError

from . import faults
from ._messages import Built, Compile, Probe, Ready
from ._poison import itemsize
from ._process import connect_to_parent


def main(arguments: list[str]) -> None:
    connection = connect_to_parent(arguments)
    faults.play("compiler")
    start = connection.recv()
    bench = _Compiler(start.target)
    connection.send(Ready())
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(_built(bench.compile if isinstance(request, Compile) else bench.probe, request))


def _built(work: Callable[..., Binary | None], request: Compile | Probe) -> Built | UserError:
    began = time.perf_counter()

    def failed(reason: str, detail: str, poisoned: bool = False) -> Built:
        return Built(time.perf_counter() - began, None, reason, detail, poisoned)

    try:
        binary = work(request)
    except UserError as error:
        return error
    except CompileError as error:
        return failed(error.reason, error.log)
    except LaunchError as error:
        return failed(error.reason, error.detail, error.poisoned)
    except Exception:
        return failed("unexpected exception", traceback.format_exc(limit=-3).strip())
    return Built(time.perf_counter() - began, binary)


class _Compiler:
    """One process's compilers, and its device once it has to probe."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._device: Device | None = None

    def compile(self, request: Compile) -> Binary:
        faults.reached("compiling")
        return TOOLCHAINS[request.module.language].compile(request.module, self._target)

    def probe(self, request: Probe) -> None:
        """Execute a small plan once, so that a compiler which waits for the first launch has been run by now."""
        faults.reached("probing")
        device = self._device = self._device or open_device(self._target)
        plan, operands = request.plan, OPERATIONS[request.problem.type.operation].operands(request.problem)
        sizes = {operand.name: max(1, operand.storage_elements * itemsize(operand.dtype)) for operand in operands}
        buffers = {name: device.allocate(size) for name, size in sizes.items()}
        workspace = device.allocate(plan.workspace_bytes) if plan.workspace_bytes else None
        try:
            for name, size in sizes.items():
                device.write(buffers[name], np.zeros(size, np.uint8))
            programs = [device.load(binary) for binary in request.binaries]
            device.prepare(plan, programs, buffers, workspace).enqueue()
            device.synchronize()
        finally:
            device.release(*buffers.values(), *([] if workspace is None else [workspace]))


if __name__ == "__main__":
    main(sys.argv[1:])
