"""Jit functions that are built from a module's text. No file is needed, so a text from a logic or a store is enough."""

from __future__ import annotations

import ast
import hashlib
import io
import linecache
import sys
import traceback
from functools import cache
from types import ModuleType
from typing import Any

_IMPORTING = frozenset({"importlib", "imp", "pkgutil", "runpy", "zipimport"})
"""Modules of the standard library that import other modules, whatever these are."""


@cache
def function_of_text(text: str, file: str, name: str) -> Any:
    """What the text calls `name`, after the text is run as a module. Raises whatever the text raises.

    Triton asks `inspect` for the source of a function, and `inspect` finds it in `linecache`.
    """
    path = traceback_path(text, file)
    # Without a modification time, the entry stays although there is no such file.
    linecache.cache[path] = len(text), None, io.StringIO(text).readlines(), path
    module = ModuleType("tunesmith_" + path.replace("/", "_").replace(".", "_"))
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
        return getattr(module, name)
    except BaseException:
        sys.modules.pop(module.__name__, None)
        raise


def traceback_path(text: str, file: str) -> str:
    """The path of a text in tracebacks. It ends with the user's file, and differs between different texts."""
    return f"{hashlib.sha256(text.encode()).hexdigest()[:16]}/{file}"


def line_of_error(error: BaseException, text: str, file: str) -> int | None:
    """The line of the text at which an error was raised, by Triton's compiler or by Python; None if it is not known."""
    function, line = getattr(error, "src", None), getattr(getattr(error, "node", None), "lineno", None)
    if isinstance(function, str) and function in text and line is not None:
        # Triton counts from the line of the function's `def`.
        return text[: text.index(function)].count("\n") + int(line)
    path = traceback_path(text, file)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


@cache
def is_complete(text: str) -> bool:
    """Whether the text imports only Triton and the standard library, so that no other file changes its meaning."""
    try:
        statements = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    imported = {
        alias.name.partition(".")[0]
        for statement in statements
        if isinstance(statement, ast.Import)
        for alias in statement.names
    }
    for statement in statements:
        if isinstance(statement, ast.ImportFrom):
            imported.add((statement.module or "").partition(".")[0] if not statement.level else "")
        if isinstance(statement, ast.Name) and statement.id == "__import__":
            imported.add("")
    return imported <= ({"triton"} | sys.stdlib_module_names) - _IMPORTING
