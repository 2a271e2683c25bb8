"""One way to reach devices (OpenCL, CUDA, the fake of the tests): which there are, and how to open one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from tunesmith.records import Module, Target

from .base import Device


@dataclass(frozen=True, slots=True)
class Found:
    """A device, or the reason why there is none: `problem` says what is wrong, `remedy` what would put it right.

    `name` is the device's, or the platform's or the API's where it never came to a device. A device that was found but
    cannot be used has both a target and a problem.
    """

    name: str
    target: Target | None = None
    problem: str = ""
    remedy: str = ""

    @property
    def usable(self) -> bool:
        return self.target is not None and not self.problem


class Api(ABC):
    """One way to reach devices. Registered by `name` in `devices/__init__.py`; selectors begin with `name:`.

    `languages` are those of the modules whose binaries its devices load, the trial's first. `trial` is a module with
    one entry, `trial(int *out)`, that writes `i + 1` to element i in work-item i; None where nothing native runs, so
    that nothing has to be tried out in a process of its own.
    """

    name: str
    languages: tuple[str, ...]
    trial: Module | None = None

    @abstractmethod
    def find(self) -> tuple[Found, ...]:
        """Every device, without trying it out. What is missing is a Found with a problem: this never raises."""

    @abstractmethod
    def open(self, target: Target) -> Device:
        """The live device; raises UserError when it is not there any more."""
