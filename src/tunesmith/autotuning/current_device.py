"""The device that a call's tensors lie on, as torch and Triton know it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tunesmith.devices import target_here
from tunesmith.records import Target, UserError

from .choice import Machine


def machine_of(arguments: Mapping[str, Any], location: str) -> Machine:
    """The GPU of the call's tensors, and Triton's version. Raises UserError if no tensor lies on a GPU."""
    import torch
    import triton

    devices = (value.device for value in arguments.values() if hasattr(value, "data_ptr") and hasattr(value, "device"))
    device = next((device for device in devices if device.type == "cuda"), None)
    if device is None:
        raise UserError(location, "no argument is a tensor on a GPU", "move the tensors there: tensor.cuda()")
    index = torch.cuda.current_device() if device.index is None else device.index
    return Machine(torch.cuda.get_device_name(index), f"Triton {triton.__version__}", f"CUDA:{index}")


def target_of(machine: Machine) -> Target | str | None:
    """What a run is told as its device: a GPU that this process has open is described here. Another process searches
    for any other by its selector."""
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized() and machine.selector:
        return target_here(machine.selector)
    return machine.selector or None


@contextmanager
def on_gpu(machine: Machine) -> Iterator[None]:
    """A context in which the machine's GPU is torch's current device in this thread."""
    torch = sys.modules.get("torch")
    if torch and machine.selector.startswith("CUDA:"):
        with torch.cuda.device(int(machine.selector.removeprefix("CUDA:"))):
            yield
    else:
        yield


def open_driver(machine: Machine) -> None:
    """Let Triton open its driver for the machine's GPU, and hash its own library, as it does before it compiles.
    Releases such as 3.6 compile a C program for the driver."""
    from triton.runtime import driver

    with on_gpu(machine):
        driver.active.get_current_target()
    import tunesmith.toolchains.triton_ready  # noqa: F401


def is_capturing() -> bool:
    """Whether a CUDA graph is being captured on the current stream. A process without torch captures none."""
    torch = sys.modules.get("torch")
    return bool(torch and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
