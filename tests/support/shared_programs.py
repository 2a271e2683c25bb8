"""Where the runs of the tests keep machine code: together, where PoCL keeps that of any program.

A run has a folder of its own for it otherwise, so that each test would compile again what others have compiled.
"""

from __future__ import annotations

import os
from pathlib import Path

from tunesmith.devices import choice

own_folder = choice.driver_cache
"""The function that gives each run a folder of its own."""


def shared_folder(run_cache: Path) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("POCL_CACHE_DIR") or Path(cache, "pocl", "kcache"))


def share_programs() -> None:
    """Let all runs of this process share machine code."""
    choice.driver_cache = shared_folder
