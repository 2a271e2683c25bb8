"""Tables of winners: their rows are read, and a mistake is reported with its line."""

from __future__ import annotations

import gzip
import random

import pytest

from tuned_samples import CONVOLUTIONS, TENSILE_HEADER, needs_winners, tensile_row, tensile_table
from tunesmith.formats.winners.tables import read_winners
from tunesmith.models.intensity.metrics import Product
from tunesmith.records import UserError
from tunesmith.session.heuristics.sources import Grouping, SourceTask, best_rows, keep_of, read_sample, works_per_group

CONVOLUTION_HEADER = (
    "conv,rank,in_shape,filt_shape,groups,gemm_g,gemm_m,gemm_n,gemm_k,mma,tile_m,tile_n,tile_k,sg_m,sg_n,num_workgroups"
)
CONVOLUTION = "conv_2d_bfloat16_forward,2,2x8x6x32,48x3x1x8,4,4,24,12,24,MFMA_A,64,32,16,2,1,6"


def table(folder, *lines):
    path = folder / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_winner_is_read(tmp_path):
    row = tensile_row(Product(100, 200, 300, 4), (64, 32), 12.5, gsu=2)
    (shape,) = read_winners(table(tmp_path, TENSILE_HEADER, row), {})
    assert (shape.m, shape.n, shape.k, shape.batch, shape.rows, shape.columns) == (100, 200, 300, 4, 64, 32)
    assert (shape.device, shape.data_type, shape.transposes, shape.speed) == ("gfx90a", "f16", "NT", 12.5)
    assert dict(shape.configuration) == {
        "MacroTile": (64, 32), "DepthU": 32, "GlobalSplitU": 2, "MatrixInstruction": (32, 32, 8, 1),
    }  # fmt: skip
    assert shape.source.endswith("t.csv:2")


def test_a_convolution_has_its_product_and_that_of_the_study(tmp_path):
    """The study counts the pixels of the input, and all channels of a grouped convolution."""
    (shape,) = read_winners(table(tmp_path, CONVOLUTION_HEADER, CONVOLUTION), {})
    assert (shape.m, shape.n, shape.k, shape.batch) == (24, 12, 24, 4)
    assert shape.study_sizes == (2 * 8 * 6, 48, 3 * 1 * 32)
    assert works_per_group([shape]) == [96 * 48 / 6]
    assert (shape.family, shape.data_type) == ("2-D convolution", "bf16")


def test_a_packed_table_is_the_same_table(tmp_path):
    path = tensile_table(tmp_path)
    packed = tmp_path / "winners.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    plain, unpacked = read_winners(path, {}), read_winners(packed, {})
    assert [shape.configuration for shape in plain] == [shape.configuration for shape in unpacked]


def test_only_rows_that_were_asked_for_count(tmp_path):
    size = Product(64, 64, 64)
    rows = [
        tensile_row(size, (16, 16)), tensile_row(size, (32, 32), dtype="bf16"), tensile_row(size, (64, 64), mi=""),
        tensile_row(size, (128, 128), dtype="f32"),
    ]  # fmt: skip
    path = table(tmp_path, TENSILE_HEADER, *rows)
    kept = read_winners(path, keep_of(["dtype=f16,bf16"]), matrix_only=True)
    assert [shape.rows for shape in kept] == [16, 32]
    with pytest.raises(UserError, match=r"t\.csv:1: the table has no column dtyp; it has device, arch"):
        read_winners(path, keep_of(["dtyp=f16"]))
    with pytest.raises(UserError, match="--where: cannot be f16"):
        keep_of(["f16"])


def test_the_fastest_row_of_a_product_counts(tmp_path):
    """A row without a speed counts only if its product has no other; other types and transposes are other products."""
    size = Product(64, 64, 64)
    rows = [
        tensile_row(size, (16, 16), 1.0), tensile_row(size, (32, 32), 3.0), tensile_row(size, (64, 64), 2.0),
        tensile_row(size, (128, 128), 99.0, metric="DeviceEfficiency"),
        tensile_row(size, (256, 256), 0.5, ta="T"),
        tensile_row(size, (8, 8), 1.0, dtype="bf16", metric="DeviceEfficiency"),
    ]  # fmt: skip
    best = best_rows(read_winners(table(tmp_path, TENSILE_HEADER, *rows), {}))
    assert [shape.rows for shape in best] == [32, 256, 8]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a,b", "1,2"], "t.csv:1: the header is not that of a table of winners"),
        ([TENSILE_HEADER, tensile_row(Product(4, 4, 4), (8, 8)).replace("gfx90a", "gfx90a,x")], "t.csv:2: "),
        ([TENSILE_HEADER, tensile_row(Product(4, 4, 4), (8, 8), m=-4)], "t.csv:2: m cannot be -4; give a whole number"),
        ([TENSILE_HEADER, tensile_row(Product(4, 4, 4), (8, 8), mi="32xx")], "t.csv:2: mi cannot be empty"),
        ([TENSILE_HEADER, tensile_row(Product(4, 4, 4), (8, 8), value="nan")], "t.csv:2: value cannot be nan"),
        ([TENSILE_HEADER, "aldebaran,gfx90a"], "t.csv:2: m cannot be empty"),
        ([CONVOLUTION_HEADER, CONVOLUTION.replace("2x8x6x32", "2x8x32")], "t.csv:2: shapes do not have the 4 sizes"),
        ([CONVOLUTION_HEADER, CONVOLUTION.replace("bfloat16", "complex")], "t.csv:2: conv names no data type"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, lines, message):
    with pytest.raises(UserError) as caught:
        read_winners(table(tmp_path, *lines), {})
    assert message in str(caught.value)


def test_whatever_stands_in_a_table_only_our_error_comes_out(tmp_path):
    chance = random.Random("winners")
    texts = [tensile_table(tmp_path, 12).read_text(), f"{CONVOLUTION_HEADER}\n{CONVOLUTION}\n"]
    refused = 0
    for number in range(400):
        text = texts[number % 2]
        start = chance.randrange(len(text))
        part = chance.choice(["", ",", '"', "\n", "x", "-1", "9" * 30, "é", "\x00", "nan"])
        path = tmp_path / "m.csv"
        path.write_text(text[:start] + part + text[start + chance.randrange(5) :], encoding="utf-8")
        try:
            read_winners(path, {})
        except UserError:
            refused += 1
    assert refused > 100
    (tmp_path / "m.csv").write_bytes(gzip.compress(texts[0].encode())[:-20])
    with pytest.raises(UserError, match="cannot be unpacked"):
        read_winners(tmp_path / "m.csv", {})


def test_products_of_equal_m_and_n_are_one_group(tmp_path):
    path = tensile_table(tmp_path)
    by_sizes, by_file = (
        read_sample(SourceTask((path,), groups=grouping)).sample for grouping in (Grouping.MN, Grouping.SOURCE)
    )
    pairs = {(product.m, product.n) for product in by_sizes.products}
    assert len(set(by_sizes.groups)) == len(pairs) < len(by_sizes.products)
    assert set(by_file.groups) == {str(path)}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "1 products are left of 1 rows, 10 are needed"),
        ({"arch": "gfx42"}, "--ridge: the ridge and the compute units of gfx42 are not known; give --ridge"),
        ({"dtype": "f7"}, "data type f7 is not known"),
    ],
)
def test_what_cannot_be_fitted_is_told(tmp_path, rows, message):
    count = 20 if rows else 1
    lines = [tensile_row(Product(16, 16, 16 + number), (16, 16), **rows) for number in range(count)]
    with pytest.raises(UserError) as caught:
        read_sample(SourceTask((table(tmp_path, TENSILE_HEADER, *lines),)))
    assert message in str(caught.value)


def test_devices_do_not_mix(tmp_path):
    lines = [tensile_row(Product(16, 16, n + 1), (16, 16), arch=f"gfx90{'a6'[n % 2]}") for n in range(40)]
    with pytest.raises(UserError, match="rows of several devices: gfx906, gfx90a; keep one device"):
        read_sample(SourceTask((table(tmp_path, TENSILE_HEADER, *lines),)))


@needs_winners
def test_the_study_had_41_convolutions_of_two_dimensions():
    shapes = read_winners(CONVOLUTIONS, {"rank": ("2",)})
    assert len(shapes) == 41
    assert all(shape.work_groups and shape.study_sizes for shape in shapes)
