"""Narrow guard bands on the fake device, whose faults write next to an array.

Half a mebibyte around every array, filled and compared for each of three runs, is most of what a job on the fake device
takes. Real devices keep what users have: a wrong kernel of theirs may write a few rows beyond.
"""

from __future__ import annotations

from dataclasses import replace

from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.host_memory import HostMemory
from tunesmith.devices import Device
from tunesmith.devices.fake import FakeDevice

BAND = 4096
"""Bytes on each side: a multiple of the fake device's alignment."""

_made = HostMemory.__init__


def _narrowed(self: HostMemory, device: Device, case: VerificationCase) -> None:
    _made(self, device, case)
    if isinstance(device, FakeDevice):
        self._regions = {name: replace(region, start=BAND) for name, region in self._regions.items()}


def narrow_guards() -> None:
    """Let the benches of this process and its forks do so."""
    HostMemory.__init__ = _narrowed  # type: ignore[method-assign]
