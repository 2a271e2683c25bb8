"""A folder with a kernel of the user's own and what was tuned for it may be moved, as a whole or in part."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import tunesmith
from described import EXAMPLES
from golden_bench import nothing_measured
from opencl_runner import opencl_device
from tunesmith.problems import OPERATIONS
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.tuning_file import tune
from tunesmith.store import Store

FILE = """
GlobalParameters: {Noise: 0.5, MaximumSamples: 7, SamplingSeconds: 0.02, WarmUpSeconds: 0.01, ConfirmBlocks: 6}
BenchmarkProblems:
  - - OperationType: Custom
      Kernel: softmax_kernel.yaml
    - ForkParameters:
        - ITEMS: [1, 4]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [8, 64]
"""


def made(folder):
    """A folder with the kernel and what tunes it."""
    folder.mkdir()
    for path in EXAMPLES.glob("softmax*"):
        shutil.copy(path, folder)
    (folder / "tuning.yaml").write_text(FILE)
    return folder


def tuned(folder, device):
    """The number of measurements that tuning took."""
    done = tune(folder / "tuning.yaml", folder / "out", device=device)
    assert len(done.logic_files) == 1
    return done.ledger.measured


def softmax(logic):
    x, y = np.arange(512, dtype=np.float32).reshape(8, 64) / 100, np.zeros((8, 64), np.float32)
    with tunesmith.load(logic) as library:
        library.launch("softmax", x=x, y=y)
    return y


def test_what_an_earlier_version_measured_is_found_after_a_move(tmp_path, monkeypatch):
    """The earlier version stored the absolute path of the description in keys and problems."""
    first, commit = made(tmp_path / "first"), Store.commit

    def former(problem):
        (written,) = OPERATIONS["Custom"].former(problem)
        return written

    def commit_formerly(store, entries):
        return commit(store, [replace(entry, problem=former(entry.problem)) for entry in entries])

    with nothing_measured():
        with monkeypatch.context() as patched:
            patched.setattr(Store, "commit", commit_formerly)
            patched.setattr(RecordedMeasure, "key", lambda self, cell: self._key(cell, former(cell[1])))
            patched.setattr(RecordedMeasure, "_carry_over", lambda self, cells: None)
            measured = tuned(first, "OpenCL")
        moved = first.rename(tmp_path / "moved")
        for path in moved.rglob("logic/*"):
            path.unlink()
        assert measured > 0
        assert tuned(moved, "OpenCL") == 0
        assert tuned(moved, "OpenCL") == 0


@pytest.mark.opencl
def test_what_was_tuned_is_found_again_and_its_logic_launches(tmp_path):
    first, device = made(tmp_path / "first"), opencl_device().target.selector
    assert tuned(first, device) > 0
    expected = softmax(first / "out")
    moved = tmp_path / "deeper" / "moved"
    moved.parent.mkdir()
    shutil.move(first, moved)
    assert tuned(moved, device) == 0
    assert (softmax(moved / "out") == expected).all()
    shutil.move(moved / "out" / "logic", tmp_path / "shipped")
    shutil.rmtree(moved)
    assert (softmax(tmp_path / "shipped") == expected).all()
