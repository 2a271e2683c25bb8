"""The process that owns the device: verifies and times the parent's candidates, until the parent is gone."""

from __future__ import annotations

from multiprocessing.connection import Connection

from tunesmith.devices import Device, LaunchError, open_device
from tunesmith.records import UserError

from .. import injected_faults
from ..device_runner import DeviceRunner
from .messages import Done, InterleaveRequest, MeasureRequest, Start
from .process import requests


def main(connection: Connection) -> None:
    injected_faults.set_role("worker")
    start = connection.recv()
    device = _opened(start, connection)
    if device is not None:
        _serve(DeviceRunner(device, start.policy, connection.send), connection)


def _opened(start: Start, connection: Connection) -> Device | None:
    try:
        device = open_device(start.target)
    except (UserError, LaunchError) as error:
        remedy = "choose another device; `tunesmith devices` shows which there are"
        connection.send(UserError("device", str(error), remedy))
        return None
    connection.send(Done(()))
    return device


def _serve(runner: DeviceRunner, connection: Connection) -> None:
    for request in requests(connection):
        done = _answer(runner, request)
        injected_faults.pass_point("reporting")
        connection.send(done)
        if isinstance(done, Done) and done.poisoned is not None:
            return


def _answer(runner: DeviceRunner, request: MeasureRequest | InterleaveRequest) -> Done | UserError:
    try:
        return runner.measure(request) if isinstance(request, MeasureRequest) else runner.interleave(request)
    except UserError as error:
        return error
