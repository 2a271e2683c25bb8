"""The CMake example: candidates are a build step, which runs again only if the parameters change."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from command_line import invoke
from command_program import command_program

EXAMPLE = Path(__file__).parents[3] / "examples" / "portblas_cmake"
GENERATORS = {"Unix Makefiles": "make", "Ninja": "ninja"}

pytestmark = [
    pytest.mark.skipif(not shutil.which("cmake"), reason="no CMake here"),
    pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="no C compiler here"),
]


class Project:
    """A copy of the example, to be configured and built with this `tunesmith`."""

    def __init__(self, folder, program, generator, *options):
        self.source, self.build = folder / "project", folder / "build"
        shutil.copytree(EXAMPLE, self.source)
        self.config = self.source / "candidates.json"
        self.run("cmake", "-G", generator, "-S", self.source, "-B", self.build, f"-DTUNESMITH={program}", *options)

    def run(self, *command, code=0):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def made(self):
        """Build; the modification time of every generated file."""
        self.run("cmake", "--build", self.build)
        paths = [*self.build.glob("kernels/*"), self.build / "candidates.def", self.build / "show_candidates"]
        return {path.name: path.stat().st_mtime_ns for path in paths}

    def change(self, **values):
        document = json.loads(self.config.read_text())
        document["local"][0] |= values
        self.config.write_text(json.dumps(document))
        later = self.config.stat().st_mtime + 2  # for systems that keep whole seconds
        os.utime(self.config, (later, later))


@pytest.fixture
def program(tmp_path):
    """A `tunesmith` that does not start Python anew for each command."""
    with command_program(tmp_path) as path:
        yield path


@pytest.fixture(
    params=[
        pytest.param(generator, marks=[pytest.mark.thorough] if generator == "Ninja" else [])
        for generator in GENERATORS
    ]
)
def project(request, program, tmp_path):
    if not shutil.which(GENERATORS[request.param]):
        pytest.skip(f"no {GENERATORS[request.param]} here")
    return Project(tmp_path, program, request.param)


def changed(before, after):
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_a_build_makes_candidates_once_and_again_where_they_change(project):
    first = project.made()
    assert project.run(project.build / "show_candidates").splitlines()[-1] == "5 candidates"
    assert len([name for name in first if name.endswith(".cl")]) == 5
    assert changed(first, project.made()) == set(), "a build of what is built"

    project.change()
    assert changed(first, project.made()) == set(), "the parameters are newer and say the same"

    project.change(double_buffer=[False], vectorization_size=[4, 2])
    second = project.made()
    gone, new = first.keys() - second.keys(), second.keys() - first.keys()
    assert (len(gone), len(new)) == (2, 2)
    assert changed(first, second) == gone | new | {"candidates.def", "show_candidates"}
    assert project.run(project.build / "show_candidates").splitlines()[-1] == "5 candidates"


def test_a_mistake_in_the_parameters_stops_the_build_with_its_place(project):
    project.change(vectorization_size=["4"])
    done = subprocess.run(["cmake", "--build", str(project.build)], capture_output=True, text=True)
    assert done.returncode != 0
    assert 'vectorization_size[0]: is "4", expected a whole number' in done.stdout + done.stderr


@pytest.fixture
def make():
    if not shutil.which("make"):
        pytest.skip("no make here")
    return "Unix Makefiles"


@pytest.mark.parametrize(("target", "name"), [("NVIDIA_GPU", "nvidia"), ("CPU", "cpu"), ("mine", "mine")])
def test_a_targets_name_finds_its_set(target, name, make, program, tmp_path, monkeypatch):
    own = tmp_path / "sets"
    own.mkdir()
    shutil.copy(EXAMPLE / "candidates.json", own / "mine.json")
    monkeypatch.setenv("TUNESMITH_PORTBLAS_SETS", str(own))
    project = Project(tmp_path, program, make, f"-DTUNING_TARGET={target}")
    project.made()
    lines = (project.build / "candidates.def").read_text().splitlines()
    expected = invoke("portblas", "generate", name).stdout.splitlines()
    assert lines == expected
    assert len([line for line in lines if line.startswith("BENCH_PARAMS")]) > 4


def test_a_target_without_a_set_is_refused_with_those_that_there_are(make, program, tmp_path):
    project = Project(tmp_path, program, make)
    again = ("cmake", "-S", project.source, "-B", project.build)
    output = project.run(*again, "-DTUNING_TARGET=VOODOO_GPU", code=1)
    assert "no set for VOODOO_GPU; give one of amd, cpu, default, intel, nvidia" in " ".join(output.split())
    both = project.run(*again, "-DTUNING_TARGET=CPU", f"-DPORTBLAS_CONFIG={project.config}", code=1)
    assert "both given" in " ".join(both.split())
    project.run(*again, "-UTUNING_TARGET", f"-DPORTBLAS_CONFIG={project.config}")
