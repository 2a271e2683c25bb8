"""How source becomes a program: one compiler a language, found by the language's name."""

from ._base import CompileError, Toolchain
from ._registry import TOOLCHAINS

__all__ = ["TOOLCHAINS", "CompileError", "Toolchain"]
