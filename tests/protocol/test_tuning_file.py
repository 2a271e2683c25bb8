"""Reading a tuning file gives the right steps, starting values and notes."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tunesmith.bench.job import Policy
from tunesmith.problems.gemm import gemm_type
from tunesmith.protocol import Benchmark, Final, Fork, GlobalParameters, Join, Objective, Phase
from tuning_file_page import reference
from tuning_space import SPACE, complaint, line_of, read

ROOT = Path(__file__).parents[2]


def steps_of(read_file, number=0):
    return read_file.groups[number].steps


def sizes_of(step):
    return [problem.sizes for problem in step.problems]


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
    assert [choice["WorkGroup"][0] for choice in list(fork.choices)[:4]] == [8, 16, 32, 8]


def test_with_passes_the_benchmarks_of_each_phase_are_repeated_and_nothing_else(tmp_path):
    text = (ROOT / "examples" / "wiki.yaml").read_text()
    assert "Passes" not in text
    file = tmp_path / "twice.yaml"
    file.write_text("GlobalParameters: {Passes: 2}\n" + re.sub(r"(?ms)^GlobalParameters:.*?^(?=\S)", "", text))
    once, twice = steps_of(read(ROOT / "examples" / "wiki.yaml")), steps_of(read(file))
    common, fork, loads_a, loads_b, join, unroll, final = once
    assert twice == (common, common, fork, loads_a, loads_b, loads_a, loads_b, join, unroll, unroll, final)


def test_clamped_the_wikis_example_has_fewer_and_smaller_sizes():
    common, _, loads, *_, final = steps_of(read(ROOT / "examples" / "wiki.yaml", max_size=100))
    assert sizes_of(common) == [(100, 100, 1, 100)] == sizes_of(loads)
    assert len(final.problems) == 7 * 7
    assert max(max(sizes) for sizes in sizes_of(final)) == 100


# --- parameters and phases ------------------------------------------------------------------------------------------


def test_precedence_is_single_value_then_initial_then_default(group):
    tuning_file = group("""
        InitialSolutionParameters:
          - VectorWidth: [2]
          - DepthU: [8]
          - WorkGroupMapping: [4]
        BenchmarkCommonParameters:
          - VectorWidth: [4]
        BenchmarkJoinParameters:
          - DepthU: [16, 32]
    """)
    start = tuning_file.groups[0].start
    assert (start["VectorWidth"], start["DepthU"], start["WorkGroupMapping"], start["GlobalSplitU"]) == (4, 8, 4, 1)
    ignored = [note for note in tuning_file.notes if "ignored" in note]
    assert len(ignored) == 1
    assert "VectorWidth 2 is ignored: it is 4 throughout" in ignored[0]


def test_an_initial_value_that_the_fork_replaces_unseen_is_said_to_be_ignored(group):
    text = "InitialSolutionParameters: [DepthU: [8]]\n{common}ForkParameters: [DepthU: [16, 32]]"
    assert any("DepthU 8 is ignored" in note for note in group(text.format(common="")).notes)
    measured = group(text.format(common="BenchmarkCommonParameters: [VectorWidth: [1, 2]]\n"))
    assert not any("ignored" in note for note in measured.notes)


def test_a_step_without_alternatives_is_no_step(group):
    tuning_file = group("""
        BenchmarkCommonParameters:
          - EdgeType: [ShiftPtr]
            DepthU: [8, 8]
          - VectorWidth: 2
        ForkParameters: {GlobalSplitU: [2]}
    """)
    assert [type(step) for step in steps_of(tuning_file)] == [Final]
    start = tuning_file.groups[0].start
    assert (start["EdgeType"], start["DepthU"], start["VectorWidth"], start["GlobalSplitU"]) == ("ShiftPtr", 8, 2, 2)
    assert tuning_file.groups[0].tuned == ()
    assert any("DepthU lists a value more than once" in note for note in tuning_file.notes)


def test_single_values_leave_the_step_of_their_dict(group):
    tuning_file = group("BenchmarkCommonParameters: [{EdgeType: [ShiftPtr], DepthU: [8, 16], VectorWidth: [1, 2]}]")
    step = steps_of(tuning_file)[0]
    assert [tuple(choice) for choice in step.choices] == [("DepthU", "VectorWidth")] * 4
    assert tuning_file.groups[0].start["EdgeType"] == "ShiftPtr"


def test_all_dicts_of_a_fork_are_one_product_and_of_a_benchmark_one_step_each(group):
    tuning_file = group("""
        ForkParameters:
          - DepthU: [8, 16]
          - VectorWidth: [1, 2, 4]
        BenchmarkForkParameters:
          - NumLoadsCoalescedA: [1, 2]
          - NumLoadsCoalescedB: [1, 2]
    """)
    fork, *benchmarks, _ = steps_of(tuning_file)
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
    assert tuning_file.groups[0].tuned == (
        ("DepthU", (8, 16)), ("VectorWidth", (1, 2, 4)), ("NumLoadsCoalescedA", (1, 2)), ("NumLoadsCoalescedB", (1, 2)),
    )  # fmt: skip


def test_a_group_of_settings_is_one_factor_of_the_fork(group):
    tuning_file = group("""
        ForkParameters:
          - Groups:
            - - {WorkGroup: [8, 8, 1], ThreadTile: [8, 8]}
              - {WorkGroup: [16, 16, 1], ThreadTile: [4, 4]}
          - DepthU: [8, 16]
        JoinParameters: [WorkGroup]
    """)
    fork, join, _ = steps_of(tuning_file)
    assert [(c["WorkGroup"][0], c["ThreadTile"][0], c["DepthU"]) for c in fork.choices] == [
        (8, 8, 8), (16, 4, 8), (8, 8, 16), (16, 4, 16),
    ]  # fmt: skip
    assert join.names == ("WorkGroup",)
    assert dict(tuning_file.groups[0].tuned)["ThreadTile"] == ((8, 8), (4, 4))


def test_truth_values_may_be_numbers_and_mean_the_same(group):
    tuning_file = group("ForkParameters: [PrefetchGlobalRead: [0, 1, True]]")
    assert [choice["PrefetchGlobalRead"] for choice in steps_of(tuning_file)[0].choices] == [False, True]


# --- join -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "JoinParameters:", "JoinParameters: null"])
def test_an_absent_or_empty_join_keeps_every_lineage(group, text):
    tuning_file = group(f"ForkParameters: [DepthU: [8, 16]]\n{text}")
    assert not any(isinstance(step, Join) for step in steps_of(tuning_file))


def test_an_empty_list_joins_to_one(group):
    tuning_file = group("ForkParameters: [DepthU: [8, 16]]\nJoinParameters: []")
    assert steps_of(tuning_file)[1].names == ()


def test_a_join_names_forked_parameters_and_derived_values_once(group):
    tuning_file = group(
        "ForkParameters: [VectorWidth: [1, 2]]\nJoinParameters: [VectorWidth, MacroTile, DepthU, MacroTile]"
    )
    assert steps_of(tuning_file)[1].names == ("VectorWidth", "MacroTile", "DepthU")


def test_a_join_over_a_forked_parameter_with_one_value_is_taken(group):
    tuning_file = group("ForkParameters: [VectorWidth: [1, 2], GlobalSplitU: [2]]\nJoinParameters: [GlobalSplitU]")
    assert steps_of(tuning_file)[1].names == ("GlobalSplitU",)


@pytest.mark.parametrize("name", ["EdgeType", "macrotile", "Tile"])
def test_an_unknown_name_to_join_over_is_answered_with_the_legal_ones(group, name):
    error = complaint(group, f"ForkParameters: [VectorWidth: [1, 2]]\nJoinParameters:\n  - {name}")
    assert all(legal in error.remedy for legal in ("VectorWidth", "MacroTile", "DepthU", "WorkGroupSize"))
    assert line_of(error) == 7


def test_a_join_without_a_fork_is_said_to_have_nothing_to_do(group):
    tuning_file = group("JoinParameters: [MacroTile]")
    assert [type(step) for step in steps_of(tuning_file)] == [Final]
    assert any("nothing to join" in note for note in tuning_file.notes)


# --- sizes ----------------------------------------------------------------------------------------------------------


def test_sizes_hold_from_their_place_on_and_into_the_next_phase(group):
    tuning_file = group("""
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
    measured = [sizes_of(step)[0][0] for step in steps_of(tuning_file) if not isinstance(step, Fork)]
    assert measured == [1, 2, 2, 3, 3, 3, 4, 5]


def test_the_final_step_inherits_nothing(group):
    tuning_file = group("BenchmarkCommonParameters:\n  - ProblemSizes: [Exact: [1, 1, 1]]\n  - VectorWidth: [1, 2]")
    assert sizes_of(steps_of(tuning_file)[-1]) == [(n, n, n) for n in (64, 128, 256, 448)]
    assert any("Range: [[64, 64, 64, 512], 0, 0] is measured" in note for note in tuning_file.notes)


def test_default_sizes_fit_the_number_of_indices(group):
    tuning_file = group("BenchmarkCommonParameters: [VectorWidth: [1, 2]]", "{DataType: d, Batched: True}")
    common, final = steps_of(tuning_file)
    assert sizes_of(common) == [(2880, 2880, 1, 2880)]
    assert sizes_of(final) == [(n, n, 1, n) for n in (64, 128, 256, 448)]
    assert sum("Range: [[2880], 0, [1], 0] is measured" in note for note in tuning_file.notes) == 1


def test_sizes_on_which_nothing_is_measured_are_said(group):
    tuning_file = group("""
        BenchmarkCommonParameters:
          - ProblemSizes: [Exact: [1, 1, 1]]
          - ProblemSizes: [Exact: [2, 2, 2]]
          - VectorWidth: [1, 2]
        BenchmarkFinalParameters: [ProblemSizes: [Exact: [5, 5, 5]]]
    """)
    assert [re.sub(r".*yaml:(\d+).*", r"\1", note) for note in tuning_file.notes] == ["6"]
    assert not any("2880" in note for note in tuning_file.notes)


def test_ranges_and_exacts_join_each_size_once_in_order(group):
    tuning_file = group("""
        BenchmarkFinalParameters:
          - ProblemSizes:
            - Range: [[16, 48], 0, [8]]
            - Exact: [32, 32, 8]
            - Exact: [7, 5, 3, 9, 7, 7, 3]
            - Range: [[32, 64], 0, [8]]
            - Exact: [7, 5, 3]
    """)
    final = steps_of(tuning_file)[-1]
    assert sizes_of(final) == [(16, 16, 8), (32, 32, 8), (48, 48, 8), (7, 5, 3), (64, 64, 8), (7, 5, 3)]
    assert [p.leading for p in final.problems] == [(), (), (), (9, 7, 7, 3), (), ()]


def test_every_problem_has_the_scalars_of_its_type(group):
    tuning_file = group("BenchmarkCommonParameters: [VectorWidth: [1, 2]]", "{DataType: s, Alpha: 2, Beta: 0.5}")
    scalars = {problem.scalars for step in steps_of(tuning_file) for problem in step.problems}
    assert [dict(each) for each in scalars] == [{"alpha": 2.0, "beta": 0.5}]
    assert tuning_file.groups[0].problem_type == gemm_type("s")


# --- problem types, groups, globals, logic --------------------------------------------------------------------------


def test_groups_are_numbered_within_their_problem_type(file):
    tuning_file = file("""
        BenchmarkProblems:
          - [{DataType: s}, {}, {}]
          - [{DataType: d}, {}]
          - [{DataType: S}]
    """)
    assert [(g.problem_type.name[-2:], g.group) for g in tuning_file.groups] == [
        ("SB", 0),
        ("SB", 1),
        ("DB", 0),
        ("SB", 2),
    ]


def test_missing_data_types_are_said_once_for_the_file(file):
    tuning_file = file("BenchmarkProblems:\n  - [{Batched: True}, {}]\n  - [{TransposeA: True}, {}]\n")
    assert sum("DataType" in note for note in tuning_file.notes) == 1


def test_aliases_and_merges_share_parts_of_a_file(file):
    tuning_file = file("""
        BenchmarkProblems:
          - - &sgemm {DataType: s, TransposeA: True}
            - &group
              ForkParameters: [VectorWidth: [1, 2]]
          - - {<<: *sgemm, TransposeA: False}
            - <<: *group
              JoinParameters: [MacroTile]
    """)
    assert [g.problem_type.fields["TransposeA"] for g in tuning_file.groups] == [True, False]
    assert [type(step) for step in steps_of(tuning_file, 1)] == [Fork, Join, Final]


def test_global_parameters_fill_fields_that_the_policy_has(group):
    tuning_file = group(
        "", before="GlobalParameters: {StepObjective: worst, BudgetMinutes: 5, Noise: 5e-3, ColdCache: 0, Seed: 7}"
    )
    assert tuning_file.globals == GlobalParameters(Objective.WORST, budget_minutes=5, noise=0.005, cold=False, seed=7)
    assert tuning_file.groups[0].objective is Objective.WORST
    assert tuning_file.globals.policy() == {"noise": 0.005, "cold": False, "seed": 7}
    apart = {"objective", "passes", "strategy", "trials", "budget_minutes"}
    assert {f.name for f in fields(GlobalParameters)} - apart <= {f.name for f in fields(Policy)}


def test_tensiles_globals_are_ignored_and_said(group):
    tuning_file = group(
        "", before="GlobalParameters: {PrintLevel: 1, SyncsPerBenchmark: 2, KernelTime: True}\nLibraryClient:"
    )
    notes = "\n".join(tuning_file.notes)
    assert "PrintLevel, KernelTime" in notes
    assert "SyncsPerBenchmark is ignored: " in notes
    assert "LibraryClient is ignored" in notes
    assert tuning_file.globals == GlobalParameters()


def test_library_logic_carries_its_labels(group):
    tuning_file = group("", before='LibraryLogic: {ScheduleName: "vega", DeviceNames: [a, b], Threshold: 0.1}')
    assert (tuning_file.logic.schedule_name, tuning_file.logic.architecture_name) == ("vega", "")
    assert any("Threshold" in note for note in tuning_file.notes)
    assert any("DeviceNames is ignored: the logic holds for the device" in note for note in tuning_file.notes)


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ("", "Cij_SB.yaml"),
        ("ScheduleName: vega10", "vega10_Cij_SB.yaml"),
        ("ArchitectureName: gfx90a+xnack-", "gfx90a+xnack-_Cij_SB.yaml"),
        ("ArchitectureName: gfx900, ScheduleName: vega10", "vega10_gfx900_Cij_SB.yaml"),
    ],
)
def test_labels_begin_the_name_of_the_logics_file(group, labels, name):
    assert group("", before=f"LibraryLogic: {{{labels}}}").logic.file_name("Cij_SB") == name


def test_the_reference_page_tells_of_every_key(group):
    page = reference(SPACE)
    words = {"BudgetMinutes", "ScheduleName", "StridedBatched", "Beta", "[first, step, growth, last]", "SleepPercent"}
    words |= {parameter.name for parameter in SPACE} | {phase.value for phase in Phase}
    assert not {name for name in words if name not in page}
    assert all(line.count(" | ") == 4 for line in page.partition("## Parameters")[2].splitlines() if "|" in line)


def test_a_benchmark_step_belongs_to_its_phase(group):
    tuning_file = group("""
        BenchmarkCommonParameters: [EdgeType: [Branch, ShiftPtr]]
        ForkParameters: [DepthU: [8, 16]]
        BenchmarkForkParameters: [VectorWidth: [1, 2]]
        BenchmarkJoinParameters: [GlobalSplitU: [1, 2]]
    """)
    phases = [step.phase for step in steps_of(tuning_file) if isinstance(step, Benchmark)]
    assert phases == [Phase.COMMON, Phase.BENCHMARK_FORK, Phase.BENCHMARK_JOIN]
