"""What a GPU's BLAS says of a problem before it computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tunesmith.devices import LaunchError
from tunesmith.records import LibraryCall, LibraryPlan
from tunesmith.toolchains.blas import library, release_of

if TYPE_CHECKING:
    from tunesmith.devices.cuda.device import CudaDevice

    from ._launcher import ReadyLaunch


def foreseen(
    gpu: CudaDevice, by_vendor: Callable[[], ReadyLaunch | None], made_with: str | None = None
) -> LibraryPlan | None:
    """The plan of the library's call that `by_vendor` makes ready. None if there is no such call, if the library does
    not say, and where nothing may be asked: in a forked child, and while a stream is captured into a graph.

    `made_with` names the versions that a logic was made with. Another release of the library has other kernels behind
    the numbers of a plan, so it is not asked.

    A choice goes on without a plan, so an error is no reason to raise, unless the GPU cannot be used any more.
    """
    try:
        if gpu.lost or gpu.capturing() or not (ready := by_vendor()):
            return None
        if made_with is not None and release_of(made_with) != release_of(library(gpu.target).version):
            return None
        calls = [step for step in ready.launched.plan.steps if isinstance(step, LibraryCall)]
        with gpu.on(None):
            return gpu.foreseen(calls[0], ready.compiled.programs[calls[0].module]) if calls else None
    except LaunchError as error:
        if error.poisoned:
            raise
        return None
