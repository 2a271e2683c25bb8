"""How it is computed: kernel families, found by name, by operation or by what a configuration says.

A family is picked by the parameter `KernelLanguage` and, among the families of one language, by its `form`.
"""

from ._base import Kernel
from ._registry import KERNELS, families, family_for, tuning_space

__all__ = ["KERNELS", "Kernel", "families", "family_for", "tuning_space"]
