"""What a forked child must not use: a driver that its parent has used, whose threads and handles stay in the parent."""

from __future__ import annotations

import os

from tunesmith.records import UserError


class Driver:
    """One driver of this process: whether it is in use, and whether that was before a fork (`lost`).

    Neither OpenCL's drivers nor CUDA's work in a child then, and a call may never return (PoCL waits for threads that
    only the parent has). A child of a process that had not used the driver may use it.
    """

    def __init__(self, name: str) -> None:
        self.name, self.used, self.lost = name, False, False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def use(self) -> None:
        """Before the driver is asked for anything. Raises UserError in a child whose parent had used it."""
        if self.lost:
            raise self.error()
        self.used = True

    def error(self) -> UserError:
        """What is wrong, for the person who forked."""
        what = f"this process was forked from one that had used {self.name}, whose driver works in the parent alone"
        remedy = "start processes by multiprocessing's 'spawn' or 'forkserver', or fork before the first call"
        return UserError(self.name, what, remedy)

    def _forked(self) -> None:
        self.lost = self.used


OPENCL, CUDA = Driver("OpenCL"), Driver("CUDA")
