"""A tuning file takes the exact sizes of a library logic of Tensile as its list of problems."""

from __future__ import annotations

import pytest

from tensile_logics import RANGES, list_form, problem_type, written
from tunesmith.protocol import Final
from tunesmith.records import UserError
from tunesmith.session.tuning_file.file import read

TUNING = """
BenchmarkProblems:
  - - {problem_type}
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - File: logic.yaml
"""
NT, BATCHED = "{DataType: s, TransposeB: True}", "{DataType: s, TransposeB: True, Batched: True}"
ROWS = [
    ([64, 32, 1, 16], [0, 5.0]),
    ([64, 32, 4, 16], [1, 5.0]),
    ([8, 8, 1, 8, 10, 4, 8, 12], [0, 5.0]),
    ([8, 8, 1, 8, 8, 8, 8, 8], [0, 5.0]),
]


def problems(folder, kind, content):
    written(folder, content)
    path = folder / "tuning.yaml"
    path.write_text(TUNING.replace("{problem_type}", kind))
    file = read(path, None, "fake")
    (final,) = [step for step in file.groups[0].steps if isinstance(step, Final)]
    return [(problem.sizes, problem.leading) for problem in final.problems], file.notes


def test_a_batched_type_takes_every_row(tmp_path):
    found, notes = problems(tmp_path, BATCHED, list_form(rows=ROWS))
    assert found == [
        ((64, 32, 1, 16), ()),
        ((64, 32, 4, 16), ()),
        # Tensile raises leading dimensions that are too small.
        ((8, 8, 1, 8), (10, 8, 8, 12)),
        ((8, 8, 1, 8), ()),
    ]
    assert not any("left out" in note for note in notes)


def test_an_unbatched_type_takes_the_rows_without_a_batch(tmp_path):
    found, notes = problems(tmp_path, NT, list_form(rows=ROWS))
    assert found == [((64, 32, 16), ()), ((8, 8, 8), (10, 8, 8, 12)), ((8, 8, 8), ())]
    assert any("1 of 4 rows are not of Cij_Aik_Bjk_SB and are left out (1 with a batch)" in note for note in notes)


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        ("{DataType: s, TransposeB: False}", list_form(rows=ROWS), r"Cij_Aik_Bkj_SB \(other transposes\); change"),
        ("{DataType: d}", list_form(rows=ROWS), r"not of Cij_Aik_Bjk_DB \(other data types\)"),
        (NT, list_form(rows=ROWS[1:2]), r"all 1 sizes of logic.yaml have a batch, Cij_Aik_Bjk_SB has none; set Batch"),
        (BATCHED, list_form(rows=[([8, 8, 8], [0, 1.0])], order=(2, 0, 1)), r"\(other batch\)"),
        (NT, list_form(rows=[], ranges=RANGES), r"logic.yaml has no exact sizes; name a library logic with a table"),
        (NT, list_form(rows=[([2**40, 8, 1, 8], [0, 1.0])]), r"logic.yaml:\d+: 1099511627776 is no size; give a whole"),
        (NT, list_form(kind=problem_type(ComplexConjugateA=True)), r"it is no GEMM of real numbers"),
        (NT, {"a": 1}, r"logic.yaml:1: the file: MinimumRequiredVersion is missing"),
    ],
    ids=["transposes", "data type", "only batches", "no batch", "no table", "too large", "complex", "no logic"],
)  # fmt: skip
def test_a_logic_of_another_type_is_refused(kind, content, message, tmp_path):
    with pytest.raises(UserError, match=message):
        problems(tmp_path, kind, content)


def test_a_logic_that_is_not_there_is_told(tmp_path):
    path = tmp_path / "tuning.yaml"
    path.write_text(TUNING.replace("{problem_type}", NT))
    with pytest.raises(UserError, match=r"logic.yaml: cannot be read \(No such file"):
        read(path, None, "fake")
