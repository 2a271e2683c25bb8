"""The tests of clusters have a server of their own, which has imported Dask."""

from __future__ import annotations

import pytest

from tunesmith.bench import keep_server
from tunesmith.bench.processes import process


@pytest.fixture(scope="package")
def cluster_server():
    """Forks the processes of all clusters of these tests. It imports Dask once for all of them.

    The session's server stays smaller without Dask, and forks faster for all other tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_KEPT", None)
        keep_server(("preloaded", "forked_cluster"))
        yield
        if (server := process._kept_server()) is not None:
            server.close()
