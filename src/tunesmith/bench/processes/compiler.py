"""A process of the compile pool: compiles the parent's modules, until the parent is gone."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np

from tunesmith.devices import Device, LaunchError, open_device
from tunesmith.problems import OPERATIONS
from tunesmith.records import Binary, Module, Target, UserError
from tunesmith.toolchains import TOOLCHAINS, CompileError

from .. import injected_faults
from ..device_runner import OUT_OF_MEMORY
from ..machine_failures import MACHINE_FAILED
from ..verification.poison import itemsize
from .messages import Built, CompilerReady, Probe, Running
from .process import requests


def main(connection: Connection) -> None:
    injected_faults.set_role("compiler")
    builder = _Builder(connection.recv().target, lambda now: connection.send(Running(now)))
    connection.send(CompilerReady())
    for request in requests(connection):
        connection.send(builder.answer(request))


class _Builder:
    """Compiles modules and launches probes. Opens the device at the first probe.

    `running` is called with True when a launch starts to run and with False when it is over.
    """

    def __init__(self, target: Target, running: Callable[[bool], None]) -> None:
        self._target, self._running = target, running
        self._device: Device | None = None

    def answer(self, request: Module | Probe) -> Built | UserError:
        began = time.perf_counter()
        binary, failure = None, ("", "", False)
        try:
            if isinstance(request, Module):
                binary = self._compiled(request)
            else:
                self._launch(request)
        except UserError as error:
            return error
        except CompileError as error:
            failure = error.reason, error.log, False
        except LaunchError as error:
            failure = error.reason, error.detail, error.poisoned
        except MemoryError as error:
            failure = OUT_OF_MEMORY, f"on the host: {error}", False
        except (OSError, ImportError) as error:
            failure = MACHINE_FAILED, f"{type(error).__name__}: {error}", False
        except Exception:
            failure = "unexpected exception", traceback.format_exc(limit=-3).strip(), False
        return Built(time.perf_counter() - began, binary, *failure)

    def _compiled(self, module: Module) -> Binary:
        injected_faults.pass_point("compiling")
        return TOOLCHAINS[module.language].compile(module, self._target)

    def _launch(self, request: Probe) -> None:
        """Execute a plan once, since some compilers only run at the first launch."""
        injected_faults.pass_point("probing")
        device = self._device = self._device or open_device(self._target)
        plan, operands = request.plan, OPERATIONS[request.problem.type.operation].operands(request.problem)
        sizes = {operand.name: max(1, operand.storage_elements * itemsize(operand.dtype)) for operand in operands}
        buffers = {name: device.allocate(size) for name, size in sizes.items()}
        workspace = device.allocate(plan.workspace_bytes) if plan.workspace_bytes else None
        try:
            for name, size in sizes.items():
                device.write(buffers[name], np.zeros(size, np.uint8))
            programs = [device.load(binary) for binary in request.binaries]
            device.run(device.prepare(plan, programs, buffers, workspace), self._running)
        finally:
            device.release(*buffers.values(), *([] if workspace is None else [workspace]))
