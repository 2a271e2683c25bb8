"""Which launch shape our objectives choose, what they say about it, and `tunesmith random select` around them."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from random_benchmarks import GOLDEN, benchmark, benchmarks, decide, pair, rows, write
from tunesmith.cli._app import app
from tunesmith.logic.random_choice import choose
from tunesmith.logic.random_decision import Objective
from tunesmith.logic.random_grids import grid_sizes
from tunesmith.logic.random_table import read_table
from tunesmith.records import LaunchShape, RandomRow, UserError

COMPAT, GEOMEAN, WORST, WEIGHTED = Objective.COMPAT, Objective.GEOMEAN, Objective.WORST, Objective.WEIGHTED
DEFAULT = (256, 1024)
"""Philox's."""

SPEEDS = {
    "uniform/float": {DEFAULT: 100.0, (64, 64): 200.0, (128, 64): 112.0, (512, 64): 130.0},
    "normal/float": {DEFAULT: 100.0, (64, 64): 68.0, (128, 64): 112.0, (512, 64): 96.0},
    "poisson/unsigned_int": {DEFAULT: 10.0, (64, 64): 11.0, (128, 64): 10.6, (512, 64): 14.0},
}
"""Ratios 2, 0.68, 1.1 (mean 1.260, geomean 1.143); 1.12, 1.12, 1.06; 1.3, 0.96, 1.4 (mean 1.22, geomean 1.204)."""


@pytest.mark.parametrize(
    ("objective", "chosen", "score"),
    [
        (COMPAT, (64, 64), 3.78 / 3),
        (GEOMEAN, (512, 64), (1.3 * 0.96 * 1.4) ** (1 / 3)),
        (WORST, (128, 64), 1.06),
    ],
)
def test_each_objective_has_its_own_winner(objective: Objective, chosen: tuple[int, int], score: float) -> None:
    decision = decide(rows("xorwow", SPEEDS), objective, defaults={"xorwow": LaunchShape(*DEFAULT)})
    assert pair(decision.chosen) == chosen
    assert decision.score == pytest.approx(score)


def test_weights_say_what_matters_and_a_generators_own_come_first() -> None:
    weights = {("", "uniform", "float"): 1.0, ("", "normal", "float"): 3.0}
    defaults = {"xorwow": LaunchShape(*DEFAULT)}
    decision = decide(rows("xorwow", SPEEDS), WEIGHTED, defaults=defaults, weights=weights)
    assert pair(decision.chosen) == (128, 64)
    assert decision.score == pytest.approx(1.12)
    own = weights | {("xorwow", "normal", "float"): 0.0}
    decision = decide(rows("xorwow", SPEEDS), WEIGHTED, defaults=defaults, weights=own)
    assert pair(decision.chosen) == (64, 64)
    assert [str(one.case) for one in decision.regressions] == ["normal/float"], "no weight, but told all the same"


def test_a_weight_for_what_was_not_measured_is_said() -> None:
    weights = {("", "uniform", "half"): 1.0, ("", "uniform", "float"): 1.0}
    selection = choose(rows("philox4_32_10", SPEEDS), WEIGHTED, weights=weights)
    assert [str(one) for one in selection.complaints] == [
        "weights: uniform/half was not measured; leave it out, or measure it"
    ]
    assert len(selection.decisions) == 1


@pytest.mark.parametrize("objective", [COMPAT, GEOMEAN, WORST])
def test_every_objective_tells_regressions_and_can_do_without(objective: Objective) -> None:
    found, defaults = rows("xorwow", SPEEDS), {"xorwow": LaunchShape(*DEFAULT)}
    decision = decide(found, objective, defaults=defaults)
    slower = {COMPAT: ["normal/float"], GEOMEAN: ["normal/float"], WORST: []}[objective]
    assert [str(one.case) for one in decision.regressions] == slower
    assert any(remark.look for remark in decision.remarks) == bool(slower)
    if slower:
        assert decision.safe
        assert pair(decision.safe.shape) == (128, 64)
    constrained = decide(found, objective, defaults=defaults, no_regressions=True)
    assert pair(constrained.chosen) == (128, 64)
    assert not constrained.regressions


def test_geomean_agrees_with_brute_force_where_nothing_ties() -> None:
    source = random.Random(11)
    shapes = list(itertools.product((64, 256, 512), (512, 1024, 2048)))
    pairs = ["uniform/float", "normal/double", "poisson/unsigned_int"]
    for _ in range(100):
        speeds = {one: {shape: source.uniform(50, 200) for shape in shapes} for one in pairs}
        found: tuple[RandomRow, ...] = ()
        for one, row in speeds.items():
            for shape, speed in row.items():
                found += rows("xorwow", {one: {shape: speed}}, interval=(speed * (1 - 1e-9), speed * (1 + 1e-9)))
        best = max(shapes, key=lambda shape: math.prod(speeds[one][shape] / speeds[one][256, 512] for one in pairs))
        assert pair(decide(found).chosen) == best


def test_the_default_stays_where_the_best_cannot_be_told_from_it() -> None:
    speeds = {"uniform/float": {(256, 512): 100.0, (64, 512): 101.9, (128, 512): 99.0}}
    decision = decide(rows("xorwow", speeds))
    assert pair(decision.chosen) == (256, 512)
    assert [pair(shape) for shape in decision.ties] == [(64, 512)], "within the stated 2 %; 99.0 is not"
    for other, noise, chosen in ((101.9, 0.001, (64, 512)), (140.0, 0.3, (256, 512))):
        found: tuple[RandomRow, ...] = ()
        for shape, speed in (((256, 512), 100.0), ((64, 512), other)):
            interval = (speed * (1 - noise), speed / (1 - noise))
            found += rows("xorwow", {"uniform/float": {shape: speed}}, interval=interval)
        assert pair(decide(found).chosen) == chosen, "what is known of the noise decides"


def test_repeats_tell_the_noise_over_all_cells_together() -> None:
    """Two repeats a cell, each pair ±1 % about its middle: the pooled deviation has as many degrees as cells."""
    middle = {
        "uniform/float": {(256, 512): 100.0, (64, 512): 97.0},
        "normal/float": {(256, 512): 50.0, (64, 512): 60.0},
    }
    found: tuple[RandomRow, ...] = ()
    for factor in (0.99, 1 / 0.99):
        found += rows("xorwow", {one: {s: v * factor for s, v in row.items()} for one, row in middle.items()})
    decision = decide(found)
    # Standard deviation of the logarithm -ln(0.99) sqrt(2), Student's 2.776 for 4 degrees, two repeats, two shapes.
    reach = 2.7764 * -math.log(0.99) * math.sqrt(2)
    by_case = {str(one.case): one for one in decision.ratios}
    assert math.log(by_case["normal/float"].high / by_case["normal/float"].ratio) == pytest.approx(reach, rel=1e-4)
    assert pair(decision.chosen) == (64, 512)
    assert not decision.regressions, "97 of 100 is within 4 %"


def test_a_shape_that_is_missing_somewhere_may_not_be_chosen_and_that_is_said() -> None:
    speeds = {
        "uniform/float": {(256, 512): 100.0, (64, 512): 300.0, (512, 512): 120.0},
        "normal/float": {(256, 512): 10.0, (512, 512): 12.0},
    }
    decision = decide(rows("xorwow", speeds))
    assert pair(decision.chosen) == (512, 512)
    assert [pair(one.shape) for one in decision.ranking] == [(512, 512), (256, 512)]
    (said,) = [remark for remark in decision.remarks if remark.reason == "not measured everywhere"]
    assert said.look
    assert said.detail == "64x512 may not be chosen: not measured for normal/float"


def test_counter_based_generators_get_shapes_by_pair_and_others_do_not() -> None:
    defaults = {name: LaunchShape(*DEFAULT) for name in ("philox4_32_10", "xorwow", "sobol32")}
    one, other, quasi = (decide(rows(name, SPEEDS), defaults=defaults) for name in defaults)
    assert [(over.distribution, pair(over.shape)) for over in one.overrides] == [
        ("normal", (128, 64)),
        ("uniform", (64, 64)),
    ]
    assert one.overrides[1].gain == pytest.approx(200 / 130)
    assert one.gain == pytest.approx((112 / 96 * 200 / 130) ** (1 / 3))
    assert other.overrides == ()
    assert other.gain == 1.0
    assert quasi.overrides == one.overrides


def test_buffers_of_several_sizes_are_compared_each_with_its_own_default() -> None:
    large = rows("xorwow", {"uniform/float": {(256, 512): 100.0, (64, 512): 110.0}}, bytes=2**30)
    small = rows("xorwow", {"uniform/float": {(256, 512): 1000.0, (64, 512): 1210.0}}, bytes=2**24)
    decision = decide(large + small)
    assert [one.case.bytes for one in decision.ratios] == [2**24, 2**30]
    assert [one.ratio for one in decision.ratios] == pytest.approx([1.21, 1.1])
    assert decision.score == pytest.approx(math.sqrt(1.21 * 1.1))


def test_generators_and_architectures_are_chosen_for_one_by_one_and_the_unknown_are_said() -> None:
    speeds = {"uniform/float": {(256, 512): 100.0, (64, 512): 120.0}}
    found = rows("xorwow", speeds) + rows("xorwow", speeds, "sm_90") + rows("wellrng", speeds)
    found += rows("mrg32k3a", {"uniform/float": {(64, 512): 120.0}})
    selection = choose(found)
    assert [(one.generator, one.architecture) for one in selection.decisions] == [
        ("xorwow", "gfx90a"),
        ("xorwow", "sm_90"),
    ]
    assert [str(one).partition(";")[0] for one in selection.complaints] == [
        "f.json: uniform/float: wellrng has no default shape",
        "f.json: mrg32k3a on gfx90a: the default 256x512 was not measured for uniform/float",
        "mrg32k3a on gfx90a: nothing can be compared with the default",
    ]


def test_a_winner_on_the_edge_is_told() -> None:
    speeds = {"uniform/float": {(256, grid): float(grid) for grid in (512, 1024, 2048)}}
    decision = decide(rows("xorwow", speeds))
    assert [remark.detail for remark in decision.remarks] == [
        "256x2048 has the largest grid that was measured; try further ones"
    ]


@pytest.mark.parametrize(
    ("units", "sizes"),
    [
        (104, [128, 256, 416, 512, 520, 832, 1024, 1040, 1664, 2048, 3328]),
        (132, [128, 256, 512, 528, 660, 1024, 1056, 1320, 2048, 2112]),
        (1, [128, 256, 512, 1024, 2048]),
        (32, [128, 160, 256, 320, 512, 1024, 2048]),
    ],
)
def test_grid_sizes_are_rocrands(units: int, sizes: list[int]) -> None:
    assert list(grid_sizes(units)) == sizes


# The command line.


def invoke(*arguments: object) -> Result:
    """Run `tunesmith random ...` in this process; a UserError comes out as it is raised."""
    result = CliRunner().invoke(app, ["random", *map(str, arguments)])
    if isinstance(result.exception, UserError):
        raise result.exception
    return result


def select(*arguments: object, code: int) -> dict[str, Any]:
    result = invoke("select", *arguments, "--json")
    assert result.exit_code == code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


GOOD = {"uniform/float": {(256, 512): 100.0, (64, 512): 130.0, (128, 512): 110.0}}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path / "gfx90a.json", benchmarks("xorwow", GOOD))


def test_a_choice_without_anything_to_look_at_exits_with_0_and_writes_what_was_asked_for(
    good: Path, tmp_path: Path
) -> None:
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


def test_something_to_look_at_exits_with_1_and_the_rest_is_chosen(good: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    document = select(tmp_path / "broken.json", good, code=1)
    assert [one["chosen"] for one in document["decisions"]] == [[64, 512]]
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


def test_nothing_usable_exits_with_2_and_says_why(tmp_path: Path) -> None:
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


def test_thousands_of_complaints_about_a_file_are_cut_short_in_text_only(tmp_path: Path) -> None:
    foreign = [{"name": f"BM_{number}", "bytes_per_second": 1.0} for number in range(300)]
    path = write(tmp_path / "many.json", benchmarks("xorwow", GOOD) + foreign)
    lines = [line for line in invoke("select", path).stdout.splitlines() if line.startswith("look at")]
    assert len(lines) == 21
    assert lines[-1] == f"look at: {path}: 280 more; --json lists them"
    assert len(select(path, code=1)["look_at"]) == 300


def test_what_a_person_gives_is_used_and_mistakes_in_it_are_said(good: Path, tmp_path: Path) -> None:
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


def test_infinite_ratios_of_compat_are_null_in_json(tmp_path: Path) -> None:
    speeds = {"uniform/float": {(256, 512): 0.0, (64, 512): 130.0}, "normal/float": {(256, 512): 1.0, (64, 512): 1.0}}
    document = select(write(tmp_path / "zero.json", benchmarks("xorwow", speeds)), "--objective", "compat", code=0)
    assert document["decisions"][0]["chosen"] == [64, 512]
    assert document["decisions"][0]["score"] is None


SLOWER = GOOD | {"normal/float": {(256, 512): 10.0, (64, 512): 9.0, (128, 512): 10.0}}


def test_compat_exits_with_0_where_rocrands_script_does(good: Path, tmp_path: Path) -> None:
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
def test_compat_exits_as_rocrands_script_did(case: Path, tmp_path: Path) -> None:
    """Ours tells nothing chosen (2) from something wrong (1)."""
    done = invoke("select", *sorted(case.glob("*tuning*.json")), "--objective", "compat", "--out-dir", tmp_path)
    assert bool(done.exit_code) == bool(int((case / "exit_code.txt").read_text())), done.output


def primbench_rows(speeds: dict[tuple[int, int], float]) -> list[dict[str, Any]]:
    """Of LFSR113, which finds an engine by masking the thread's number."""
    names = {"engine": "lfsr113", "distribution": "uniform", "type": "float"}
    return [
        {"name": "s", "meta": {**names, "cfg": {"threads": block, "blocks": grid}}, "bytes_per_second": speed * 1e9}
        for (block, grid), speed in speeds.items()
    ]


def test_compat_follows_the_script_of_2026_for_primbench_and_the_one_before_for_google_benchmark(
    tmp_path: Path,
) -> None:
    speeds = {(256, 512): 100.0, (256, 600): 140.0, (512, 512): 120.0}
    context = {"general": {"gpu": {"arch": "gfx90a"}}}
    new = tmp_path / "new.json"
    new.write_text(json.dumps({"context": context, "specializations": primbench_rows(speeds)}))
    old = write(tmp_path / "old.json", benchmarks("lfsr113", {"uniform/float": speeds}))
    document = select(new, "--objective", "compat", code=0)
    assert document["decisions"][0]["chosen"] == [512, 512]
    assert [row["shape"] for row in document["decisions"][0]["ranking"]] == [[512, 512], [256, 512]]
    assert any("256x600 left out" in one["detail"] for one in document["decisions"][0]["remarks"])
    assert select(old, "--objective", "compat", code=0)["decisions"][0]["chosen"] == [256, 600]


def test_a_caution_is_told_again_and_stays_in_header_and_table_until_it_is_chosen_anew(tmp_path: Path) -> None:
    caution = "the host was busy with other work: load 9.0 on 2 processors"
    context = {"hdp_gcn_arch_name": "gfx90a", "tunesmith_cautions": [caution, 7]}
    busy, out = tmp_path / "busy.json", tmp_path / "out"
    busy.write_text(json.dumps({"context": context, "benchmarks": benchmarks("xorwow", GOOD)}))
    other = write(tmp_path / "other.json", benchmarks("xorwow", GOOD), "sm_90")
    document = select(busy, other, "--out-dir", out, code=1)
    assert [one.partition(";")[0] for one in document["look_at"]] == [f"{busy}: when it was measured, {caution}"]
    assert [one["cautions"] for one in document["decisions"]] == [[caution], []]
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


def test_an_architecture_that_is_a_keyword_is_refused_in_headers_and_the_others_are_written(
    good: Path, tmp_path: Path
) -> None:
    own = [
        write(tmp_path / f"{name}.json", benchmarks("xorwow", GOOD), name) for name in ("register", "co_await", "my")
    ]
    out = tmp_path / "out"
    document = select(*own, good, "--out-dir", out, code=1)
    assert [one.partition(";")[0] for one in document["look_at"]] == [
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


def test_grid_sizes_are_printed_as_rocrands_script_prints_them() -> None:
    assert invoke("grid-sizes", "--compute-units", 104).stdout == (
        "128, 256, 416, 512, 520, 832, 1024, 1040, 1664, 2048, 3328\n"
    )
    document = json.loads(invoke("grid-sizes", "--device", "fake:GPU", "--json").stdout)
    assert document["device"] == "fake GPU"
    assert document["grid_sizes"] == list(grid_sizes(document["compute_units"]))
    with pytest.raises(UserError, match="no usable device"):
        invoke("grid-sizes", "--device", "nothing of the kind")
