"""Random numbers written into existing buffers: `tunesmith.random.Generator("philox4_32_10", seed=1)`."""

from tunesmith.library.random import Generator

__all__ = ["Generator"]
