"""The values that all configurations are compared with: those of the first configuration that runs, or a reference's.

An unknown configuration may hang or crash, so it is launched in a process of its own with a time limit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.records import UserError, Value

from .call_problem import GRID, CallArray, CallProblem
from .first_result_process import ERRORS, INPUTS, JOB, OUTPUTS
from .tensors import FlatArray, flat_contents, strided_tensor

ROUNDINGS = {"float16": 32.0, "bfloat16": 8.0, "float32": 8192.0, "float64": 2.0**20}
"""How many roundings two configurations may differ by, for each data type: some percent in 16 bits, and in float32 as
much as products in TF32 differ."""

Expectation = dict[str, tuple[FlatArray, FlatArray]]
"""Value and magnitude of each array after a launch."""

CallReference = Callable[[dict[str, Any]], Mapping[str, Any] | None]
"""The user's reference: it gets the call's arguments by name, with copies of the tensors. It changes these as the
kernel would, or returns the tensors that the kernel would have changed, by name."""


class LaunchInProcess:
    """A launch of one configuration in a process of its own, which begins when this object is made.

    `outputs` waits for the launch. The end of a `with` block kills a process that still runs.
    """

    def __init__(
        self,
        problem: CallProblem,
        member: Mapping[str, Value],
        device: str,
        before: Mapping[str, FlatArray],
        seconds: float,
    ) -> None:
        self._dtypes = {name: array.dtype for name, array in before.items()}
        self._seconds = seconds
        self._folder = tempfile.TemporaryDirectory(prefix="tunesmith-first-")
        folder = Path(self._folder.name)
        (folder / JOB).write_text(json.dumps(job(problem, member, device)), encoding="utf-8")
        as_bytes: dict[str, Any] = {name: array.view(np.uint8) for name, array in before.items()}
        np.savez(folder / INPUTS, **as_bytes)
        command = [sys.executable, "-P", "-m", f"{__package__}.first_result_process", str(folder)]
        with (folder / ERRORS).open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        self._deadline = time.monotonic() + seconds

    def outputs(self) -> dict[str, FlatArray] | str:
        """The arrays after the launch, or why it did not end well."""
        folder = Path(self._folder.name)
        try:
            code = self.process.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return f"no end within {self._seconds:g} s"
        if code:
            errors = (folder / ERRORS).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return (errors or [f"exit code {code}"])[-1]
        with np.load(folder / OUTPUTS, allow_pickle=False) as outputs:
            return {name: outputs[name].view(dtype) for name, dtype in self._dtypes.items()}

    def __enter__(self) -> LaunchInProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()


class FirstResult:
    """The arrays after a launch of the first configuration of `problem` that runs on a device of torch's.

    A configuration has `seconds` to end. `ahead` is a launch of the first configuration that has begun already.
    """

    def __init__(
        self, problem: CallProblem, device: str, location: str, seconds: float, ahead: LaunchInProcess | None = None
    ) -> None:
        self._problem, self._device, self._location, self._seconds = problem, device, location, seconds
        self._ahead = ahead

    def __call__(self, sizes: dict[str, Any], arrays: dict[str, FlatArray]) -> Expectation:
        """Value and magnitude of each array, from the arrays before the launch. Raises UserError if nothing runs."""
        before = storages(self._problem, arrays)
        failures = []
        for member in self._problem.listed:
            ahead, self._ahead = self._ahead, None
            with ahead or LaunchInProcess(self._problem, member, self._device, before, self._seconds) as launch:
                after = launch.outputs()
            if not isinstance(after, str):
                refuse_infinite(after, self._problem.entry, self._location)
                return expectation(before, after)
            failures.append(after)
        shown = "; ".join(dict.fromkeys(failures))
        raise UserError(self._location, f"no configuration of {self._problem.entry} runs: {shown}", "mend the kernel")


@dataclass(frozen=True)
class ReferenceResult:
    """The arrays after a call of the user's reference, in the user's process."""

    problem: CallProblem
    reference: CallReference
    arguments: Mapping[str, Any]

    def __call__(self, sizes: dict[str, Any], arrays: dict[str, FlatArray]) -> Expectation:
        """Value and magnitude of each array, from the arrays before the launch."""
        before = storages(self.problem, arrays)
        copies = {array.name: strided_tensor(before[array.name], array.tensor) for array in self.problem.arrays}
        returned = self.reference({**self.arguments, **copies}) or {}
        for name, tensor in returned.items():
            copies[name].copy_(tensor)
        after = {
            array.name: flat_contents(_base(copies[array.name]), array.extent).view(array.dtype)
            for array in self.problem.arrays
        }
        return expectation(before, after)


def job(problem: CallProblem, member: Mapping[str, Value], device: str) -> dict[str, Any]:
    """What the process is told that launches a configuration."""
    config = {name: value for name, value in member.items() if name not in GRID and (name, value) != ("maxnreg", 0)}
    return {
        "text": problem.source,
        "entry": problem.entry,
        "device": device,
        "grid": [member[name] for name in GRID],
        "config": config,
        "arrays": {array.name: array.dtype for array in problem.arrays},
        "numbers": dict(problem.numbers),
    }


def contents_of(array: CallArray) -> FlatArray:
    """What a flat array of the problem holds at first."""
    if array.is_zeroed:
        return np.zeros(array.extent, array.dtype)
    return flat_contents(array.tensor, array.extent).view(array.dtype)


def storages(problem: CallProblem, arrays: Mapping[str, FlatArray]) -> dict[str, FlatArray]:
    """The arrays in their own data types."""
    return {array.name: np.ascontiguousarray(arrays[array.name]).astype(array.dtype) for array in problem.arrays}


def expectation(before: Mapping[str, FlatArray], after: Mapping[str, FlatArray]) -> Expectation:
    """Value and magnitude of each array. The magnitude of a float is its own and the root mean square of all that the
    launch changed, times the roundings that are allowed."""
    return {name: (_wide(after[name]), _magnitude(array, after[name])) for name, array in before.items()}


def refuse_infinite(after: Mapping[str, FlatArray], entry: str, location: str) -> None:
    """Raise UserError if a result cannot be compared with others."""
    for name, array in after.items():
        if not np.isfinite(_wide(array)).all():
            what = f"{entry} writes numbers into {name} that are not finite, so results cannot be compared"
            raise UserError(location, what, f"call {entry} with arguments whose results are finite when it is tuned")


def _magnitude(before: FlatArray, after: FlatArray) -> FlatArray:
    roundings = ROUNDINGS.get(after.dtype.name)
    if roundings is None:
        return np.zeros(after.shape)
    value = np.abs(_wide(after))
    changed = value[_wide(before) != _wide(after)]
    typical = float(np.sqrt(np.mean(changed**2))) if changed.size else 0.0
    return roundings * (value + typical)


def _wide(array: FlatArray) -> FlatArray:
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def _base(tensor: Any) -> Any:
    """The tensor from which a strided view was made, so that gaps are kept."""
    return tensor._base if tensor._base is not None else tensor
