"""Imports Triton and hashes its files, so that processes which are forked afterwards find both done.

Triton hashes its own library before the first compilation of a process, which takes a second.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

HASHED_IN = ("triton.runtime.cache", "triton.compiler.compiler")
"""The modules in which releases from 3.4 on have the function `triton_key`, which keeps its result."""

for _module in HASHED_IN:
    with suppress(ImportError, AttributeError):
        import_module(_module).triton_key()
