"""The store's tests run on both backends."""

from __future__ import annotations

import pytest

from tunesmith.store import copying
from tunesmith.store import store as module


@pytest.fixture(params=["sqlite", "postgresql"])
def location_of(request, tmp_path):
    """A function that gives the location of a store that is not made yet, another for each name."""
    if request.param == "sqlite":
        return lambda name="store": tmp_path / "made" / "on the way" / f"{name}.sqlite"
    server, urls = request.getfixturevalue("postgresql"), {}
    return lambda name="store": urls[name] if name in urls else urls.setdefault(name, server.fresh())


@pytest.fixture
def small_pages(monkeypatch):
    """A page of a store has 50 rows, so that some more make several pages."""
    for owner in (module, copying):
        monkeypatch.setattr(owner, "CHUNK", 50)
