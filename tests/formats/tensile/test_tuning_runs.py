"""Tuning files of Tensile's run as they are: tables, library logic, and launches with right results."""

from __future__ import annotations

import numpy as np
import pytest

from tensile_files import DIALECTS, SPLIT_SIZES
from tunesmith import session
from tunesmith.library import load
from tunesmith.protocol import Final
from tunesmith.session.tuning_file.file import read_imported

QUICK = "\nGlobalParameters: {SamplingSeconds: 0.02, WarmUpSeconds: 0.01, MinimumSamples: 3, MaximumSamples: 5}\n"


def tuned(name, folder):
    """The outcome of tuning a dialect's file on sizes of at most 48, and the file as it was read."""
    path, sizes = folder / "theirs.yaml", folder / "sizes.yaml"
    path.write_text(DIALECTS[name] if "Parameters:\n  " in DIALECTS[name][:40] else DIALECTS[name] + QUICK)
    sizes.write_text(SPLIT_SIZES)
    options = {"max_size": 48, "sizes": sizes if name == "SPLIT" else None}
    done = session.tune(path, folder / "out", device="OpenCL", **options)
    return done, read_imported(path, 48, None, options["sizes"])[0]


def check(name, folder):
    done, file = tuned(name, folder)
    assert done.state.value == "finished", done.look_at
    assert [path for path in done.written if path.suffix == ".csv"]
    assert done.logic_files
    random = np.random.default_rng(0)
    with load(done.folder) as library:
        for phases in file.groups:
            final = phases.steps[-1]
            assert isinstance(final, Final)
            for problem in final.problems:
                m, n, k = problem.sizes[0], problem.sizes[1], problem.sizes[-1]
                batch = problem.sizes[2:3] if len(problem.sizes) == 4 else ()
                a = random.standard_normal((*batch, n, k)).astype(np.float32)
                b = random.standard_normal((*batch, k, m)).astype(np.float32)
                np.testing.assert_allclose(library.matmul(a, b), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.opencl
def test_a_file_of_tensiles_runs_to_logic_that_launches_right_results(tmp_path):
    check("FORK_AND_FINAL", tmp_path)


@pytest.mark.opencl
@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["DESIGN", "VERSION_2", "SIZE_GROUPS", "SPLIT"])
def test_every_dialect_runs_to_logic_that_launches_right_results(name, tmp_path):
    check(name, tmp_path)
