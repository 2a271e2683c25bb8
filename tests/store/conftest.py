"""The store's tests run on both backends."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["sqlite", "postgresql"])
def location_of(request, tmp_path):
    """A function that gives the location of a store that is not made yet, another for each name."""
    if request.param == "sqlite":
        return lambda name="store": tmp_path / "made" / "on the way" / f"{name}.sqlite"
    server, urls = request.getfixturevalue("postgresql"), {}
    return lambda name="store": urls[name] if name in urls else urls.setdefault(name, server.fresh())
