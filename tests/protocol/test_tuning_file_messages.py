"""Messages about a tuning file: all mistakes at once, useful remedies, and one note for each key without effect."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from textwrap import dedent

import pytest

from tunesmith.kernels import tuning_space
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.protocol import Final
from tunesmith.protocol.tensile import FOREIGN_PARAMETERS, RENAMED_PARAMETERS
from tunesmith.records import SeveralError, UserError
from tunesmith.session.tuning_file.file import read
from tuning_runs import tunesmith
from tuning_space import complaint

WRONG = """
GlobalParameters:
  Nosie: 0.1
  SamplingSeconds: -1
BenchmarkProblems:
  - - OperationType: GEMM
      DataType: q
      TransposeC: True
    - ForkParameters:
        - DephtU: [8]
        - ThreadTile: [[4, 4], 4]
          VectorWidth: [3, 4]
      BenchmarkForkParameters:
        - LoopUnroll: [-1, 8]
      JoinParameters: [VectorWidth, NoSuch]
  - - OperationType: GEMM
      DataType: s
    - BenchmarkCommonParameters:
        - ProblemSizes:
            - Range: [[64, 0, 512], [16, 8], 3]
            - Exact: [1, 2]
            - Exactly: [1, 2, 3]
        - SplitV: [1]
      BenchmarkFinal: []
LibraryLogic:
  ScheduleName: a/b
"""
LINES = [3, 4, 7, 8, 10, 11, 12, 14, 15, 20, 20, 20, 21, 22, 23, 24, 26]


def test_all_mistakes_of_a_file_are_told_at_once_in_the_order_of_their_lines(file):
    error = complaint(file, WRONG)
    assert isinstance(error, SeveralError)
    lines = [int(mistake.location.rpartition(":")[2]) for mistake in error.errors]
    assert lines == LINES, str(error)
    assert str(error).splitlines() == [str(mistake) for mistake in error.errors]
    assert [str(mistake) for mistake in pickle.loads(pickle.dumps(error)).errors] == [
        str(mistake) for mistake in error.errors
    ]


def test_the_command_line_prints_a_line_for_each_mistake(tmp_path):
    (tmp_path / "wrong.yaml").write_text(WRONG)
    done = tunesmith("plan", tmp_path / "wrong.yaml")
    assert done.returncode == 2
    assert [re.sub(r".*wrong.yaml:(\d+): .*", r"\1", line) for line in done.stderr.splitlines()] == list(
        map(str, LINES)
    ), done.stderr
    assert all(line.startswith("tunesmith: ") for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "ForkParameters: [{DepthU: [8, deep]}]\nJoinParameters: [DepthU]",
        "ForkParameters: [{Groups: [[{DepthU: deep}, {DepthU: 8}]]}]\nJoinParameters: [DepthU]",
        "BenchmarkCommonParameters: [{ProblemSizes: [Exact: [0, 1, 1]]}, {DepthU: [8, 16]}]",
        "BenchmarkFinalParameters: [{ProblemSizes: [Exact: [0, 1, 1]]}]",
    ],
)
def test_a_mistake_brings_no_others_with_it(group, text):
    error = complaint(group, text)
    assert len(error.errors) == 1, str(error)


def test_sizes_of_a_type_that_is_not_understood_are_not_judged(group):
    error = complaint(group, "BenchmarkFinalParameters: [ProblemSizes: [Exact: [1, 2, 3, 4]]]", "{Batched: 3}")
    assert [mistake.what for mistake in error.errors] == ["Batched cannot be 3"]


def test_every_remedy_for_a_parameter_names_one_that_there_is():
    """The remedy for `LdsBlockSizePerPad` once named `LdsPadA`, which no kernel has."""
    space = tuning_space(gemm_type())
    assert not FOREIGN_PARAMETERS & RENAMED_PARAMETERS.keys()
    for name, remedy in RENAMED_PARAMETERS.items():
        named = re.findall(r"\b[A-Z]\w*[a-z]\w*", re.sub(r"\(.*?\)", "", remedy))
        assert named, name
        assert all(word in space for word in named), (name, named)


@pytest.mark.parametrize("letter", ["h", "b", "f8", "i8"])
def test_high_precision_sums_may_be_asked_for_where_they_are_so(letter):
    fields = {"DataType": letter, "HighPrecisionAccumulate": True}
    assert GemmOperation().type_of(fields, str, Path()) == gemm_type(letter)
    assert list(GemmOperation().assumed(fields)) == []
    (note,) = GemmOperation().assumed({**fields, "HighPrecisionAccumulate": False})
    assert "HighPrecisionAccumulate is ignored" in note


@pytest.mark.parametrize("letter", ["s", "d"])
def test_high_precision_sums_that_there_are_not_are_refused(letter):
    with pytest.raises(UserError, match="HighPrecisionAccumulate: True is not supported; leave it out"):
        GemmOperation().type_of({"DataType": letter, "HighPrecisionAccumulate": True}, str, Path())


NOTED = """
BenchmarkProblems:
  - - {{DataType: s, TransposeB: False}}
    - InitialSolutionParameters:
        - {first}
        - LdsPad: [1]
      ForkParameters:
        - {forked}
        - NumLoadsCoalescedA: [1, 2, 4, 8]
          LoopUnroll: [4, 8]
      BenchmarkFinalParameters:
        - ProblemSizes: [Exact: [64, 64, 64]]
    - InitialSolutionParameters:
        - {first}
      ForkParameters:
        - {forked}
        - NumLoadsCoalescedA: [1, 2]
"""


@pytest.mark.parametrize(
    ("first", "forked", "lacking"),
    [
        # The families that may be chosen, and of what the file names the parameters that none of them has.
        ("LocalMemory: [False]", "ThreadTile: [[32, 8], [16, 4]]", {"NumLoadsCoalescedA", "LdsPad"}),
        ("LocalMemory: [True]", "ThreadTile: [[4, 4], [8, 4]]", set()),
        ("LocalMemory: [True]", "LocalMemory: [True, False]", set()),
        ("ThreadTile: [[4, 4]]", "KernelLanguage: [CUDA, BLAS]", {"NumLoadsCoalescedA", "LdsPad"}),
        (
            "KernelLanguage: [BLAS]",
            "ThreadTile: [[4, 4]]",
            {"NumLoadsCoalescedA", "LdsPad", "LoopUnroll", "ThreadTile"},
        ),
        ("KernelLanguage: [Triton]", "Schedule: [SplitK]", {"NumLoadsCoalescedA", "LdsPad", "LoopUnroll"}),
    ],
)
def test_a_parameter_that_the_chosen_families_lack_is_named_once(tmp_path, first, forked, lacking):
    path = tmp_path / "file.yaml"
    path.write_text(dedent(NOTED.format(first=first, forked=forked)))
    notes = [note for note in read(path, None, None).notes if "no such parameter" in note]
    named = [re.sub(r".*:\d+: (\w+) is ignored: .*", r"\1", note) for note in notes]
    assert sorted(named) == sorted(lacking), notes


def test_the_examples_name_nothing_that_their_families_lack():
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.yaml")):
        if "BenchmarkProblems" in path.read_text():
            assert not [note for note in read(path, 64, None).notes if "no such parameter" in note], path


def test_everything_is_tried_at_once_in_the_last_phase(group):
    """Parameters beside the sizes of the last phase make no fork and no step."""
    made = group(
        """
        BenchmarkFinalParameters:
          - ProblemSizes: [Exact: [8, 8, 8]]
          - DepthU: [8, 16]
            VectorWidth: [1, 2, 4]
          - EdgeType: [ShiftPtr]
        """
    )
    (phases,) = made.groups
    (step,) = phases.steps
    assert isinstance(step, Final)
    assert [(c["DepthU"], c["VectorWidth"]) for c in step.choices] == [
        (8, 1),
        (16, 1),
        (8, 2),
        (16, 2),
        (8, 4),
        (16, 4),
    ]
    assert phases.start["EdgeType"] == "ShiftPtr"
