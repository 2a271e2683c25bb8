"""The process that owns the device: verifies and times the parent's candidates, until the parent is gone."""

from __future__ import annotations

from multiprocessing.connection import Connection

from tunesmith.devices import LaunchError, open_device
from tunesmith.records import UserError

from .. import injected_faults
from ..device_runner import DeviceRunner
from .messages import Done, InterleaveRequest, MeasureRequest, PrepareRequest, Start
from .process import requests


def main(connection: Connection) -> None:
    injected_faults.set_role("worker")
    start = connection.recv()
    runner = _opened(start, connection)
    if runner is not None:
        _serve(runner, connection)


def _opened(start: Start, connection: Connection) -> DeviceRunner | None:
    try:
        runner = DeviceRunner(open_device(start.target), start.policy, connection.send)
        runner.prepare()
    except (UserError, LaunchError) as error:
        remedy = "choose another device; `tunesmith devices` shows which there are"
        connection.send(UserError("device", str(error), remedy))
        return None
    connection.send(Done(()))
    return runner


def _serve(runner: DeviceRunner, connection: Connection) -> None:
    for request in requests(connection):
        if isinstance(request, PrepareRequest):
            runner.prepare_problems(request.problems)
            continue
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
