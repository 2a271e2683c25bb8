"""Tuning files of Tensile's, of every era: each is told by its shape, translated, and counted as it is written."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from tensile_counter import counted
from tensile_files import DIALECTS, REAL, SPLIT, SPLIT_SIZES, VERSION_2
from tunesmith import session
from tunesmith.formats.tensile.tuning import Dialect, Fate, names
from tunesmith.formats.tensile.tuning.geometry import PARTS
from tunesmith.protocol import Benchmark, Final, Fork, Join
from tunesmith.protocol.tensile import FOREIGN_PARAMETERS, RENAMED_PARAMETERS
from tunesmith.records import UserError
from tunesmith.session.tuning_file import import_file
from tunesmith.session.tuning_file.file import read_imported

ENQUEUES = {
    "DESIGN": [3, 2, 4, 16, 24, 27],
    "VERSION_2": [8, 8, 4],
    "SIZE_GROUPS": [48, 8],
    "FORK_AND_FINAL": [34],
    "SPLIT": [24],
}
"""By hand, from the remarks beside the files."""


@pytest.fixture
def importing(tmp_path):
    """Reads a text as a tuning file; gives the file in our form, and the record of its translation."""

    def read(text, sizes=None, **options):
        path = tmp_path / "theirs.yaml"
        path.write_text(dedent(text))
        if sizes is not None:
            (tmp_path / "sizes.yaml").write_text(sizes)
            options["sizes"] = tmp_path / "sizes.yaml"
        return read_imported(path, None, None, **options)

    return read


def sizes_for(name):
    return SPLIT_SIZES if name == "SPLIT" else None


def choices(phases):
    """The number of choices of each step."""
    return [len(step.choices) for step in phases.steps if isinstance(step, Fork | Benchmark)]


def fate_of(imported, name):
    return {treatment.fate for treatment in imported.treatments if treatment.name == name}


def list_file(group, fields="DataType: s"):
    """A file in list form with a single size group."""
    return f"BenchmarkProblems:\n  - - {{OperationType: GEMM, {fields}}}\n    - {group}\n"


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_told_by_its_shape(name, importing):
    assert importing(DIALECTS[name], sizes_for(name))[1].dialect is Dialect[name]


@pytest.mark.parametrize("name", DIALECTS)
def test_steps_are_counted_as_written(name, importing):
    """By hand, and by a counter that makes every lineage."""
    imported = importing(DIALECTS[name], sizes_for(name))[1]
    enqueues = [step.enqueues for group in imported.written for step in group.steps if step.enqueues]
    assert enqueues == ENQUEUES[name]
    document, sizes = yaml.safe_load(DIALECTS[name]), yaml.safe_load(SPLIT_SIZES) if name == "SPLIT" else None
    assert [
        ([step.enqueues for step in group.steps if step.enqueues], group.exhaustive) for group in imported.written
    ] == counted(document, sizes)


def test_a_dict_file_without_join_parameters_joins_over_the_macro_tile_and_says_so(importing):
    file, imported = importing(VERSION_2)
    assert [step.names for step in file.groups[0].steps if isinstance(step, Join)] == [("MacroTile",)]
    assert any("the macro tile is joined" in sentence for _, sentence in imported.remarks)


def test_a_dict_file_with_empty_join_parameters_keeps_one_lineage(importing):
    text = VERSION_2.replace("    BenchmarkJoinParameters:", "    JoinParameters:\n    BenchmarkJoinParameters:")
    file, imported = importing(text)
    assert [step.names for step in file.groups[0].steps if isinstance(step, Join)] == [()]
    assert imported.groups[0].steps[-1].lineages == 1


def test_empty_join_parameters_are_no_join_in_later_files(importing):
    text = DIALECTS["SIZE_GROUPS"].replace("      JoinParameters:\n", "      JoinParameters: []\n")
    file, imported = importing(text)
    assert not [step for step in file.groups[0].steps if isinstance(step, Join)]
    assert imported.groups[0].steps[-1].lineages == 16
    assert any("no join" in sentence for _, sentence in imported.remarks)


def test_parts_of_version_2_become_work_groups_and_tiles(importing):
    """64 work-items are 8 x 8; with a ratio of 2 they have no whole sides, and 128 have them only then."""
    (phases,) = importing(VERSION_2)[0].groups
    fork = next(step for step in phases.steps if isinstance(step, Fork))
    assert [choice["WorkGroup"] for choice in fork.choices] == [(8, 8, 1), (8, 16, 1)]
    assert phases.start["ThreadTile"] == (4, 4)
    assert [choice["WorkGroupMapping"] for choice in phases.steps[-2].choices] == [2, 1]


def test_edges_and_shapes_become_work_groups_and_tiles(importing):
    (phases,) = importing(DIALECTS["DESIGN"])[0].groups
    fork = next(step for step in phases.steps if isinstance(step, Fork))
    assert sorted((choice["WorkGroup"], choice["ThreadTile"]) for choice in fork.choices) == [
        ((8, 8, 1), (2, 2)), ((8, 8, 1), (4, 4)), ((16, 16, 1), (2, 2)), ((16, 16, 1), (4, 4)),
    ]  # fmt: skip
    assert phases.start["WorkGroupMapping"] == 4


def test_what_is_held_collapses_and_is_named_once_with_all_its_values(importing):
    file, imported = importing(DIALECTS["SIZE_GROUPS"])
    assert choices(file.groups[0]) == [4]  # 2 tiles x 2 depths, of 16 that are written
    (staggered,) = [treatment for treatment in imported.treatments if treatment.name == "StaggerU"]
    assert (staggered.fate, staggered.written) == (Fate.HELD, (0, 32))
    assert staggered.location.endswith(":28")


@pytest.mark.parametrize(
    ("name", "fate"),
    [
        ("StridedBatched", Fate.TRANSLATED), ("KernelLanguage", Fate.HELD), ("BufferLoad", Fate.HELD),
        ("ExitOnFails", Fate.DROPPED), ("DataInitTypeBeta", Fate.HONOURED), ("MinStride", Fate.DROPPED),
        ("ArchitectureName", Fate.TRANSLATED), ("DepthU", Fate.HELD), ("VectorWidth", Fate.HELD),
    ],
)  # fmt: skip
def test_every_name_has_its_fate(name, fate, importing):
    assert fate in fate_of(importing(DIALECTS["SIZE_GROUPS"])[1], name)


def test_problem_types_that_no_kernel_computes_are_rejected_by_name_and_the_rest_runs(importing):
    file, imported = importing(DIALECTS["SIZE_GROUPS"])
    assert len(file.groups) == 1
    (rejected,) = imported.rejected
    assert (rejected.reason, rejected.detail) == ("complex numbers", "DataType: z")
    assert rejected.location.endswith(":41")
    assert [group.enqueues for group in rejected.groups] == [8]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("DataType: C", "complex numbers"),
        ("DataType: 3", "complex numbers"),
        ("DataType: 4xi8, DestDataType: I", "packed integers"),
        ("DataType: F8B8", "mixed float8 operands"),
        ("DataType: s, UseInitialStridesAB: True", "initial strides"),
        ("DataType: s, ZeroPadA: [[0, 2, 1, 1]]", "padded indices"),
        ("DataType: d, DestDataType: s, HighPrecisionAccumulate: True", "data types"),
    ],
)
def test_a_rejection_has_its_constant_reason(fields, reason, importing):
    file, imported = importing(list_file("ForkParameters: [{DepthU: [8, 16]}]", fields))
    assert file.groups == ()
    assert [(problem.reason, problem.groups[0].enqueues) for problem in imported.rejected] == [(reason, 8)]


def test_a_contraction_is_rejected_and_counted(importing):
    text = """
    BenchmarkProblems:
      - ProblemType: {OperationType: TensorContraction, DataType: s, NumIndicesC: 3,
                      IndexAssignmentsA: [0, 3, 2], IndexAssignmentsB: [1, 3, 2]}
        ForkParameters: [{DepthU: [8, 16]}]
        JoinParameters: [DepthU]
        BenchmarkFinalParameters: [{ProblemSizes: [[16, 64], [16], [2], [8]]}]
    """
    imported = importing(text)[1]
    assert [(problem.reason, problem.groups[0].enqueues) for problem in imported.rejected] == [
        ("tensor contraction", 2 + 2 * 4)
    ]


def test_half_with_high_precision_is_the_type_that_we_have(importing):
    text = list_file("ForkParameters: [{DepthU: [8, 16]}]", "DataType: h, HighPrecisionAccumulate: True")
    file, imported = importing(text)
    assert file.groups[0].problem_type.fields["DataType"] == "h"
    assert fate_of(imported, "HighPrecisionAccumulate") == {Fate.HONOURED}


def test_todays_groups_custom_kernels_and_sizes_as_dicts_are_read(importing):
    file, imported = importing(DIALECTS["FORK_AND_FINAL"])
    (phases,) = file.groups
    assert choices(phases) == [4]
    assert all(not isinstance(step, Benchmark) for step in phases.steps), "common values are a fork today"
    final = phases.steps[-1]
    assert isinstance(final, Final)
    # A leading dimension above the smallest is kept, and one below is raised to it.
    assert [(p.sizes, p.leading) for p in final.problems] == [
        ((64, 48, 32), (64, 64, 80, 48)), ((64, 48, 32), ()),
    ]  # fmt: skip
    assert fate_of(imported, "CustomKernels") == {Fate.DROPPED}


def test_the_split_form_takes_a_sizes_file(importing):
    (phases,) = importing(SPLIT, SPLIT_SIZES)[0].groups
    assert [p.sizes for p in phases.steps[-1].problems] == [(64, 32, 2, 48), (32, 32, 1, 32), (64, 32, 1, 32)]


def test_the_split_form_without_sizes_measures_the_default_and_says_so(importing):
    (phases,), imported = (lambda file, record: (file.groups, record))(*importing(SPLIT))
    assert len(phases.steps[-1].problems) == 4
    assert any("--sizes" in sentence for _, sentence in imported.remarks)


def test_a_sizes_file_for_another_form_is_refused(importing):
    with pytest.raises(UserError, match="leave --sizes out"):
        importing(VERSION_2, SPLIT_SIZES)


def test_a_key_that_is_given_twice_has_its_last_value_as_in_tensile(importing):
    text = SPLIT.replace("LdsPadA: [0, 4]", "LdsPadA: [0, 4]\n  LdsPadA: [2]")
    imported = importing(text)[1]
    assert [t.name for t in imported.treatments if t.section == "repeated key"] == ["LdsPadA"]
    assert imported.groups[0].varied == (2, 2)


def test_missing_indices_of_a_bare_range_are_copies_of_the_first(importing):
    (phases,) = importing(DIALECTS["DESIGN"].replace("[[96], 0, 0]", "[[96]]"))[0].groups
    assert [p.sizes for p in phases.steps[0].problems] == [(96, 96, 96)]


def test_every_parameter_of_tensiles_has_a_row_in_the_tables():
    """The reader of our own form knows Tensile's names, too; no name may be known there only."""
    translated = {*names.HELD, *names.ONLY_BESIDE_SCHEDULE, *names.RENAMED, *names.VALUES, *names.MEANINGS, *PARTS}
    assert FOREIGN_PARAMETERS - translated == {"CustomKernels"}  # a key of a size group
    assert RENAMED_PARAMETERS.keys() <= translated


# --- strictness ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("ForkParameters: [{BufferLaod: [True], BufferLoad: [True]}]", "no BufferLaod"),
        ("ForkParameters: [{DephtU: [8], StaggerU: [0]}]", "did you mean DepthU?"),
        ("ForkParameters: [{WorkGroupMapping: [many], StaggerU: [0]}]", "WorkGroupMapping cannot be many"),
        ("{ForkParametres: [{StaggerU: [0]}], ForkParameters: [{StaggerU: [0]}]}", "did you mean ForkParameters?"),
        ("{ForkParameters: [{StaggerU: [0]}, {DepthU: [8, 16]}], JoinParameters: [DepthV]}", "no DepthV to join over"),
    ],
)
def test_a_name_or_value_of_neither_is_a_mistake_with_its_line(group, words, importing):
    with pytest.raises(UserError) as caught:
        importing(list_file(group))
    assert words in str(caught.value)
    assert all(mistake.location.endswith("theirs.yaml:3") for mistake in caught.value.errors)


@pytest.mark.parametrize(
    "group",
    [
        "ForkParameters: [{DepthU: [8, 16], DepthU: [8]}]",
        "ForkParameters: [{VectorWidth: [1, 3]}]",
        "{BenchmarkCommonParameters: [{DepthU: [8]}], ForkParameters: [{DepthU: [8, 16]}]}",
        "BenchmarkFinalParameters: [{ProblemSizes: [{Range: [[100, 64], [64], [64]]}]}]",
        "BenchmarkFinalParameters: [{ProblemSizes: [{Range: [[64], [64]]}]}]",
        "BenchmarkFinalParameters: [{ProblemSizes: [{Exact: [64, 64, 64, 8, 8, 8, 8]}]}]",
    ],
)
def test_what_tensile_lets_pass_is_a_mistake_in_a_file_without_a_sign_of_tensile(group, importing):
    with pytest.raises(UserError):
        importing(list_file(group))
    # With such a sign, the file is read.
    signed = list_file(group, "DataType: s, HighPrecisionAccumulate: True")
    assert importing(signed)[1] is not None


def test_a_file_in_our_form_is_no_import(importing):
    for path in sorted((Path(__file__).parents[3] / "examples").glob("*.yaml")):
        if "BenchmarkProblems" in path.read_text():
            assert read_imported(path, None, None)[1] is None, path


def test_an_imported_file_is_in_our_form_and_plans_the_same_steps(importing, tmp_path):
    for name in DIALECTS:
        file, imported = importing(DIALECTS[name], sizes_for(name))
        new = tmp_path / f"{name}.yaml"
        sizes = tmp_path / "sizes.yaml" if sizes_for(name) else None
        import_file(tmp_path / "theirs.yaml", new, sizes=sizes)
        again, record = read_imported(new, None, None)
        assert record is None, name
        assert again.groups == file.groups, name
        assert again.logic == file.logic
        comments = [line for line in new.read_text().splitlines() if line.startswith("#")]
        for treatment in imported.treatments:
            assert any(treatment.name in line and treatment.becomes in line for line in comments), treatment


def test_import_overwrites_nothing_and_refuses_a_file_in_our_form(importing, tmp_path):
    importing(VERSION_2)
    (tmp_path / "new.yaml").write_text("mine")
    with pytest.raises(UserError, match="the file exists"):
        import_file(tmp_path / "theirs.yaml", tmp_path / "new.yaml")
    assert (tmp_path / "new.yaml").read_text() == "mine"
    with pytest.raises(UserError, match="in our form already"):
        import_file(Path(__file__).parents[3] / "examples" / "quickstart.yaml", tmp_path / "other.yaml")


def test_the_page_counts_its_example_rightly(importing):
    page = (Path(__file__).parents[3] / "docs" / "from-tensile.md").read_text()
    text = page.partition("```yaml\n")[2].partition("```")[0]
    file, imported = importing(text)
    (group,) = imported.groups
    assert (group.steps[0].choices, group.steps[-1].lineages) == (16, 3)
    fork = next(step for step in file.groups[0].steps if isinstance(step, Fork))
    mapped = next(step for step in file.groups[0].steps if isinstance(step, Benchmark))
    assert (len(fork.choices), len(mapped.choices)) == (8, 2)


def test_tuning_refuses_a_file_of_which_no_problem_is_left_with_the_reasons(importing, tmp_path):
    importing(list_file("ForkParameters: [{DepthU: [8, 16]}]", "DataType: z"))
    with pytest.raises(UserError, match="complex numbers") as caught:
        session.tune(tmp_path / "theirs.yaml", tmp_path / "out")
    assert caught.value.errors[0].location.endswith("theirs.yaml:2")


# --- real files ------------------------------------------------------------------------------------------------------

needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="Tensile's files are not there (TUNESMITH_DATA)")
EXHAUSTIVE = {
    "03_v2.0.0_sgemm": [19_200],
    "04_v2.0.0_tensor_contraction": [38_400],
    "07_v2.4.5_rocblas_sgemm": [34_406_400] * 4,
    "16_HEAD_rocblas_sgemm_example": [116_736],
}
"""The exhaustive products that were counted with Tensile's own code."""
SURVIVORS = {"07_v2.4.5_rocblas_sgemm": 8}
ENQUEUES_TODAY = {"16_HEAD_rocblas_sgemm_example": 116_736, "19_HEAD_streamk_2tile_sgemm": 1_472}


@needs_real
@pytest.mark.parametrize("path", sorted(REAL.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_real_file_is_read_and_counted_like_by_the_second_counter(path):
    imported = read_imported(path, None, None)[1]
    found = [([step.enqueues for step in group.steps if step.enqueues], group.exhaustive) for group in imported.written]
    assert sorted(found) == sorted(counted(yaml.load(path.read_text(), Loader=yaml.CSafeLoader)))
    if path.stem in EXHAUSTIVE:
        assert [group.exhaustive for group in imported.written] == EXHAUSTIVE[path.stem]
    if path.stem in SURVIVORS:
        assert {group.steps[-1].lineages for group in imported.written} == {SURVIVORS[path.stem]}
    if path.stem in ENQUEUES_TODAY:
        assert sum(group.enqueues for group in imported.written) == ENQUEUES_TODAY[path.stem]
