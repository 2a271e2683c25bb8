"""An operation that only these tests have, in `strided_copy/`, goes from a tuning file to a launch like ours.

Its folder on the path registers it by entry points, in every process: nothing else names it.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command_line import invoke
from opencl_runner import opencl_device
from tunesmith.kernels import KERNELS
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, UserError, _registry
from tuning_runs import document, environment_with, steady_or_drifted, tunesmith, tunesmith_with

FOLDER = Path(__file__).parent / "strided_copy"
ROOT = FOLDER.parents[2]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The folder of a run over all of `copy.yaml`, whose bench is started anew."""
    opencl_device()  # skips where there is none
    folder = tmp_path_factory.mktemp("copy") / "run"
    done = tunesmith_with(FOLDER, "tune", FOLDER / "copy.yaml", "-o", folder, "--device", "OpenCL", "--json")
    winners = steady_or_drifted(done)["winners"]
    assert [row["sizes"] for row in winners] == [[64, 64], [256, 256], [33, 65], [512, 48]]
    assert all(row["gbytes"] > 0 and "gflops" not in row for row in winners)
    return folder


@pytest.fixture
def copy(monkeypatch):
    """The operation in this process."""
    monkeypatch.syspath_prepend(FOLDER)
    _registry.installed.cache_clear()
    kernels = set(KERNELS._loaded)
    yield OPERATIONS["Copy"]
    _registry.installed.cache_clear()
    OPERATIONS._loaded.pop("Copy")
    for name in set(KERNELS._loaded) - kernels:
        KERNELS._loaded.pop(name)


# --- what it is -----------------------------------------------------------------------------------------------------


def test_its_reference_tells_a_copy_from_one_that_takes_rows_to_be_dense(copy):
    kind = copy.type_of({"OperationType": "Copy"}, str, Path())
    problem = Problem(kind, (5, 7), (9,))
    storage = copy.inputs(problem, np.random.default_rng(0))["In"]
    expected = copy.reference(problem, {"In": storage})["Out"]
    right, dense = storage[: 5 * 9 - 2].copy(), storage[: 5 * 7].reshape(5, 7)
    right = np.lib.stride_tricks.as_strided(right, (5, 7), (36, 4))
    assert (np.abs(right - expected.value) <= expected.bound).all()
    assert not (np.abs(dense - expected.value) <= expected.bound).all()


def test_what_it_does_not_say_has_a_default(copy):
    problem = Problem(copy.type_of({}, str, Path()), (500, 30), (40,))
    assert (copy.bytes(problem), copy.work(problem), copy.flops(problem)) == (2 * 4 * 500 * 30, 2 * 4 * 500 * 30, 0.0)
    assert copy.small(problem) == Problem(problem.type, (64, 30))
    assert copy.checks(problem) == (problem,)


@pytest.mark.usefixtures("copy")
def test_mistakes_in_its_tuning_file_are_answered_as_ours(tmp_path):
    text = (FOLDER / "copy.yaml").read_text()
    for wrong, right, words in (
        ("OperationType: Copy", "OperationType: Copy\n      Width: 4", "the ProblemType of a copy has no Width"),
        ("Exact: [96, 100]", "Exact: [96]", "Copy_S has 2 indices; give one entry for each of Rows, Columns"),
        ("[33, 65, 80]", "[33, 65, 64]", "LD 64 is too small; give at least 65"),
        ("Threads: [16, 64]", "Thread: [16, 64]", "did you mean Threads?"),
        ("Exact: [96, 100]", "File: wrong.csv", "wrong.csv:1: the header of a list of problems of Copy_S has no Cols"),
    ):
        assert wrong in text
        (tmp_path / "copy.yaml").write_text(text.replace(wrong, right))
        (tmp_path / "wrong.csv").write_text("Rows,Cols\n1,2\n")
        with pytest.raises(UserError) as error:
            invoke("plan", tmp_path / "copy.yaml", "--no-calibrate")
        assert words in str(error.value)


@pytest.mark.opencl
def test_it_keeps_what_operations_and_families_promise(tmp_path):
    """By the file that docs/testing.md shows, in a process that has the distribution on its path."""
    opencl_device()  # skips where there is none
    shutil.copy(FOLDER / "conformance.py", tmp_path / "test_copy.py")
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "test_copy.py"]
    done = subprocess.run(run, capture_output=True, text=True, env=environment_with(FOLDER), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"\d\d passed in .*", done.stdout.splitlines()[-1]), done.stdout


# --- from a tuning file to a choice ---------------------------------------------------------------------------------


@pytest.mark.opencl
def test_its_tables_are_in_bytes_a_second_and_name_its_sizes(tuned):
    (final,) = tuned.glob("tables/Copy_S_00/*_Final.csv")
    header, *rows = csv.reader(final.open())
    assert header[:4] == ["Rows", "Columns", "LD", "TotalBytes"]
    assert [row[:4] for row in rows] == [
        ["64", "64", "", f"{8.0 * 64 * 64}"],
        ["256", "256", "", f"{8.0 * 256 * 256}"],
        ["33", "65", "80", f"{8.0 * 33 * 65}"],
        ["512", "48", "", f"{8.0 * 512 * 48}"],
    ]
    details = list(csv.DictReader(final.with_suffix(".details.csv").open()))
    assert all(cell["Outcome"] == "ok" and float(cell["GBytes"]) > 0 for cell in details)
    for size, work in (("64", 8.0 * 64 * 64), ("512", 8.0 * 512 * 48)):
        cell = next(row for row in details if row["Rows"] == size)
        assert float(cell["GBytes"]) == pytest.approx(work / float(cell["Seconds"]) * 1e-9)


@pytest.mark.opencl
def test_its_logic_is_shown_and_chosen_from(tuned):
    (logic,) = tuned.glob("logic/*.yaml")
    assert "samples, GB/s," in logic.read_text()
    shown = tunesmith_with(FOLDER, "show", tuned)
    assert shown.returncode == 0, shown.stderr
    assert "Copy_S_00: GB/s of" in shown.stdout
    for size, rule in (("256 256", "exact"), ("300 280", "nearest")):
        selected = document(tunesmith_with(FOLDER, "select", tuned, "--size", *size.split(), "--json"))
        assert (selected["rule"], selected["kernel"]) == (rule, "CopyRows")


@pytest.mark.opencl
def test_a_second_run_measures_nothing(tuned):
    done = tunesmith_with(FOLDER, "tune", FOLDER / "copy.yaml", "-o", tuned, "--device", "OpenCL", "--json")
    assert steady_or_drifted(done)["measured"] == 0


LAUNCH = """
import numpy as np, sys
import tunesmith

apart = np.arange(33 * 80, dtype=np.float32).reshape(33, 80)[:, :65]
with tunesmith.load(sys.argv[1], launched=(heard := []).append) as library:
    assert (library.launch("Copy", In=apart) == apart).all()
    out = np.zeros((300, 280), np.float32)
    dense = np.random.default_rng(0).random((300, 280), np.float32)
    assert library.launch("Copy_S", In=dense, Out=out) is out and (out == dense).all()
    try:
        library.launch("Copy", In=dense.T)
        raise SystemExit("columns were taken for rows")
    except ValueError as error:
        assert "give a contiguous copy" in str(error)
print([(str(told.problem), told.choice.rule.value) for told in heard])
"""


@pytest.mark.opencl
def test_it_is_launched_by_its_name_on_rows_that_lie_apart(tuned, tmp_path):
    """From a copy of its logic alone, in a process that imports nothing of it by name."""
    moved = shutil.copytree(tuned / "logic", tmp_path / "shipped")
    run = [sys.executable, "-c", LAUNCH, str(moved)]
    done = subprocess.run(run, capture_output=True, text=True, env=environment_with(FOLDER), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2] == "[('33x65 ld 80', 'exact'), ('300x280', 'nearest')]"


@pytest.mark.opencl
def test_without_the_distribution_it_is_said_what_is_missing(tuned):
    for arguments in (["show", tuned], ["plan", FOLDER / "copy.yaml", "--no-calibrate"]):
        done = tunesmith(*arguments)
        assert done.returncode == 2
        assert "there are GEMM, Convolution, Random, Custom" in " ".join(done.stderr.split()), done.stderr


def test_nothing_outside_its_folder_names_it():
    known = [
        "tests/problems/strided_copy/",
        "tests/problems/test_own_operation.py",
        "docs/add-an-operation.md",
        "docs/testing.md",
    ]
    names = ["CopyOperation", "CopyKernel", "CopyRows", "copy_problem", "copy_kernel", "Copy_S"]
    patterns = [part for name in names for part in ("-e", name)]
    found = subprocess.run(["git", "grep", "-lw", *patterns], cwd=ROOT, capture_output=True, text=True)
    if found.returncode > 1:
        pytest.skip("no git here")
    assert [name for name in found.stdout.split() if not name.startswith(tuple(known))] == []
