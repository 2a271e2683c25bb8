"""The target of times from a table, and whether its device is here (`target_if_here`).

Policies need a target's limits, which a table does not have. `Target.is_called` decides whether devices are the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tunesmith.devices import choose, discover
from tunesmith.formats.winners.final_details import NamedDevice
from tunesmith.models.intensity.policies.chips import architecture_code
from tunesmith.models.intensity.policies.known_targets import KNOWN_TARGETS
from tunesmith.records import Target, UserError
from tunesmith.store import FILE_NAME, FolderStore, Store


def target_of(device: NamedDevice, store: FolderStore | None, table: Path) -> Target:
    """The target of a table's times: from the store beside the table, else from the same device here, else the known
    target of the architecture. Raises UserError if there is none of these."""
    if store:
        with Store.read(store) as opened:
            if stored := next((entry.target for entry in opened.entries() if is_called(device, entry.target)), None):
                return stored
    targets = (found.target for found in discover(device.api, check=False))
    if same := next((target for target in targets if target and is_called(device, target)), None):
        return same
    known = KNOWN_TARGETS.get(architecture_code(device.architecture))
    if known and known.api == device.api:
        units = device.compute_units or known.compute_units
        return replace(known, name=device.name, driver=device.driver, compute_units=units)
    what = f"nothing here knows the limits of {device.name} ({device.api}, {device.architecture})"
    raise UserError(str(table), what, f"put the run's {FILE_NAME} beside the table, or give that store")


def is_called(device: NamedDevice, target: Target) -> bool:
    """Whether a table's device is this target."""
    return target.is_called(device.api, device.name, device.architecture)


def target_if_here(subject: Target) -> Target | None:
    """The device of this machine that is the same as a matrix's, after it has run a test kernel; None if there is none.

    Raises UserError if the device cannot run a kernel.
    """
    targets = (found.target for found in discover(subject.api, check=False))
    same = next((target for target in targets if target and target.same_device(subject)), None)
    return choose(same.selector) if same else None
