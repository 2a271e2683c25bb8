"""Our library logic as Tensile's: its own sizes have the same solutions, by both readings of Tensile's rules."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from library_fakes import logic as ours
from quick_yaml import loaded
from slow_tensile import slow_choice
from tunesmith.formats.tensile.library.export import export_logic
from tunesmith.formats.tensile.library.read import read_logic
from tunesmith.formats.tensile.library.selection import choose
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError

CONFIGS = [{"VectorWidth": 1}, {"VectorWidth": 2}, {"VectorWidth": 4}]
KINDS = [
    gemm_type(letter, dest=dest, transpose_a=a, transpose_b=b, batched=batched, use_beta=beta)
    for (letter, dest), a, b, batched, beta in itertools.product(
        (("s", ""), ("d", ""), ("h", ""), ("b", "s"), ("i8", ""), ("f8", "h")), *[(False, True)] * 4
    )
] + [gemm_type(tf32=True)]


def random_rows(chance, kind, count):
    sizes = {tuple(chance.choice((1, 8, 33, 64, 100, 512)) for _ in kind.indices) for _ in range(count)}
    rows = {size: chance.randrange(len(CONFIGS)) for size in sorted(sizes)}
    return rows | ({(64, 64, 1, 64): 0, (64, 64, 8, 64): 1} if kind.fields.flag("Batched") else {})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name} {kind.fields.word('DataType')}")
def test_an_exported_logic_chooses_what_ours_does_at_its_sizes(kind, tmp_path):
    """In a batched type, sizes that differ only in the batch have different solutions, so that Euclidean would fail."""
    rows = random_rows(random.Random(kind.name), kind, 12)
    document = ours(kind, CONFIGS, rows).document
    made = export_logic(document, "out")
    path = tmp_path / "exported.yaml"
    path.write_text(made.text)
    read, content = read_logic(path), loaded(made.text)
    assert made.rows == len(rows)
    assert made.distance.value == ("Equality" if kind.fields.flag("Batched") else "Euclidean")
    for size, index in rows.items():
        assert choose(read, size).solution.index == index
        assert slow_choice(content, list(size)) == (index, "exact")
    assert [found.name for found in read.solutions] == [named.name for named in document.solutions]
    assert read.solutions[1].parameters["VectorWidth"] == 2
    assert read.solutions[1].parameters["TunesmithKernel"] == "FakeGemm"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name} {kind.fields.word('DataType')}")
def test_an_exported_type_has_the_same_indices_and_data_types(kind, tmp_path):
    path = tmp_path / "exported.yaml"
    path.write_text(export_logic(ours(kind).document, "out").text)
    read = read_logic(path).problem_type
    assert read.name.rpartition("_")[0].startswith(kind.name[: kind.name.index("_B")])
    assert read.transposes == (kind.fields.flag("TransposeA"), kind.fields.flag("TransposeB"))
    assert read.size_names == tuple("batch" if name == "Batch" else name for name in kind.indices)
    assert read.data_type.letters.lower() == kind.fields.word("DataType")
    assert (read.use_beta, read.xf32) == (kind.fields.flag("UseBeta"), "F32XdlMathOp" in kind.fields)


def test_names_of_the_types_that_both_have_are_the_same(tmp_path):
    for kind, name in (
        (gemm_type(batched=True, transpose_b=False), "Cijk_Ailk_Bljk_SB"),
        (gemm_type("d", transpose_a=True), "Cij_Aki_Bjk_DB"),
        (gemm_type("h", batched=True), "Cijk_Ailk_Bjlk_HHS_BH"),
    ):
        path = tmp_path / "exported.yaml"
        path.write_text(export_logic(ours(kind).document, "out").text)
        assert read_logic(path).problem_type.name == name


def test_batches_with_the_same_solution_stay_euclidean():
    kind = gemm_type(batched=True)
    rows = {(64, 64, 1, 64): 1, (64, 64, 8, 64): 1, (8, 64, 8, 64): 0}
    made = export_logic(ours(kind, CONFIGS, rows).document, "out")
    assert (made.distance.value, made.notes) == ("Euclidean", ())


def test_of_rows_that_differ_in_leading_dimensions_the_natural_one_stays():
    document = ours(gemm_type(), CONFIGS, {(64, 64, 64): 1}).document
    (row,) = document.rows
    others = [replace(row, leading=(96,) * 4, solution=2, rate=row.rate * 9), row, replace(row, leading=(128,) * 4)]
    made = export_logic(replace(document, rows=tuple(others)), "out")
    assert loaded(made.text)[7] == [[[64, 64, 64], [1, row.rate]]]
    assert made.notes == ("2 rows with other leading dimensions are left out: Tensile does not tell them apart",)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (gemm_type(batched=True, interleaved=True), "its batch is interleaved"),
        (gemm_type(bias=True), "it has a bias"),
        (gemm_type(activation="relu"), "it has an activation"),
        (gemm_type("f8", scaled=True), "its operands have scales"),
    ],
)
def test_a_type_that_tensile_does_not_have_is_refused(kind, reason):
    with pytest.raises(UserError, match=f"out: {kind.name} has no counterpart in Tensile: {reason}; export the logic"):
        export_logic(ours(kind).document, "out")
