"""The modules that a program which only launches loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tunesmith
from opencl_runner import opencl_device
from tunesmith.records import UserError

HEAVY = {"sqlalchemy", "matplotlib", "typer", "rich", "torch", "scipy", "pydantic", "jinja2", "dask", "sklearn"}


def _modules_after(program):
    command = [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_importing_tunesmith_loads_next_to_nothing():
    loaded = _modules_after("import tunesmith")
    assert not {"numpy", "yaml", *HEAVY} & loaded
    assert {name for name in loaded if name.startswith("tunesmith.")} == {"tunesmith._collector"}


def test_importing_the_library_loads_nothing_heavy():
    loaded = _modules_after("import tunesmith.library")
    assert not HEAVY & loaded
    assert not {"pyopencl", "tunesmith.store", "tunesmith.session", "tunesmith.logic.build"} & loaded
    assert "tunesmith.devices.cuda.device" not in loaded


@pytest.mark.parametrize("collects", ["enable", "disable"])
def test_a_public_name_is_imported_without_the_garbage_collector_which_is_left_as_it_was(collects):
    program = f"""
import gc
import tunesmith
gc.{collects}()
collections = []
gc.callbacks.append(lambda *event: collections.append(event))
tunesmith.load
print(len(collections), gc.isenabled())
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    number, enabled = shown.split()
    assert int(number) <= 2, "the start and the end of one, when the collector works again"
    assert enabled == str(collects == "enable")


def test_multiplying_numpys_arrays_loads_no_other_library():
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from library_fakes import TYPES, library, logic, normal
with library(logic(TYPES[0])) as lib:
    lib.matmul(normal(3, 4), normal(4, 5))
"""
    assert not HEAVY & _modules_after(program)


@pytest.mark.opencl
def test_multiplying_without_a_logic_loads_what_its_kernel_is_rendered_with():
    opencl_device()
    program = "import numpy as np, tunesmith; tunesmith.matmul(np.ones((3, 4), 'f'), np.ones((4, 5), 'f'))"
    assert HEAVY & _modules_after(program) <= {"jinja2"}


def test_tunesmith_shows_its_public_names():
    assert {"load", "matmul", "UserError"} <= set(dir(tunesmith))
    assert tunesmith.UserError is UserError
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = tunesmith.nothing_such
