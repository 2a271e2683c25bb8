"""What the tests of the wgmma family run: each type, layout, epilogue, way to store and to split, on odd sizes."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pytest

from cuda_runner import configuration
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Problem, ProblemType, Value

FAMILY = KERNELS["CudaWgmmaGemm"]
LAYOUTS = {"nn": (False, False), "nt": (False, True), "tn": (True, False), "tt": (True, True)}
TILES = {"WarpGroups": 1, "InstructionColumns": 64}


def kind(data_type: str = "h", layout: str = "tn", **more: Any) -> ProblemType:
    transpose_a, transpose_b = LAYOUTS[layout]
    return gemm_type(data_type, transpose_a=transpose_a, transpose_b=transpose_b, batched=True, **more)


def config(problem_type: ProblemType | None = None, **values: Value) -> Configuration:
    return configuration(FAMILY, problem_type or kind(), **values)


def problem(*sizes: int, problem_type: ProblemType | None = None, pad: int = 0, multiple: int = 8) -> Problem:
    """Leading dimensions are multiples, as TMA needs them of 16 bytes, and beyond the sizes by `pad`."""
    problem_type = problem_type or kind()
    least = [value for _, value in GemmOperation().leading(problem_type, sizes)]
    leading = tuple(-(-value // multiple) * multiple + pad for value in least)
    integers = problem_type.fields.word("DataType") == "i8"
    scalars = {"alpha": 2.0, "beta": 3.0} if integers else {"alpha": 1.5, "beta": 0.5}
    return Problem(problem_type, sizes, leading, Configuration(scalars))


@dataclass(frozen=True)
class Case:
    """`type` and `values` as `kind` and `config` take them; M, N, batch and K; what D's leading dimension is beyond M
    where TMA does not write it, and those of A and B, where TMA does not fetch them as they are."""

    name: str
    type: dict
    values: dict
    sizes: tuple[int, int, int, int] = (136, 77, 2, 200)
    odd_ldd: int = 0
    together: int = 1
    odd_strides: int = 0

    @property
    def problem_type(self) -> ProblemType:
        return kind(**self.type)

    @property
    def config(self) -> Configuration:
        return config(self.problem_type, **TILES | self.values)

    @property
    def parts(self) -> int:
        """The parts of K of each tile, which need an iteration each; two at least if the device decides."""
        _, _, *along_k = self.config.integers("ClusterShape")
        return self.config.integer("GlobalSplitU") * math.prod(parts or 2 for parts in along_k)

    @property
    def problem(self) -> Problem:
        asked = problem(*self.sizes, problem_type=self.problem_type, pad=16, multiple=16)
        ldd, ldc, lda, ldb = asked.leading
        odd = (lda + self.odd_strides, ldb + 2 * self.odd_strides)
        return Problem(asked.type, asked.sizes, (self.sizes[0] + self.odd_ldd or ldd, ldc, *odd), asked.scalars)


DIRECT = {"StorePath": "Direct"}
CASES = [
    Case("half, every tile alone", {}, {}),
    Case("half, N first, rows along M", {"layout": "nn", "bias": True, "activation": "silu"}, {"RowsAlong": "M"}),
    Case("half, cut in three", {"layout": "nt"}, {"GlobalSplitU": 3, "WarpGroups": 2}, (72, 130, 1, 500)),
    Case("half, two stages", {"layout": "tt"}, {"WarpGroups": 3, "Stages": 2, "RowsAlong": "M", "WorkGroupMapping": 2}),
    Case("half, written directly", {"use_beta": False}, DIRECT | {"InstructionColumns": 96}, (75, 77, 2, 100), 2),
    Case("half to single", {"dest": "s", "layout": "nt"}, DIRECT | {"RowsAlong": "M"}, (75, 77, 2, 100), 3),
    Case(
        "bfloat16, shared by five",
        {"data_type": "b", "bias": True, "activation": "gelu"},
        {"StreamKGrid": 5, "Stages": 3},
        (72, 136, 1, 600),
    ),
    Case(
        "bfloat16, odd strides, cut in two",
        {"data_type": "b", "layout": "tt"},
        DIRECT | {"GlobalSplitU": 2},
        (72, 77, 2, 200),
        odd_strides=1,
    ),
    Case("float8, odd strides", {"data_type": "f8", "scaled": True}, DIRECT, (77, 75, 2, 300), 1, odd_strides=3),
    Case("bfloat16 to single", {"data_type": "b", "dest": "s", "bias": True}, DIRECT, (75, 77, 1, 100), 1),
    Case("float8", {"data_type": "f8", "scaled": True}, {"InstructionColumns": 96}, (80, 77, 1, 700)),
    Case(
        "float8, cut in two",
        {"data_type": "b8", "scaled": True, "dest": "s", "activation": "gelu"},
        DIRECT | {"PromoteEvery": 2, "GlobalSplitU": 2, "RowsAlong": "M"},
        (75, 77, 1, 1000),
        1,
    ),
    Case("float8 to half", {"data_type": "f8", "dest": "h"}, {"PromoteEvery": 0, "WarpGroups": 2}, (80, 77, 1, 300)),
    Case(
        "int8, a full wave shared",
        {"data_type": "i8", "bias": True, "activation": "relu"},
        {"StreamKGrid": 4, "StreamKFullTiles": 1},
        (77, 75, 1, 600),
        2,
    ),
    Case("TF32", {"data_type": "s", "tf32": True}, {"RowsAlong": "M", "GlobalSplitU": 2}, (77, 75, 2, 100), 1),
    Case("float8, A transposed", {"data_type": "f8", "layout": "nn", "scaled": True}, {}, (80, 77, 2, 300)),
    Case(
        "int8, both transposed",
        {"data_type": "i8", "layout": "nt", "bias": True},
        {"RowsAlong": "M", "InstructionColumns": 96, "StreamKGrid": 3},
        (77, 75, 2, 300),
        2,
    ),
    Case(
        "TF32, B transposed, odd strides",
        {"data_type": "s", "layout": "tt", "tf32": True},
        {"GlobalSplitU": 2},
        (77, 75, 2, 100),
        odd_strides=1,
    ),
    Case("half, 48 columns, in thirds", {}, {"InstructionColumns": 48, "Stages": 2}, (136, 77, 1, 200)),
    Case(
        "bfloat16, 80 columns",
        {"data_type": "b"},
        {"InstructionColumns": 80, "RowsAlong": "M", "ClusterShape": (2, 1), "GlobalSplitU": 2},
        (136, 168, 1, 200),
        together=2,
    ),
    Case("half, 80 columns in boxes of 64", {"layout": "nn"}, {"InstructionColumns": 80}, (168, 77, 2, 200)),
    Case(
        "bfloat16, 96 columns in boxes of 64",
        {"data_type": "b", "layout": "nt"},
        {"InstructionColumns": 96, "RowsAlong": "M", "ClusterShape": (2, 1), "GlobalSplitU": 2},
        (136, 200, 1, 200),
        together=2,
    ),
    Case(
        "half, two side by side along M",
        {"bias": True, "activation": "relu"},
        {"ClusterShape": (2, 1), "StreamKGrid": 4},
        (200, 136, 1, 300),
        together=2,
    ),
    Case(
        "half, two side by side along N",
        {"layout": "nt"},
        {"ClusterShape": (1, 2), "RowsAlong": "M", "WarpGroups": 2},
        (136, 200, 1, 300),
        together=2,
    ),
    Case(
        "half, two by four side by side",
        {"layout": "nn"},
        {"ClusterShape": (2, 4), "InstructionColumns": 32, "Stages": 2},
        (136, 300, 1, 700),
        together=8,
    ),
    Case(
        "half, two by four side by side, rows along M",
        {"layout": "nt", "bias": True},
        {"ClusterShape": (2, 4), "RowsAlong": "M", "InstructionColumns": 32, "Stages": 3},
        (136, 130, 2, 500),
        together=8,
    ),
    Case(
        "bfloat16, four side by side along M, cut in two",
        {"data_type": "b", "bias": True},
        {"ClusterShape": (4, 1), "GlobalSplitU": 2, "InstructionColumns": 32, "RowsAlong": "M", "Stages": 2},
        (304, 77, 1, 600),
        together=4,
    ),
    Case(
        "half, two by two side by side, two warp groups, shared",
        {"layout": "tt"},
        {"ClusterShape": (2, 2), "WarpGroups": 2, "InstructionColumns": 32, "StreamKGrid": 12, "Stages": 2},
        (200, 136, 1, 600),
        together=4,
    ),
    Case(
        "float8, two by two side by side, shared",
        {"data_type": "f8", "scaled": True, "dest": "h"},
        {"ClusterShape": (2, 2), "StreamKGrid": 12, "StreamKFullTiles": 1, "Stages": 2},
        (200, 136, 1, 1000),
        together=4,
    ),
    Case(
        "bfloat16, K in halves",
        {"data_type": "b", "bias": True, "activation": "gelu"},
        {"ClusterShape": (1, 1, 2), "GlobalSplitU": 2},
        (136, 77, 2, 200),
        together=2,
    ),
    Case(
        "half, K in fifths, sums where stages were",
        {"layout": "nn"},
        DIRECT | {"ClusterShape": (1, 1, 5), "InstructionColumns": 80, "Stages": 8, "RowsAlong": "M", "WarpGroups": 2},
        (150, 77, 1, 500),
        together=5,
        odd_strides=1,
    ),
    Case(
        "int8, K in quarters, an empty slice",
        {"data_type": "i8", "bias": True, "activation": "relu"},
        {"ClusterShape": (1, 1, 4), "InstructionColumns": 48},
        (77, 75, 1, 600),
        together=4,
    ),
    Case(
        "bfloat16, K in thirds, uneven slices",
        {"data_type": "b", "layout": "nt", "bias": True},
        DIRECT | {"ClusterShape": (1, 1, 3), "GlobalSplitU": 2},
        (75, 77, 1, 500),
        together=3,
    ),
    Case(
        "half, K in as many parts as fill the device",
        {"layout": "nt", "bias": True},
        {"ClusterShape": (1, 1, 0), "InstructionColumns": 96, "WarpGroups": 2},
        (136, 200, 1, 500),
        together=4,
    ),
    Case(
        "bfloat16, K in as many parts as fill the device, twice",
        {"data_type": "b"},
        DIRECT | {"ClusterShape": (1, 1, 0), "GlobalSplitU": 2, "RowsAlong": "M"},
        (75, 77, 1, 600),
        together=3,
    ),
    Case(
        "float8, K in halves",
        {"data_type": "f8", "scaled": True, "dest": "h"},
        {"ClusterShape": (1, 1, 2), "PromoteEvery": 1},
        (80, 77, 1, 700),
        together=2,
    ),
]
QUICK = (
    "bfloat16, shared by five",
    "bfloat16, odd strides, cut in two",
    "float8, cut in two",
    "TF32, B transposed, odd strides",
    "half, two side by side along N",
    "half, two by four side by side",
    "half, two by four side by side, rows along M",
    "bfloat16, four side by side along M, cut in two",
    "half, two by two side by side, two warp groups, shared",
    "float8, two by two side by side, shared",
    "half, 48 columns, in thirds",
    "bfloat16, 80 columns",
    "bfloat16, 96 columns in boxes of 64",
    "bfloat16, K in halves",
    "half, K in fifths, sums where stages were",
    "int8, K in quarters, an empty slice",
    "bfloat16, K in thirds, uneven slices",
    "half, K in as many parts as fill the device",
    "bfloat16, K in as many parts as fill the device, twice",
)
"""Cases that between them run most of the code."""
COMPILED = (
    "half, every tile alone",
    "half, N first, rows along M",
    "half, cut in three",
    "half, two stages",
    "half, written directly",
    "bfloat16, shared by five",
    "bfloat16, 80 columns",
    "float8, odd strides",
    "float8, cut in two",
    "int8, a full wave shared",
    "TF32",
    "half, two side by side along M",
    "half, two by four side by side",
    "bfloat16, four side by side along M, cut in two",
    "float8, two by two side by side, shared",
    "bfloat16, K in halves",
    "half, K in fifths, sums where stages were",
    "int8, K in quarters, an empty slice",
    "float8, K in halves",
    "bfloat16, K in thirds, uneven slices",
    "half, K in as many parts as fill the device",
    "bfloat16, K in as many parts as fill the device, twice",
)
"""Cases that have every type of operand, activation and cluster, and every pair of the macros on which whole parts of
the text depend: SPLIT, STORE_BY_TMA, BIAS, ADDS_C and the output's type. Others differ in numbers and layouts."""


def cases(thorough_but: Collection[str] = tuple(case.name for case in CASES)) -> list[pytest.ParameterSet]:
    """As parameters of a test; all but those named are thorough."""
    return [
        pytest.param(case, id=case.name, marks=() if case.name in thorough_but else pytest.mark.thorough)
        for case in CASES
    ]


BIG = [
    ("half", kind(), {}),
    ("half, shared", kind(), {"StreamKGrid": 132}),
    ("half, 208 columns", kind(), {"InstructionColumns": 208}),
    ("bfloat16, 240 columns", kind("b"), {"InstructionColumns": 240, "RowsAlong": "M"}),
    ("half, 192 rows", kind(layout="nt"), {"WarpGroups": 3, "InstructionColumns": 128, "RowsAlong": "M"}),
    ("bfloat16, 160 columns in boxes of 64", kind("b", layout="nt"), {"InstructionColumns": 160, "RowsAlong": "M"}),
    ("bfloat16, gelu", kind("b", bias=True, activation="gelu", use_beta=False), {"ClusterShape": (2, 1)}),
    ("float8", kind("f8", scaled=True, dest="s", bias=True, activation="silu"), {}),
    ("TF32", kind("s", tf32=True), {"RowsAlong": "M"}),
]
"""Tiles that leave few registers: name, type and values."""
LESS = ("half", "half, 208 columns")
"""They need fewer registers than "half, shared" and "bfloat16, 240 columns", whose programs have all that theirs have.
"""


def big(thorough: Collection[str] = ()) -> list[pytest.ParameterSet]:
    """The big tiles, `problem_type` and `values`, as parameters of a test; those named are thorough."""
    return [pytest.param(*rest, id=name, marks=pytest.mark.thorough if name in thorough else ()) for name, *rest in BIG]
