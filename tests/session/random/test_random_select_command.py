"""`tunesmith random select`: its input files, what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from typer.testing import CliRunner

from random_benchmarks import GOLDEN, benchmark, benchmarks, write
from tunesmith.cli.app import app
from tunesmith.logic.random.decision import RandomObjective
from tunesmith.logic.random.grids import grid_sizes
from tunesmith.logic.random.table import read_table
from tunesmith.records import LaunchShape, UserError

COMPAT, GEOMEAN, WORST, WEIGHTED = (
    RandomObjective.COMPAT,
    RandomObjective.GEOMEAN,
    RandomObjective.WORST,
    RandomObjective.WEIGHTED,
)
DEFAULT = (256, 1024)
"""Philox's."""

SPEEDS = {
    "uniform/float": {DEFAULT: 100.0, (64, 64): 200.0, (128, 64): 112.0, (512, 64): 130.0},
    "normal/float": {DEFAULT: 100.0, (64, 64): 68.0, (128, 64): 112.0, (512, 64): 96.0},
    "poisson/unsigned_int": {DEFAULT: 10.0, (64, 64): 11.0, (128, 64): 10.6, (512, 64): 14.0},
}
"""Ratios 2, 0.68, 1.1 (mean 1.260, geomean 1.143); 1.12, 1.12, 1.06; 1.3, 0.96, 1.4 (mean 1.22, geomean 1.204)."""


def invoke(*arguments):
    """Run `tunesmith random ...` in this process; a UserError comes out as it is raised."""
    result = CliRunner().invoke(app, ["random", *map(str, arguments)])
    if isinstance(result.exception, UserError):
        raise result.exception
    return result


def select(*arguments, code):
    result = invoke("select", *arguments, "--json")
    assert result.exit_code == code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


GOOD = {"uniform/float": {(256, 512): 100.0, (64, 512): 130.0, (128, 512): 110.0}}


@pytest.fixture
def good(tmp_path):
    return write(tmp_path / "gfx90a.json", benchmarks("xorwow", GOOD))


def test_a_choice_without_anything_to_look_at_exits_with_0_and_writes_what_was_asked_for(good, tmp_path):
    other = write(tmp_path / "h200.json", benchmarks("xorwow", GOOD), "sm_90")
    out, plots = tmp_path / "out", tmp_path / "plots" / "random.svg"
    done = invoke("select", good, other, "--out-dir", out, "--plot-out", plots)
    assert done.exit_code == 0, done.output
    assert re.search(r"^xorwow +gfx90a +256x512 +64x512 +1\.300 ", done.stdout, re.MULTILINE)
    assert sorted(path.name for path in out.iterdir()) == [
        "tunesmith_random.json",
        "tunesmith_target_arch.hpp",
        "xorwow_config.hpp",
    ]
    assert read_table(out / "tunesmith_random.json").shape("sm_90", "xorwow") == LaunchShape(64, 512)
    assert sorted(path.name for path in plots.parent.iterdir()) == [
        "random_gfx90a_xorwow.svg",
        "random_sm_90_xorwow.svg",
    ]
    for path in (*out.iterdir(), *plots.parent.iterdir()):
        assert f": {path}" in done.stdout


def test_something_to_look_at_exits_with_1_and_the_rest_is_chosen(good, tmp_path):
    (tmp_path / "broken.json").write_text("{")
    document = select(tmp_path / "broken.json", good, code=1)
    assert [decision["chosen"] for decision in document["decisions"]] == [[64, 512]]
    assert document["look_at"][0].startswith(f"{tmp_path}/broken.json:1: is no JSON")
    slower = write(
        tmp_path / "slower.json",
        benchmarks("xorwow", GOOD | {"normal/float": {(256, 512): 10.0, (64, 512): 9.0, (128, 512): 10.0}}),
    )
    document = select(slower, code=1)
    assert document["look_at"] == ["xorwow on gfx90a: 64x512 is slower than the default for normal/float 0.900"]
    assert document["decisions"][0]["without_regressions"]["shape"] == [128, 512]
    assert select(slower, "--no-regressions", code=0)["decisions"][0]["chosen"] == [128, 512]
    text = invoke("select", slower).stdout
    assert re.search(r"^normal +float +512 MiB +10 +9 +0\.900 .* 1\.000 +slower$", text, re.MULTILINE)
    assert "look at: xorwow on gfx90a: 64x512 is slower" in text


def test_nothing_usable_exits_with_2_and_says_why(tmp_path):
    (tmp_path / "empty.json").write_text("")
    foreign = write(tmp_path / "foreign.json", [{"name": "BM_x", "bytes_per_second": 1.0}])
    done = invoke("select", tmp_path / "empty.json", foreign, "--out-dir", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (2, "")
    assert [
        line.partition(": ")[2].partition(";")[0].removeprefix(f"{tmp_path}/") for line in done.stderr.splitlines()
    ] == [
        "empty.json: is empty",
        "foreign.json: BM_x: is no name of a generator's benchmark",
    ]
    assert not (tmp_path / "out").exists()


def test_thousands_of_complaints_about_a_file_are_cut_short_in_text_only(tmp_path):
    foreign = [{"name": f"BM_{number}", "bytes_per_second": 1.0} for number in range(300)]
    path = write(tmp_path / "many.json", benchmarks("xorwow", GOOD) + foreign)
    lines = [line for line in invoke("select", path).stdout.splitlines() if line.startswith("look at")]
    assert len(lines) == 21
    assert lines[-1] == f"look at: {path}: 280 more; --json lists them"
    assert len(select(path, code=1)["look_at"]) == 300


def test_what_a_person_gives_is_used_and_mistakes_in_it_are_said(good, tmp_path):
    (tmp_path / "config_defaults.json").write_text('{"xorwow": {"block_size": 64, "grid_size": 512}}')
    for option in ("--default-config", "--default-config-dir"):
        document = select(good, option, tmp_path, code=0)
        assert document["decisions"][0]["default"] == document["decisions"][0]["chosen"] == [64, 512]
    (tmp_path / "w.csv").write_text("distribution,type,weight\nuniform,float,1\n")
    assert select(good, "--objective", "weighted", "--weights", tmp_path / "w.csv", code=0)["objective"] == "weighted"
    with pytest.raises(UserError, match="goes with --objective weighted"):
        invoke("select", good, "--objective", "weighted")
    with pytest.raises(UserError, match="goes with --objective weighted"):
        invoke("select", good, "--weights", tmp_path / "w.csv")
    with pytest.raises(UserError, match=r"p\.png is no SVG"):
        invoke("select", good, "--plot-out", tmp_path / "p.png")


def test_infinite_ratios_of_compat_are_null_in_json(tmp_path):
    speeds = {"uniform/float": {(256, 512): 0.0, (64, 512): 130.0}, "normal/float": {(256, 512): 1.0, (64, 512): 1.0}}
    document = select(write(tmp_path / "zero.json", benchmarks("xorwow", speeds)), "--objective", "compat", code=0)
    assert document["decisions"][0]["chosen"] == [64, 512]
    assert document["decisions"][0]["score"] is None


SLOWER = GOOD | {"normal/float": {(256, 512): 10.0, (64, 512): 9.0, (128, 512): 10.0}}


def test_compat_exits_with_0_where_rocrands_script_does(good, tmp_path):
    """That script prints its warnings and ends well; it stops at names that it cannot parse, and where the default or
    the generator's default is missing."""
    slower = write(tmp_path / "slower.json", benchmarks("xorwow", SLOWER))
    assert "is best on average" in select(slower, "--objective", "compat", code=0)["look_at"][0]
    failed = write(tmp_path / "failed.json", [*benchmarks("xorwow", GOOD), benchmark("xorwow_normal_half_t9_b9", None)])
    aggregates = [benchmark("xorwow_uniform_float_t64_b512_stddev", 1.0) | {"run_type": "aggregate"}]
    more = write(tmp_path / "more.json", benchmarks("xorwow", GOOD) + aggregates)
    nobody = write(tmp_path / "nobody.json", benchmarks("xorwow", GOOD), None)
    for harmless in ((more,), (nobody,), (good, good)):
        assert select(*harmless, "--objective", "compat", code=0)["look_at"]
    # A failed row's distribution has no default.
    foreign = write(tmp_path / "foreign.json", [*benchmarks("xorwow", GOOD), benchmark("BM_other", 1.0)])
    unknown = write(tmp_path / "unknown.json", benchmarks("xorwow", GOOD) + benchmarks("mine", GOOD))
    for fatal in (failed, foreign, unknown):
        assert select(fatal, "--objective", "compat", code=1)["look_at"]


@pytest.mark.parametrize("case", sorted(path.parent for path in GOLDEN.glob("*/exit_code.txt")), ids=lambda p: p.name)
def test_compat_exits_as_rocrands_script_did(case, tmp_path):
    """Our exit codes differ for nothing chosen (2) and something wrong (1)."""
    done = invoke("select", *sorted(case.glob("*tuning*.json")), "--objective", "compat", "--out-dir", tmp_path)
    assert bool(done.exit_code) == bool(int((case / "exit_code.txt").read_text())), done.output


def primbench_rows(speeds):
    """Of LFSR113, which finds an engine by masking the thread's number."""
    names = {"engine": "lfsr113", "distribution": "uniform", "type": "float"}
    return [
        {"name": "s", "meta": {**names, "cfg": {"threads": block, "blocks": grid}}, "bytes_per_second": speed * 1e9}
        for (block, grid), speed in speeds.items()
    ]


def test_compat_follows_the_script_of_2026_for_primbench_and_the_one_before_for_google_benchmark(
    tmp_path,
):
    speeds = {(256, 512): 100.0, (256, 600): 140.0, (512, 512): 120.0}
    context = {"general": {"gpu": {"arch": "gfx90a"}}}
    new = tmp_path / "new.json"
    new.write_text(json.dumps({"context": context, "specializations": primbench_rows(speeds)}))
    old = write(tmp_path / "old.json", benchmarks("lfsr113", {"uniform/float": speeds}))
    document = select(new, "--objective", "compat", code=0)
    assert document["decisions"][0]["chosen"] == [512, 512]
    assert [row["shape"] for row in document["decisions"][0]["ranking"]] == [[512, 512], [256, 512]]
    assert any("256x600 left out" in remark["detail"] for remark in document["decisions"][0]["remarks"])
    assert select(old, "--objective", "compat", code=0)["decisions"][0]["chosen"] == [256, 600]


def test_a_caution_is_told_again_and_stays_in_header_and_table_until_it_is_chosen_anew(tmp_path):
    caution = "the host was busy with other work: load 9.0 on 2 processors"
    context = {"hdp_gcn_arch_name": "gfx90a", "tunesmith_cautions": [caution, 7]}
    busy, out = tmp_path / "busy.json", tmp_path / "out"
    busy.write_text(json.dumps({"context": context, "benchmarks": benchmarks("xorwow", GOOD)}))
    other = write(tmp_path / "other.json", benchmarks("xorwow", GOOD), "sm_90")
    document = select(busy, other, "--out-dir", out, code=1)
    assert [sentence.partition(";")[0] for sentence in document["look_at"]] == [
        f"{busy}: when it was measured, {caution}"
    ]
    assert [decision["cautions"] for decision in document["decisions"]] == [[caution], []]
    assert f"look at: {busy}: when it was measured, {caution}" in invoke("select", busy).stdout
    assert select(busy, "--objective", "compat", code=0)["look_at"]
    header, table = out / "xorwow_config.hpp", out / "tunesmith_random.json"
    doubted = [line for line in header.read_text().splitlines() if "// doubtful: " in line]
    assert len(doubted) == header.read_text().count("target_arch::gfx90a:") > 0
    assert all("target_arch::gfx90a: return" in line and line.endswith(f"; // doubtful: {caution}") for line in doubted)
    assert read_table(table).entries["gfx90a"]["xorwow"].cautions == (caution,)
    assert read_table(table).entries["sm_90"]["xorwow"].cautions == ()
    select(other, "--out-dir", out, code=0)
    assert "// doubtful: " in header.read_text()
    quiet = write(tmp_path / "quiet.json", benchmarks("xorwow", GOOD))
    select(quiet, "--out-dir", out, code=0)
    assert "// doubtful: " not in header.read_text()
    assert "cautions" not in table.read_text()


def test_an_architecture_that_is_a_keyword_is_refused_in_headers_and_the_others_are_written(good, tmp_path):
    own = [
        write(tmp_path / f"{name}.json", benchmarks("xorwow", GOOD), name) for name in ("register", "co_await", "my")
    ]
    out = tmp_path / "out"
    document = select(*own, good, "--out-dir", out, code=1)
    assert [sentence.partition(";")[0] for sentence in document["look_at"]] == [
        "co_await: cannot be the name of an architecture in a C++ header",
        "register: cannot be the name of an architecture in a C++ header",
    ]
    for header in out.glob("*.hpp"):
        assert not re.search(r"\b(register|co_await)\b", header.read_text())
    assert "target_arch::my" in (out / "xorwow_config.hpp").read_text()
    assert set(json.loads((out / "tunesmith_random.json").read_text())["architectures"]) == {
        "co_await",
        "gfx90a",
        "my",
        "register",
    }


def test_grid_sizes_are_printed_as_rocrands_script_prints_them():
    assert invoke("grid-sizes", "--compute-units", 104).stdout == (
        "128, 256, 416, 512, 520, 832, 1024, 1040, 1664, 2048, 3328\n"
    )
    document = json.loads(invoke("grid-sizes", "--device", "fake:GPU", "--json").stdout)
    assert document["device"] == "fake GPU"
    assert document["grid_sizes"] == list(grid_sizes(document["compute_units"]))
    with pytest.raises(UserError, match="no usable device"):
        invoke("grid-sizes", "--device", "nothing of the kind")
