"""Record anew what the tests of recorded behaviour compare with: `python tests/golden/make.py [PART ...]`.

To be run on purpose only, where behaviour is meant to change; the difference is then part of the commit, to be read.
PART is `cells` or the name of a folder in `commands/`; all of these without any. `earlier`, which needs the code of an
earlier commit, must be named.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden_cells import CELLS
from golden_files import CELLS_FILE, COMMANDS_FOLDER, EARLIER, STEP_ENDS, left
from golden_runs import COMMANDS, portblas_outcome_in
from tunesmith import session
from tuning_runs import FAKE


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


def earlier() -> None:
    """Folders of runs: to be made by the code of commit 917448c, which PYTHONPATH must name."""
    shutil.rmtree(EARLIER, ignore_errors=True)
    EARLIER.mkdir()
    (EARLIER / "tuning.yaml").write_text(FAKE)
    out, ends = EARLIER / "tune", {}

    def observe(event: object) -> None:
        if isinstance(event, session.events.StepEnded):
            with sqlite3.connect(out / "measurements.sqlite") as connection:
                ((last,),) = connection.execute("SELECT max(id) FROM measurements")
            ends[event.result.name] = last

    session.tune(EARLIER / "tuning.yaml", out, device="fake:GPU:8", observe=observe)
    STEP_ENDS.write_text(json.dumps(ends, indent=1) + "\n")
    for name, guided in (("portblas", False), ("portblas_guided", True)):
        portblas_outcome_in(EARLIER / name, guided)
    for store in EARLIER.glob("*/measurements.sqlite"):
        _without_paths(store)
        shutil.rmtree(store.parent / "cache")


def _without_paths(store: Path) -> None:
    """The store without what names this machine, as small as it gets."""
    connection = sqlite3.connect(store, isolation_level=None)
    for row, payload in connection.execute("SELECT id, payload FROM run_events WHERE kind = 'begin'").fetchall():
        start = {**json.loads(payload), "command": ["tunesmith"], "tuning_file": "tuning.yaml"}
        connection.execute("UPDATE run_events SET payload = ? WHERE id = ?", (json.dumps(start, sort_keys=True), row))
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()


PARTS = {"cells": cells, **{name: partial(command, name) for name in COMMANDS}}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        {**PARTS, "earlier": earlier}[part]()
