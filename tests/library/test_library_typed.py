"""A user's program that is checked strictly gets types of arrays from the public calls, not Any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("typed_program.py")


@pytest.mark.timeout(600)
def test_a_users_program_is_checked_strictly():
    """Unused ignores are errors, so each `type: ignore` in it stands for a mistake that is found."""
    for module in ("mypy", "torch"):
        pytest.importorskip(module)
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", str(PROGRAM)]
    checked = subprocess.run(command, cwd=PROGRAM.parents[2], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "Success: no issues found in 1 source file\n"), checked.stderr
