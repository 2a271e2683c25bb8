"""Library logic with a part removed, changed or scribbled over: it is used, or refused with file and line.

`house/test_file_fuzz.py` has the other kinds of files.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import resource
import time

import pytest
import typer

from mutated_files import Kind, mutated
from quick_yaml import loaded
from tensile_logics import RANGES, REAL, keys_form, list_form, text_of, tree_form
from tunesmith.cli.app import app
from tunesmith.formats.tensile.library.contraction import SizedContraction
from tunesmith.formats.tensile.library.read import read_logic
from tunesmith.formats.tensile.library.selection import TensileSelector
from tunesmith.records import UserError

SECONDS = 5.0
"""Of the processor's time."""
KIBIBYTES = 500_000
"""What the process's memory may grow by."""
QUICK, THOROUGH = 100, 10_000
"""Mutated files, over all forms."""

FORMS = {
    "list": text_of(list_form(distance="Manhattan")),
    "ranges": text_of(list_form(ranges=RANGES)),
    "grid": text_of(list_form(distance="GridBased")),
    "keys": text_of(keys_form(list_form(distance="Equality"))),
    "trees": text_of(tree_form()),
    **{path.stem: path.read_text() for path in REAL},
}


def used(path):
    """Everything that is done with a logic: it is read, asked, and shown on the command line."""
    try:
        logic = read_logic(path)
    except UserError as error:
        for mistake in error.errors:
            if not re.fullmatch(rf"{re.escape(str(path))}:[1-9]\d*", mistake.location):
                pytest.fail(f"has no line: {mistake}")
            if not (mistake.what and mistake.remedy):
                pytest.fail(f"says too little: {mistake}")
        return
    selector = TensileSelector(logic)
    count = logic.problem_type.index_count
    for size in (1, 64, 100_000):
        with contextlib.suppress(UserError):
            selector.choose(SizedContraction(logic.problem_type, (size,) * count))
    for command in (["logic", "show", path], ["select", "--logic", path, "--size", "x".join(["64"] * count)]):
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.suppress(typer.Exit, SystemExit, UserError),
        ):
            app([*map(str, command), "--json"], standalone_mode=False)


def fuzz(folder, name, seeds):
    kind = Kind(f"{name}.yaml", FORMS[name], used, loaded, text_of)
    for seed in seeds:
        path = folder / "logic.yaml"
        path.write_bytes(mutated(kind, random.Random(f"{name} {seed}")))
        began, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            used(path)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}: {type(error).__name__}: {error}") from error
        assert time.process_time() - began < SECONDS, f"{name}, seed {seed}"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < KIBIBYTES, f"{name}, seed {seed}"


@pytest.mark.parametrize("name", FORMS)
def test_a_good_logic_is_used(name, tmp_path):
    """Or else what follows would test nothing."""
    path = tmp_path / "logic.yaml"
    path.write_text(FORMS[name])
    assert read_logic(path).solutions
    used(path)


@pytest.mark.parametrize("name", FORMS)
def test_a_changed_logic_is_used_or_refused(name, tmp_path):
    fuzz(tmp_path, name, range(QUICK // len(FORMS)))


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FORMS)
def test_ten_thousand_changed_logics_are_used_or_refused(name, tmp_path):
    fuzz(tmp_path, name, range(QUICK, QUICK + THOROUGH // len(FORMS) + 1))


@pytest.mark.parametrize("levels", [3, 6, 12])
def test_aliases_cannot_make_a_small_file_large(levels, tmp_path):
    """Each level names the level before it a hundred times."""
    path = tmp_path / "logic.yaml"
    lines = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 100)}]" for level in range(1, levels)]
    path.write_text("\n".join(["MinimumRequiredVersion: 4.6.0", "a0: &a0 [[1, 1, 1, 1], [0, 1.0]]", *lines]))
    began = time.process_time()
    with pytest.raises(UserError):
        read_logic(path)
    assert time.process_time() - began < SECONDS
