"""Random generators: a sequence's position turned into launches that fill buffers."""

from ._generator import Generator

__all__ = ["Generator"]
