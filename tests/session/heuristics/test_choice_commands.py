"""From a tuned folder to choices by a model: fit, judge, select, load and learn on the fake device."""

from __future__ import annotations

import csv
import json
import math
import shutil
import statistics
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import tunesmith
from choice_fakes import products, tuned
from few_trees import few_trees
from tunesmith.cli.app import app
from tunesmith.kernels import KERNELS
from tunesmith.library.launch._predicted import PredictedChoices
from tunesmith.logic import Logic, Rule, logic_files
from tunesmith.logic.shipped import FOLDER, SUFFIX, read_shipped_model
from tunesmith.models.choice.fit import fitting
from tunesmith.models.choice.model_file import model_of, read_choice_model
from tunesmith.problems.gemm import gemm_type_named
from tunesmith.problems.gemm.listed import ListedGemm, gemm_list_text, read_gemm_list
from tunesmith.protocol.benchmark_protocol import fork
from tunesmith.protocol.lineage import Lineage
from tunesmith.records import Problem
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.heuristics import fit_choice as fit_choice_module
from tunesmith.session.heuristics.matrices import MatrixTask, RepeatSpread, read_matrices
from tunesmith.session.heuristics.settled import settled_file
from tunesmith.session.tuning_file.file import ready

pytest.importorskip("sklearn")


@pytest.fixture(scope="module", autouse=True)
def quick_fits():
    with few_trees():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("choice"))


@pytest.fixture(scope="module")
def fitted(run, tmp_path_factory):
    """A copy of the run's logic with a model beside it, and what the command printed."""
    folder, listed = run
    logic = tmp_path_factory.mktemp("fitted") / "logic"
    shutil.copytree(folder / "logic", logic)
    document = command("fit", folder, "--method", "choice", "--sizes", listed, "-o", logic / "choice.yaml", "--json")
    return logic, json.loads(document)


def command(*words, group="heuristics", code=0):
    result = CliRunner().invoke(app, [group, *map(str, words)] if group else [*map(str, words)])
    assert result.exit_code == code, result.output
    return result.stdout


def test_the_fit_says_how_good_it_is_on_families_that_were_held_out(run, fitted):
    logic, document = fitted
    assert {family["name"] for family in document["families"]} == {"square", "few", "deep", "all"}
    assert document["products"] == len(products())
    assert document["times"] == 6 * len(products())
    assert document["scores"]["geomean"] == pytest.approx(document["families"][-1]["geomean"])
    model = read_choice_model(logic / "choice.yaml")
    assert list(model.types) == ["Cij_Aik_Bkj_SB"]
    assert model.scores["worst"] == pytest.approx(document["scores"]["worst"], rel=1e-5)
    assert 0 < document["scores"]["worst"] <= document["scores"]["geomean"] <= 1


def test_the_library_chooses_by_the_model_and_keeps_what_was_measured(fitted):
    logic, _ = fitted
    with tunesmith.load(logic, device="fake:GPU:8") as library:
        measured = library.measured_sizes(library.problem_types[0])
        assert library.select(*measured[0]).rule is Rule.EXACT
        predicted = library.select(70, 71, 72)
        assert predicted.rule is Rule.PREDICTED
        assert predicted.expected_seconds
        assert predicted.doubt
        assert predicted.neighbour in measured
        assert library.says(70, 71, 72) == predicted
        a, b = np.ones((71, 72), np.float32), np.ones((72, 70), np.float32)
        np.testing.assert_array_equal(library.matmul(a, b), np.full((71, 70), 72, np.float32))


def offered(folder, sizes=(70, 71, 72)):
    """What is offered at a size, in order, and the solutions of the folder's logic."""
    (file,) = logic_files(folder)
    logic = Logic.load(file)
    problem = Problem(logic.document.problem_type, sizes)
    return list(PredictedChoices([file]).candidates(logic, problem)), logic.document.solutions


def test_a_model_also_offers_what_never_won(fitted):
    folder, _ = fitted
    choices, of_logic = offered(folder)
    known = read_choice_model(folder / "choice.yaml").solutions
    found = [(choice.solution.kernel, choice.solution.configuration) for choice in choices]
    assert len(of_logic) < len(known) == len(set(found))
    assert set(found) == set(known)
    assert len({choice.name for choice in choices}) == len(choices)
    assert {choice.rule for choice in choices} == {Rule.PREDICTED}


def test_solutions_that_no_kernel_has_any_more_are_left_out(fitted, tmp_path):
    folder, _ = fitted
    all_known, of_logic = offered(folder)
    shutil.copytree(folder, tmp_path / "logic")
    path = tmp_path / "logic" / "choice.yaml"
    path.write_text(path.read_text().replace("kernel: FakeGemm", "kernel: GoneGemm"))
    left, _ = offered(tmp_path / "logic")
    assert {choice.name for choice in left} == {named.name for named in of_logic}
    assert len(left) < len(all_known)


def test_without_a_model_the_nearest_sizes_decide(run):
    folder, _ = run
    with tunesmith.load(folder / "logic", device="fake:GPU:8") as library:
        assert library.select(70, 71, 72).rule is Rule.NEAREST


def test_the_expected_times_are_near_what_the_device_takes(run, fitted):
    """At sizes between the measured ones, by the fake device's own formula."""
    logic, _ = fitted
    errors = []
    with tunesmith.load(logic, device="fake:GPU:8") as library:
        for m in (20, 50, 90, 150):
            choice = library.select(m, 60, 64)
            family = tunesmith.kernels.KERNELS["FakeGemm"]
            problem = tunesmith.records.Problem(choice.solution.type, (m, 60, 64))
            own = family.guess(choice.solution.configuration, problem, library.target)
            errors.append(abs(np.log(choice.expected_seconds / own)))
    assert statistics.median(errors) < 0.25


def test_select_prints_rule_expected_time_and_doubt(fitted):
    logic, _ = fitted
    words = ("select", logic, "--size", "70,71,72")
    text = command(*words, group="")
    assert "rule      predicted: by a choice model" in text
    assert "with a doubt of" in text
    document = json.loads(command(*words, "--json", group=""))
    assert document["rule"] == "predicted"
    assert document["doubt"] > 0


def test_a_damaged_model_is_a_mistake_with_a_line(fitted, tmp_path):
    logic, _ = fitted
    shutil.copytree(logic, tmp_path / "logic")
    path = tmp_path / "logic" / "choice.yaml"
    path.write_text(path.read_text().replace("caution:", "courage:"))
    result = CliRunner().invoke(app, ["select", str(tmp_path / "logic"), "--size", "70,71,72"])
    assert "courage" in str(result.exception)
    assert "choice.yaml:" in str(result.exception)


def test_a_model_of_another_device_is_not_asked(fitted, tmp_path):
    logic, _ = fitted
    shutil.copytree(logic, tmp_path / "logic")
    path = tmp_path / "logic" / "choice.yaml"
    path.write_text(path.read_text().replace("name: fake GPU", "name: another GPU"))
    with tunesmith.load(tmp_path / "logic", device="fake:GPU:8") as library:
        assert library.select(70, 71, 72).rule is Rule.NEAREST


def test_the_judge_scores_choices_with_families_held_out(run, tmp_path):
    folder, listed = run
    words = ("judge", folder, "--sizes", listed, "--choices", "--policy", "latency", "--device", "none", "--json")
    (judgement,) = json.loads(command(*words, "-o", tmp_path / "out"))["judgements"]
    scores = {verdict["policy"]: verdict["score"] for verdict in judgement["policies"]}
    assert list(scores) == ["vendor alone", "nearest", "predicted", "latency"]
    assert scores["vendor alone"] is None, "the fake device has no vendor's library"
    assert scores["predicted"]["products"] == scores["nearest"]["products"] == len(products())
    assert 0.5 < scores["predicted"]["geomean"] <= 1


def test_the_judge_scores_choices_that_were_learned_from_another_matrix(run, tmp_path):
    """Taught the very products that are judged, the nearest size is always the product itself."""
    folder, listed = run
    words = ("judge", folder, "--sizes", listed, "--choices", "--taught", folder, "--policy", "latency")
    (judgement,) = json.loads(command(*words, "--device", "none", "--json", "-o", tmp_path / "out"))["judgements"]
    nearest = next(verdict for verdict in judgement["policies"] if verdict["policy"] == "nearest")
    assert nearest["score"]["geomean"] == pytest.approx(1)


def test_the_judge_scores_a_model_in_a_file_as_it_is(run, fitted, tmp_path, monkeypatch):
    folder, listed = run
    monkeypatch.setattr(fitting, "grown", None)  # nothing is fitted
    words = ("judge", folder, "--sizes", listed, "--choices", "--taught", folder, "--policy", "latency")
    words = (*words, "--model", fitted[0] / "choice.yaml", "--device", "none", "--json", "-o", tmp_path / "out")
    (judgement,) = json.loads(command(*words))["judgements"]
    predicted = next(verdict for verdict in judgement["policies"] if verdict["policy"] == "predicted")
    assert predicted["score"]["products"] == len(products())
    assert predicted["score"]["geomean"] > 0.9, "it was fitted to these products"


def test_a_model_to_judge_needs_matrices_and_their_device(run, fitted, tmp_path):
    folder, listed = run
    model = fitted[0] / "choice.yaml"
    words = ["heuristics", "judge", str(folder), "--sizes", str(listed), "--choices", "--device", "none"]
    words += ["-o", str(tmp_path / "out"), "--policy", "latency", "--model"]
    assert "--taught" in str(CliRunner().invoke(app, [*words, str(model)]).exception)
    other = tmp_path / "other.yaml"
    other.write_text(model.read_text().replace("name: fake GPU", "name: another GPU"))
    assert "--model has none of" in str(
        CliRunner().invoke(app, [*words, str(other), "--taught", str(folder)]).exception
    )


def test_what_would_teach_most_is_a_list_without_what_is_left_out(fitted, tmp_path):
    logic, _ = fitted
    out, out_again, without = (tmp_path / name for name in ("a.csv", "b.csv", "without.csv"))
    document = json.loads(command("learn", logic / "choice.yaml", "--count", 12, "-o", out, "--json"))
    rows = read_gemm_list(out)
    assert document["products"] == len(rows) <= 12
    assert sum(document["families"].values()) == len(rows)
    without.write_text(gemm_list_text(rows[:3]))
    command("learn", logic / "choice.yaml", "--count", 12, "--without", without, "-o", out_again)
    sizes = {(row.m, row.n, row.k) for row in read_gemm_list(out_again)}
    assert not sizes & {(row.m, row.n, row.k) for row in rows[:3]}


def test_a_fit_takes_several_lists_and_the_noise_of_its_times(run, tmp_path, monkeypatch):
    """Halves of the list have the products of the whole. Without the second, its products are left out."""
    folder, listed = run
    rows = read_gemm_list(listed)
    halves = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for number, half in enumerate(halves):
        half.write_text(gemm_list_text(rows[number::2]))
    passed_on = []

    def spied(matrix, *arguments):
        passed_on.append((len(matrix.problems), arguments[4]))
        raise ValueError("seen")

    assert RepeatSpread(3, 1.1, 0.02).of_a_time == 0.02
    assert RepeatSpread(0, math.nan, math.nan).of_a_time == 0.0
    monkeypatch.setattr(RepeatSpread, "of_a_time", 0.017)  # the fake device's times have no noise
    monkeypatch.setattr(fit_choice_module, "fit_choice", spied)
    for lists in ([listed], halves, halves[:1]):
        words = [word for path in lists for word in ("--sizes", str(path))]
        out = str(tmp_path / "choice.yaml")
        CliRunner().invoke(app, ["heuristics", "fit", str(folder), "--method", "choice", *words, "-o", out])
    (subject,) = read_matrices(MatrixTask((folder,), (listed,), with_vendor=True)).subjects
    (whole, noise), both, first = passed_on
    assert both == (whole, noise)
    assert first[0] < whole == len(subject.matrix.problems)
    assert noise == 0.017


def test_a_model_to_be_taught_writes_a_tuning_file_of_its_solutions(fitted, tmp_path):
    """The file is in another folder, names the list from there, and has the type's solutions as lineages of its own."""
    logic, _ = fitted
    (tmp_path / "true").mkdir()
    (tmp_path / "of: files").mkdir()
    (tmp_path / "of: files" / "linked").symlink_to(tmp_path / "true")
    out, file = tmp_path / "1e3", tmp_path / "of: files" / "linked" / "next.yaml"
    for _ in range(2):  # the second time over its own file
        words = ("learn", logic / "choice.yaml", "--count", 6, "-o", out, "--file", file)
        assert json.loads(command(*words, "--json"))["file"] == str(file)
    model = read_choice_model(logic / "choice.yaml")
    ready_file = ready(file, None, model.target)
    assert {phases.problem_type.name for phases in ready_file.file.groups} == set(model.types)
    for phases in ready_file.file.groups:
        kind = phases.problem_type
        oracle = ConfigurationOracle(kind, model.target)
        forked, final = phases.steps
        lineages = fork((Lineage(phases.start),), forked.choices)
        assert tuple(oracle.solution(lineage.configuration) for lineage in lineages) == model.solutions_of(kind)
        assert [problem.sizes for problem in final.problems] == [
            row.sizes(kind) for row in read_gemm_list(out) if row.fits(kind)
        ]


def test_a_tuning_file_of_somebody_is_not_overwritten(fitted, tmp_path):
    logic, _ = fitted
    file = tmp_path / "mine.yaml"
    file.write_text("BenchmarkProblems: []\n")
    words = ["heuristics", "learn", logic / "choice.yaml", "-o", tmp_path / "next.csv", "--file", file]
    assert "with another text" in str(CliRunner().invoke(app, [*map(str, words)]).exception)
    assert file.read_text() == "BenchmarkProblems: []\n"
    assert not (tmp_path / "next.csv").exists()
    words = ["heuristics", "learn", logic / "choice.yaml", "-o", tmp_path / "next.csv", "--file", tmp_path / "next.csv"]
    assert "both the list and the tuning file" in str(CliRunner().invoke(app, [*map(str, words)]).exception)
    assert not (tmp_path / "next.csv").exists()


def test_a_tuning_file_has_the_types_of_its_list_and_the_solutions_of_this_version(tmp_path):
    """The logic in the package has three types. A solution of another version is left out, as the library does."""
    model = model_of(read_shipped_model(FOLDER / f"nvidia-h100-bf16{SUFFIX}"), "shipped")
    kernel, config = model.solutions[0]
    model = replace(model, solutions=((kernel, config | {"NoSuch": 1}), ("NoKernel", config), *model.solutions[2:]))
    kinds = {name: gemm_type_named(name) for name in model.types}
    row = ListedGemm(64, 128, 256, trans_b=True)
    (tmp_path / "list.csv").write_text(gemm_list_text([row]))
    (tmp_path / "next.yaml").write_text(settled_file(model, [row], "list.csv"))
    (phases,) = ready(tmp_path / "next.yaml", None, model.target).file.groups
    assert kinds[phases.problem_type.name] == phases.problem_type
    oracle = ConfigurationOracle(phases.problem_type, model.target)
    lineages = fork((Lineage(phases.start),), phases.steps[0].choices)
    known = [
        s for s in model.solutions_of(phases.problem_type) if "NoSuch" not in s.configuration and s.kernel in KERNELS
    ]
    assert [oracle.solution(lineage.configuration) for lineage in lineages] == known
    of_all = settled_file(
        model, [row, replace(row, trans_b=False), replace(row, trans_a=True, trans_b=False)], "list.csv"
    )
    assert of_all.count("OperationType") == len(kinds) == 3
    assert "NoSuch" not in of_all
    assert "NoKernel" not in of_all


@pytest.mark.parametrize("name", ["design", "learn"])
def test_a_list_may_have_a_part_of_the_families(fitted, tmp_path, name):
    logic, _ = fitted
    words = [name, *([logic / "choice.yaml"] if name == "learn" else []), "--count", 8, "-o", tmp_path / "few.csv"]
    command(*words, "--family", "one-row", "--family", "deep")
    assert {row.family for row in read_gemm_list(tmp_path / "few.csv")} == {"one-row", "deep"}
    failed = CliRunner().invoke(app, ["heuristics", *map(str, words), "--family", "two-rows"])
    assert str(failed.exception).startswith("--family: two-rows is no family of the design; there are ")


def test_a_design_is_a_list_and_overwrites_nothing_else(tmp_path):
    out = tmp_path / "design.csv"
    document = json.loads(command("design", "--count", 30, "-o", out, "--json"))
    assert len(list(csv.DictReader(out.open()))) == document["products"] == 30
    command("design", "--count", 10, "-o", out)
    assert len(read_gemm_list(out)) == 10
    notes = tmp_path / "notes.csv"
    notes.write_text("my notes\n")
    assert CliRunner().invoke(app, ["heuristics", "design", "-o", str(notes)]).exit_code
    assert notes.read_text() == "my notes\n"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--metric", "mnk"), "--metric"),
        (("--buckets", "2"), "--buckets"),
        (("--python", "x.py"), "--python"),
        (("--where", "a=b"), "--where"),
    ],
)
def test_options_of_buckets_mean_nothing_to_a_choice_model(run, tmp_path, words, what):
    folder, _ = run
    result = CliRunner().invoke(
        app, ["heuristics", "fit", str(folder), "--method", "choice", "-o", str(tmp_path / "c.yaml"), *words]
    )
    assert str(result.exception).startswith(what)
    assert not (tmp_path / "c.yaml").exists()


def test_somebody_elses_file_is_not_overwritten(run, tmp_path):
    folder, listed = run
    path = tmp_path / "notes.yaml"
    path.write_text("mine: 1\n")
    result = CliRunner().invoke(
        app, ["heuristics", "fit", str(folder), "--method", "choice", "--sizes", str(listed), "-o", str(path)]
    )
    assert "no choice model" in str(result.exception)
    assert path.read_text() == "mine: 1\n"


def test_one_family_is_too_few(run, tmp_path):
    folder, _ = run
    listed = tmp_path / "list.csv"
    listed.write_text(gemm_list_text([ListedGemm(**{**_fields(row), "family": "all"}) for row in products()]))
    result = CliRunner().invoke(
        app,
        [
            "heuristics",
            "fit",
            str(folder),
            "--method",
            "choice",
            "--sizes",
            str(listed),
            "-o",
            str(tmp_path / "c.yaml"),
        ],
    )
    assert "one group" in str(result.exception)


def _fields(row):
    return {name: getattr(row, name) for name in ("m", "n", "k", "batch", "trans_a", "trans_b")}
