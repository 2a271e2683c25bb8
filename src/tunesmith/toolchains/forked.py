"""Drivers after a fork: a child must not use a driver that its parent has used, whose threads are in the parent."""

from __future__ import annotations

import os

from tunesmith.records import UserError


class Driver:
    """One driver of this process: whether it was used, and whether that was in the parent, before a fork (`lost`).

    A lost driver, of OpenCL or CUDA, does not work in the child, and a call may never return (PoCL waits for threads
    that only the parent has). A child may use a driver that its parent had not used.
    """

    def __init__(self, name: str) -> None:
        self.name, self.used, self.lost = name, False, False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def use(self) -> None:
        """Call this before the driver is used. Raises UserError in a child whose parent had used the driver."""
        if self.lost:
            raise self.error()
        self.used = True

    def error(self) -> UserError:
        """The error for the person who forked."""
        what = f"this process was forked from one that had used {self.name}, whose driver works in the parent alone"
        remedy = "start processes by multiprocessing's 'spawn' or 'forkserver', or fork before the first call"
        return UserError(self.name, what, remedy)

    def _forked(self) -> None:
        self.lost = self.used


OPENCL, CUDA = Driver("OpenCL"), Driver("CUDA")
