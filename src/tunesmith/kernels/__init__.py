"""How it is computed: kernel families, found by name, by operation or by a configuration.

The parameter `KernelLanguage` picks the language, and the `form` picks the family among those of one language. If
families of several languages have the same parameters, a tuning file may leave the language to the device.

The text of a kernel lies beside the Python that uses it: in `source/` or `templates/` of the family's folder, or in
files that end in `_source.py` for Triton. The text of random distributions is `random/source/distributions.h`.
"""

from .base import Kernel
from .registry import (
    KERNELS,
    LANGUAGE,
    OPEN,
    VENDOR,
    families_meant,
    families_of,
    family_for,
    has_kernel_of,
    languages,
    tuning_space,
)

__all__ = [
    "KERNELS",
    "LANGUAGE",
    "OPEN",
    "VENDOR",
    "Kernel",
    "families_meant",
    "families_of",
    "family_for",
    "has_kernel_of",
    "languages",
    "tuning_space",
]
