"""What the tests of this room need beside the fixtures of all tests."""

from __future__ import annotations

import pytest

from tunesmith import session


@pytest.fixture(autouse=True)
def servers(monkeypatch):
    """The calls are listed. The session's server forks what these tests start. A server that imports Triton would take
    its place for all later tests, and a process that has imported Triton writes to standard error when it ends."""
    asked = []
    monkeypatch.setattr(
        session, "keep_server", lambda preloaded, keeps_workers=False: asked.append((preloaded, keeps_workers))
    )
    return asked
