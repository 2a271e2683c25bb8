"""What may vary: parameters, spaces, and the whitelist of expressions over them."""

from ._space import Parameter, Space, When

__all__ = ["Parameter", "Space", "When"]
