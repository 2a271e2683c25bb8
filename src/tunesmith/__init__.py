"""tunesmith: tune once, ship the logic, launch the best kernel."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._collector import collector_paused

if TYPE_CHECKING:
    from . import random as random
    from .autotuning import (
        In,
        InOut,
        KernelLaunch,
        LocalMemory,
        Out,
        Scalar,
        Scratch,
        Tuned,
        autotune,
        patch_triton,
        tune,
    )
    from .library import load, matmul
    from .records import UserError

__version__ = "0.1.0"

_AUTOTUNING = (
    *("In", "InOut", "KernelLaunch", "LocalMemory", "Out", "Scalar", "Scratch", "Tuned", "tune"),
    *("autotune", "patch_triton"),
)

_MODULE_OF_NAME = {
    "UserError": "tunesmith.records",
    "load": "tunesmith.library",
    "matmul": "tunesmith.library",
    **dict.fromkeys(_AUTOTUNING, "tunesmith.autotuning"),
}

__all__ = [
    "In",
    "InOut",
    "KernelLaunch",
    "LocalMemory",
    "Out",
    "Scalar",
    "Scratch",
    "Tuned",
    "UserError",
    "autotune",
    "load",
    "matmul",
    "patch_triton",
    "tune",
]

_MODULES = ("random",)


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that `import tunesmith` costs next to nothing."""
    if name in _MODULES:
        return _imported(f"tunesmith.{name}")
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_imported(_MODULE_OF_NAME[name]), name)


def _imported(name: str) -> ModuleType:
    if name in sys.modules:
        return import_module(name)  # which waits if another thread is still importing it
    with collector_paused():
        return import_module(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF_NAME])
