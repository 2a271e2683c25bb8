"""What may vary: parameters, spaces, combinations of values, and the whitelist of expressions over parameters."""

from ._combinations import Combinations
from ._space import Parameter, Space, When

__all__ = ["Combinations", "Parameter", "Space", "When"]
