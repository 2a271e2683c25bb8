"""A device API (OpenCL, CUDA, the fake of the tests): finds its devices and opens them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from tunesmith.records import Module, Target

from .base import Device


@dataclass(frozen=True, slots=True)
class FoundDevice:
    """A device, or the reason why there is none: `problem` says what is wrong, `remedy` how to correct it.

    `name` is the device's; without a device it is the platform's or the API's. A device that was found but cannot be
    used has both a target and a problem.
    """

    name: str
    target: Target | None = None
    problem: str = ""
    remedy: str = ""

    @property
    def usable(self) -> bool:
        return self.target is not None and not self.problem


class Api(ABC):
    """A device API. Registered by `name` in `devices/choice.py`; selectors begin with `name:`.

    `languages` are those of the modules whose binaries its devices load, the trial's first. `trial` is a module with
    one entry, `trial(int *out)`, that writes `i + 1` to element i in work-item i. `trial` is None if the API loads no
    native driver, so that its devices need not be tried out in a process of their own.
    """

    name: str
    languages: tuple[str, ...]
    trial: Module | None = None

    @abstractmethod
    def find(self) -> tuple[FoundDevice, ...]:
        """Every device, without trying it out. Never raises: whatever is missing is a Found with a problem."""

    @abstractmethod
    def open(self, target: Target) -> Device:
        """The live device. Raises UserError if the device is no longer present."""
