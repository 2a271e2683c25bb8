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

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from golden_cells import CELLS
from golden_files import CELLS_FILE, COMMANDS_FOLDER, EARLIER, FILES, STEP_ENDS, dump_store, left, pack, record
from golden_runs import COMMANDS, portblas_outcome_in
from tunesmith.session.frame import events
from tunesmith.session.tuning_file import tune
from tunesmith.store import FILE_NAME
from tuning_runs import FAKE


def cells() -> None:
    """Keys, plans, identities and modules of three cells of each family."""
    known = {family: [cell.known_by() for cell in those] for family, those in CELLS.items()}
    CELLS_FILE.write_text(json.dumps(known, indent=1) + "\n")


def command(name: str) -> None:
    """Documents and files of the runs of this name."""
    with tempfile.TemporaryDirectory() as scratch:
        COMMANDS[name](Path(scratch))
        record(COMMANDS_FOLDER / name, left(Path(scratch)))


def earlier() -> None:
    """Folders of runs: to be made by the code of commit 917448c, which PYTHONPATH must name."""
    shutil.rmtree(EARLIER, ignore_errors=True)
    EARLIER.mkdir()
    (EARLIER / "tuning.yaml").write_text(FAKE)
    with tempfile.TemporaryDirectory() as scratch:
        ends = _tuned(Path(scratch) / "tune")
        STEP_ENDS.write_text(json.dumps(ends, indent=1) + "\n")
        for name, guided in (("portblas", False), ("portblas_guided", True)):
            portblas_outcome_in(Path(scratch) / name, guided)
        for folder in sorted(Path(scratch).iterdir()):
            (EARLIER / folder.name).mkdir()
            _without_paths(folder / FILE_NAME)
            dump_store(folder / FILE_NAME, EARLIER / folder.name / "store.sql")
            kept = [path for part in ("tables", "logic", "results") for path in sorted((folder / part).rglob("*.*"))]
            texts = {str(path.relative_to(folder)): path.read_bytes().decode() for path in kept}
            pack(EARLIER / folder.name / FILES, texts)


def _tuned(out: Path) -> dict[str, int]:
    """The id of the store's last measurement at the end of each step."""
    ends = {}

    def observe(event: object) -> None:
        if isinstance(event, events.StepEnded):
            with sqlite3.connect(out / FILE_NAME) as connection:
                ((ends[event.result.name],),) = connection.execute("SELECT max(id) FROM measurements")

    tune(EARLIER / "tuning.yaml", out, device="fake:GPU:8", observe=observe)
    return ends


def _without_paths(store: Path) -> None:
    """Take away what names this machine."""
    with sqlite3.connect(store) as connection:
        begun = connection.execute("SELECT id, payload FROM run_events WHERE kind = 'begin'").fetchall()
        for row, payload in begun:
            start = {**json.loads(payload), "command": ["tunesmith"], "tuning_file": "tuning.yaml"}
            changed = (json.dumps(start, sort_keys=True), row)
            connection.execute("UPDATE run_events SET payload = ? WHERE id = ?", changed)
    connection.close()


PARTS = {"cells": cells, **{name: partial(command, name) for name in COMMANDS}}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        {**PARTS, "earlier": earlier}[part]()
