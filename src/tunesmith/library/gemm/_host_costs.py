"""What calls cost on this machine, as the floor asks: the launch of a kernel, and the BLAS."""

from __future__ import annotations

import time
from math import inf, prod

import numpy as np

from tunesmith.devices import LaunchError
from tunesmith.library.launch._launcher import Launcher
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem
from tunesmith.toolchains import CompileError

from ._by_numpy import by_numpy
from ._call_adapter import row_major
from ._checked_call import Arguments, Scalars
from ._request import GemmRequest, offered_by

CALLS, ENOUGH_SECONDS = 5, 0.1
"""A time of the BLAS is the least of so many calls, or of fewer if they take so long. The least, since other processes
can only lengthen a call: if in doubt, the BLAS is chosen."""

MOST = 2**30
"""Multiplications of a product that is timed. The BLAS is timed at a part of a larger product, at the same rate."""


class HostCosts:
    """The `Costs` of one device that is the host's CPU."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def launch(self) -> float:
        """As in `Costs`; infinite on a device that cannot launch a kernel that does nothing."""
        try:
            return self._launcher.launch_seconds
        except (CompileError, LaunchError):
            return inf

    def blas(self, problem: Problem) -> float:
        part = _part(problem)
        return _seconds(part) * prod(problem.sizes) / prod(part.sizes)


def _part(problem: Problem) -> Problem:
    """The problem with its largest size halved until the product has at most MOST multiplications."""
    sizes = list(problem.sizes)
    while prod(sizes) > MOST:
        largest = sizes.index(max(sizes))
        sizes[largest] = -(-sizes[largest] // 2)
    return Problem(problem.type, tuple(sizes), (), problem.scalars)


def _seconds(problem: Problem) -> float:
    """The least time of some calls. The first one wakes the threads and does not count."""
    operands = OPERATIONS["GEMM"].operands(problem)
    a, b, c, out = row_major(problem, {x.name: np.ones(x.storage_elements, x.dtype) for x in operands})
    alpha, beta = (float(problem.scalars.get(name, default)) for name, default in (("alpha", 1.0), ("beta", 0.0)))  # type: ignore[arg-type]
    arguments = Arguments(a, b, c if beta else None, out=out)
    offered = offered_by(problem.type)
    request = GemmRequest(offered.data, offered.dest, beta=beta != 0)
    least = began = 0.0
    for call in range(CALLS + 1):
        start = time.perf_counter()
        by_numpy(arguments, Scalars(None, alpha, beta, ""), request, lambda: out)
        now = time.perf_counter()
        if call == 0:
            began = now
            continue
        least = min(now - start, least or now - start)
        if now - began > ENOUGH_SECONDS:
            break
    return least
