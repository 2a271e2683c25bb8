"""Compilers, one for each language and found by its name, and the cache of their binaries."""

from ._driver_cache import driver_cache
from .base import CompileError, Toolchain
from .cache import BinaryCache, compile_cached, user_cache
from .registry import TOOLCHAINS

__all__ = ["TOOLCHAINS", "BinaryCache", "CompileError", "Toolchain", "compile_cached", "driver_cache", "user_cache"]
