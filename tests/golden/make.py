"""Record anew what the tests of recorded behaviour compare with: `python tests/golden/make.py [PART ...]`.

To be run on purpose only, where behaviour is meant to change; the difference is then part of the commit, to be read.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden_cells import CELLS
from golden_files import CELLS_FILE, COMMANDS_FOLDER, left
from golden_runs import COMMANDS


def cells() -> None:
    """Keys, plans, identities and modules of three cells of each family."""
    known = {family: [cell.known_by() for cell in those] for family, those in CELLS.items()}
    CELLS_FILE.write_text(json.dumps(known, indent=1) + "\n")


def command(name: str) -> None:
    """Documents and files of the runs of this name."""
    folder = COMMANDS_FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        COMMANDS[name](Path(scratch))
        for path, text in left(Path(scratch)).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)


PARTS = {"cells": cells, **{name: partial(command, name) for name in COMMANDS}}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
