"""Where recorded behaviour lies."""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
CELLS_FILE = GOLDEN / "cells.json"
