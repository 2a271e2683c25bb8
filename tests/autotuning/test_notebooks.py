"""The notebooks of the examples run from the first cell to the last; few lines stand beside a kernel."""

from __future__ import annotations

import json
import linecache
import os
from pathlib import Path

import pytest

from cuda_runner import cuda_device, toolchain
from opencl_runner import opencl_device

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = ("from_python.ipynb", "from_python_gpu.ipynb")
MOST_LINES = 12
SHARED = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from shared_programs import share_programs
share_programs()
"""
SLOW = '{"MaximumSamples": 20}'
QUICK = '{"MinimumSamples": 2, "MaximumSamples": 4, "WarmUpSeconds": 0.01, "ConfirmBlocks": 2}'


def cells(name):
    notebook = json.loads((EXAMPLES / name).read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_call_takes_few_lines(name):
    calls = [cell[cell.index("tuned = tunesmith.tune(") :] for cell in cells(name) if "tunesmith.tune(" in cell]
    assert calls
    for call in calls:
        lines = call[: call.index("\n)") + 2].splitlines()
        assert len(lines) <= MOST_LINES


@pytest.mark.opencl
def test_a_notebook_is_executed(tmp_path, monkeypatch):
    """Its measurements are fewer here, and it finds the machine code that other tests left."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    opencl_device()
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(EXAMPLES / NOTEBOOKS[0], as_version=4)
    tunings = [cell for cell in notebook.cells if SLOW in cell.source]
    assert len(tunings) == 2
    for cell in tunings:
        cell.source = cell.source.replace(SLOW, QUICK)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SHARED))
    nbclient.NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    assert any("<table>" in output["data"].get("text/html", "") for output in shown)


@pytest.mark.gpu
def test_a_notebook_for_gpus_runs_cell_by_cell(tmp_path, monkeypatch):
    """As a notebook's kernel does: each cell is compiled under a name of its own, by which its lines are found."""
    toolchain("Triton")
    cuda_device()
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    module = {"__name__": "__main__"}
    for number, cell in enumerate(cells(NOTEBOOKS[1])):
        name = f"<cell {number} of process {os.getpid()}>"
        linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
        exec(compile(cell, name, "exec"), module)
