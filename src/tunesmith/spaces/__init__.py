"""Parameters, spaces, combinations of values, and whitelisted expressions over parameters."""

from .combinations import Combinations
from .space import NUMBER_OR_WORD, ActsAt, Parameter, Space

__all__ = ["NUMBER_OR_WORD", "ActsAt", "Combinations", "Parameter", "Space"]
