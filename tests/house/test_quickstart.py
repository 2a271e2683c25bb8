"""The quickstart's script, with everything that it would install or run replaced."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "quickstart"


@pytest.mark.parametrize(
    ("extra_variables", "device"), [({}, "CPU"), ({"TUNESMITH_DEVICE": "OpenCL:1:0"}, "OpenCL:1:0")]
)
def test_it_tunes_on_a_cpu_unless_a_device_is_named(tmp_path, extra_variables, device):
    """It makes sure of a CPU, and its tuning file is for one; a GPU beside it would come first."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, does in (("python", "exit 0"), ("tunesmith", f'echo "$@" >> {tmp_path}/asked')):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    own = {name: value for name, value in os.environ.items() if not name.startswith("TUNESMITH_")}
    variables = {**own, "TUNESMITH_VENV": str(tmp_path), **extra_variables}
    done = subprocess.run(["sh", SCRIPT, tmp_path / "out"], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tune, compare = (tmp_path / "asked").read_text().splitlines()
    assert tune.split()[2:] == ["--device", device, "-o", str(tmp_path / "out")]
    assert compare == f"compare {tmp_path / 'out'}"
