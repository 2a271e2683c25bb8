"""The lists of GEMMs for published figures: made by one rule, complete, and without common products."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "benchmarks" / "recorded"
sys.path.insert(0, str(ROOT / "benchmarks"))
import gemm_problems as benchmark  # noqa: E402


def printed(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["gemm_problems.py", *words])
    benchmark.main()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "words"), [("gemm_bf16", ("first",)), ("gemm_bf16_second", ("second", "--count", "80"))]
)
def test_a_recorded_list_is_what_the_rule_makes(monkeypatch, capsys, folder, words):
    assert (RECORDED / folder / "list.csv").read_text() == printed(monkeypatch, capsys, *words)


@pytest.mark.parametrize("name", benchmark.LISTS)
def test_a_list_has_every_family_and_no_product_twice(name):
    products = benchmark.products(name)
    assert {
        family: sum(product.family == family for product in products) for family in benchmark.COUNTS
    } == benchmark.COUNTS
    assert len({product[1:] for product in products}) == len(products) == 230


def test_the_lists_have_no_product_and_no_model_in_common():
    first, second = (benchmark.products(name) for name in ("first", "second"))
    assert not {product[1:] for product in first} & {product[1:] for product in second}
    first_settings, second_settings = (benchmark.LISTS[name] for name in ("first", "second"))
    assert first_settings.seed != second_settings.seed
    assert not set(first_settings.models.values()) & set(second_settings.models.values())


def test_a_part_has_the_first_of_each_family():
    every, part = benchmark.products("second"), benchmark.products("second", 80)
    assert 76 <= len(part) <= 84
    assert set(part) < set(every)
    for family in benchmark.COUNTS:
        family_part = [product for product in part if product.family == family]
        assert family_part == [product for product in every if product.family == family][: len(family_part)] != []


def test_one_wave_is_a_few_tiles_more_than_run_at_once():
    for product in benchmark.products("first"):
        if product.family == "one wave":
            tiles = {product.m * product.n // (128 * width) for width in (128, 256) if product.n % width == 0}
            assert any(132 < count <= 144 for count in tiles), product


def test_a_model_has_the_products_of_its_layers():
    grouped = benchmark.Model(4096, 14336, 32, 8, 128)
    assert grouped.layers == ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))
    plain = benchmark.Model(1600, 6400, 25, 25, 64, gated=False)
    assert plain.layers == ((4800, 1600), (1600, 1600), (6400, 1600), (1600, 6400))


@pytest.mark.parametrize("count", ["6", "231"])
def test_a_count_that_no_list_has_is_a_mistake(monkeypatch, capsys, count):
    with pytest.raises(SystemExit):
        printed(monkeypatch, capsys, "first", "--count", count)
    assert f"--count is {count}; a list has 7 families and 230 products" in capsys.readouterr().err


def test_the_file_is_read_back_as_the_list():
    rows = list(csv.DictReader(io.StringIO((RECORDED / "gemm_bf16" / "list.csv").read_text())))
    assert tuple(rows[0]) == benchmark.Product._fields
