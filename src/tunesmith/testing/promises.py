"""What the suites ask in the same way: what comes through pickle, and what is raised."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
ErrorT = TypeVar("ErrorT", bound=Exception)


def pickled(value: T, what: str) -> T:
    """The value after a journey through pickle; AssertionError, naming `what`, where that cannot be done."""
    try:
        back: T = pickle.loads(pickle.dumps(value))
    except Exception as error:  # whatever a stranger's class raises
        raise AssertionError(f"{what} must come through pickle, for worker processes: {error}") from error
    return back


def raised(kind: type[ErrorT], call: Callable[[], object], promise: str) -> ErrorT:
    """The error of this kind that a call raises; AssertionError, with the promise, where it raises none or another."""
    try:
        call()
    except kind as error:
        return error
    except Exception as error:
        raise AssertionError(f"{promise}; it raised {type(error).__name__}: {error}") from error
    raise AssertionError(f"{promise}; it raised nothing")
