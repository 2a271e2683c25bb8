"""Files in the dialects that Tensile's own have had over the years, as the reader of our form sees them untranslated:
each needs something that this form has not, and is answered with that and its line. Files are translated before they
come here (`tests/formats/tensile/`)."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tunesmith.records import UserError
from tuning_space import read

DIALECTS = {
    "version 2: a problem is one mapping": (
        """\
        GlobalParameters:
          MinimumRequiredVersion: 2.0.0
          PrintLevel: 1
        BenchmarkProblems:
          - ProblemType:
              OperationType: GEMM
              DataType: s
              TransposeA: 0
              TransposeB: 1
            InitialSolutionParameters:
              - LoopDoWhile: False
            ForkParameters:
              - ThreadTile:
                - [4, 4]
        """,
        5,
        ["version 2", "make it a list"],
    ),
    "a contraction by index assignments": (
        """\
        BenchmarkProblems:
          -
            -
              OperationType: TensorContraction
              DataType: s
              NumIndicesC: 3
              IndexAssignmentsA: [0, 3, 2]
              IndexAssignmentsB: [3, 1, 2]
            -
              ForkParameters:
                - DepthU: [8, 16]
        """,
        4,
        ["TensorContraction", "GEMM"],
    ),
    "complex numbers": (
        """\
        GlobalParameters:
          NumElementsToValidate: 128
        BenchmarkProblems:
          - - OperationType: GEMM
              DataType: z
              ComplexConjugateA: True
            - ForkParameters:
                - VectorWidth: [1, 2]
        """,
        5,
        ["DataType: z", "s, d, h"],
    ),
    "assembly among the languages": (
        """\
        BenchmarkProblems:
          - # a single-precision product
            - # its ProblemType
              OperationType: GEMM
              DataType: s
              Batched: True
            - # its size group
              InitialSolutionParameters:
              BenchmarkCommonParameters:
                - KernelLanguage: ["Assembly"]
                - EdgeType: ["ShiftPtr"]
              ForkParameters:
                - ThreadTile:
                  - [2, 2]
                  - [4, 8]
        """,
        10,
        ["KernelLanguage cannot be Assembly", "OpenCL"],
    ),
    "stream-K of assembly": (
        """\
        BenchmarkProblems:
          - - OperationType: GEMM
              DataType: s
            - BenchmarkCommonParameters:
                - DepthU: [16]
              ForkParameters:
                - KernelLanguage:
                    - Assembly
                - StreamK: [2]
        """,
        8,
        ["KernelLanguage cannot be Assembly"],
    ),
    "the parts stand at the top": (
        """\
        GlobalParameters:
          SleepPercent: 50

        LibraryLogic:
            ScheduleName: "vega20"
        ProblemType:
          OperationType: GEMM
          DataType: s
        ForkParameters:
          - GlobalSplitU: [1]
        """,
        6,
        ["ProblemType stands at the top of the file", "BenchmarkProblems"],
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_file_in_a_dialect_is_answered_with_the_obstacle_and_its_line(name, tmp_path):
    text, line, words = DIALECTS[name]
    path = tmp_path / "dialect.yaml"
    path.write_text(dedent(text))
    with pytest.raises(UserError) as caught:
        read(path)
    assert f"{path}:{line}" in [mistake.location for mistake in caught.value.errors]
    assert [word for word in words if word not in str(caught.value)] == []


def test_the_same_product_in_todays_form_is_read(tmp_path):
    """The files above without their obstacle are read, so none of them is refused for another reason."""
    path = tmp_path / "today.yaml"
    path.write_text(
        dedent(
            """\
            GlobalParameters:
              MinimumRequiredVersion: 4.2.0
              PrintLevel: 1
              NumElementsToValidate: 128
              SleepPercent: 50
            BenchmarkProblems:
              - # a single-precision product
                - # its ProblemType
                  OperationType: GEMM
                  DataType: s
                  Batched: True
                - # its size group
                  InitialSolutionParameters:
                  BenchmarkCommonParameters:
                    - KernelLanguage: ["OpenCL"]
                    - EdgeType: ["ShiftPtr"]
                  ForkParameters:
                    - ThreadTile:
                      - [2, 2]
                      - [4, 8]
                    - GlobalSplitU: [1]
            LibraryLogic:
                ScheduleName: "vega20"
            """
        )
    )
    assert len(read(path).groups) == 1
