"""How does a Python program tune a kernel of its own? `tune`, with the kernel's arguments, parameters and reference,
and `autotune`, in place of `triton.autotune`.

Names are imported at their first use: an autotuned kernel that has its choice needs neither a session nor a store.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import In, InOut, KernelLaunch, LocalMemory, Out, Scalar, Scratch
    from .decorator import AutotunedKernel, autotune, patch_triton
    from .tune_function import tune
    from .tuned import Tuned

_MODULE_OF_NAME = {
    **dict.fromkeys(("In", "InOut", "KernelLaunch", "LocalMemory", "Out", "Scalar", "Scratch"), "arguments"),
    **dict.fromkeys(("AutotunedKernel", "autotune", "patch_triton"), "decorator"),
    "Tuned": "tuned",
    "tune": "tune_function",
}

__all__ = [
    "AutotunedKernel",
    "In",
    "InOut",
    "KernelLaunch",
    "LocalMemory",
    "Out",
    "Scalar",
    "Scratch",
    "Tuned",
    "autotune",
    "patch_triton",
    "tune",
]


def __getattr__(name: str) -> Any:
    """The public name, imported at its first use."""
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF_NAME[name]}"), name)
