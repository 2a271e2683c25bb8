"""Parameters, spaces, combinations of values, and whitelisted expressions over parameters."""

from .combinations import Combinations
from .space import Parameter, Space, When

__all__ = ["Combinations", "Parameter", "Space", "When"]
