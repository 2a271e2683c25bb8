"""The errors for mistakes in a tuning file."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tunesmith.records import UserError
from tuning_space import complaint, line_of, read

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data"))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("ForkParameter: [DepthU: [8]]", 5, ["ForkParameter", "did you mean ForkParameters?"]),
        ("ForkParameters: [DephtU: [8]]", 5, ["DephtU", "did you mean DepthU?"]),
        ("ForkParameters:\n  - DepthU: [8, deep]", 6, ["DepthU cannot be deep", "natural number"]),
        ("ForkParameters:\n  - DepthU:\n    - 8\n    - -1", 8, ["DepthU cannot be -1"]),
        ("ForkParameters: [WorkGroup: [16, 16, 1]]", 5, ["WorkGroup cannot be 16", "list of 3"]),
        ("ForkParameters: [DepthU: [010]]", 5, ["010 is the number 8 in YAML 1.1", "without leading zeros"]),
        ("ForkParameters: [DepthU: [8, -0_10]]", 5, ["-0_10 is the number -8 in YAML 1.1"]),
        ("ForkParameters: [DepthU: [1:30]]", 5, ["1:30 is the number 90 in YAML 1.1"]),
        ("ForkParameters: [DepthU: [1:30.5]]", 5, ["1:30.5 is the number 90.5 in YAML 1.1"]),
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
        ("BenchmarkFinalParameters: [ProblemSize: [Exact: [1, 1, 1]]]", 5, ["did you mean ProblemSizes?"]),
        ("ProblemSizes: [Exact: [1, 1, 1]]", 5, ["outside of the phases", "put it into BenchmarkFinalParameters"]),
        ("ProblemSize: [Exact: [1, 1, 1]]", 5, ["outside of the phases", "`- ProblemSizes: [...]`"]),
        ("DepthU: [8, 16]", 5, ["DepthU stands outside of the phases", "put it into one of", "ForkParameters"]),
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
        ("BenchmarkProblems: [[{OperationType: TensorContraction}]]", ["TensorContraction", "there are GEMM, "]),
        ("BenchmarkProblems: [[{OperationType: [GEMM]}]]", ["not supported"]),
        ("BenchmarkProblems: [[{DataType: z}]]", ["DataType: z is not supported"]),
        ("BenchmarkProblems: [[{DataType: }]]", ["DataType is empty"]),
        ("BenchmarkProblems: [[{Noise: 1}]]", ["the ProblemType of a GEMM has no Noise"]),
        ("GlobalParameters: {Nosie: 1}", ["did you mean Noise?"]),
        ("GlobalParameters: {Noise: -1}", ["Noise cannot be -1", "positive number"]),
        ("GlobalParameters: {Noise: .nan}", ["Noise cannot be nan"]),
        ("GlobalParameters: {StepObjective: best}", ["geomean, max, total_time, worst"]),
        ("GlobalParameters: {MinimumSamples: 9, MaximumSamples: 3}", ["below"]),
        ("LibraryLogic: {SheduleName: x}", ["did you mean ScheduleName?"]),
        ("LibraryLogic: {ScheduleName: }", ["ScheduleName is empty"]),
        ("LibraryLogic: {ScheduleName: 10}", ["ScheduleName cannot be 10"]),
        ("LibraryLogic: {ScheduleName: ../vega}", ["ScheduleName cannot be ../vega", "name of a file"]),
        ("LibraryLogic: {ScheduleName: .hidden}", ["ScheduleName cannot be .hidden"]),
        ('LibraryLogic: {ScheduleName: "a\\n"}', ["ScheduleName cannot be"]),
        ('LibraryLogic: {ArchitectureName: "gfx90a:xnack"}', ["ArchitectureName cannot be gfx90a:xnack", "letters"]),
        ("LibraryLogic: {ArchitectureName: " + "x" * 65 + "}", ["ArchitectureName cannot be xxx", "up to 64"]),
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
    assert "file.yaml" in error.location
    assert all(word in str(error) for word in words), str(error)


def test_nested_aliases_do_not_explode(file):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert "aliases expand" in str(complaint(file, "\n".join(lines)))


def test_a_fork_into_too_many_lineages_is_refused_at_once(group):
    values = list(range(1, 400))
    error = complaint(group, f"ForkParameters: [{{DepthU: {values}, LoopUnroll: {values}}}]")
    assert "159,201 combinations" in str(error)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("SearchStrategy: genetic", ["SearchStrategy cannot be genetic", "exhaustive, random, surrogate"]),
        ("SearchStrategy: [random]", ["SearchStrategy cannot be [random]"]),
        ("SearchTrials: 0, SearchStrategy: random", ["SearchTrials cannot be 0", "positive integer"]),
        ("SearchTrials: 50", ["SearchTrials 50 has no effect", "SearchStrategy exhaustive", "random or surrogate"]),
        ("SearchTrial: 50", ["did you mean SearchTrials?"]),
    ],
)
def test_a_mistake_about_the_search_is_answered_with_a_way_out(group, settings, words):
    error = complaint(group, "", before=f"GlobalParameters:\n  {{{settings}}}")
    assert line_of(error) == 2, str(error)
    assert all(word in str(error) for word in words), str(error)


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
    """Each file needs something that is not supported. The message says what, and where."""
    folder = DATA / "tensile" / "configs"
    if not folder.is_dir():
        pytest.skip(f"needs Tensile's configurations in {folder}; set TUNESMITH_DATA")
    obstacle = {"03": "version 2", "07": "version 2", "11": "TensorContraction", "12": "DataType: z",
                "16": "Assembly", "17": "top of the file", "19": "Assembly"}  # fmt: skip
    (path,) = folder.glob(f"{era}*.yaml")
    with pytest.raises(UserError) as caught:
        read(path)
    assert obstacle[era[:2]] in str(caught.value)
    assert re.search(r"\.yaml:\d+$", caught.value.location)
