"""Reading of benchmark files: the rows, and the complaints about everything else."""

from __future__ import annotations

import json
import math
import re

import pytest

from random_benchmarks import benchmark, write
from tunesmith.devices.fake import fake_target
from tunesmith.formats import read_random
from tunesmith.formats.random import google_benchmark
from tunesmith.formats.random.settings import read_defaults, read_weights
from tunesmith.logic.random.choice import choose_shapes
from tunesmith.records import Estimate, LaunchShape, UserError, architecture_name

NAME = "philox4_32_10_uniform_float_t256_b1024"


def read(path, *found, architecture="gfx90a:sramecc+:xnack-"):
    return read_random([write(path / "file.json", found, architecture)])


def complaints_of(reading):
    """The complaints, without the folder and the remedy."""
    return [re.sub(r"^.*?([\w.]+\.json)", r"\1", str(complaint)).partition("; ")[0] for complaint in reading.complaints]


# google-benchmark


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("philox4_32_10_log_normal_float_t512_b2048", ("philox4_32_10", "log_normal", "float", 512, 2048)),
        (
            "threefry2_64_20_uniform_unsigned_long_long_t64_b1",
            ("threefry2_64_20", "uniform", "unsigned_long_long", 64, 1),
        ),
        ("mtgp32_poisson_unsigned_int_t256_b512", ("mtgp32", "poisson", "unsigned_int", 256, 512)),
        ("sobol32_normal_half_t256_b4096", ("sobol32", "normal", "half", 256, 4096)),
    ],
)
def test_a_name_is_taken_apart_as_rocrands_script_does(name, parts, tmp_path):
    (row,) = read(tmp_path, benchmark(name, 5.0)).rows
    assert (row.generator, row.distribution, row.value_type, row.shape.block, row.shape.grid) == parts
    assert (row.architecture, row.gigabytes_per_second, row.bytes, row.aside) == ("gfx90a", 5.0, 2**29, None)


@pytest.mark.parametrize(
    "tail", ["", "/manual_time", "/iterations:5/repeats:3/manual_time", "/min_time:0.500s/real_time"]
)
def test_what_google_benchmark_puts_behind_a_name_does_not_matter(tail, tmp_path):
    (row,) = read(tmp_path, {"name": NAME + tail, "bytes_per_second": 1e9}).rows
    assert row.aside is None


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"name": f"{NAME}/manual_time_mean", "run_type": "aggregate", "aggregate_name": "mean"}, "aggregate"),
        ({"name": f"{NAME}/manual_time_stddev"}, "aggregate"),
        ({"name": f"{NAME}/manual_time", "run_type": "aggregate"}, "aggregate"),
        ({"name": f"{NAME}/manual_time", "error_occurred": True, "error_message": "gone"}, "failed"),
        ({"name": f"{NAME}xyz"}, "foreign name"),
        ({"name": f"{NAME}/manual_time", "bytes_per_second": math.nan}, "no speed"),
        ({"name": f"{NAME}/manual_time", "bytes_per_second": 0}, "no speed"),
        ({"name": f"{NAME}/manual_time", "bytes_per_second": "fast"}, "no speed"),
        ({"name": f"{NAME}/manual_time", "bytes_per_second": None}, "no speed"),
    ],
)
def test_what_is_no_measurement_is_put_aside_with_its_reason(raw, reason, tmp_path):
    reading = read(tmp_path, {"bytes_per_second": 1e9, **raw})
    (row,) = reading.rows
    assert row.aside
    assert row.aside.reason == reason
    complaints = [] if reason == "aggregate" else [f"file.json: {raw['name']}: {reason}: {row.aside.detail}"]
    assert complaints_of(reading) == complaints


@pytest.mark.parametrize("name", ["BM_other", "philox4_32_10_cauchy_float_t1_b1", "philox_uniform_float_t256", None, 7])
def test_a_foreign_name_is_said_and_the_rest_is_read(name, tmp_path):
    reading = read(tmp_path, {"name": name, "bytes_per_second": 1.0}, benchmark(NAME, 5.0), 3, [])
    assert len(reading.rows) == 1
    assert complaints_of(reading) == [
        f"file.json: {name or 'benchmarks[0]'}: is no name of a generator's benchmark",
        "file.json: benchmarks[2]: is no name of a generator's benchmark",
        "file.json: benchmarks[3]: is no name of a generator's benchmark",
    ]


@pytest.mark.parametrize(
    ("architecture", "file", "architecture_found"),
    [
        ("gfx90a:sramecc+:xnack-", "gfx1100.json", "gfx90a"),
        ("Radeon", "tuning_gfx1100.json", "gfx1100"),
        (None, "tuning_gfx1100.json", "gfx1100"),
        ("sm_90", "h200.json", "sm_90"),
        ("x86-64", "cpu.json", "x86_64"),
        ("", "cpu.json", "unknown"),
    ],
)
def test_the_architecture_is_looked_for_as_rocrands_script_does(architecture, file, architecture_found, tmp_path):
    reading = read_random([write(tmp_path / file, [benchmark(NAME, 1.0)], architecture)])
    assert [row.architecture for row in reading.rows] == [architecture_found]
    assert bool(reading.complaints) == (architecture_found == "unknown")


def test_what_is_no_benchmark_file_is_said_and_the_others_are_read(tmp_path):
    texts = {
        "empty.json": b"",
        "text.json": b"{\n 'a'}",
        "binary.json": b"\xff\xfe\x00",
        "list.json": b"[1]",
        "other.json": b'{"a": 1}',
        "nothing.json": b'{"benchmarks": []}',
        "deep.json": b"[" * 100_000,
        "marked.json": b'\xef\xbb\xbf{"specializations": 4}',
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    good = write(tmp_path / "good.json", [benchmark(NAME, 1.0)])
    reading = read_random([*(tmp_path / name for name in texts), tmp_path / "absent.json", good])
    assert len(reading.rows) == 1
    words = [complaint.partition(" (")[0] for complaint in complaints_of(reading)]
    assert words == [
        "empty.json: is empty",
        "text.json:2: is no JSON",
        "binary.json: is no JSON",
        "list.json: has none of the keys benchmarks, specializations",
        "other.json: has none of the keys benchmarks, specializations",
        "nothing.json: benchmarks lists nothing",
        "deep.json: is no JSON",
        "marked.json: specializations lists nothing",
        "absent.json: cannot be read",
    ]


def test_shards_add_up_repeats_are_merged_and_a_copy_counts_once(tmp_path):
    other = NAME.replace("t256", "t512")
    first = write(tmp_path / "one.json", [benchmark(NAME, 100.0), benchmark(NAME, 100.0), benchmark(other, 100.0)])
    second = write(tmp_path / "two.json", [benchmark(other, 144.0)])
    copy = write(tmp_path / "copy.json", [benchmark(other, 144.0)])
    reading = read_random([first, second, copy])
    assert complaints_of(reading) == [f"copy.json: says the same as {second}"]
    (decision,) = choose_shapes(reading.rows).decisions
    assert decision.ranking[0].score == pytest.approx(1.2), "the geometric mean of 100 and 144, the latter once"


def entry(error="", **more):
    estimate = None if error else Estimate(2e-3, 1.9e-3, 2.2e-3, 31)
    shape = LaunchShape(256, 1024)
    return google_benchmark.BenchmarkEntry(
        "philox4_32_10", "uniform", "float", shape, 2**29, 40, estimate, error, **more
    )


def test_what_is_written_is_read_again(tmp_path):
    context = google_benchmark.context(fake_target(), 2**29, date="2026-01-02T03:04:05+00:00")
    path = tmp_path / "ours.json"
    path.write_text(google_benchmark.write([entry(), entry("out of registers")], context))
    good, failed = read_random([path]).rows
    assert good.name == f"{NAME}/manual_time"
    assert good.gigabytes_per_second == pytest.approx(2**29 / 2e-3 / 1e9)
    assert good.interval == pytest.approx((2**29 / 2.2e-3 / 1e9, 2**29 / 1.9e-3 / 1e9))
    assert good.bytes == 2**29
    assert good.architecture == architecture_name(fake_target().architecture)
    assert failed.aside
    assert str(failed.aside) == "failed: out of registers"


def test_what_is_written_has_all_that_rocrands_script_reads():
    text = google_benchmark.write([entry()], google_benchmark.context(fake_target(), 2**29))
    document = json.loads(text)
    assert isinstance(document["context"]["hdp_gcn_arch_name"], str)
    (row,) = document["benchmarks"]
    assert isinstance(row["bytes_per_second"], float)
    assert row["items_per_second"] == pytest.approx(row["bytes_per_second"] / 4)
    assert (row["time_unit"], row["real_time"], row["run_type"]) == ("ms", 2.0, "iteration")
    assert re.match(r"^\S+?_(uniform|normal|log_normal|poisson)_(unsigned_)?(int|float|double)_t\d+_b\d+", row["name"])
    with pytest.raises(ValueError, match="hdp_gcn_arch_name"):
        google_benchmark.write([entry()], {})


# primbench


def specialization(**more):
    meta = {"engine": "xorwow", "distribution": "normal", "type": "double", "cfg": {"threads": 64, "blocks": "512"}}
    return {"name": "s", "meta": meta, "bytes_per_second": 2e11, "items": 1000, "bytes_per_item": 8, **more}


def primbench(path, *specializations, arch="gfx942", **settings):
    context = {"general": {"gpu": {"arch": arch}}, "settings": settings}
    (path / "prim.json").write_text(json.dumps({"context": context, "specializations": specializations}))
    return read_random([path / "prim.json"])


def test_primbench_is_read_with_its_noise_as_an_interval(tmp_path):
    reading = primbench(tmp_path, specialization(noise_percent=1.0), batch_window_size=5)
    assert reading.complaints == ()
    (row,) = reading.rows
    assert (row.generator, row.pair, row.shape) == ("xorwow", ("normal", "double"), LaunchShape(64, 512))
    assert (row.architecture, row.gigabytes_per_second, row.bytes) == ("gfx942", 200.0, 8000)
    reach = 2.7764 * 0.01 / math.sqrt(5)  # Student's for 4 degrees of freedom
    assert row.interval == pytest.approx((200 * (1 - reach), 200 * (1 + reach)), rel=1e-6)


def test_what_is_wrong_in_primbench_is_said_and_the_rest_is_read(tmp_path):
    slow, silent = specialization(noise_timeout=True, noise_percent=4.5), specialization()
    del silent["bytes_per_second"]
    reading = primbench(tmp_path, slow, silent, {"meta": {"engine": "xorwow"}}, None, specialization())
    assert [row.aside is None for row in reading.rows] == [True, False, True]
    assert complaints_of(reading) == [
        "prim.json: s: the noise did not settle (4.5 %)",
        "prim.json: s: no speed: it has no bytes_per_second",
        "prim.json: specializations[2]: does not say what was measured",
        "prim.json: specializations[3]: does not say what was measured",
    ]


# Settings


def test_defaults_are_read_from_rocrands_file_with_its_comments(tmp_path):
    text = '// words: "a"\n{"xorwow": {"block_size": 64, /* c */ "grid_size": 512,}, }'
    (tmp_path / "config_defaults.json").write_text(text)
    assert read_defaults(tmp_path) == {"xorwow": LaunchShape(64, 512)}
    assert read_defaults(tmp_path / "config_defaults.json") == {"xorwow": LaunchShape(64, 512)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is no JSON object"),
        ('{"a": 3}', "a: has no block_size"),
        ('{"a": {"block_size": 0, "grid_size": 1}}', "a: has"),
    ],
)
def test_what_is_wrong_in_defaults_is_said(text, words, tmp_path):
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(UserError, match=re.escape(words)):
        read_defaults(tmp_path / "d.json")


def test_weights_are_the_same_from_csv_and_json(tmp_path):
    (tmp_path / "w.csv").write_text(
        "generator,distribution,type,weight\n,uniform,float,3\nxorwow,normal, double, 0.5\n"
    )
    (tmp_path / "w.json").write_text('{"uniform/float": 3, "xorwow/normal/double": 0.5}')
    expected = {("", "uniform", "float"): 3.0, ("xorwow", "normal", "double"): 0.5}
    assert read_weights(tmp_path / "w.csv") == read_weights(tmp_path / "w.json") == expected


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("w.csv", "distribution,weight\n", "w.csv:1: has no column type"),
        ("w.csv", "distribution,type,weight\nuniform,float,fast\n", "w.csv:2: nan is no weight"),
        ("w.csv", "distribution,type,weight\n,float,1\n", "w.csv:2: names no pair"),
        ("w.csv", "distribution,type,weight\nuniform,float\n", "w.csv:2: nan is no weight"),
        ("w.csv", "distribution,type,weight\nu,f,1\nu,f,1\n", "w.csv:3: u/f is weighed twice"),
        ("w.json", '{"uniform": 1}', "w.json: uniform: names no pair"),
        ("w.json", '{"u/f": -1}', "w.json: u/f: -1 is no weight"),
        ("w.json", '{"u/f": 0}', "gives no pair a weight above zero"),
        ("w.json", "", "is no JSON"),
        ("absent.csv", None, "cannot be read"),
    ],
)
def test_what_is_wrong_in_weights_is_said(name, text, words, tmp_path):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=re.escape(words)):
        read_weights(tmp_path / name)
