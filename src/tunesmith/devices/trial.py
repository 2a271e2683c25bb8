"""The process that answers the questions of `driver_process.py`: `find API` and `trial API SELECTOR`.

Questions and answers are lines of JSON. A driver that crashes or hangs ends only this process.
"""

from __future__ import annotations

import dataclasses
import json
import socket
import sys

import numpy as np

from tunesmith.records import Launch, OperandArgument, Plan
from tunesmith.toolchains import TOOLCHAINS, CompileError

from .api import Api
from .base import Device, LaunchError
from .choice import APIS

WORK_ITEMS = 8
WORK_GROUPS = 4


def trial(api: Api, selector: str) -> str:
    """Compile and run the API's small kernel. Returns what went wrong, or nothing."""
    module = api.trial
    targets = (found.target for found in api.find() if found.target)
    target = next((target for target in targets if target.selector == selector), None)
    if module is None or target is None:
        return "was not possible: the device has gone"
    toolchain = TOOLCHAINS[module.language]
    if missing := toolchain.unavailable():
        return f"was not possible: {missing}"
    try:
        binary = toolchain.compile(module, target)
        device = api.open(target)
        wrong = _run(device, device.load(binary), module.entries[0])
        device.close()
    except CompileError as error:
        return f"failed to compile: {error.reason}: {error.log.strip()[:500]}"
    except LaunchError as error:
        return f"failed to launch: {error.reason}: {error.detail[:500]}"
    return wrong


def _run(device: Device, program: object, entry: str) -> str:
    count = WORK_ITEMS * WORK_GROUPS
    out = device.allocate(4 * count)
    device.write(out, np.zeros(4 * count, dtype=np.uint8))
    launch = Launch(0, entry, (WORK_GROUPS, 1, 1), (WORK_ITEMS, 1, 1), (OperandArgument("out"),))
    device.prepare(Plan((launch,)), [program], {"out": out}, None).enqueue()
    device.synchronize()
    values = device.read(out, 4 * count).view(np.int32)
    return "" if np.array_equal(values, np.arange(1, count + 1)) else f"computed {values.tolist()}"


def answer_to(task: str, api: str, *selector: str) -> object:
    if task == "find":
        return [dataclasses.asdict(found) for found in APIS[api].find()]
    return trial(APIS[api], *selector)


def main(number: str) -> None:
    """Answer questions that come by the socket with this number, until the parent closes its end."""
    with socket.socket(fileno=int(number)) as connection, connection.makefile("r") as questions:
        for question in questions:
            connection.sendall(json.dumps(answer_to(*json.loads(question))).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
