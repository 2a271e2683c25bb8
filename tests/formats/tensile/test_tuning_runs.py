"""Tuning files of Tensile's run as they are: tables, library logic, and right results of the tuned kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tensile_files import DIALECTS, REAL, SPLIT_SIZES
from tunesmith import session
from tunesmith.library import load
from tunesmith.protocol import Final
from tunesmith.session.tuning_file.file import read_imported

QUICK = "\nGlobalParameters: {SamplingSeconds: 0.02, WarmUpSeconds: 0.01, MinimumSamples: 3, MaximumSamples: 5}\n"
REAL_SPLIT = REAL / "17_HEAD_alternate_format_vega20.yaml"
"""The real file with the fewest legal candidates."""


def operand(random, rows, columns, batch, is_transposed):
    """Random numbers: a row-major matrix, or the transpose of one; a batch of them for a batched type."""
    shape = (*batch, columns, rows) if is_transposed else (*batch, rows, columns)
    made = random.standard_normal(shape).astype(np.float32)
    return made.swapaxes(-1, -2) if is_transposed else made


def check_launches(folder, problem_type, listed, seed=0):
    """Launch the listed sizes and as many others from the folder's logic, and compare the products with NumPy's.

    Column-major M x N is row-major N x M, with B as the left factor. Without the floor, no product is the host's BLAS.
    """
    random, launched = np.random.default_rng(seed), []
    flag = problem_type.fields.flag
    others = [tuple(int(size) for size in random.integers(1, 97, len(sizes))) for sizes in listed]
    with load(folder, floor=False, launched=launched.append) as library:
        for sizes in (*listed, *others):
            m, n, k, batch = sizes[0], sizes[1], sizes[-1], sizes[2:-1]
            left = operand(random, n, k, batch, flag("TransposeB"))
            right = operand(random, k, m, batch, flag("TransposeA"))
            np.testing.assert_allclose(library.matmul(left, right), left @ right, rtol=1e-4, atol=1e-4)
    assert len(launched) == len(listed) + len(others)
    assert {record.problem.type for record in launched} == {problem_type}
    assert {record.choice.rule.value for record in launched[: len(listed)]} == {"exact"}
    assert all(record.solution.kernel in ("TiledGemm", "RegisterGemm") for record in launched)


def check(path, folder, max_size, sizes=None):
    """Tune a file of Tensile's; its tables, logic and launches are there and right."""
    done = session.tune(path, folder / "out", device="OpenCL", max_size=max_size, sizes=sizes)
    file = read_imported(path, max_size, None, sizes)[0]
    assert done.state.value == "finished", done.look_at
    assert [written for written in done.written if written.suffix == ".csv"]
    assert done.logic_files
    for phases in file.groups:
        final = phases.steps[-1]
        assert isinstance(final, Final)
        check_launches(done.folder, phases.problem_type, [problem.sizes for problem in final.problems])


def check_dialect(name, folder):
    path, sizes = folder / "theirs.yaml", folder / "sizes.yaml"
    path.write_text(DIALECTS[name] if "Parameters:\n  " in DIALECTS[name][:40] else DIALECTS[name] + QUICK)
    sizes.write_text(SPLIT_SIZES)
    check(path, folder, 48, sizes if name == "SPLIT" else None)


@pytest.mark.opencl
def test_a_file_of_tensiles_runs_to_logic_that_launches_right_results(tmp_path):
    check_dialect("FORK_AND_FINAL", tmp_path)


@pytest.mark.opencl
@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["DESIGN", "VERSION_2", "SIZE_GROUPS", "SPLIT"])
def test_every_dialect_runs_to_logic_that_launches_right_results(name, tmp_path):
    check_dialect(name, tmp_path)


@pytest.mark.opencl
@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not REAL_SPLIT.is_file(), reason="Tensile's files are not there (TUNESMITH_DATA)")
def test_a_real_file_runs_to_logic_that_launches_right_results(tmp_path):
    """The file gives no sizes, so Tensile's default sizes are measured."""
    check(REAL_SPLIT, tmp_path, 256)
