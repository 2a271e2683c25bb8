"""How does a Python program tune a kernel of its own? `tune`, with the kernel's arguments, parameters and reference."""

from .arguments import In, InOut, KernelLaunch, LocalMemory, Out, Scalar, Scratch
from .tuned import Tuned
from .tuning import tune

__all__ = ["In", "InOut", "KernelLaunch", "LocalMemory", "Out", "Scalar", "Scratch", "Tuned", "tune"]
