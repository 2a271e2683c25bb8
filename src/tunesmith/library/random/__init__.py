"""Random generators: fill buffers by launches, from a position in a sequence."""

from ._generator import Generator

__all__ = ["Generator"]
