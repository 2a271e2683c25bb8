"""What a tuning file means: steps, starting values and notes; and what a mistake in one is answered with."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tunesmith.bench._job import Policy
from tunesmith.problems.gemm import gemm_type
from tunesmith.protocol import Benchmark, Final, Fork, GlobalParameters, Join, Objective, Phase, reference
from tunesmith.records import UserError
from tuning_space import SPACE, read

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture
def file(tmp_path):
    """Write a tuning file and read it."""

    def write(text, **options):
        path = tmp_path / "file.yaml"
        path.write_text(dedent(text))
        return read(path, **options)

    return write


@pytest.fixture
def group(file):
    """Read one size group of a GEMM; `before` goes in front of BenchmarkProblems."""

    def write(text, problem_type="{DataType: s, TransposeB: False}", before="", **options):
        body = indent(dedent(text).strip() or "{}", " " * 6)
        return file(f"{before}\nBenchmarkProblems:\n  - - {problem_type}\n    -\n{body}\n", **options)

    return write


def steps_of(read_file, number=0):
    return read_file.groups[number].steps


def sizes_of(step):
    return [problem.sizes for problem in step.problems]


def complaint(write, text, *args, **options):
    with pytest.raises(UserError) as caught:
        write(text, *args, **options)
    return caught.value


def line_of(error):
    return int(error.place.rpartition(":")[2])


# --- the wiki's example ---------------------------------------------------------------------------------------------


def test_the_wikis_example_has_the_steps_that_it_describes():
    wiki = read(ROOT / "examples" / "wiki.yaml")
    (phases,) = wiki.groups
    common, fork, loads_a, loads_b, join, unroll, final = phases.steps
    assert (common.phase, len(common.choices), sizes_of(common)) == (Phase.COMMON, 4, [(512, 512, 1, 512)])
    assert isinstance(fork, Fork)
    assert len(fork.choices) == 9
    assert [len(step.choices) * len(fork.choices) for step in (loads_a, loads_b)] == [36, 36]
    assert sizes_of(loads_a) == sizes_of(loads_b) == sizes_of(unroll) == [(2880, 2880, 1, 2880)]
    assert join.names == ("MacroTile",)
    tiles = {(wg[0] * tt[0], wg[1] * tt[1]) for wg, tt in ((c["WorkGroup"], c["ThreadTile"]) for c in fork.choices)}
    assert tiles == {(16, 256), (32, 128), (64, 64), (128, 32), (256, 16)}
    assert len(unroll.choices) * len(tiles) == 10
    assert len(final.problems) * len(tiles) == 320
    assert phases.problem_type == gemm_type("s", batched=True)
    assert phases.start == SPACE.defaults
    assert phases.objective is Objective.GEOMEAN
    assert sum("DataType: s" in note for note in wiki.notes) == 1


def test_the_wikis_example_is_written_in_the_order_in_which_it_varies():
    common, fork, *_ = steps_of(read(ROOT / "examples" / "wiki.yaml"))
    assert [tuple(choice.values()) for choice in common.choices] == [
        ("Branch", False), ("ShiftPtr", False), ("Branch", True), ("ShiftPtr", True),
    ]  # fmt: skip
    assert [choice["WorkGroup"][0] for choice in fork.choices[:4]] == [8, 16, 32, 8]


def test_clamped_the_wikis_example_has_fewer_and_smaller_sizes():
    common, _, loads, *_, final = steps_of(read(ROOT / "examples" / "wiki.yaml", max_size=100))
    assert sizes_of(common) == [(100, 100, 1, 100)] == sizes_of(loads)
    assert len(final.problems) == 7 * 7
    assert max(max(sizes) for sizes in sizes_of(final)) == 100


# --- parameters and phases ------------------------------------------------------------------------------------------


def test_precedence_is_single_value_then_initial_then_default(group):
    made = group("""
        InitialSolutionParameters:
          - VectorWidth: [2]
          - DepthU: [8]
          - WorkGroupMapping: [4]
        BenchmarkCommonParameters:
          - VectorWidth: [4]
        BenchmarkJoinParameters:
          - DepthU: [16, 32]
    """)
    start = made.groups[0].start
    assert (start["VectorWidth"], start["DepthU"], start["WorkGroupMapping"], start["GlobalSplitU"]) == (4, 8, 4, 1)
    ignored = [note for note in made.notes if "ignored" in note]
    assert len(ignored) == 1
    assert "VectorWidth 2 is ignored: it is 4 throughout" in ignored[0]


def test_an_initial_value_that_the_fork_replaces_unseen_is_said_to_be_ignored(group):
    text = "InitialSolutionParameters: [DepthU: [8]]\n{common}ForkParameters: [DepthU: [16, 32]]"
    assert any("DepthU 8 is ignored" in note for note in group(text.format(common="")).notes)
    measured = group(text.format(common="BenchmarkCommonParameters: [VectorWidth: [1, 2]]\n"))
    assert not any("ignored" in note for note in measured.notes)


def test_a_step_without_alternatives_is_no_step(group):
    made = group("""
        BenchmarkCommonParameters:
          - EdgeType: [ShiftPtr]
            DepthU: [8, 8]
          - VectorWidth: 2
        ForkParameters: {GlobalSplitU: [2]}
    """)
    assert [type(step) for step in steps_of(made)] == [Final]
    start = made.groups[0].start
    assert (start["EdgeType"], start["DepthU"], start["VectorWidth"], start["GlobalSplitU"]) == ("ShiftPtr", 8, 2, 2)
    assert made.groups[0].tuned == ()
    assert any("DepthU lists a value more than once" in note for note in made.notes)


def test_single_values_leave_the_step_of_their_dict(group):
    made = group("BenchmarkCommonParameters: [{EdgeType: [ShiftPtr], DepthU: [8, 16], VectorWidth: [1, 2]}]")
    step = steps_of(made)[0]
    assert [tuple(choice) for choice in step.choices] == [("DepthU", "VectorWidth")] * 4
    assert made.groups[0].start["EdgeType"] == "ShiftPtr"


def test_all_dicts_of_a_fork_are_one_product_and_of_a_benchmark_one_step_each(group):
    made = group("""
        ForkParameters:
          - DepthU: [8, 16]
          - VectorWidth: [1, 2, 4]
        BenchmarkForkParameters:
          - NumLoadsCoalescedA: [1, 2]
          - NumLoadsCoalescedB: [1, 2]
    """)
    fork, *benchmarks, _ = steps_of(made)
    assert [(c["DepthU"], c["VectorWidth"]) for c in fork.choices] == [
        (8, 1),
        (16, 1),
        (8, 2),
        (16, 2),
        (8, 4),
        (16, 4),
    ]
    assert [[tuple(c) for c in step.choices] for step in benchmarks] == [
        [("NumLoadsCoalescedA",)] * 2, [("NumLoadsCoalescedB",)] * 2,
    ]  # fmt: skip
    assert made.groups[0].tuned == (
        ("DepthU", (8, 16)), ("VectorWidth", (1, 2, 4)), ("NumLoadsCoalescedA", (1, 2)), ("NumLoadsCoalescedB", (1, 2)),
    )  # fmt: skip


def test_a_group_of_settings_is_one_factor_of_the_fork(group):
    made = group("""
        ForkParameters:
          - Groups:
            - - {WorkGroup: [8, 8, 1], ThreadTile: [8, 8]}
              - {WorkGroup: [16, 16, 1], ThreadTile: [4, 4]}
          - DepthU: [8, 16]
        JoinParameters: [WorkGroup]
    """)
    fork, join, _ = steps_of(made)
    assert [(c["WorkGroup"][0], c["ThreadTile"][0], c["DepthU"]) for c in fork.choices] == [
        (8, 8, 8), (16, 4, 8), (8, 8, 16), (16, 4, 16),
    ]  # fmt: skip
    assert join.names == ("WorkGroup",)
    assert dict(made.groups[0].tuned)["ThreadTile"] == ((8, 8), (4, 4))


def test_truth_values_may_be_numbers_and_mean_the_same(group):
    made = group("ForkParameters: [PrefetchGlobalRead: [0, 1, True]]")
    assert [choice["PrefetchGlobalRead"] for choice in steps_of(made)[0].choices] == [False, True]


# --- join -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "JoinParameters:", "JoinParameters: null"])
def test_an_absent_or_empty_join_keeps_every_lineage(group, text):
    made = group(f"ForkParameters: [DepthU: [8, 16]]\n{text}")
    assert not any(isinstance(step, Join) for step in steps_of(made))


def test_an_empty_list_joins_to_one(group):
    made = group("ForkParameters: [DepthU: [8, 16]]\nJoinParameters: []")
    assert steps_of(made)[1].names == ()


def test_a_join_names_forked_parameters_and_derived_values_once(group):
    made = group("ForkParameters: [VectorWidth: [1, 2]]\nJoinParameters: [VectorWidth, MacroTile, DepthU, MacroTile]")
    assert steps_of(made)[1].names == ("VectorWidth", "MacroTile", "DepthU")


def test_a_join_over_a_forked_parameter_with_one_value_is_taken(group):
    made = group("ForkParameters: [VectorWidth: [1, 2], GlobalSplitU: [2]]\nJoinParameters: [GlobalSplitU]")
    assert steps_of(made)[1].names == ("GlobalSplitU",)


@pytest.mark.parametrize("name", ["EdgeType", "macrotile", "Tile"])
def test_an_unknown_name_to_join_over_is_answered_with_the_legal_ones(group, name):
    error = complaint(group, f"ForkParameters: [VectorWidth: [1, 2]]\nJoinParameters:\n  - {name}")
    assert all(legal in error.remedy for legal in ("VectorWidth", "MacroTile", "DepthU", "WorkGroupSize"))
    assert line_of(error) == 7


def test_a_join_without_a_fork_is_said_to_have_nothing_to_do(group):
    made = group("JoinParameters: [MacroTile]")
    assert [type(step) for step in steps_of(made)] == [Final]
    assert any("nothing to join" in note for note in made.notes)


# --- sizes ----------------------------------------------------------------------------------------------------------


def test_sizes_hold_from_their_place_on_and_into_the_next_phase(group):
    made = group("""
        BenchmarkCommonParameters:
          - ProblemSizes: [Exact: [1, 1, 1]]
          - EdgeType: [Branch, ShiftPtr]
          - ProblemSizes: [Exact: [2, 2, 2]]
          - VectorWidth: [1, 2]
        ForkParameters:
          - DepthU: [8, 16]
        BenchmarkForkParameters:
          - NumLoadsCoalescedA: [1, 2]
          - ProblemSizes: [Exact: [3, 3, 3]]
            NumLoadsCoalescedB: [1, 2]
        JoinParameters: [MacroTile]
        BenchmarkJoinParameters:
          - GlobalSplitU: [1, 2]
          - ProblemSizes: [Exact: [4, 4, 4]]
          - WorkGroupMapping: [1, 2]
        BenchmarkFinalParameters:
          - ProblemSizes: [Exact: [5, 5, 5]]
    """)
    measured = [sizes_of(step)[0][0] for step in steps_of(made) if not isinstance(step, Fork)]
    assert measured == [1, 2, 2, 3, 3, 3, 4, 5]


def test_the_final_step_inherits_nothing(group):
    made = group("BenchmarkCommonParameters:\n  - ProblemSizes: [Exact: [1, 1, 1]]\n  - VectorWidth: [1, 2]")
    assert sizes_of(steps_of(made)[-1]) == [(n, n, n) for n in (64, 128, 256, 448)]
    assert any("Range: [[64, 64, 64, 512], 0, 0] is measured" in note for note in made.notes)


def test_default_sizes_fit_the_number_of_indices(group):
    made = group("BenchmarkCommonParameters: [VectorWidth: [1, 2]]", "{DataType: d, Batched: True}")
    common, final = steps_of(made)
    assert sizes_of(common) == [(2880, 2880, 1, 2880)]
    assert sizes_of(final) == [(n, n, 1, n) for n in (64, 128, 256, 448)]
    assert sum("Range: [[2880], 0, [1], 0] is measured" in note for note in made.notes) == 1


def test_sizes_on_which_nothing_is_measured_are_said(group):
    made = group("""
        BenchmarkCommonParameters:
          - ProblemSizes: [Exact: [1, 1, 1]]
          - ProblemSizes: [Exact: [2, 2, 2]]
          - VectorWidth: [1, 2]
        BenchmarkFinalParameters: [ProblemSizes: [Exact: [5, 5, 5]]]
    """)
    assert [re.sub(r".*yaml:(\d+).*", r"\1", note) for note in made.notes] == ["6"]
    assert not any("2880" in note for note in made.notes)


def test_ranges_and_exacts_join_each_size_once_in_order(group):
    made = group("""
        BenchmarkFinalParameters:
          - ProblemSizes:
            - Range: [[16, 48], 0, [8]]
            - Exact: [32, 32, 8]
            - Exact: [7, 5, 3, 9, 7, 7, 3]
            - Range: [[32, 64], 0, [8]]
            - Exact: [7, 5, 3]
    """)
    final = steps_of(made)[-1]
    assert sizes_of(final) == [(16, 16, 8), (32, 32, 8), (48, 48, 8), (7, 5, 3), (64, 64, 8), (7, 5, 3)]
    assert [p.leading for p in final.problems] == [(), (), (), (9, 7, 7, 3), (), ()]


def test_every_problem_has_the_scalars_of_its_type(group):
    made = group("BenchmarkCommonParameters: [VectorWidth: [1, 2]]", "{DataType: s, Alpha: 2, Beta: 0.5}")
    scalars = {problem.scalars for step in steps_of(made) for problem in step.problems}
    assert [dict(each) for each in scalars] == [{"alpha": 2.0, "beta": 0.5}]
    assert made.groups[0].problem_type == gemm_type("s")


# --- problem types, groups, globals, logic --------------------------------------------------------------------------


def test_groups_are_numbered_within_their_problem_type(file):
    made = file("""
        BenchmarkProblems:
          - [{DataType: s}, {}, {}]
          - [{DataType: d}, {}]
          - [{DataType: S}]
    """)
    assert [(g.problem_type.name[-2:], g.group) for g in made.groups] == [("SB", 0), ("SB", 1), ("DB", 0), ("SB", 2)]


def test_missing_data_types_are_said_once_for_the_file(file):
    made = file("BenchmarkProblems:\n  - [{Batched: True}, {}]\n  - [{TransposeA: True}, {}]\n")
    assert sum("DataType" in note for note in made.notes) == 1


def test_aliases_and_merges_share_parts_of_a_file(file):
    made = file("""
        BenchmarkProblems:
          - - &sgemm {DataType: s, TransposeA: True}
            - &group
              ForkParameters: [VectorWidth: [1, 2]]
          - - {<<: *sgemm, TransposeA: False}
            - <<: *group
              JoinParameters: [MacroTile]
    """)
    assert [g.problem_type.fields["TransposeA"] for g in made.groups] == [True, False]
    assert [type(step) for step in steps_of(made, 1)] == [Fork, Join, Final]


def test_global_parameters_fill_fields_that_the_policy_has(group):
    made = group(
        "", before="GlobalParameters: {StepObjective: worst, BudgetMinutes: 5, Noise: 5e-3, ColdCache: 0, Seed: 7}"
    )
    assert made.globals == GlobalParameters(Objective.WORST, budget_minutes=5, noise=0.005, cold=False, seed=7)
    assert made.groups[0].objective is Objective.WORST
    assert made.globals.policy() == {"noise": 0.005, "cold": False, "seed": 7}
    apart = {"objective", "budget_minutes"}
    assert {f.name for f in fields(GlobalParameters)} - apart <= {f.name for f in fields(Policy)}


def test_tensiles_globals_are_ignored_and_said(group):
    made = group("", before="GlobalParameters: {PrintLevel: 1, SyncsPerBenchmark: 2, KernelTime: True}\nLibraryClient:")
    notes = "\n".join(made.notes)
    assert "PrintLevel, KernelTime" in notes
    assert "SyncsPerBenchmark is ignored: " in notes
    assert "LibraryClient is ignored" in notes
    assert made.globals == GlobalParameters()


def test_library_logic_carries_its_labels(group):
    made = group("", before='LibraryLogic: {ScheduleName: "vega", DeviceNames: [a, b], Threshold: 0.1}')
    assert (made.logic.schedule_name, made.logic.device_names) == ("vega", ("a", "b"))
    assert any("Threshold" in note for note in made.notes)


# --- mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("ForkParameter: [DepthU: [8]]", 5, ["ForkParameter", "did you mean ForkParameters?"]),
        ("ForkParameters: [DephtU: [8]]", 5, ["DephtU", "did you mean DepthU?"]),
        ("ForkParameters:\n  - DepthU: [8, deep]", 6, ["DepthU cannot be deep", "natural number"]),
        ("ForkParameters:\n  - DepthU:\n    - 8\n    - -1", 8, ["DepthU cannot be -1"]),
        ("ForkParameters: [WorkGroup: [16, 16, 1]]", 5, ["WorkGroup cannot be 16", "list of 3"]),
        ("ForkParameters: [DepthU: []]", 5, ["DepthU has no values"]),
        ("ForkParameters: [DepthU: ]", 5, ["DepthU is empty"]),
        ("ForkParameters: [DepthU: {8: 9}]", 5, ["8 is no key"]),
        ("ForkParameters: DepthU", 5, ["ForkParameters is DepthU, expected a list"]),
        ("ForkParameters: [DepthU]", 5, ["an item of ForkParameters is DepthU"]),
        ("ForkParameters:\n  -", 6, ["an item of ForkParameters is empty"]),
        ("ForkParameters: [SplitU: [1, 2]]", 5, ["SplitU is no parameter any more", "LocalSplitU"]),
        ("ForkParameters: [StaggerU: [0, 32]]", 5, ["StaggerU is a parameter of Tensile's", "remove it"]),
        ("ForkParameters: [DepthU: [8, 16], DepthU: [8]]", 5, ["DepthU is given twice"]),
        ("ForkParameters: [{DepthU: [8], DepthU: [16]}]", 5, ["DepthU is given twice (first at"]),
        (
            "BenchmarkCommonParameters: [DepthU: [8]]\nBenchmarkJoinParameters:\n  - DepthU: [8, 16]",
            7,
            ["DepthU is given twice", "file.yaml:5"],
        ),
        ("InitialSolutionParameters: [DepthU: [8, 16]]", 5, ["DepthU starts with 2 values"]),
        ("InitialSolutionParameters: [{DepthU: [8]}, {DepthU: [8]}]", 5, ["DepthU is given twice"]),
        ("InitialSolutionParameters: [ProblemSizes: [Exact: [1, 1, 1]]]", 5, ["has no sizes"]),
        ("BenchmarkFinalParameters: [DepthU: [8, 16]]", 5, ["varies nothing", "BenchmarkJoinParameters"]),
        (
            "BenchmarkFinalParameters:\n  - ProblemSizes: [Exact: [1, 1, 1]]\n  - ProblemSizes: [Exact: [1, 1, 1]]",
            7,
            ["ProblemSizes is given twice"],
        ),
        ("JoinParameters: [MacroTile: [1]]", 5, ["JoinParameters lists names"]),
        ("BenchmarkFinalParameters: [ProblemSizes: [[16], [16], [16]]]", 5, ["version 2", "- Range"]),
        ("BenchmarkFinalParameters: [ProblemSizes: [Rnage: [[16], 0, 0]]]", 5, ["did you mean Range?"]),
        ("BenchmarkFinalParameters: [ProblemSizes: []]", 5, ["names no size"]),
        ("BenchmarkFinalParameters: [ProblemSizes: [Exact: {sizes: [1]}]]", 5, ["with keys", "list of sizes"]),
        (
            "BenchmarkFinalParameters:\n  - ProblemSizes:\n    - Range:\n      - [16]\n      - [64, 0, 512]\n      - 0",
            9,
            ["ProblemSizes.Range[1]: step 0 never reaches 512 in [64, 0, 512]"],
        ),
        ("BenchmarkFinalParameters: [ProblemSizes: [Range: [[16], 0, [1], 0]]]", 5, ["4 entries", "3 indices"]),
        ("ForkParameters: [Groups: [[{DepthU: 8}, {VectorWidth: 1}]]]", 5, ["sets VectorWidth, the first sets DepthU"]),
        ("ForkParameters: [Groups: [[]]]", 5, ["empty"]),
        ("ForkParameters: [{Groups: [[{DepthU: 8}]], DepthU: [8]}]", 5, ["DepthU is given twice"]),
        ("BenchmarkCommonParameters: [Groups: [[{DepthU: 8}]]]", 5, ["no Groups"]),
        ("ForkParameters: [{DepthU: !!python/object:os.system [8]}]", 5, ["tag"]),
    ],
)
def test_a_mistake_is_answered_with_its_line_and_a_way_out(group, text, line, words):
    error = complaint(group, text)
    assert line_of(error) == line, str(error)
    assert all(word in str(error) for word in words), str(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["file is empty"]),
        ("# nothing", ["file is empty"]),
        ("[1, 2]", ["a tuning file is a list"]),
        ("GlobalParameters:", ["no BenchmarkProblems"]),
        ("BenchmarkProblems:", ["BenchmarkProblems is empty"]),
        ("BenchmarkProblems: []", ["BenchmarkProblems is empty"]),
        ("BenchmarkProblems: [[]]", ["empty list"]),
        ("BenchmarkProblems: [[{DataType: s}, null]]", ["a size group is empty"]),
        ("BenchmarkProblems: [{ProblemType: {DataType: s}}]", ["version 2", "make it a list"]),
        ("ProblemType: {DataType: s}", ["top of the file", "BenchmarkProblems"]),
        ("BenchmarkProblem: []", ["did you mean BenchmarkProblems?"]),
        ("BenchmarkProblems: [[{OperationType: TensorContraction}]]", ["TensorContraction", "GEMM, Custom"]),
        ("BenchmarkProblems: [[{OperationType: [GEMM]}]]", ["not supported"]),
        ("BenchmarkProblems: [[{DataType: h}]]", ["DataType: h is not supported"]),
        ("BenchmarkProblems: [[{DataType: }]]", ["DataType is empty"]),
        ("BenchmarkProblems: [[{Noise: 1}]]", ["the ProblemType of a GEMM has no Noise"]),
        ("GlobalParameters: {Nosie: 1}", ["did you mean Noise?"]),
        ("GlobalParameters: {Noise: -1}", ["Noise cannot be -1", "positive number"]),
        ("GlobalParameters: {Noise: .nan}", ["Noise cannot be nan"]),
        ("GlobalParameters: {StepObjective: best}", ["geomean, max, total_time, worst"]),
        ("GlobalParameters: {MinimumSamples: 9, MaximumSamples: 3}", ["below"]),
        ("LibraryLogic: {SheduleName: x}", ["did you mean ScheduleName?"]),
        ("a: [1", ["not valid YAML"]),
        ("a: b: c", ["not valid YAML"]),
        ("a: 1\n---\nb: 2", ["not valid YAML"]),
        ("a: \x01", ["not valid YAML"]),
        ("a: &x [*x]", ["alias"]),
        ("a: *nowhere", ["not valid YAML"]),
        ("? [1, 2]\n: 3", ["no key"]),
        ("a: " + "[" * 60 + "]" * 60, ["nested more than"]),
        ("a: " + "9" * 5000, ["is no value"]),
    ],
)
def test_a_file_that_is_none_is_answered_with_why(file, text, words):
    error = complaint(file, text)
    assert "file.yaml" in error.place
    assert all(word in str(error) for word in words), str(error)


def test_nested_aliases_do_not_explode(file):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert "aliases expand" in str(complaint(file, "\n".join(lines)))


def test_a_step_of_too_many_combinations_is_refused_at_once(group):
    values = list(range(1, 400))
    error = complaint(group, f"ForkParameters: [{{DepthU: {values}, LoopUnroll: {values}}}]")
    assert "159,201 combinations" in str(error)


def test_a_file_that_cannot_be_read_is_the_users_to_put_right(tmp_path):
    for path in (tmp_path / "absent.yaml", tmp_path, Path("nul\0.yaml")):
        with pytest.raises(UserError):
            read(path)
    (tmp_path / "latin.yaml").write_bytes("# Gr\xf6\xdfe".encode("latin-1"))
    with pytest.raises(UserError, match="UTF-8"):
        read(tmp_path / "latin.yaml")
    with pytest.raises(UserError, match="--max-size"):
        read(ROOT / "examples" / "wiki.yaml", max_size=0)


# --- real files and the reference page ------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["03_v2.0.0", "07_v2.4.5", "11_v3.0.0", "12_v4.9.0", "16_HEAD", "17_HEAD", "19_HEAD"])
def test_real_files_of_tensile_get_an_answer_that_names_the_obstacle(era):
    """Each of them needs something that is not here; the answer says what, and where."""
    folder = DATA / "tensile" / "configs"
    if not folder.is_dir():
        pytest.skip(f"needs Tensile's configurations in {folder}; set TUNESMITH_DATA")
    obstacle = {"03": "version 2", "07": "version 2", "11": "TensorContraction", "12": "DataType: z",
                "16": "Assembly", "17": "top of the file", "19": "Assembly"}  # fmt: skip
    (path,) = folder.glob(f"{era}*.yaml")
    with pytest.raises(UserError) as caught:
        read(path)
    assert obstacle[era[:2]] in str(caught.value)
    assert re.search(r"\.yaml:\d+$", caught.value.place)


def test_the_reference_page_tells_of_every_key(group):
    page = reference(SPACE)
    told = {"BudgetMinutes", "ScheduleName", "StridedBatched", "Beta", "[first, step, growth, last]", "SleepPercent"}
    told |= {parameter.name for parameter in SPACE} | {phase.value for phase in Phase}
    assert not {name for name in told if name not in page}
    assert all(line.count(" | ") == 4 for line in page.partition("## Parameters")[2].splitlines() if "|" in line)


def test_a_benchmark_step_belongs_to_its_phase(group):
    made = group("""
        BenchmarkCommonParameters: [EdgeType: [Branch, ShiftPtr]]
        ForkParameters: [DepthU: [8, 16]]
        BenchmarkForkParameters: [VectorWidth: [1, 2]]
        BenchmarkJoinParameters: [GlobalSplitU: [1, 2]]
    """)
    phases = [step.phase for step in steps_of(made) if isinstance(step, Benchmark)]
    assert phases == [Phase.COMMON, Phase.BENCHMARK_FORK, Phase.BENCHMARK_JOIN]
