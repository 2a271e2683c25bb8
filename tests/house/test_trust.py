"""What is run of a file or folder that somebody sent: nothing where one only looks (docs/trust.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from described import EXAMPLES, edited
from forked import run_forked
from opencl_runner import opencl_device
from tunesmith import session
from tunesmith.devices import environment as device_environment
from tunesmith.toolchains import driver_cache
from tunesmith.toolchains.cache import FOLDER_VARIABLE, SIZE_VARIABLE
from tuning_runs import environment, execute_alone, fake_file

TUNING = """
GlobalParameters: {CompileProcesses: 1, WarmUpSeconds: 0.01, SamplingSeconds: 0.02, ConfirmBlocks: 7}
BenchmarkProblems:
  - - OperationType: Custom
      Kernel: custom_stencil.yaml
    - BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [16, 16]
"""


@pytest.fixture(autouse=True)
def anew(monkeypatch, tmp_path):
    """A cache folder of this test's own, asked for by nobody so far."""
    driver_cache.cache_clear()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache of the user"))


@pytest.mark.opencl
@pytest.mark.parametrize(("calibrate", "runs"), [(None, False), (False, False), (True, True)])
def test_plan_runs_a_kernel_of_ones_own_only_when_asked_to(copied, tmp_path, calibrate, runs):
    """Its reference is Python: here it leaves a file."""
    opencl_device()
    trace = tmp_path / "ran"
    edited(copied.with_name("custom_stencil.py"), "def stencil", f"open({str(trace)!r}, 'w').close()\n\n\ndef stencil")
    made = session.plan(fake_file(copied.parent, TUNING, "tuning.yaml"), device="OpenCL", calibrate=calibrate)
    assert trace.exists() == runs
    assert (made.seconds is not None) == runs
    assert any("--calibrate" in note for note in made.notes) == (calibrate is None)


def test_plan_calibrates_kernels_of_ours_without_being_asked(tmp_path):
    made = session.plan(fake_file(tmp_path), device="fake:GPU:8")
    assert made.seconds is not None
    assert not any("--calibrate" in note for note in made.notes)


@pytest.mark.opencl
def test_a_results_folder_holds_no_machine_code_of_a_cpu(tmp_path):
    opencl_device()
    file = fake_file(
        tmp_path,
        TUNING.replace("custom_stencil.yaml", str(EXAMPLES / "custom_stencil.yaml")),
        "tuning.yaml",
    )
    env = environment(**{FOLDER_VARIABLE: tmp_path / "cache of the user"})
    tune = ["tune", str(file), "-o", str(tmp_path / "out"), "--device", "OpenCL", "-q"]
    run_forked(execute_alone, *tune, env=env)
    assert (tmp_path / "out" / "measurements.sqlite").is_file()
    assert [path for path in (tmp_path / "out").rglob("*") if path.suffix in (".so", ".bc", ".o")] == []
    assert list((tmp_path / "cache of the user" / "drivers").rglob("*.so"))


def test_every_process_of_a_run_finds_the_same_private_folder_outside_of_it(tmp_path, own_programs):
    here = device_environment(tmp_path / "out" / "cache")["POCL_CACHE_DIR"]
    program = (
        "import sys; from pathlib import Path; from tunesmith.devices import environment;"
        "print(environment(Path(sys.argv[1]))['POCL_CACHE_DIR'])"
    )
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    there = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out" / "cache")],
        env=variables,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert here == there
    assert not Path(here).is_relative_to(tmp_path / "out")
    assert Path(here).stat().st_mode & 0o077 == 0
    assert here != device_environment(tmp_path / "other" / "cache")["POCL_CACHE_DIR"]


@pytest.mark.parametrize("trouble", ["no folder", "no bytes", "others may write"])
def test_without_a_folder_of_the_users_own_the_cache_is_a_temporary_one(tmp_path, monkeypatch, trouble):
    if trouble == "no folder":
        monkeypatch.setenv(FOLDER_VARIABLE, f"{os.devnull}/tunesmith")
    elif trouble == "no bytes":
        monkeypatch.setenv(SIZE_VARIABLE, "0")
    else:
        (tmp_path / "cache of the user" / "drivers").mkdir(parents=True)
        (tmp_path / "cache of the user" / "drivers").chmod(0o777)
    found = driver_cache(tmp_path / "out")
    assert found.is_dir()
    assert not found.is_relative_to(tmp_path)
    assert found.stat().st_mode & 0o077 == 0


def test_folders_of_other_runs_go_when_they_are_too_much_and_not_in_use(tmp_path, monkeypatch):
    """Another process may hold one: here a child that waits."""
    monkeypatch.setenv(SIZE_VARIABLE, "10000")
    program = (
        "import sys; from pathlib import Path; from tunesmith.toolchains import driver_cache;"
        "folder = driver_cache(Path(sys.argv[1])); (folder / 'code').write_bytes(bytes(8000));"
        "print(folder, flush=True); sys.stdin.read() if sys.argv[2] == 'waits' else None"
    )
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), SIZE_VARIABLE: "100000000"}
    folders, children = {}, []
    for name in ("left", "waits", "last"):
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / name), name],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        folders[name] = Path(child.stdout.readline().strip())
        if name != "waits":
            child.communicate()
        children.append(child)
    own = driver_cache(tmp_path / "own")
    assert {name: folder.is_dir() for name, folder in folders.items()} == {"left": False, "waits": True, "last": False}
    assert own.is_dir()
    for child in children:
        child.communicate()
