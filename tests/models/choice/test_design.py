"""A list made by design fills the space of sizes, keeps out what is judged on, and is the same for the same seed."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from tunesmith.models.choice.design.design import (
    BATCHED_NAMES,
    MOST_ELEMENTS,
    MOST_FLOP,
    SHARES,
    SINGLE_NAMES,
    designed,
    families_for,
)
from tunesmith.models.choice.design.draws import aligned
from tunesmith.models.choice.design.spaces import BATCHED_BOXES
from tunesmith.problems.gemm import torch_type
from tunesmith.problems.gemm.listed import ListedGemm, gemm_list_text, read_gemm_list

ROWS = designed(400, 1)
BATCHES = designed(400, 1, families=BATCHED_NAMES)


def sizes(rows):
    return [(row.m, row.n, row.k, row.batch) for row in rows]


def test_the_list_has_as_many_different_products_as_were_asked_for():
    for count in (1, 17, 400, 1500):
        assert len(set(sizes(designed(count, 1)))) == count


def test_the_same_seed_gives_the_same_products_and_another_seed_gives_others():
    assert designed(400, 1) == ROWS
    assert len(set(sizes(designed(400, 2))) & set(sizes(ROWS))) < 40


def test_left_out_sizes_stay_out_in_every_layout():
    others = [ListedGemm(row.m, row.n, row.k, trans_a=not row.trans_a) for row in ROWS[::2]]
    rows = designed(400, 1, others)
    assert len(rows) == 400
    assert not set(sizes(rows)) & set(sizes(others))


def test_no_product_is_too_large_for_one_gpu():
    for row in (*designed(1500, 3), *designed(1500, 3, families=BATCHED_NAMES)):
        assert 2 * row.m * row.n * row.k * row.batch <= MOST_FLOP
        assert (row.m * row.k + row.k * row.n + row.m * row.n) * row.batch <= MOST_ELEMENTS


@pytest.mark.parametrize(("rows", "names"), [(ROWS, SINGLE_NAMES), (BATCHES, BATCHED_NAMES)], ids=["single", "batched"])
def test_every_family_has_its_share_of_any_beginning(rows, names):
    counts, first = Counter(row.family for row in rows), Counter(row.family for row in rows[:200])
    shares = {family.name: share for family, share in SHARES.items() if family.name in names}
    total = sum(shares.values())
    assert set(counts) == set(shares)
    for family, share in shares.items():
        assert abs(counts[family] - 400 * share / total) <= 1
        assert abs(first[family] - counts[family] / 2) <= 1


def test_families_of_batches_have_no_single_matrix_and_the_others_nothing_else():
    assert {row.batch for row in ROWS} == {1}
    assert min(row.batch for row in BATCHES) >= 2
    octaves = Counter(row.batch.bit_length() for row in BATCHES)
    assert set(octaves) >= set(range(2, 13))


@pytest.mark.parametrize("box", BATCHED_BOXES, ids=lambda box: box.name)
def test_batches_of_a_box_fill_its_range(box):
    batches = [row.batch for row in designed(200, 1, families=(box.name,))]
    low, high = box.batch
    assert low <= min(batches) < 2 * low
    assert high / 2 < max(batches) <= high


def test_the_design_of_a_model_has_the_families_that_its_types_compute():
    single, batched = torch_type("b"), torch_type("b", batched=True)
    assert families_for([single]) == SINGLE_NAMES
    assert families_for([batched]) == BATCHED_NAMES
    assert families_for([batched, single]) == (*SINGLE_NAMES, *BATCHED_NAMES)


@pytest.mark.parametrize("side", ["m", "n", "k"])
def test_every_octave_has_products_of_every_alignment(side):
    values = [getattr(row, side) for row in designed(1500, 1)]
    for octave in range(6, 13):
        within = [value for value in values if 2**octave <= value < 2 ** (octave + 1)]
        for multiple, least in ((64, 0.2), (8, 0.4), (1, 0.9)):
            assert sum(value % multiple == 0 for value in within) >= least * len(within)
        assert sum(value % 2 for value in within) >= 0.05 * len(within), octave


def test_all_layouts_of_linear_layers_are_there():
    for rows in (ROWS, BATCHES):
        layouts = Counter((row.trans_a, row.trans_b) for row in rows)
        assert set(layouts) == {(False, True), (False, False), (True, False)}
        assert min(layouts.values()) >= 80


def test_a_small_size_gets_the_alignment_that_it_can_have():
    assert [aligned(size, 0.1) for size in (1.0, 5.0, 100.0)] == [1, 4, 128]
    assert all(aligned(float(size), 0.99) % 2 for size in range(1, 50))
    assert math.isclose(aligned(5000.0, 0.1), 5000, rel_tol=0.01)


def test_the_written_list_is_read_as_the_same_products(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(gemm_list_text(ROWS))
    assert read_gemm_list(path) == ROWS


def test_a_part_of_the_families_has_their_shares_and_the_same_products():
    """A family's sequence does not depend on the others."""
    rows = designed(60, 1, families=("one-row", "middle"))
    shares = {family.name: share for family, share in SHARES.items()}
    counts = Counter(row.family for row in rows)
    assert set(counts) == {"one-row", "middle"}
    assert counts["middle"] / 60 == pytest.approx(shares["middle"] / (shares["middle"] + shares["one-row"]), abs=0.01)
    alone = designed(counts["one-row"], 1, families=("one-row",))
    assert alone == tuple(row for row in rows if row.family == "one-row")
    assert designed(400, 1, families=SINGLE_NAMES) == ROWS
