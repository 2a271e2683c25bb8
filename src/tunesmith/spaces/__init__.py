"""Parameters, spaces, combinations of values, and whitelisted expressions over parameters."""

from .combinations import Combinations
from .space import ActsAt, Parameter, Space

__all__ = ["ActsAt", "Combinations", "Parameter", "Space"]
