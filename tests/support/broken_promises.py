"""How the tests of the suites break a promise: the named test of a suite fails, and says so in its own words."""

from __future__ import annotations

import inspect
from collections.abc import Collection

import pytest


def promises_of(suite: type) -> list[str]:
    """The names of a suite's tests."""
    return [name for name, _ in inspect.getmembers(suite, inspect.isfunction) if name.startswith("test_")]


def assert_broken(suite: object, promise: str, *fixtures: object) -> None:
    """The test of this name fails, with a sentence of the suite's."""
    with pytest.raises(AssertionError) as broken:
        getattr(suite, promise)(*fixtures)
    assert str(broken.value), "a broken promise must be told in words"


def assert_all_can_be_broken(suite: type, broken: Collection[str]) -> None:
    assert sorted(broken) == sorted(promises_of(suite)), "each promise needs a member that breaks it"
