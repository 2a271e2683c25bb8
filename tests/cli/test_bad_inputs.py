"""Files with bad content, and paths that are no files: each gives an error with its location, quickly."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import tunesmith
from described import edited, type_of
from library_fakes import TYPES, logic
from random_benchmarks import benchmark, write
from random_stores import random_store
from tunesmith.devices.fake import fake_target
from tunesmith.formats import read_random
from tunesmith.formats.random.outputs import write_selection
from tunesmith.formats.random.settings import read_defaults, read_weights
from tunesmith.kernels import KERNELS
from tunesmith.logic import Logic, dump, logic_files, read_csv, write_logic
from tunesmith.logic.random.decision import RandomObjective
from tunesmith.logic.random.table import read_table
from tunesmith.models.stream_k.calibration_file import calibration_files
from tunesmith.problems import read_yaml
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.lists import read_list
from tunesmith.records import (
    UserError,
)
from tunesmith.session.portblas.made_files import MadeFiles
from tunesmith.session.random.select import select_random
from tunesmith.session.tuning_file import summarise
from tunesmith.store import FILE_NAME, FULL, Store
from tuning_space import read as read_tuning

SECONDS = 20
"""Seconds; more than any of these tests takes on a busy machine."""


@pytest.fixture(autouse=True)
def in_time():
    """A command that waits for ever fails the test."""

    def late(_number, _frame):
        pytest.fail(f"took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# --- library logic ---------------------------------------------------------------------------------------------------

GOOD = dump(logic(TYPES[0]).document)


def line_of(text, part):
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("DataType: s", "DataType: q", "DataType"),
        ("operation: GEMM", "operation: Random", "Batched"),
        ("TransposeA: false, ", "", "TransposeA"),
        ("DataType: s, ", "", "DataType"),
        ("TransposeA: false", "TransposeA: [1]", "TransposeA"),
        ("DataType: s", "DataType: d", "DB"),
        ("indices: [M, N, K]", "indices: [M, N]", "M, N, K"),
        ("operation: GEMM", "operation: Nope", "Nope"),
        ("kernel: FakeGemm", "kernel: OpenCLRandom", "OpenCLRandom"),
        ("kernel: FakeGemm", "kernel: Nope", "Nope"),
    ],
)
def test_a_logic_of_no_such_type_is_refused_with_its_line(tmp_path, old, new, says):
    assert GOOD.count(old) == 1
    path = tmp_path / "logic.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(UserError) as caught:
        tunesmith.load(path, device="fake:CPU:8")
    # What is about a field is at the fields; what they are wrong for may stand elsewhere.
    lines = {line_of(GOOD, part) for part in (old, "fields:", "name: Cij")}
    assert caught.value.location in {f"{path}:{line}" for line in lines}
    assert says in caught.value.what


@pytest.mark.parametrize("kind", [*TYPES, gemm_type("h", batched=True, interleaved=True), gemm_type("s", tf32=True)])
def test_a_type_of_ours_is_read_again(tmp_path, kind):  # type: ignore[no-untyped-def]
    write_logic(logic(kind).document, tmp_path / "logic.yaml")
    assert Logic.load(tmp_path / "logic.yaml").document.problem_type == kind


@pytest.mark.parametrize("text", ["[" * 200_000, "{a: " * 200_000, "- " * 200_000])
def test_a_logic_that_is_nested_without_an_end_does_not_end_the_process(tmp_path, text):
    """PyYAML's C code recurses. It runs in a child process, since a stack overflow cannot be caught."""
    path = tmp_path / "logic.yaml"
    path.write_text(f"tunesmith-logic: 2\nexact: {text}")
    child = os.fork()
    if not child:
        try:
            Logic.load(path)
        except UserError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_aliases_that_stand_for_millions_of_values_are_counted_first(tmp_path):
    """Two levels are legal in a parameter; ten thousand times ten thousand values are not."""
    many = ", ".join(["*x"] * 10_000)
    bomb = f"WorkGroup: [&x [{', '.join('1' * 10_000)}], {many}]"
    (path := tmp_path / "logic.yaml").write_text(GOOD.replace("WorkGroup: [8, 8, 1]", bomb))
    assert "WorkGroup: [8, 8, 1]" in GOOD
    with pytest.raises(UserError, match="aliases expand"):
        Logic.load(path)
    path.write_text(GOOD.replace("WorkGroup: [8, 8, 1]", "WorkGroup: &x [*x]"))
    with pytest.raises(UserError, match="aliases expand"):
        Logic.load(path)


# --- stores ----------------------------------------------------------------------------------------------------------


def change(folder, statement, *values):
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize("column", ["seconds", "low", "high", "count"])
def test_a_time_below_zero_in_a_store_is_a_damaged_row(tmp_path, column):
    change(random_store(tmp_path), f"UPDATE measurements SET {column} = -1")
    with Store.open(tmp_path / FILE_NAME) as store, pytest.raises(UserError, match="damaged row"):
        store.rounds(["k256"])
    assert "damaged row" in str(read_random([tmp_path]).complaints[0])


@pytest.mark.parametrize("column", ["compile_seconds", "verify_seconds", "timing_seconds"])
@pytest.mark.parametrize("seconds", [math.inf, 1e308, -1.0, "x"])
def test_a_cost_that_no_clock_shows_is_a_damaged_row(tmp_path, column, seconds):
    change(random_store(tmp_path), f"UPDATE measurements SET {column} = ?", seconds)
    with Store.open(tmp_path / FILE_NAME) as store:
        for answer in (lambda: store.rounds(["k256"]), store.cost):
            with pytest.raises(UserError, match="damaged row"):
                answer()


@pytest.mark.parametrize("column", ["reason", "detail", "started", "raced", "facts", "samples", "outcome", "seconds"])
@pytest.mark.parametrize("value", [b"\xff\x00", "no", 10**12, -1.5])
def test_a_column_of_another_type_is_a_damaged_row_or_a_value(tmp_path, column, value):
    """A number instead of samples once made as many zeros."""
    change(random_store(tmp_path), f"UPDATE measurements SET {column} = ?", value)
    with Store.open(tmp_path / FILE_NAME) as store, suppress(UserError):
        rounds = store.rounds(["k256"])
        assert isinstance(rounds["k256"][FULL].samples, tuple)
        return
    assert "damaged row" in str(read_random([tmp_path]).complaints[0])


@pytest.mark.parametrize("seconds", [0.0, 1e-320])
def test_times_without_a_speed_are_put_aside(tmp_path, seconds):
    reading = read_random([random_store(tmp_path, seconds=seconds)])
    assert [row.aside is not None for row in reading.rows] == [True, True]


def test_what_a_newer_version_measured_is_said_and_left_out(tmp_path):
    random_store(tmp_path)
    change(tmp_path, "UPDATE documents SET text = replace(text, 'xorwow', 'xorwow2')")
    reading = read_random([tmp_path])
    assert not reading.rows
    assert ["xorwow2" in str(error) for error in reading.complaints] == [True]


@pytest.mark.parametrize(
    "payload", ["{}", "[]", "x", "[" * 100_000, '{"command": 3}', '{"command": ["a"], "device": 3}']
)
def test_a_run_that_cannot_be_read_is_a_damaged_row(tmp_path, payload):
    change(random_store(tmp_path), "UPDATE run_events SET payload = ?", payload)
    with pytest.raises(UserError, match="damaged row"):
        summarise(tmp_path)


# --- benchmarks of generators -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "objective", [objective for objective in RandomObjective if objective is not RandomObjective.WEIGHTED]
)
@pytest.mark.parametrize("speed", [0, 1e-320, 1e-9, -1, 1e300, 1.7e308, "fast", None, True, [1]])
def test_a_speed_that_nothing_has_is_put_aside_by_every_objective(tmp_path, speed, objective):
    names = ("xorwow_uniform_float_t256_b1024", "xorwow_uniform_float_t256_b512", "nope_uniform_float_t256_b512")
    found = [benchmark(name, 1.0) for name in names]
    found[0]["bytes_per_second"] = found[2]["bytes_per_second"] = speed
    path = write(tmp_path / "gfx90a.json", found)
    made = select_random([path], objective)
    assert any("nope has no default shape" in str(error) for error in made.complaints)
    assert any("bytes_per_second" in str(error) for error in made.complaints)


def test_an_interval_without_an_end_is_no_interval(tmp_path):
    found = [benchmark(f"xorwow_uniform_float_t256_b{grid}", 1.0) for grid in (512, 1024)]
    for row in found:
        row |= {"bytes_per_second_low": 1e-310, "bytes_per_second_high": 1e308}
    made = select_random([write(tmp_path / "gfx90a.json", found)])
    assert len(made.selection.decisions) == 1


# --- what is no file, or never ends -----------------------------------------------------------------------------------

READERS: dict[str, Callable[[Path], object]] = {
    "logic.yaml": Logic.load,
    "tuning.yaml": read_tuning,
    "any.yaml": read_yaml,
    "kernel.json": read_table,
    "gfx90a.json": lambda path: read_random([path]).complaints[0],
    "weights.json": read_weights,
    "weights.csv": read_weights,
    "defaults.json": read_defaults,
    "table.csv": read_csv,
    "list.csv": lambda path: read_list(path, {}, (), "problems"),
    "store.sqlite": Store.read,
    "new.sqlite": Store.open,
    "made.hpp": lambda path: MadeFiles().write(path, "text", "mark"),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("how", ["pipe", "device"])
def test_a_pipe_and_a_device_without_an_end_are_refused_at_once(tmp_path, name, how):
    path = tmp_path / name
    if how == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    try:
        answer = READERS[name](path)
    except UserError as error:
        answer = error
    assert isinstance(answer, UserError)
    assert str(path) in answer.location


def test_pipes_in_a_folder_are_passed_over(tmp_path):
    for name in ("pipe.yaml", "pipe.yml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "good.yaml").write_text(GOOD)
    assert logic_files(tmp_path) == [tmp_path / "good.yaml"]
    assert calibration_files(tmp_path) == []
    MadeFiles().remove_others(tmp_path, "*.yaml", "mark")


def test_a_header_that_is_a_pipe_is_left_as_it_is(tmp_path):
    found = [benchmark(f"xorwow_uniform_float_t256_b{grid}", 1.0) for grid in (512, 1024)]
    decisions = select_random([write(tmp_path / "gfx90a.json", found)]).selection.decisions
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "tunesmith_random.json")
    assert write_selection(decisions, out).complaints


# --- a kernel of one's own --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["Source", "Reference"])
@pytest.mark.parametrize("how", ["above", "absolute", "link"])
def test_a_kernels_files_lie_under_the_folder_of_its_description(copied, part, how):
    name = {"Source": "custom_stencil.cl", "Reference": "custom_stencil.py"}[part]
    elsewhere = copied.parent.parent / f"elsewhere_{part}_{how}"
    elsewhere.mkdir()
    (copied.parent / name).rename(elsewhere / name)
    named = {"above": f"../{elsewhere.name}/{name}", "absolute": str(elsewhere / name), "link": name}[how]
    if how == "link":
        (copied.parent / name).symlink_to(elsewhere / name)
    else:
        edited(copied, name, named)
    with pytest.raises(UserError, match=r"custom_stencil\.yaml:\d+: .* does not lie under"):
        type_of(copied)


def test_a_kernels_files_may_lie_deeper(copied):
    (copied.parent / "src").mkdir()
    (copied.parent / "custom_stencil.cl").rename(copied.parent / "src" / "custom_stencil.cl")
    edited(copied, "custom_stencil.cl", "src/../src/custom_stencil.cl")
    assert type_of(copied).name == "stencil5"


# --- kernels too large to compile in the caller's process -------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {"PortBlasAlgorithm": "local", "WorkItem": (65536, 65536)},
        {"PortBlasAlgorithm": "non_local", "WorkItem": (65536, 65536)},
        {"PortBlasAlgorithm": "tall_skinny", "WorkItem": (65536, 65536)},
        {"PortBlasAlgorithm": "interleaved", "WorkItem": (4, 4), "BatchTile": (65536, 1)},
        {"PortBlasAlgorithm": "non_local", "WorkItem": (4, 4), "VectorSize": 65536},
    ],
)
def test_a_work_item_without_measure_is_rejected_before_anything_is_compiled(config):
    family = KERNELS["PortBlasGemm"]
    kind = gemm_type(batched=True, interleaved=config["PortBlasAlgorithm"] == "interleaved")
    made = family.space(kind).defaults | config  # type: ignore[operator]
    assert list(family.rejections(made, kind, fake_target("CPU")))
