"""What may vary: parameters, spaces, combinations of values, and the whitelist of expressions over parameters."""

from .combinations import Combinations
from .space import Parameter, Space, When

__all__ = ["Combinations", "Parameter", "Space", "When"]
