"""Tuning files of Tensile's with something changed are planned or refused: only with our errors, each with its line."""

from __future__ import annotations

import re
import resource
import time

import pytest

from tensile_files import DIALECTS, SPLIT_SIZES
from tensile_mutations import mutated
from tunesmith.devices import choose
from tunesmith.protocol import forecast
from tunesmith.records import UserError
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.tuning_file.file import read_imported

QUICK, THOROUGH = 25, 2000
SECONDS, MEGABYTES = 5.0, 500
LOCATED = re.compile(r".*theirs\.yaml:\d+|.*sizes\.yaml:\d+|.*sizes\.yaml", re.DOTALL)


@pytest.fixture(scope="module")
def target():
    return choose(None, languages=["OpenCL"])


def plan(path, sizes, target):
    """What `tunesmith plan --no-calibrate` does once the device is found."""
    for phases in read_imported(path, 64, None, sizes)[0].groups:
        forecast(phases, ConfigurationOracle(phases.problem_type, target))


def survives(name, seed, folder, target):
    """The file is planned, or every error says where, what and what to do."""
    path, sizes = folder / "theirs.yaml", folder / "sizes.yaml"
    path.write_bytes(mutated(name, seed))
    sizes.write_text(SPLIT_SIZES)
    began = time.process_time()
    try:
        plan(path, sizes if name == "SPLIT" else None, target)
    except UserError as error:
        for mistake in error.errors:
            assert LOCATED.fullmatch(mistake.location), f"{name} {seed}: {mistake}"
            assert mistake.what, f"{name} {seed}"
            assert mistake.remedy, f"{name} {seed}"
    except Exception as error:
        raise AssertionError(f"{name} {seed}: {type(error).__name__}: {error}") from error
    assert time.process_time() - began < SECONDS, f"{name} {seed}: too slow"


def fuzz(name, seeds, folder, target):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        survives(name, seed, folder, target)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES, f"{name}: {grown:.0f} MB"


@pytest.mark.opencl
@pytest.mark.parametrize("name", DIALECTS)
def test_a_changed_file_is_planned_or_refused_with_its_lines(name, tmp_path, target):
    fuzz(name, range(QUICK), tmp_path, target)


@pytest.mark.opencl
@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", DIALECTS)
def test_ten_thousand_changed_files_are_planned_or_refused(name, tmp_path, target):
    fuzz(name, range(QUICK, THOROUGH + QUICK), tmp_path, target)
