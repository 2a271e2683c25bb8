"""The Triton families compute what they promise: their plans in Triton's interpreter, against float64. No GPU."""

from __future__ import annotations

import itertools

import pytest

from triton_on_host import wrong_on_host
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Problem

TRANSPOSES = [(False, False), (True, False), (False, True), (True, True)]
SMALL = {"MacroTile": (16, 16), "DepthU": 16, "NumWarps": 1, "LoadPath": "Pointer"}
TMA = {"LoadPath": "TMA"}
SCHEDULES = [
    {"Schedule": "DataParallel", "WorkGroupMapping": 2},
    {"Schedule": "Persistent", "MacroTile": (16, 32)},
    {"Schedule": "SplitK", "GlobalSplitU": 2},
    {"Schedule": "FillK"},
    {"Schedule": "StreamK", "StreamKGrid": 3},
]
STREAMS = [
    {"StreamKGrid": 0},
    {"StreamKGrid": 1},
    {"StreamKGrid": 3, "StreamKFullTiles": 1},
    {"StreamKGrid": 4, "StreamKFullTiles": -1},
    {"StreamKGrid": 11},
    {"StreamKGrid": 40},
]
TYPES = [
    ("s", {}),
    ("s", {"tf32": True}),
    ("h", {"dest": "s", "activation": "silu"}),
    ("b", {"bias": True, "activation": "gelu"}),
    ("b", {"dest": "s", "bias": True, "activation": "relu"}),
    ("f8", {"scaled": True, "bias": True}),
    ("b8", {"dest": "h"}),
    ("i8", {"bias": True, "activation": "relu"}),
    ("h", {"use_beta": False}),
]


@pytest.fixture(scope="module")
def wrong(triton_interpreter):
    """wrong(family, problem type, values, sizes): what is wrong with the result, in a process that interprets."""

    def ask(family, kind, values, sizes, pad=0):
        config = KERNELS[family].space(kind).defaults | Configuration(values)
        whole = {"f8": 4, "b8": 4, "i8": 2}.get(kind.fields.word("DataType"), 1)
        scalars = Configuration({"alpha": 2.0, "beta": 3.0} if whole == 2 else {"alpha": 1.5, "beta": 0.5})
        least = [value for _, value in GemmOperation().leading(kind, sizes)]
        leading = tuple(-(-value // 16) * 16 + pad for value in least) if pad else ()
        asked = Problem(kind, sizes, leading, scalars)
        return triton_interpreter.submit(wrong_on_host, family, config, asked).result()

    return ask


@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_the_family_with_descriptors_made_on_the_host_is_right_in_every_layout(wrong, transposes):
    kind = gemm_type("s", transpose_a=transposes[0], transpose_b=transposes[1], batched=True)
    values = {"WorkGroup": (8, 8, 1), "ThreadTile": (4, 2), "DepthU": 16}
    assert wrong("TritonTmaGemm", kind, values, (36, 20, 2, 44), pad=4) == []


@pytest.mark.parametrize(
    ("values", "transposes"),
    [(SCHEDULES[0], TRANSPOSES[0]), (SCHEDULES[0], TRANSPOSES[3]), *itertools.product(SCHEDULES, TRANSPOSES[1:3])],
)
def test_every_schedule_is_right_in_every_layout(wrong, values, transposes):
    kind = gemm_type("h", transpose_a=transposes[0], transpose_b=transposes[1], batched=True)
    path = TMA if transposes[1] else {}
    assert wrong("TritonGemm", kind, {**SMALL, **values, **path}, (19, 18, 2, 37), pad=16) == []


@pytest.mark.parametrize("values", STREAMS, ids=str)
def test_stream_k_is_right_on_every_grid(wrong, values):
    """On one work-group, on more than the 20 iterations, and with shares that lie inside a tile or span several."""
    kind = gemm_type("h", transpose_a=True, transpose_b=False)
    assert wrong("TritonGemm", kind, {**SMALL, "Schedule": "StreamK", **values}, (20, 18, 70)) == []


@pytest.mark.parametrize(("data_type", "more"), TYPES)
def test_every_type_and_epilogue_is_right(wrong, data_type, more):
    kind = gemm_type(data_type, transpose_a=True, transpose_b=False, **more)
    values = {**SMALL, "DepthU": 32, "InputPrecision": "tf32" if more.get("tf32") else "ieee"}
    split = {"s": {"Schedule": "SplitK", "GlobalSplitU": 3}, "i8": {"Schedule": "FillK"}}.get(data_type, {})
    assert wrong("TritonGemm", kind, values | split, (18, 9, 75 if split else 40)) == []


@pytest.mark.parametrize(
    "values",
    [
        {"SwapOperands": False},
        {"SwapOperands": False, "EpilogueSubtile": 2, "MacroTile": (16, 64)},
        {"EpilogueSubtile": 4, "MacroTile": (64, 16)},
        {"StorePath": "TMA", "LoadPath": "TMA"},
        {"StorePath": "TMA", "EpilogueSubtile": 2, "MacroTile": (32, 16)},
        {"StorePath": "TMA", "EpilogueSubtile": 2, "MacroTile": (16, 32), "SwapOperands": False},
        {"GlobalReadVectorWidth": 8, "StoreVectorWidth": 8},
        {"Schedule": "SplitK", "GlobalSplitU": 2, "SwapOperands": False, "StoreVectorWidth": 4},
        {"Schedule": "StreamK", "StreamKGrid": 5, "SwapOperands": False, "EpilogueSubtile": 2, "MacroTile": (16, 32)},
    ],
    ids=str,
)
def test_the_way_of_loads_and_stores_does_not_change_what_is_computed(wrong, values):
    kind = gemm_type("h", transpose_a=True, transpose_b=False, bias=True)
    assert wrong("TritonGemm", kind, {**SMALL, **values}, (40, 21, 24), pad=16) == []


@pytest.mark.parametrize("sizes", [(1, 1, 1), (17, 3, 0), (3, 0, 5), (16, 16, 16)])
@pytest.mark.parametrize("values", [SCHEDULES[1], SCHEDULES[-1]], ids=lambda values: values["Schedule"])
def test_the_smallest_products_are_right_and_so_are_sums_over_nothing(wrong, values, sizes):
    kind = gemm_type("s", bias=True)
    assert wrong("TritonGemm", kind, {**SMALL, **values, "InputPrecision": "ieee"}, sizes) == []


@pytest.mark.parametrize("along", ["M", "N"])
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_a_matrix_times_a_vector_is_right_in_every_layout(wrong, transposes, along):
    kind = gemm_type("h", transpose_a=transposes[0], transpose_b=transposes[1], batched=True, bias=True)
    sizes = (21, 1, 2, 60) if along == "M" else (1, 21, 2, 60)
    values = {"GemvAlong": along, "GemvTile": (16, 16), "GlobalSplitU": 3 if transposes[0] else 1}
    assert wrong("TritonGemv", kind, values, sizes, pad=16) == []


@pytest.mark.parametrize(("data_type", "more"), TYPES)
def test_a_matrix_times_a_vector_is_right_for_every_type_and_epilogue(wrong, data_type, more):
    kind = gemm_type(data_type, transpose_a=True, **more)
    assert wrong("TritonGemv", kind, {"GemvTile": (16, 32), "GlobalSplitU": 2}, (18, 1, 75)) == []
