"""What a GPU's BLAS says of a problem before it computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tunesmith.devices import LaunchError
from tunesmith.records import LibraryCall, LibraryPlan, Target
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
        if gpu.lost or gpu.capturing() or not _is_of_release(gpu.target, made_with) or not (ready := by_vendor()):
            return None
        calls = [step for step in ready.launched.plan.steps if isinstance(step, LibraryCall)]
        with gpu.on(None):
            return gpu.foreseen(calls[0], ready.compiled.programs[calls[0].module]) if calls else None
    except LaunchError as error:
        if error.poisoned:
            raise
        return None


def _is_of_release(target: Target, made_with: str | None) -> bool:
    """Whether the device's library is of the release that the text names. Without a text any library is."""
    try:
        return made_with is None or release_of(made_with) == release_of(library(target).version)
    except LookupError:
        return False
