"""Record anew what the tests of recorded behaviour compare with: `python tests/golden/make.py [PART ...]`.

To be run on purpose only, where behaviour is meant to change; the difference is then part of the commit, to be read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden_cells import CELLS
from golden_files import CELLS_FILE


def cells() -> None:
    """Keys, plans, identities and modules of three cells of each family."""
    known = {family: [cell.known_by() for cell in those] for family, those in CELLS.items()}
    CELLS_FILE.write_text(json.dumps(known, indent=1) + "\n")


PARTS = {"cells": cells}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
