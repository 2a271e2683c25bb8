"""`tunesmith characterize`: numbers of products, rules, rooflines, files and pictures."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tunesmith.cli import app
from tunesmith.devices.fake import fake_target
from tunesmith.models.intensity.metrics import Product
from tunesmith.models.intensity.products import implicit_product
from tunesmith.models.intensity.published import Bucket, intensity_bucket
from tunesmith.models.roofline.chips import CHIPS
from tunesmith.models.roofline.measured import MeasuredRoofline, dump_rooflines
from tunesmith.problems import OPERATIONS
from tunesmith.problems.convolution import Direction, convolution_type
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem, UserError
from tunesmith.report.roofline.plot import plot
from tunesmith.session.intensity.characterize import CharacterizeTask, characterize

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "intensity.md"
SHAPES = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data")) / "shapes"
SEED = "m,n,k\n256,256,16\n256,256,256\n256,256,4096\n"
CONVOLUTIONS = (
    "n,c,h,w,k,r,s,pad_h,pad_w,stride_h,groups,direction_F\n2,6,9,8,4,3,3,1,1,2,2,1\n2,6,9,8,4,3,3,1,1,2,2,2\n"
)


def of(folder, text, name="list.csv", **options):
    path = folder / name
    path.write_text(text)
    return characterize(CharacterizeTask(path, **{"chip": "MI300X", "data_type": "h", **options}))  # type: ignore[arg-type]


def test_the_page_prints_what_the_command_prints(tmp_path, monkeypatch):
    page = PAGE.read_text(encoding="utf-8")
    (listed,), (shown,) = (re.findall(rf"^```{word}\n(.*?)^```$", page, re.M | re.S) for word in ("csv", "text"))
    assert listed == SEED
    (command,) = re.findall(r"^\$ tunesmith (.*)$", page, re.M)
    (tmp_path / "seed.csv").write_text(listed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    printed = CliRunner().invoke(app.app, command.split())
    assert [line.rstrip() for line in printed.stdout.splitlines()] == shown.splitlines()


def test_the_seeds_products_are_apart_in_intensity_and_alike_for_both_rules(tmp_path):
    """2 x 256 x 256 K / (65536 + 512 K), by hand: 28.444, 170.667, 248.242."""
    for chip in ("MI300X", "H100 SXM", "H200 SXM", "A100 SXM 80 GB"):
        found = of(tmp_path, SEED, chip=chip)
        products = [problem.listed.product for problem in found.problems]
        assert [round(product.intensity, 1) for product in products] == [28.4, 170.7, 248.2]
        assert {problem.by_trip_count for problem in found.problems} == {Bucket.SMALL}
        assert {problem.by_intensity for problem in found.problems} == {Bucket.MEDIUM}


@given(st.tuples(*[st.integers(1, 5000)] * 3), st.sampled_from("sdhb"))
def test_a_gemms_arrays_are_its_products_matrices(sizes, letter):
    problem = Problem(gemm_type(letter), sizes)
    product, operation = implicit_product(problem), OPERATIONS["GEMM"]
    assert (product.m, product.n, product.k) == sizes
    assert product.bytes == operation.bytes(problem)
    assert product.flops == operation.flops(problem)


@pytest.mark.parametrize("direction", list(Direction))
def test_a_convolution_of_one_tap_is_a_gemm_of_the_same_arrays(direction):
    problem = Problem(convolution_type("b", direction=direction, groups=2), (3, 8, 5, 7, 6, 1, 1))
    product, operation = implicit_product(problem), OPERATIONS["Convolution"]
    assert product.batch == 2
    assert product.bytes == operation.bytes(problem)
    assert product.flops == operation.flops(problem)
    of_taps = Problem(problem.type, (3, 8, 5, 7, 6, 3, 3))
    assert implicit_product(of_taps).bytes > operation.bytes(of_taps)


def test_of_another_operation_there_is_no_product():
    from tunesmith.problems.random import random_type, scalars_for

    with pytest.raises(ValueError, match="Random is no product of matrices"):
        implicit_product(Problem(random_type("xorwow"), (64,), (), scalars_for("uniform")))


def test_a_list_of_gemms_keeps_its_rows_and_words(tmp_path):
    found = of(tmp_path, "m,n,k,batch,trans_b,family\n7,5,3,2,T,one\n7,5,3,2,T,one\n1,2,3,1,N,\n", data_type="i8")
    first, again, last = found.problems
    assert first == again
    assert first.listed.product == Product(7, 5, 3, 2, 1.0, 4.0)
    assert (first.listed.problem, first.listed.family) == ("7x5x3 x2 N T", "one")
    assert last.listed.problem == "1x2x3"
    assert first.waves == 2 / 304, "a tile a matrix, on 304 compute units"


def test_a_convolutions_product_counts_zeros_and_its_arrays_do_not(tmp_path):
    forward, backward = of(tmp_path, CONVOLUTIONS).problems
    assert (forward.listed.product.m, forward.listed.product.n, forward.listed.product.k) == (2 * 5 * 8, 2, 27)
    assert (backward.listed.product.m, backward.listed.product.n, backward.listed.product.k) == (2 * 9 * 8, 3, 18)
    assert forward.listed.flops == backward.listed.flops == forward.listed.product.flops < backward.listed.product.flops
    elements = 2 * 6 * 72 + 4 * 3 * 9 + 2 * 4 * 40
    assert forward.listed.intensity_of_arrays == forward.listed.flops / (2 * elements)


TUNING = """
BenchmarkProblems:
  -
    - {OperationType: GEMM, DataType: h}
    - ForkParameters:
      - WorkGroup: [[8, 8, 1], [16, 16, 1]]
      BenchmarkFinalParameters:
      - ProblemSizes:
        - Range: [[256, 256, 512], 0, 0]
        - Exact: [256, 256, 256]
  -
    - {OperationType: Convolution, DataType: b, Padding: 1, Stride: [2, 2]}
    - BenchmarkFinalParameters:
      - ProblemSizes:
        - Exact: [1, 64, 56, 56, 64, 3, 3]
"""


def test_a_tuning_file_gives_each_problem_once_also_of_an_operation_without_kernels(tmp_path):
    found = of(tmp_path, TUNING, "tuning.yaml")
    assert [str(problem.listed.problem) for problem in found.problems] == [
        "Cij_Aik_Bjk_HB 256x256x256",
        "Cij_Aik_Bjk_HB 512x512x512",
        "Convolution_Forward_NHWC_B_Stride2x2_Padding1x1 1x64x56x56x64x3x3",
    ]
    assert set(found.rooflines) == {"h", "b"}
    assert found.problems[-1].listed.product == Product(28 * 28, 64, 576, 1, 2.0, 2.0)


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (("56, 56, 64, 3, 3]", "1, 56, 64, 4, 3]"), 15, "the filter reaches over 4 pixels of H, which has 3"),
        (("Stride: [2, 2]", "Groups: 5"), 15, "C 64 is no multiple of 5 groups"),
        (("Padding: 1", "Padding: one"), 12, "Padding cannot be one"),
    ],
)
def test_mistakes_in_a_tuning_file_are_told(tmp_path, change, line, what):
    assert change[0] in TUNING
    with pytest.raises(UserError) as caught:
        of(tmp_path, TUNING.replace(*change), "tuning.yaml")
    assert any(what in str(error) for error in caught.value.errors), caught.value
    assert any(error.location.endswith(f"tuning.yaml:{line}") for error in caught.value.errors), caught.value


def test_a_tuning_file_of_another_operation_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"tuning\.yaml: .*Random is no product of matrices"):
        of(tmp_path, "BenchmarkProblems: [[{OperationType: Random}]]\n", "tuning.yaml")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"chip": "H100"}, "--chip: 'H100' is no chip, or several"),
        ({"text": CONVOLUTIONS, "data_type": "tf32"}, "--type: a convolution's type has no TF32"),
        ({"data_type": "quad"}, "--type: 'quad' is no data type"),
        ({"device": "CPU"}, "--chip: goes with no --device"),
        ({"rooflines": Path("x.yaml")}, "--chip: goes with no --roofline"),
    ],
)
def test_mistakes_in_options_are_told(tmp_path, options, what):
    with pytest.raises(UserError) as caught:
        of(tmp_path, **{"text": SEED, **options})  # type: ignore[arg-type]
    assert what in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "m,n\n1,2\n", "c,d\n1,2\n", "m,n,k\n0,1,1\n", 'm,n,k\n"1\n', "\x00", "n,c,w,k,s\n1,1,1,1,9\n"]
)
def test_a_file_that_is_no_list_gets_our_error(tmp_path, text):
    with pytest.raises(UserError, match=r"list\.csv"):
        of(tmp_path, text)


# --- rooflines ------------------------------------------------------------------------------------------------------

MEASURED = MeasuredRoofline("fake", "fake CPU", "fake", "1", "s", 100e9, "GEMM", 20e9, "a copy", "2026-11-22")


def on_the_fake(folder, *measured):
    file = folder / "rooflines.yaml"
    file.write_text(dump_rooflines(measured))
    return of(folder, SEED, chip=None, device="fake:CPU:8", data_type="s", rooflines=file)


def test_what_was_measured_on_the_device_counts(tmp_path):
    target = fake_target("CPU")
    mine = replace(MEASURED, architecture=target.architecture, device=target.name)
    found = on_the_fake(tmp_path, mine, replace(mine, device="another", flops_per_second=1e9))
    assert found.rooflines["s"].ridge == 5
    first = found.problems[0]
    assert first.ridges == pytest.approx(first.listed.product.intensity_of_bytes / 5)
    assert first.waves == 4 / 8, "256 x 256 is four tiles"
    assert first.by_intensity is Bucket.LARGE, "28 FLOP/element, and large begins at 5 ridges"
    assert any("measured" in remark and "a copy" in remark for remark in found.remarks)


def test_a_file_of_another_device_is_refused_and_another_type_leaves_the_ridge_unknown(tmp_path):
    with pytest.raises(UserError, match="nothing in it was measured on fake CPU, but on another"):
        on_the_fake(tmp_path, replace(MEASURED, device="another"))
    target = fake_target("CPU")
    found = on_the_fake(tmp_path, replace(MEASURED, architecture=target.architecture, data_type="d"))
    assert found.rooflines == {}
    assert {problem.ridges for problem in found.problems} == {None}
    assert any(remark.startswith("ridge for s: unknown") for remark in found.remarks)
    assert [problem.by_intensity for problem in found.problems] == [
        intensity_bucket(problem.listed.product, None) for problem in found.problems
    ]
    with pytest.raises(UserError, match="there is no roof to draw"):
        plot(found)


def test_without_a_device_the_files_only_one_is_meant(tmp_path, monkeypatch):
    def none_here(selector):
        raise UserError("device", "no usable device", "look")

    monkeypatch.setattr("tunesmith.session.intensity.characterize.choose", none_here)
    file = tmp_path / "rooflines.yaml"
    file.write_text(dump_rooflines([MEASURED]))
    found = of(tmp_path, SEED, chip=None, data_type="s", rooflines=file)
    assert (found.device, found.compute_units, found.rooflines["s"].ridge) == ("fake CPU", None, 5)
    file.write_text(dump_rooflines([MEASURED, replace(MEASURED, device="another")]))
    with pytest.raises(UserError, match="measured on fake CPU, another"):
        of(tmp_path, SEED, chip=None, data_type="s", rooflines=file)
    alone = of(tmp_path, SEED, chip=None)
    assert alone.device == ""
    assert "there is no device here" in alone.remarks[0]
    with pytest.raises(UserError, match="no usable device"):
        of(tmp_path, SEED, chip=None, device="GPU")


# --- what is printed and written ------------------------------------------------------------------------------------


def test_csv_json_and_table_have_the_same_numbers(tmp_path):
    (tmp_path / "seed.csv").write_text(SEED)
    command = ["characterize", str(tmp_path / "seed.csv"), "--chip", "H200 SXM", "--type", "b"]
    written = ["--csv", str(tmp_path / "a" / "table.csv"), "--svg", str(tmp_path / "roof.svg")]
    done = CliRunner().invoke(app.app, [*command, *written, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a" / "table.csv").read_text())))
    assert [{name: str(value) for name, value in row.items()} for row in document["problems"]] == rows
    assert document["rooflines"][0]["ridge"] == pytest.approx(989.4e12 / 4.8e12)
    shown = CliRunner().invoke(app.app, command).stdout
    assert re.search(r"^256x256x16 .* 28\.44 ", shown, re.M)
    assert "by trip count: 3 small" in shown


def test_the_picture_has_every_problem_on_its_roof(tmp_path):
    found = of(tmp_path, TUNING, "tuning<&>.yaml")
    root = ElementTree.fromstring(plot(found))
    space = {"s": "http://www.w3.org/2000/svg"}
    tips = [tip.text for tip in root.findall(".//s:circle/s:title", space)]
    assert len(tips) == len(found.problems)
    roofs = root.findall(".//s:path[@class='roof']", space)
    assert len(roofs) == 1, "half precision and bfloat16 have one roof on this chip"
    assert "h, b: 1307 TFLOP/s, ridge 246.7 FLOP/byte (published)" in plot(found)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    corners = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", roofs[0].attrib["d"])
    assert all(0 <= float(x) <= 760 and 0 <= float(y) <= 420 for x, y in corners), "within the plot"
    for circle in root.findall(".//s:circle", space):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height
    assert all(math.isfinite(float(number)) for number in re.findall(r'c[xy]="([^"]+)"', plot(found)))


@pytest.mark.parametrize("name", ["gemm_dev.csv", "conv_deepbench_dev.csv", "conv_production_dev.csv"])
def test_published_lists_are_characterised_on_every_chip_and_medium_holds_nearly_all_convolutions(name):
    if not (SHAPES / name).is_file():
        pytest.skip(f"needs {SHAPES / name}; set TUNESMITH_DATA")
    for chip in CHIPS:
        if chip.roofline("b"):
            found = characterize(CharacterizeTask(SHAPES / name, "b", chip=chip.name))
            assert all(math.isfinite(problem.ridges or math.nan) for problem in found.problems)
    found = characterize(CharacterizeTask(SHAPES / name, "b", chip="MI300X"))
    share = found.census()["intensity"][Bucket.MEDIUM] / len(found.problems)
    if name.startswith("gemm"):
        assert 0.5 < share < 0.9, "medium is the most frequent bucket of GEMMs, but by far not the only one"
        assert all(found.census()["intensity"].values())
    else:
        assert share >= 0.9
