"""What the server of the tests of clusters imports beside `preloaded`, so that its children need not.

Each process of a cluster would import Dask for half a second, and start a server of its bench's children for another.
Here that server is a fork of the process (`forked_server`).
"""

from __future__ import annotations

import tunesmith.cluster.opened
import tunesmith.cluster.process  # noqa: F401
from forked_server import start_servers_by_fork

start_servers_by_fork()
