"""How it is computed: kernel families, found by name, by operation or by what a configuration says.

A family is picked by the parameter `KernelLanguage` and, among the families of one language, by its `form`. Where
families of several languages have the same parameters, a tuning file may leave the language to the device.
"""

from .base import Kernel
from .registry import KERNELS, LANGUAGE, OPEN, VENDOR, chosen, families, family_for, languages, tuning_space

__all__ = [
    "KERNELS",
    "LANGUAGE",
    "OPEN",
    "VENDOR",
    "Kernel",
    "chosen",
    "families",
    "family_for",
    "languages",
    "tuning_space",
]
