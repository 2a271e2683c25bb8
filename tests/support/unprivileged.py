"""A folder that may not be written, and somebody who is bound by that: root is not."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def unwritable(content: Path) -> Iterator[Path]:
    """A copy of a folder, all of it read-only, while this process is nobody where it was root."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        copy = shutil.copytree(content, folder / "copy")
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with _nobody():
            if not os.access(copy, os.R_OK, effective_ids=True):
                pytest.skip(f"only root may look into {copy}")
            yield copy
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)


@contextmanager
def _nobody() -> Iterator[None]:
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)
