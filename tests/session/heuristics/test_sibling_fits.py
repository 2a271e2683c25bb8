"""A fit that other devices of the same architecture teach: their sources are beside those of the device."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from choice_fakes import products, tuned
from few_trees import few_trees
from tunesmith.cli.app import app
from tunesmith.models.choice.fit import siblings
from tunesmith.models.choice.model_file import read_choice_model
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.problems.gemm import gemm_type, gemm_type_named, of_batches
from tunesmith.records import LibraryPlan
from tunesmith.session.heuristics import fit_choice as fit_choice_module
from tunesmith.session.heuristics.matrices import data_type_of, read_matrices
from tunesmith.session.heuristics.plans import ForeseenProduct, plans_text

PLAN = LibraryPlan(66, 24, 2, 0, 3, 35, 4, 1024, 0.5)


@pytest.fixture(scope="module", autouse=True)
def quick_fits():
    with few_trees(times=10), pytest.MonkeyPatch.context() as patch:
        # Two thirds of the products are left where a family is held out.
        patch.setattr(siblings, "LEAST_SHARED", 100)
        patch.setitem(siblings.FOREST, "n_estimators", 20)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("siblings"))


@pytest.fixture
def fit(run, tmp_path, monkeypatch):
    """Runs the command on all products but two, which only the sibling has. The fake device is the only one of its
    architecture, so the sibling is the same run with other facts of the device."""
    folder, listed = run
    there = tmp_path / "there"
    there.symlink_to(folder, target_is_directory=True)

    def read(task, **facts):
        # The run's own type has no plans where it is taken for another.
        found = read_matrices(replace(task, plans=()) if "letters" in facts else task)
        (subject,) = found.subjects
        if task.sources == (there,):
            ours = "data_type", "letters", "batched"
            there_facts = {name: value for name, value in facts.items() if name not in ours}
            data_type = facts.get("data_type", subject.data_type)
            subject = replace(subject, target=replace(subject.target, **there_facts), data_type=data_type)
        else:
            subject = replace(subject, matrix=all_but_two(subject.matrix))
        if letters := facts.get("letters"):
            subject = of_type(subject, letters[task.sources == (there,)])
        if task.sources[0].name in facts.get("batched", ()):
            subject = of_batches_of_three(subject)
        return replace(found, subjects=(subject,))

    def command(*words, **facts):
        monkeypatch.setattr(fit_choice_module, "read_matrices", lambda task: read(task, **facts))
        options = "--method", "choice", "--sizes", listed, "-o", tmp_path / "choice.yaml"
        return CliRunner().invoke(app, list(map(str, ["heuristics", "fit", folder, *options, *words])))

    return command, there


@pytest.fixture
def passed_on(monkeypatch):
    """The siblings that fits get."""
    siblings_passed, fitted = [], fit_choice_module.fit_choice

    def spied_fit(*arguments):
        *_, siblings, _ = arguments
        siblings_passed.extend(siblings)
        return fitted(*arguments)

    monkeypatch.setattr(fit_choice_module, "fit_choice", spied_fit)
    return siblings_passed


def of_type(subject, letter):
    """The same times, as if they were of another data type."""
    matrix = subject.matrix
    fields = matrix.problems[0].type.fields
    kind = gemm_type(
        letter,
        transpose_a=fields.flag("TransposeA"),
        transpose_b=fields.flag("TransposeB"),
        use_beta=fields.flag("UseBeta"),
    )
    problems, solutions = (
        tuple(replace(part, type=kind) for part in parts) for parts in (matrix.problems, matrix.solutions)
    )
    changed = replace(matrix, problems=problems, solutions=solutions, plans={})
    return replace(subject, matrix=changed, data_type=data_type_of(problems[0]))


def of_batches_of_three(subject):
    """The same times, as if each were of a batch."""
    matrix = subject.matrix
    problems = tuple(
        replace(problem, type=of_batches(problem.type), sizes=(*problem.sizes[:2], 3, problem.sizes[2]))
        for problem in matrix.problems
    )
    solutions = tuple(replace(solution, type=of_batches(solution.type)) for solution in matrix.solutions)
    return replace(subject, matrix=replace(matrix, problems=problems, solutions=solutions, plans={}))


def all_but_two(matrix):
    parts = matrix.problems[:-2], matrix.families[:-2], matrix.solutions, matrix.seconds[:-2]
    return TimeMatrix(*parts, plans=matrix.plans)


def test_a_sibling_teaches_what_was_not_measured(fit, tmp_path):
    command, there = fit
    result = command("--sibling", there, "--json", name="another GPU")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    origin = read_choice_model(tmp_path / "choice.yaml").origin
    measured, translated = document["products"], document["translated"]
    assert (measured, translated) == (len(products()) - 2, 2)
    assert (origin.products, origin.translated, origin.sources) == (measured, translated, ("run",))
    shown = " ".join(command("--sibling", there, name="another GPU").output.split())
    assert f"{translated} more products, of another GPU, teach it" in shown
    alone = json.loads(command("--json").stdout)
    assert (alone["siblings"], alone["translated"]) == ([], 0)


def test_the_plans_of_a_sibling_and_of_the_device_are_told_apart(fit, run, tmp_path, passed_on):
    command, there = fit
    (subject,) = read_matrices(fit_choice_module.MatrixTask((run[0],), (run[1],), with_vendor=True)).subjects
    kind = subject.matrix.problems[0].type
    rows = [ForeseenProduct(row, kind, subject.target.name, PLAN) for row in products()]
    others = [replace(row, device="another GPU", plan=replace(PLAN, parts=9)) for row in rows]
    (tmp_path / "plans.csv").write_text(plans_text([*rows, *others]))
    assert command("--sibling", there, "--plans", tmp_path / "plans.csv", name="another GPU").exit_code == 0
    (sibling,) = passed_on
    assert {plan.parts for plan in sibling.plans_here.values()} == {PLAN.parts}
    assert {plan.parts for plan in sibling.matrix.plans.values()} == {9}
    assert len(sibling.plans_here) == len(sibling.matrix.plans) == len(sibling.matrix.problems)
    (tmp_path / "plans.csv").write_text(plans_text(rows))
    assert command("--sibling", there, "--plans", tmp_path / "plans.csv", name="another GPU").exit_code == 0
    assert not passed_on[1].matrix.plans


@pytest.mark.parametrize("letters", ["hb", "bh"])
def test_a_type_that_is_as_fast_is_a_sibling_on_the_same_device(fit, tmp_path, letters):
    command, there = fit
    result = command("--sibling", there, "--json", letters=letters)
    assert result.exit_code == 0, result.output
    model = read_choice_model(tmp_path / "choice.yaml")
    names = {"h": "float16", "b": "bfloat16"}
    assert model.data_type == names[letters[0]]
    assert model.origin.siblings == (f"{names[letters[1]]} on fake GPU",)
    assert json.loads(result.stdout)["translated"] == 2
    assert {gemm_type_named(name).fields.word("DataType") for name in model.types} == {letters[0]}


def test_the_plans_of_both_types_are_told_apart(fit, run, tmp_path, passed_on):
    """The sibling's plans are under its products as products of the fit's type, and so are the fit's."""
    command, there = fit
    (subject,) = read_matrices(fit_choice_module.MatrixTask((run[0],), (run[1],), with_vendor=True)).subjects
    kinds = {letter: of_type(subject, letter).matrix.problems[0].type for letter in "hb"}
    name = subject.target.name
    rows = [
        ForeseenProduct(row, kinds[letter], name, replace(PLAN, parts=parts))
        for letter, parts in (("h", 2), ("b", 9))
        for row in products()
    ]
    (tmp_path / "plans.csv").write_text(plans_text(rows))
    result = command("--sibling", there, "--plans", tmp_path / "plans.csv", letters="hb")
    assert result.exit_code == 0, result.output
    (sibling,) = passed_on
    assert sibling.name == f"bfloat16 on {name}"
    problems = set(sibling.matrix.problems)
    assert {problem.type for problem in problems} == {kinds["h"]}
    assert sibling.matrix.plans.keys() == sibling.plans_here.keys() == problems
    assert {plan.parts for plan in sibling.matrix.plans.values()} == {9}
    assert {plan.parts for plan in sibling.plans_here.values()} == {2}


def test_single_matrices_teach_batches_and_not_the_reverse(fit, run, tmp_path):
    command, there = fit
    result = command("--sibling", there, "--json", batched=["run"])
    assert result.exit_code == 0, result.output
    model = read_choice_model(tmp_path / "choice.yaml")
    assert model.origin.siblings == ("single matrices in float32 on fake GPU",)
    assert json.loads(result.stdout)["translated"] == len(products())
    assert all(gemm_type_named(name).fields.flag("Batched") for name in model.types)
    (tmp_path / "choice.yaml").unlink()
    for others in ({"batched": ["there"]}, {"batched": ["run", "there"]}, {"batched": ["run"], "name": "another GPU"}):
        failed = str(command("--sibling", there, **others).exception)
        assert "none of a sibling of" in failed
        assert "or to a fit of batches single matrices of its device and type" in failed


def test_the_plans_of_single_matrices_are_those_of_batches_of_one(fit, run, tmp_path, passed_on):
    command, there = fit
    (subject,) = read_matrices(fit_choice_module.MatrixTask((run[0],), (run[1],), with_vendor=True)).subjects
    kind = subject.matrix.problems[0].type
    rows = [ForeseenProduct(row, kind, subject.target.name, PLAN) for row in products()]
    (tmp_path / "plans.csv").write_text(plans_text(rows))
    assert command("--sibling", there, "--plans", tmp_path / "plans.csv", batched=["run"]).exit_code == 0
    (sibling,) = passed_on
    assert {(problem.type, problem.sizes[2]) for problem in sibling.matrix.problems} == {(of_batches(kind), 1)}
    assert set(sibling.plans_here) == set(sibling.matrix.plans) == set(sibling.matrix.problems)
    assert not sibling.needs_translation


@pytest.mark.parametrize("letters", ["hh", "hs", "sh", "bs"])
def test_any_other_type_on_the_same_device_is_no_sibling(fit, letters):
    command, there = fit
    assert "none of a sibling of" in str(command("--sibling", there, letters=letters).exception)


@pytest.mark.parametrize(
    "facts",
    [{}, {"name": "another", "architecture": "fake 2"}, {"name": "another", "api": "CUDA"}, {"data_type": "bfloat16"}],
)
def test_a_device_unlike_the_one_of_the_fit_is_no_sibling(fit, tmp_path, facts):
    command, there = fit
    failed = command("--sibling", there, **facts)
    assert f"{there}: times of" in str(failed.exception)
    assert "none of a sibling of float32 on fake GPU; give float32 on another device of fake, or a type" in str(
        failed.exception
    )
    assert not (tmp_path / "choice.yaml").exists()


def test_too_few_times_on_both_devices_are_told_with_the_sibling(fit, tmp_path, monkeypatch):
    command, there = fit
    monkeypatch.setattr(siblings, "LEAST_SHARED", 10000)
    failed = command("--sibling", there, name="another GPU")
    assert str(failed.exception).startswith(f"{there}: ")
    assert "times were measured by both, and 10000 are needed; measure more of the sources" in str(failed.exception)
    assert not (tmp_path / "choice.yaml").exists()


def test_siblings_mean_nothing_to_other_methods(run, tmp_path):
    words = "heuristics", "fit", run[0], "--sibling", run[0], "-o", tmp_path / "out"
    failed = CliRunner().invoke(app, list(map(str, words)))
    assert "--sibling: means nothing to --method dp" in str(failed.exception)
