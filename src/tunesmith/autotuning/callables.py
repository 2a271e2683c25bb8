"""The user's functions: where they stand, what they are made of, and calling them without waiting for ever."""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tunesmith.records import UserError

ResultT = TypeVar("ResultT")

CALLABLE_SECONDS = 60.0
"""The time limit of a user's function, unless the user gives another."""

PACKAGE = str(Path(__file__).parents[1])
DEEPEST = 8
"""Levels of nested values that a fingerprint looks into."""


def location_of(function: Callable[..., Any]) -> str:
    """`file:line` of a function's definition."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else getattr(function, "__name__", repr(function))


def callers_location() -> str:
    """`file:line` of the innermost caller outside of this package."""
    frame: types.FrameType | None = sys._getframe()
    while frame and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "tune"


def parameters_of(function: Callable[..., Any], location: str) -> list[str]:
    """The names of a function's parameters that have no default. Raises UserError if they cannot be found out."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise UserError(location, f"{function!r} shows no parameters ({error})", "wrap it in a lambda") from None
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in named and parameter.default is inspect.Parameter.empty
    ]


def in_time(work: Callable[[], ResultT], seconds: float, what: str, location: str) -> ResultT:
    """The result of work on the user's functions. Raises UserError if there is none after so many seconds.

    The work happens in a thread of its own, which is then told to end; it does so at its next step of Python.
    """
    results: list[ResultT] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="tunesmith-callable", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
        remedy = "mend the function, or raise `callable_seconds`"
        raise UserError(location, f"{what} did not end within {seconds:g} s", remedy)
    if errors:
        raise errors[0]
    return results[0]


def fingerprint(function: Callable[..., Any]) -> str:
    """Hash of a function: its code, its defaults, and the values that it takes from around it.

    Arrays count with their contents, functions with their own fingerprint, modules with their name and version, and
    everything else with its type and, if short, its text.
    """
    digest = hashlib.sha256()
    _add(digest, function, 0, set())
    return digest.hexdigest()[:32]


def _add(digest: Any, part: Any, depth: int, met: set[int]) -> None:
    def add(text: object) -> None:
        digest.update(f"{text}\0".encode())

    if depth > DEEPEST or (id(part) in met and not isinstance(part, int | float | str | bytes | bool)):
        add("...")
        return
    met = met | {id(part)}
    unwrapped = inspect.unwrap(part) if callable(part) else part
    if isinstance(unwrapped, types.FunctionType):
        code = unwrapped.__code__
        _add(digest, code, depth, met)
        _add(digest, unwrapped.__defaults__, depth + 1, met)
        _add(digest, unwrapped.__kwdefaults__, depth + 1, met)
        for name, value in sorted(_surroundings(unwrapped).items()):
            add(name)
            _add(digest, value, depth + 1, met)
    elif isinstance(part, types.CodeType):
        add(part.co_code.hex())
        add(part.co_names)
        for constant in part.co_consts:
            _add(digest, constant, depth + 1, met)
    elif isinstance(part, types.ModuleType):
        add(f"module {part.__name__} {getattr(part, '__version__', '')}")
    elif isinstance(part, np.ndarray) and part.dtype.kind != "O":
        add(f"array {part.dtype} {part.shape}")
        digest.update(np.ascontiguousarray(part).tobytes())
    elif isinstance(part, dict):
        add("dict")
        for key, value in part.items():
            add(key)
            _add(digest, value, depth + 1, met)
    elif isinstance(part, list | tuple | set | frozenset):
        add(type(part).__name__)
        for element in sorted(part, key=repr) if isinstance(part, set | frozenset) else part:
            _add(digest, element, depth + 1, met)
    elif part is None or isinstance(part, int | float | complex | str | bytes | type(...)):
        add(repr(part))
    else:
        add(f"{type(part).__module__}.{type(part).__qualname__}")


def _surroundings(function: types.FunctionType) -> dict[str, Any]:
    """The values of a function's closure, and of the global names that its code uses."""
    variables = inspect.getclosurevars(function)
    return {**variables.globals, **variables.nonlocals}
