"""A tunesmith store as one of the inputs from which launch shapes are chosen."""

from __future__ import annotations

import shutil
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from random_benchmarks import benchmark, write
from tunesmith.devices.fake import fake_target
from tunesmith.formats import read_random
from tunesmith.formats.random import google_benchmark
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.random import random_type, scalars_for
from tunesmith.records import (
    Configuration,
    Estimate,
    LaunchShape,
    Measurement,
    Outcome,
    Problem,
    Solution,
    UserError,
)
from tunesmith.store import FILE_NAME, FULL, RACE, RECHECK, RunEnd, RunStart, RunState, Store, StoreEntry

H200 = replace(fake_target(), api="CUDA", name="NVIDIA H200", architecture="sm_90", driver="CUDA 13.0")
CPU = replace(fake_target("CPU"), api="OpenCL", architecture="x86-64")
COUNT = 1 << 20


def problem(generator="xorwow", distribution="uniform", **scalars):
    value_type = "unsigned_int" if distribution == "poisson" else "float"
    problem_type = random_type(generator, distribution, value_type, dynamic=True)
    return Problem(problem_type, (COUNT,), scalars=scalars_for(distribution, **scalars))  # type: ignore[arg-type]


def ok(seconds, raced=False):
    estimate = Estimate(seconds, seconds * 0.99, seconds * 1.03, 7)
    return Measurement(Outcome.OK, samples=(seconds,) * 7, estimate=estimate, raced=raced)


FAILED = Measurement(Outcome.CRASH, "SIGSEGV", "while timing")


def entry(
    shape,
    measurement,
    *,
    of=None,
    target=H200,
    round_=FULL,
    key="",
):
    """An entry with one measurement. Without `key`, its key depends on problem, shape, driver and device."""
    of = of or problem()
    config = Configuration({"KernelLanguage": "CUDA", "BlockSize": shape[0], "GridSize": shape[1]})
    solution = Solution(of.type, "CudaRandom", config)
    key = key or f"{of.to_json()} {shape} {target.driver} {target.name}"
    return StoreEntry(key, round_, "identity", solution, of, target, "NVRTC 13.0", measurement)


def store(path, entries):
    with Store.open(path) as opened:
        opened.commit(list(entries))
    return path


def test_a_run_s_caution_is_told_as_long_as_one_of_its_measurements_counts(tmp_path):
    path = tmp_path / "s.sqlite"
    start = RunStart(("tunesmith",), "", "", H200.name, H200.driver, "CUDA:0", "1")
    with Store.open(path) as opened:
        run = opened.begin_run(start)
        opened.commit([entry((64, 64), replace(ok(1e-3), started=time.time()), round_=RACE)])
        opened.end_run(run, RunEnd(RunState.FINISHED, 1.0, 1, 0, note="it was busy\nit was hot"))
    complaints = [complaint.what for complaint in read_random([path]).complaints]
    assert complaints == ["when it was measured, it was busy", "when it was measured, it was hot"]
    assert {row.cautions for row in read_random([path]).rows} == {("it was busy", "it was hot")}
    with Store.open(path) as opened:
        run = opened.begin_run(start)
        opened.commit([entry((64, 64), replace(ok(1e-3), started=time.time()), round_=FULL)])
        opened.end_run(run, RunEnd(RunState.FINISHED, 1.0, 1, 0))
    assert read_random([path]).complaints == ()


def speeds(path):
    """GB/s by block and grid, of a store without complaints."""
    reading = read_random([path])
    assert reading.complaints == ()
    return {(row.shape.block, row.shape.grid): row.gigabytes_per_second for row in reading.rows}


def without_files(rows):
    return sorted(repr(replace(row, file="")) for row in rows)


def complaint_about(*paths):
    (complaint,) = read_random(paths).complaints
    return str(complaint)


GIGABYTES = 4 * COUNT / 1e9

ENTRIES = (entry((256, 512), ok(2e-3)), entry((64, 512), ok(1.7e-3)), entry((128, 512), FAILED))


# --- what is read ----------------------------------------------------------------------------------------------------


def test_a_store_gives_the_rows_of_the_json_that_a_run_writes(tmp_path):
    """The rows are equal to the last bit, including intervals and failures."""
    entries = [google_benchmark.entry(stored.problem, _shape(stored), stored.measurement) for stored in ENTRIES]
    json = tmp_path / "benchmark.json"
    json.write_text(google_benchmark.write(entries, google_benchmark.context(H200, 4 * COUNT)))
    from_store = read_random([store(tmp_path / FILE_NAME, ENTRIES)])
    from_json = read_random([json])
    assert without_files(from_store.rows) == without_files(from_json.rows)
    assert [complaint.what for complaint in from_store.complaints] == [
        complaint.what for complaint in from_json.complaints
    ]
    assert from_store.rows[0].interval == pytest.approx((GIGABYTES / 2.06e-3, GIGABYTES / 1.98e-3))
    assert {row.file for row in from_store.rows} == {str(tmp_path / FILE_NAME)}


def _shape(entry_of_store):
    return LaunchShape(*(entry_of_store.solution.configuration.integer(name) for name in ("BlockSize", "GridSize")))


def test_a_folder_stands_for_the_store_in_it(tmp_path):
    store(tmp_path / "run" / FILE_NAME, ENTRIES[:2])
    assert speeds(tmp_path / "run") == speeds(tmp_path / "run" / FILE_NAME)
    assert speeds(tmp_path / "run")[64, 512] == pytest.approx(GIGABYTES / 1.7e-3)


def test_architectures_are_those_of_the_devices_whatever_the_file_is_called(tmp_path):
    path = store(tmp_path / "gfx90a.sqlite", [ENTRIES[0], entry((2, 4), ok(0.1), target=CPU)])
    assert {row.architecture for row in read_random([path]).rows} == {"sm_90", "x86_64"}


def test_other_kernels_measurements_are_passed_over(tmp_path):
    gemm = Problem(gemm_type(), (8, 8, 8))
    other = StoreEntry("k", FULL, "i", Solution(gemm.type, "CudaSimtGemm", Configuration({})), gemm, H200, "c", ok(1.0))
    assert len(speeds(store(tmp_path / "both", [other, *ENTRIES[:2]]))) == 2
    only = store(tmp_path / "only", [other])
    assert complaint_about(only).startswith(f"{only}: holds no measurement of a generator, but 1 of other kernels; ")


def test_what_counts_is_what_the_tuning_went_by(tmp_path):
    """A full measurement supersedes a race's, and a later crash both. Raced-out cells and anchors do not count."""
    path = store(
        tmp_path / "s",
        [
            entry((1, 1), ok(1.0)),
            entry((1, 1), ok(2.0), round_=RACE),
            entry((1, 1), ok(3.0), round_="anchor/7"),
            entry((2, 1), ok(2.0, raced=True), round_=RACE),
            entry((3, 1), ok(4.0), round_=RACE),
            entry((4, 1), ok(1.0)),
            entry((4, 1), FAILED, round_=FULL + RECHECK),
        ],
    )
    reading = read_random([path])
    assert {row.shape.block: row.aside is None for row in reading.rows} == {1: True, 3: True, 4: False}
    (speed,) = (row.gigabytes_per_second for row in reading.rows if row.shape.block == 1)
    assert speed == pytest.approx(GIGABYTES)


def test_of_measurements_that_cannot_be_compared_those_like_the_last_are_taken(tmp_path):
    """Speeds with another driver or another mean are not comparable; another seed does not matter."""
    newer = replace(H200, driver="CUDA 13.1")
    poisson = [problem(distribution="poisson", lam=lam) for lam in (10.0, 1000.0)]
    path = store(
        tmp_path / "s",
        [
            *ENTRIES[:2],
            entry((64, 512), ok(1.0), target=newer),
            entry((256, 512), ok(5.0), of=poisson[1]),
            entry((256, 512), ok(6.0), of=poisson[0]),
            entry((64, 512), ok(7.0), of=poisson[0]),
        ],
    )
    reading = read_random([path])
    assert [(row.distribution, row.shape.block) for row in reading.rows] == [
        ("uniform", 64),
        ("poisson", 256),
        ("poisson", 64),
    ]
    assert complaint_about(path).startswith(
        f"{path}: 3 measurements with another device, driver, compiler or parameter than"
    )
    seeds = store(tmp_path / "seeds", [*ENTRIES[:2], entry((64, 512), ok(3e-3), of=problem(seed=5))])
    assert speeds(seeds) == pytest.approx({(256, 512): GIGABYTES / 2e-3, (64, 512): GIGABYTES / 3e-3})


# --- the same twice --------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path):
    """A run's folder and the benchmark JSON in it."""
    store(tmp_path / "run" / FILE_NAME, ENTRIES[:2])
    entries = [google_benchmark.entry(stored.problem, _shape(stored), stored.measurement) for stored in ENTRIES[:2]]
    json = tmp_path / "run" / "benchmark.json"
    json.write_text(google_benchmark.write(entries, google_benchmark.context(H200, 4 * COUNT)))
    return tmp_path / "run", json


def test_a_measurement_that_is_in_a_store_and_in_json_counts_once(run, tmp_path):
    folder, json = run
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    for first, second in (
        (folder, json),
        (json, folder),
        (folder, copy),
        (folder, folder),
        (folder / FILE_NAME, folder),
    ):
        rows = read_random([first, second]).rows
        assert [row.aside is None for row in rows] == [True, True, False, False]
        assert (
            complaint_about(first, second)
            == f"{second}: 2 of its measurements are in {first} too; give one; they are counted once"
        )


def test_new_measurements_beside_old_ones_add_up(run, tmp_path):
    folder, _ = run
    name = "xorwow_uniform_float_t256_b512"
    other = write(tmp_path / "other.json", [benchmark(name, 2.0), benchmark(name, 2.0)], "sm_90")
    reading = read_random([folder, other])
    assert reading.complaints == ()
    assert len([row for row in reading.rows if row.aside is None]) == 4


# --- what is no store ------------------------------------------------------------------------------------------------


def test_a_folder_without_a_store_is_said(tmp_path):
    assert complaint_about(tmp_path).startswith(f"{tmp_path}: no {FILE_NAME} in it; ")


def test_another_programs_database_is_said_and_left_as_it_is(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = path.read_bytes()
    assert complaint_about(path).startswith(f"{path}: is another program's database; ")
    assert path.read_bytes() == before
    assert [left_path.name for left_path in tmp_path.iterdir()] == ["other.sqlite"]


def test_a_damaged_store_is_said_and_the_others_are_read(tmp_path, run):
    whole = (run[0] / FILE_NAME).read_bytes()
    cut, scribbled, empty = tmp_path / "cut.sqlite", tmp_path / "scribbled.sqlite", tmp_path / "empty.sqlite"
    cut.write_bytes(whole[:5000])
    scribbled.write_bytes(whole[:100] + b"\x00" * (len(whole) - 100))
    empty.write_bytes(b"")
    reading = read_random([cut, scribbled, empty, run[0]])
    assert [complaint.location for complaint in reading.complaints] == [str(cut), str(scribbled), str(empty)]
    assert all("is not a sound SQLite database" in complaint.what for complaint in reading.complaints[:2])
    assert len(reading.rows) == 2


def test_a_row_that_says_nonsense_is_said(tmp_path):
    path = store(tmp_path / "s", ENTRIES)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE documents SET text = '{}' WHERE text LIKE '%BlockSize%'")
    connection.close()
    assert complaint_about(path).startswith(f"{path}: holds a damaged row")


def test_a_newer_store_is_said(tmp_path):
    path = store(tmp_path / "s", ENTRIES)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "has schema 99" in complaint_about(path)


def test_reading_makes_no_store(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        Store.read(tmp_path / "new" / "s")
    assert list(tmp_path.iterdir()) == []
