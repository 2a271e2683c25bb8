"""What whole commands print and write is what was recorded: documents, tables, logic, headers, calibrations.

Recorded at commit 917448c; `golden/make.py NAME` records the runs of a name anew, on purpose only.
"""

from __future__ import annotations

import pytest

from golden_files import COMMANDS_FOLDER, differences, left, recorded
from golden_runs import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_and_writes_what_it_did(name, tmp_path):
    if name == "portblas_guided":
        pytest.importorskip("sklearn", reason="the guided search needs scikit-learn")
    COMMANDS[name](tmp_path)
    assert list(differences(name, left(tmp_path), recorded(COMMANDS_FOLDER / name))) == []


def test_every_recorded_folder_is_compared():
    assert {path.name for path in COMMANDS_FOLDER.iterdir()} == set(COMMANDS)
