"""A GEMM's type from a tuning file's fields: Tensile's names, and a mistake is answered at its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import equally_fast, gemm_type, gemm_type_named, of_batches
from tunesmith.problems.gemm.fields import INPUTS
from tunesmith.records import Configuration, UserError

GEMM = OPERATIONS["GEMM"]


def scalars(alpha=1.0, beta=0.0):
    return Configuration({"alpha": alpha, "beta": beta})


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "Cij_Aik_Bjk_SB"),
        ({"TransposeB": False}, "Cij_Aik_Bkj_SB"),
        ({"TransposeA": True, "TransposeB": False}, "Cij_Aki_Bkj_SB"),
        ({"TransposeA": True}, "Cij_Aki_Bjk_SB"),
        ({"Batched": True, "TransposeB": False, "DataType": "d"}, "Cijk_Ailk_Bljk_DB"),
        ({"Batched": True}, "Cijk_Ailk_Bjlk_SB"),
        ({"Batched": True, "TransposeA": 1, "TransposeB": 0}, "Cijk_Alik_Bljk_SB"),
        ({"Batched": True, "TransposeA": True}, "Cijk_Alik_Bjlk_SB"),
        ({"Batched": True, "UseBeta": False}, "Cijk_Ailk_Bjlk_S"),
        ({"Batched": True, "TransposeB": False, "DataType": "half"}, "Cijk_Ailk_Bljk_HB"),
        ({"Batched": True, "TransposeB": False, "Interleaved": True}, "Ckij_Akil_Bklj_SB"),
        ({"Batched": True, "TransposeA": True, "Interleaved": True}, "Ckij_Akli_Bkjl_SB"),
        ({"DataType": "bf16"}, "Cij_Aik_Bjk_BB"),
        ({"DataType": "b", "DestDataType": "s"}, "Cij_Aik_Bjk_BSB"),
        ({"DataType": "f8", "ScaleAB": True}, "Cij_Aik_Bjk_F8BB_ScaleAB"),
        ({"DataType": "int8", "UseBeta": False}, "Cij_Aik_Bjk_I8I"),
        ({"F32XdlMathOp": "x", "UseBias": True, "Activation": "gelu"}, "Cij_Aik_Bjk_SB_MX_Bias_Gelu"),
    ],
)
def test_a_type_has_the_name_that_tensile_gives_it(fields, name):
    made = GEMM.type_of({"OperationType": "GEMM", **fields}, lambda key: key, Path())
    assert made.name == name
    assert made.indices == (("M", "N", "Batch", "K") if fields.get("Batched") else ("M", "N", "K"))


def test_a_type_says_nothing_of_layouts_that_it_has_not():
    """What is stored of earlier types stays theirs."""
    usual = {"DataType", "TransposeA", "TransposeB", "Batched", "StridedBatched", "UseBeta"}
    assert all(set(gemm_type(letter, batched=True).fields) == usual for letter in INPUTS)
    with pytest.raises(ValueError, match="batch"):
        gemm_type(interleaved=True)


@pytest.mark.parametrize("word", ["s", "S", "single", "float", "Single", 0])
def test_a_data_type_goes_by_many_words(word):
    assert GEMM.type_of({"DataType": word}, lambda key: key, Path()) == gemm_type("s")


def test_only_a_missing_data_type_is_assumed():
    assert "DataType: s" in "".join(GEMM.assumed({}))
    assert not list(GEMM.assumed({"DataType": "d"}))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"DataType": "z"}, ["DataType: z", "one of s, d, h, b, f8, b8, i8"]),
        ({"Interleaved": True}, ["only a batch (Batched: True) can be interleaved", "leave Interleaved out"]),
        ({"DataType": True}, ["DataType: True"]),
        ({"DataType": "s", "DestDataType": "d"}, ["DestDataType: d of s operands; there is s"]),
        ({"DestDataType": "d"}, ["DestDataType: d of s operands"]),
        ({"ComputeDataType": 1}, ["sums of float32 operands are in float32, not float64"]),
        ({"DataType": "h", "ComputeDataType": "h"}, ["sums of float16 operands are in float32, not float16"]),
        ({"DataType": "h", "F32XdlMathOp": "x"}, ["TF32 is made of single precision"]),
        ({"Activation": "tanh"}, ["Activation cannot be tanh", "none, relu, gelu, silu"]),
        ({"DataType": "i8", "Activation": "gelu"}, ["of integers there is only relu"]),
        ({"ScaleAB": True}, ["only float8 operands"]),
        ({"HighPrecisionAccumulate": True}, ["HighPrecisionAccumulate", "not supported"]),
        ({"ComplexConjugateA": True}, ["real"]),
        ({"StridedBatched": False}, ["StridedBatched cannot be False"]),
        ({"TransposeA": "yes"}, ["TransposeA cannot be yes", "truth value"]),
        ({"TranposeA": True}, ["no TranposeA", "did you mean TransposeA?"]),
        ({"IndexAssignmentsA": (0, 2)}, ["no IndexAssignmentsA"]),
    ],
)
def test_a_type_that_nobody_computes_is_refused_at_its_key(fields, words):
    with pytest.raises(UserError) as caught:
        GEMM.type_of(fields, lambda key: f"file.yaml:{key}", Path())
    assert caught.value.location.startswith("file.yaml:")
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_harmless_values_of_unsupported_fields_are_taken():
    assert GEMM.type_of({"HighPrecisionAccumulate": False, "UseInitialStridesAB": False}, str, Path()) == gemm_type()


def test_scalars_are_those_to_measure_with_and_no_part_of_the_type():
    fields = {"Alpha": 2, "Beta": 0.5}
    assert GEMM.scalars_of(fields, str) == scalars(2.0, 0.5)
    assert GEMM.scalars_of({}, str) == scalars(1.0, 0.0)
    assert GEMM.type_of(fields, str, Path()) == gemm_type()
    with pytest.raises(UserError, match="UseBeta"):
        GEMM.scalars_of({"UseBeta": False, "Beta": 1}, str)
    with pytest.raises(UserError, match="Alpha"):
        GEMM.scalars_of({"Alpha": float("nan")}, str)
    with pytest.raises(UserError, match=r"Alpha of integers cannot be 0\.5"):
        GEMM.scalars_of({"DataType": "i8", "Alpha": 0.5}, str)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Cij_Aki_Bkj_B", "Cij_Aki_Bkj_H"),
        ("Cij_Aik_Bjk_BS", "Cij_Aik_Bjk_HS"),
        ("Cijk_Ailk_Bljk_BB_Bias_Gelu", "Cijk_Ailk_Bljk_HB_Bias_Gelu"),
        ("Ckij_Akil_Bklj_B", "Ckij_Akil_Bklj_H"),
    ],
)
def test_half_and_bfloat16_stand_for_each_other(name, other):
    assert equally_fast(gemm_type_named(name)) == gemm_type_named(other)
    assert equally_fast(gemm_type_named(other)) == gemm_type_named(name)


@pytest.mark.parametrize(
    ("name", "batches"),
    [
        ("Cij_Aki_Bkj_B", "Cijk_Alik_Bljk_B"),
        ("Cij_Aik_Bjk_S_MX", "Cijk_Ailk_Bjlk_S_MX"),
        ("Cij_Aki_Bkj_F8B_ScaleAB", "Cijk_Alik_Bljk_F8B_ScaleAB"),
        ("Cij_Aki_Bkj_HSB_Bias_Relu", "Cijk_Alik_Bljk_HSB_Bias_Relu"),
        ("Cijk_Alik_Bljk_B", "Cijk_Alik_Bljk_B"),
        ("Ckij_Akil_Bklj_B", "Ckij_Akil_Bklj_B"),
    ],
)
def test_the_type_of_batches_differs_in_nothing_else(name, batches):
    assert of_batches(gemm_type_named(name)) == gemm_type_named(batches)


@pytest.mark.parametrize(
    "name", ["Cij_Aki_Bkj_S", "Cij_Aki_Bkj_S_MX", "Cij_Aki_Bkj_D", "Cij_Aki_Bkj_F8B", "Cij_Aki_Bkj_I8I"]
)
def test_no_other_type_stands_for_another(name):
    kind = gemm_type_named(name)
    assert kind is not None
    assert equally_fast(kind) is None
