"""How source becomes a program: one compiler a language, found by the language's name."""

from ._driver_cache import driver_cache
from .base import CompileError, Toolchain
from .cache import BinaryCache, compiled, user_cache
from .registry import TOOLCHAINS

__all__ = ["TOOLCHAINS", "BinaryCache", "CompileError", "Toolchain", "compiled", "driver_cache", "user_cache"]
