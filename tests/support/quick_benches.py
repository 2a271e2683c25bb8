"""Benches do less in the processes of the tests' server: what is left out costs time and tells their tests nothing.

Half a mebibyte around every array, filled and compared for each of three runs, is most of what a job on the fake device
takes. Its faults write next to an array, so its guard bands are narrow. Real devices keep what users have: a wrong
kernel of theirs may write a few rows beyond.

A small problem is timed on 512 copies of its operands in turn, and PyOpenCL takes half a millisecond or more to bind a
kernel to each. No test depends on how cold the caches are, so there are few copies.

Benches within the process of the tests are as users have them.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.bench import operand_sets
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.host_memory import HostMemory
from tunesmith.devices import Device
from tunesmith.devices.fake import FakeDevice

BAND = 4096
"""Bytes on each side of an array: a multiple of the fake device's alignment."""
MOST_SETS = 16

_made = HostMemory.__init__


def _narrowed(self: HostMemory, device: Device, case: VerificationCase) -> None:
    _made(self, device, case)
    if isinstance(device, FakeDevice):
        self._regions = {name: replace(region, start=BAND) for name, region in self._regions.items()}


def quicken_benches() -> None:
    """Let the benches of this process and its forks do so."""
    HostMemory.__init__ = _narrowed  # type: ignore[method-assign]
    operand_sets._MOST_SETS = MOST_SETS
