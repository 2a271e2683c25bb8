"""What calls cost on this machine, as the floor asks: the launch of a kernel, and the BLAS."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf, prod

import numpy as np

from tunesmith.devices import LaunchError
from tunesmith.library.launch._host_launch import HostOperand
from tunesmith.library.launch._launcher import Launcher
from tunesmith.logic import Choice
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem
from tunesmith.toolchains import CompileError
from tunesmith.toolchains.blas import wait_until_threads_rest

from ._by_numpy import by_numpy
from ._call_adapter import row_major
from ._checked_call import Arguments, Scalars
from ._request import GemmRequest, offered_by

CALLS, ENOUGH_SECONDS = 20, 0.1
"""A time is the least of so many calls, or of fewer if they take so long. The least, since other processes can only
lengthen a call."""

LONGEST_REST = 0.3
"""Seconds for which a kernel waits at most until the BLAS's threads rest."""

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

    def kernel(self, problem: Problem, choice: Choice) -> float:
        part = _part(problem)
        try:
            return self._seconds_of(part, choice) * prod(problem.sizes) / prod(part.sizes)
        except (CompileError, LaunchError, MemoryError):
            return inf

    def _seconds_of(self, problem: Problem, choice: Choice) -> float:
        """The least time of some launches of a choice on the same arrays of the host, less that of a kernel that does
        nothing; infinite if it cannot run."""
        ready = self._launcher.ready_of(choice, problem)
        if ready is None:
            return inf
        reads_c = problem.scalars.get("beta", 0.0) != 0
        operands = [x for x in OPERATIONS["GEMM"].operands(problem) if reads_c or x.name != "C"]
        arrays = [np.ones(x.storage_elements, x.dtype) for x in operands]
        memory = [
            HostOperand(x.name, array.ctypes.data, array.nbytes, x.name == "D")
            for x, array in zip(operands, arrays, strict=True)
        ]
        addresses, stand_ins = tuple(operand.address for operand in memory), {} if reads_c else {"C": "D"}
        wait_until_threads_rest(LONGEST_REST)
        launched = _least(lambda: self._launcher.run_in_place(ready, addresses, lambda: memory, stand_ins))
        return max(launched - self._launcher.repeated_launch_seconds, 0.0) if ready.bound.again else inf


def _part(problem: Problem) -> Problem:
    """The problem with its largest size halved until the product has at most MOST multiplications."""
    sizes = list(problem.sizes)
    while prod(sizes) > MOST:
        largest = sizes.index(max(sizes))
        sizes[largest] = -(-sizes[largest] // 2)
    return Problem(problem.type, tuple(sizes), (), problem.scalars)


def _seconds(problem: Problem) -> float:
    """The time of a problem by NumPy's BLAS."""
    operands = OPERATIONS["GEMM"].operands(problem)
    a, b, c, out = row_major(problem, {x.name: np.ones(x.storage_elements, x.dtype) for x in operands})
    alpha, beta = (float(problem.scalars.get(name, default)) for name, default in (("alpha", 1.0), ("beta", 0.0)))  # type: ignore[arg-type]
    arguments = Arguments(a, b, c if beta else None, out=out)
    offered = offered_by(problem.type)
    request = GemmRequest(offered.data, offered.dest, beta=beta != 0)
    return _least(lambda: by_numpy(arguments, Scalars(None, alpha, beta, ""), request, lambda: out))


def _least(call: Callable[[], object]) -> float:
    """The least time of some calls. The first one wakes the threads, or loads a program, and does not count."""
    call()
    times: list[float] = []
    while len(times) < CALLS and sum(times) < ENOUGH_SECONDS:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
