"""Tuning files of single versions of Tensile's: what a version ran of a file beside what is counted as written, and
names that only some versions had."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from tensile_files import REAL, VERSION_2
from tensile_versions import VERSION_2_0, VERSION_2_4, VERSION_3_0, VERSION_4_9, measured, random_score
from tunesmith.formats.tensile.tuning import Fate
from tunesmith.protocol import Fork
from tunesmith.records import UserError
from tunesmith.session.tuning_file.file import read_imported

needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="Tensile's files are not there (TUNESMITH_DATA)")


@pytest.fixture
def importing(tmp_path):
    """Reads a text as a tuning file; gives the file in our form, and the record of its translation."""

    def read(text):
        path = tmp_path / "theirs.yaml"
        path.write_text(text)
        return read_imported(path, None, None)

    return read


def written_and_document(name):
    """The enqueues of each step as we count them, for each size group in the file's order, and the parsed file."""
    path = REAL / f"{name}.yaml"
    groups = sorted(read_imported(path, None, None)[1].written, key=lambda group: int(group.location.split(":")[-1]))
    steps = [[step.enqueues for step in group.steps if step.enqueues] for group in groups]
    return steps, yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


# --- what versions ran ------------------------------------------------------------------------------------------------


@needs_real
def test_the_written_counts_of_version_4_9_less_what_it_rejected_are_what_it_ran():
    written, document = written_and_document("12_v4.9.0_rocblas_zgemm")
    assert measured(document, VERSION_4_9, rejects=False) == written
    assert sum(map(sum, measured(document, VERSION_4_9))) == 4_196


@needs_real
def test_the_written_counts_of_version_2_4_less_what_it_rejected_are_what_it_ran():
    """Only lineages were rejected: every macro tile that can be joined had one that was left."""
    written, document = written_and_document("07_v2.4.5_rocblas_sgemm")
    ran = measured(document, VERSION_2_4)
    assert sum(map(sum, ran)) == 42_328
    assert [steps[1:] for steps in ran] == [steps[1:] for steps in written]
    assert [written[n][0] - ran[n][0] for n in range(4)] == [1_690] * 4


@needs_real
def test_version_3_0_0_forgot_a_join_over_one_name_and_ran_more_than_is_written():
    written, document = written_and_document("11_v3.0.0_tensor_contraction")
    mended = replace(VERSION_3_0, skips_short_joins=False)
    assert measured(document, mended, rejects=False) == written
    assert sum(map(sum, measured(document, VERSION_3_0))) == 1_578
    assert sum(map(sum, measured(document, mended))) < sum(map(sum, written)) < 1_578


@needs_real
@pytest.mark.parametrize(("name", "ran"), [("03_v2.0.0_sgemm", 297), ("04_v2.0.0_tensor_contraction", 553)])
def test_what_version_2_0_ran_depended_on_its_winners_and_the_written_count_is_the_most(name, ran):
    """Which depths the lineages choose decides how many the join over macro tile and depth leaves."""
    (written,), document = written_and_document(name)
    outcomes = [measured(document, VERSION_2_0, random_score(seed))[0] for seed in range(100)]
    assert {tuple(steps[:2]) for steps in outcomes} == {(15, 17)}
    assert ran in map(sum, outcomes)
    assert max(steps[-1] for steps in outcomes) == written[-1]
    # The first steps had 30 as written, since not every number of loads divides a tile.
    assert written[:2] == [30, 30]


# --- names and lists of single versions -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LocalSplitU", "IntraSplitU"])
def test_the_names_that_split_u_had_before_version_3_are_translated(name, importing):
    theirs = VERSION_2.replace("- SplitU: [1]", f"- {name}: [1, 2]")
    assert theirs != VERSION_2
    (phases,) = importing(theirs)[0].groups
    fork = next(step for step in phases.steps if isinstance(step, Fork))
    assert {choice["WorkGroup"][2] for choice in fork.choices} == {1, 2}


@pytest.mark.parametrize(
    "name",
    ["PreciseBoundsCheck", "LocalSerialInUA", "SplitGlobalRead", "MinGlobalWriteVectorWidth", "ReadCoalesceGroupA"],
)
def test_a_parameter_that_some_version_had_is_held(name, importing):
    text = (
        f"BenchmarkProblems:\n  - - {{OperationType: GEMM, DataType: s}}\n    - ForkParameters: [{{{name}: [0, 1]}}]\n"
    )
    imported = importing(text)[1]
    assert {treatment.fate for treatment in imported.treatments if treatment.name == name} == {Fate.HELD}


def test_lists_that_version_2_added_are_told_and_not_tried(importing):
    """A parameter that some phase has got no list, nor did a phase that stands there without a value."""
    file, imported = importing(
        "BenchmarkProblems:\n"
        "  - ProblemType: {OperationType: GEMM, DataType: s}\n"
        "    ForkParameters:\n      - NumThreads: [64, 256]\n      - DepthU: [8]\n      - SplitU: [1]\n"
    )
    (sentence,) = [sentence for _, sentence in imported.remarks if "its own lists" in sentence]
    assert "version 2.4" in sentence
    for added in ("ThreadTileNumElements: [16, 4, 36, 64]", "NumLoadsCoalescedA: [1, -1]"):
        assert added in sentence
    assert "DepthU" not in sentence
    assert "SplitU" not in sentence
    assert imported.groups[0].steps[-1].lineages == file.groups[0].steps[0].choices.count == 2

    without = importing(
        "BenchmarkProblems:\n"
        "  - ProblemType: {OperationType: GEMM, DataType: s}\n"
        "    BenchmarkCommonParameters:\n      - NumThreads: [64]\n"
        "    ForkParameters:\n"
    )[1]
    assert not [sentence for _, sentence in without.remarks if "its own lists" in sentence]


def test_lists_of_version_2_0_are_told_where_its_names_stand(importing):
    imported = importing(
        "BenchmarkProblems:\n"
        "  - ProblemType: {OperationType: GEMM, DataType: s}\n"
        "    ForkParameters:\n      - WorkGroupEdge: [8, 16]\n"
        "    BenchmarkJoinParameters:\n"
    )[1]
    sentences = " ".join(sentence for _, sentence in imported.remarks)
    assert (
        "version 2.0 also tried its own lists in ForkParameters, which the file does not give: ThreadTileEdge"
        in sentences
    )
    assert "LoopUnroll: [16, 8, 4]" in sentences
    assert "NumLoadsCoalescedA" not in sentences, "its phase is empty"
    assert "joined over DepthU, too" in sentences


def test_macro_tiles_above_the_limit_of_a_dict_file_are_left_out_and_told(importing):
    """8 x 8 and 8 x 16 work-items by 4 x 4 and 4 x 8 elements: the last pair is 32 x 128, 4 to 1."""
    text = (
        "GlobalParameters: {MaxMacroTileRatio: 2}\n"
        "BenchmarkProblems:\n"
        "  - ProblemType: {OperationType: GEMM, DataType: s}\n"
        "    ForkParameters:\n      - WorkGroupEdge: [8]\n      - WorkGroupShape: [0, 1]\n"
        "      - ThreadTileEdge: [4]\n      - ThreadTileShape: [0, 1]\n"
    )
    file, imported = importing(text)
    (fork,) = [step for step in file.groups[0].steps if isinstance(step, Fork)]
    assert [(choice["WorkGroup"], choice["ThreadTile"]) for choice in fork.choices] == [
        ((8, 8, 1), (4, 4)), ((8, 8, 1), (4, 8)), ((8, 16, 1), (4, 4)),
    ]  # fmt: skip
    assert any("more oblong than 2 to 1" in sentence for _, sentence in imported.remarks)
    assert {t.fate for t in imported.treatments if t.name == "MaxMacroTileRatio"} == {Fate.HONOURED}
    allowed = importing(text.replace("Ratio: 2", "Ratio: 4"))[0]
    assert next(step for step in allowed.groups[0].steps if isinstance(step, Fork)).choices.count == 4


def test_macro_tiles_above_the_limit_are_left_out_if_only_one_of_their_parts_varies(importing):
    """16 x 16 work-items by default: 4 x 4 and 2 x 4 elements are within 2 to 1, 2 x 8 are not."""
    text = (
        "GlobalParameters: {MaxMacroTileRatio: 2}\n"
        "BenchmarkProblems:\n"
        "  - ProblemType: {OperationType: GEMM, DataType: s}\n"
        "    ForkParameters:\n      - ThreadTileNumElements: [16]\n      - ThreadTileShape: [0, 4]\n"
        "      - DepthU: [8, 16]\n"
    )
    file, imported = importing(text)
    (fork,) = [step for step in file.groups[0].steps if isinstance(step, Fork)]
    assert fork.choices.count == 2
    assert file.groups[0].start["ThreadTile"] == (4, 4)
    assert any("more oblong than 2 to 1" in sentence for _, sentence in imported.remarks)


def test_a_file_whose_only_sign_of_tensile_stands_beside_a_rejected_type_is_read(importing):
    group = "ForkParameters: [{StaggerU: [0, 32]}]"
    imported = importing(f"BenchmarkProblems:\n  - - {{OperationType: GEMM, DataType: i}}\n    - {group}\n")[1]
    assert [problem.reason for problem in imported.rejected] == ["int32 operands"]


def test_the_early_split_form_has_its_groups_beside_the_fork(importing):
    text = (
        "ProblemType: {OperationType: GEMM, DataType: s, Batched: True}\n"
        "ForkParameters:\n  - PrefetchGlobalRead: [False, True]\n"
        "GroupForkParameters:\n  - - {DepthU: 8, VectorWidth: 1}\n    - {DepthU: 16, VectorWidth: 2}\n"
    )
    file, imported = importing(text)
    assert imported.groups[0].steps[-1].lineages == 4
    assert file.groups[0].steps[0].choices.count == 4


@pytest.mark.parametrize(
    ("number", "letter"), [(0, "s"), (1, "d"), (4, "h"), (7, "b"), (8, "i8"), (10, "f8"), (11, "b8")]
)
def test_a_data_type_may_be_given_by_tensiles_number(number, letter, importing):
    fields = f"{{OperationType: GEMM, DataType: {number}, HighPrecisionAccumulate: {letter not in 'sd'}}}"
    text = f"BenchmarkProblems:\n  - - {fields}\n"
    assert importing(text)[0].groups[0].problem_type.fields["DataType"] == letter


@pytest.mark.parametrize(
    ("number", "reason"),
    [(2, "complex numbers"), (5, "packed integers"), (9, "xfloat32 operands"), (12, "mixed float8 operands"),
     (13, "mixed float8 operands"), (6, "int32 operands")],
)  # fmt: skip
def test_a_number_of_a_type_that_no_kernel_computes_is_rejected_by_name(number, reason, importing):
    imported = importing(f"BenchmarkProblems:\n  - - {{DataType: {number}, HighPrecisionAccumulate: True}}\n")[1]
    assert [problem.reason for problem in imported.rejected] == [reason]


def test_a_library_logic_is_told_from_a_tuning_file(importing):
    logic = "- {MinimumRequiredVersion: 4.4.0}\n- vega10\n- gfx900\n" + "- []\n" * 7
    with pytest.raises(UserError, match="library logic") as caught:
        importing(logic)
    assert "tunesmith logic show" in str(caught.value)


def test_parts_of_version_2_in_groups_of_todays_fork_are_a_mistake_with_its_line(importing):
    """No version had both."""
    with pytest.raises(UserError) as caught:
        importing(
            "ProblemType: {OperationType: GEMM, DataType: s}\n"
            "ForkParameters:\n  - Groups:\n    - - {NumThreads: 64}\n      - {NumThreads: 256}\n"
        )
    assert "NumThreads" in str(caught.value)
    assert caught.value.errors[0].location.endswith(("theirs.yaml:4", "theirs.yaml:5"))
