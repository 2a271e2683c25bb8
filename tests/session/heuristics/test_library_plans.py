"""The library's plans in a file: asked for once on a device, and used by a fit and a judgement without one."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pytest
from typer.testing import CliRunner

from choice_fakes import products, tuned
from few_trees import few_trees
from tunesmith.cli.app import app
from tunesmith.cli.runs import INTERRUPTED
from tunesmith.devices import LaunchError
from tunesmith.models.choice.fit.library import LibraryRun
from tunesmith.models.choice.model_file import read_choice_model
from tunesmith.problems.gemm import DATA_TYPES, gemm_type, gemm_type_named
from tunesmith.problems.gemm.fields import INPUTS
from tunesmith.problems.gemm.listed import ListedGemm, gemm_list_text
from tunesmith.records import LibraryPlan, Problem, UserError
from tunesmith.session.heuristics import choosers
from tunesmith.session.heuristics import fit_choice as fit_choice_module
from tunesmith.session.heuristics import plans as plans_module
from tunesmith.session.heuristics.matrices import MatrixTask, _family, data_type_of, read_matrices
from tunesmith.session.heuristics.plans import (
    ForeseenProduct,
    plans_of,
    plans_text,
    read_plans,
    write_plans,
)

PLAN = LibraryPlan(66, 24, 2, 0, 3, 35, 4, 1024, 0.5)


def planned(kind="Cij_Aik_Bkj_B", device="a GPU", **row):
    return ForeseenProduct(ListedGemm(**{"m": 16, "n": 32, "k": 64} | row), gemm_type_named(kind), device, PLAN)


@pytest.fixture(scope="module", autouse=True)
def quick_fits():
    with few_trees(times=10):
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("plans"))


def command(*words):
    return CliRunner().invoke(app, ["heuristics", *map(str, words)])


def test_a_file_has_what_was_written(tmp_path):
    rows = [planned(), planned(trans_a=True, batch=3, family="few"), replace(planned(), plan=replace(PLAN, waves=1e-7))]
    for written in (rows, [*rows, replace(planned(m=5), seconds=1.25e-5)]):
        (tmp_path / "plans.csv").write_text(plans_text(written))
        assert list(read_plans([tmp_path / "plans.csv"])) == written


@pytest.mark.parametrize("text", ["0", "-1e-6", "nan", "inf", "fast", ""])
def test_a_time_that_is_none_is_told_with_its_line(tmp_path, text):
    path = tmp_path / "plans.csv"
    path.write_text(plans_text([planned(), replace(planned(), seconds=1.25e-5)]).replace("1.25e-05", text))
    with pytest.raises(UserError, match="seconds") as error:
        list(read_plans([path]))
    assert error.value.location.startswith(f"{path}:3")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("66", "-1", "algorithm"),
        ("66", "6.5", "algorithm"),
        ("0.5", "nan", "waves"),
        ("0.5", "-0.5", "waves"),
        ("a GPU", "", "device"),
        ("Cij_Aik_Bkj_B", "Cij", "type"),
        (",waves", ",ripples", "ripples"),
        ("0.5", "0.5,1", "cells"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path, old, new, what):
    path = tmp_path / "plans.csv"
    text = plans_text([planned()])
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UserError, match=what) as error:
        list(read_plans([path]))
    assert error.value.location.startswith(f"{path}:")


def test_a_plan_is_of_a_type_and_a_device():
    """Not of the type with beta, a bias or another data type, which the library may compute in another way."""
    rows = [planned(), planned("Cijk_Ailk_Bljk_B", batch=2)]
    nn, tn = (gemm_type("b", transpose_a=a, transpose_b=False, use_beta=False) for a in (False, True))
    batched = gemm_type("b", transpose_b=False, use_beta=False, batched=True)
    others = [
        gemm_type("h", transpose_b=False, use_beta=False),
        gemm_type("b", transpose_b=False),
        gemm_type("b", transpose_b=False, use_beta=False, bias=True, activation="relu"),
        gemm_type("b", transpose_b=False, use_beta=False, dest="s"),
    ]
    problems = [
        Problem(nn, (32, 16, 64)),
        Problem(tn, (32, 16, 64)),
        Problem(nn, (16, 32, 64)),
        Problem(nn, (32, 16, 64), leading=(40, 40, 40, 64)),
        Problem(batched, (32, 16, 2, 64)),
        Problem(batched, (32, 16, 3, 64)),
        *(Problem(other, (32, 16, 64)) for other in others),
    ]
    assert plans_of(rows, "a GPU", problems) == {problems[0]: PLAN, problems[4]: PLAN}
    assert plans_of(rows, "another GPU", problems) == {}


@dataclass
class FakeLauncher:
    """Says a plan of all products but those with a K of 7."""

    device: Any
    logics: Any
    unused: Any
    asked: Any = None

    def foreseen(self, problem):
        FakeLauncher.problems.append(problem)
        return None if problem.size("K") == 7 else PLAN

    def close(self):
        pass


@pytest.fixture
def device(monkeypatch):
    class Opened(nullcontext):
        target = type("Target", (), {"name": "a GPU"})

        def close(self):
            pass

    FakeLauncher.problems = []
    monkeypatch.setattr(plans_module, "Launcher", FakeLauncher)
    monkeypatch.setattr(plans_module, "choose", lambda selector: selector)
    monkeypatch.setattr(plans_module, "open_device", lambda target: Opened())


def test_the_device_is_asked_for_each_product_once(device, tmp_path):
    (tmp_path / "list.csv").write_text(
        gemm_list_text([ListedGemm(16, 32, 64, trans_b=True), ListedGemm(8, 8, 7), ListedGemm(4, 4, 8, batch=5)])
    )
    (tmp_path / "again.csv").write_text(gemm_list_text([ListedGemm(8, 8, 7, family="another")]))
    out = tmp_path / "plans.csv"
    words = "plans", tmp_path / "list.csv", tmp_path / "again.csv", "--type", "float16", "-o", out, "--json"
    document = json.loads(command(*words).stdout)
    assert document == {
        "products": 2,
        "timed": 0,
        "silent": 1,
        "left": 0,
        "stopped": None,
        "written": str(out),
    }
    assert [problem.type.name for problem in FakeLauncher.problems] == [
        "Cij_Aki_Bkj_H",
        "Cij_Aik_Bkj_H",
        "Cijk_Ailk_Bljk_H",
    ]
    assert [problem.sizes for problem in FakeLauncher.problems] == [(32, 16, 64), (8, 8, 7), (4, 4, 5, 8)]
    assert [(found.row.k, found.type.name, found.device) for found in read_plans([out])] == [
        (64, "Cij_Aki_Bkj_H", "a GPU"),
        (8, "Cijk_Ailk_Bljk_H", "a GPU"),
    ]
    assert "the library says nothing of 1 others" in command(*words[:-1]).stdout


@pytest.fixture
def library(device, monkeypatch):
    """A library that takes 2 us, cannot compute an N of 9, is stopped at one of 11, and breaks the device at 13."""
    asked = []

    def seconds(opened, launcher, problem):
        asked.append(problem.size("N"))
        if problem.size("N") == 11:
            raise KeyboardInterrupt
        if problem.size("N") == 13:
            raise LaunchError("misaligned address", "made up", poisoned=True)
        return None if problem.size("N") == 9 else 2e-6

    monkeypatch.setattr(plans_module, "library_seconds", seconds)
    return asked


def timing(tmp_path, *rows):
    (tmp_path / "list.csv").write_text(gemm_list_text(rows))
    return "plans", tmp_path / "list.csv", "-o", tmp_path / "plans.csv", "--times"


def test_the_library_is_timed_where_it_says_its_plan(library, tmp_path):
    words = timing(tmp_path, ListedGemm(8, 8, 8), ListedGemm(9, 8, 8), ListedGemm(8, 8, 7))
    assert json.loads(command(*words, "--json").stdout) == {
        "products": 2,
        "timed": 1,
        "silent": 1,
        "left": 0,
        "stopped": None,
        "written": str(tmp_path / "plans.csv"),
    }
    assert [product.seconds for product in read_plans([tmp_path / "plans.csv"])] == [2e-6, None]
    assert library == [8, 9]
    assert "plans for 2 products and its times of 1 to" in command(*words).stdout


def test_what_the_file_has_is_kept_and_not_asked_for_again(library, tmp_path):
    """A product without a time is asked for again, if times are asked for. Another device's row stays."""
    out, other = tmp_path / "plans.csv", replace(planned("Cij_Aik_Bkj_B", "another", m=9, n=8, k=8), seconds=5e-6)
    untimed = replace(other, device="a GPU", seconds=None)
    timed = replace(planned("Cij_Aik_Bkj_B", m=10, n=8, k=8), seconds=7e-6)
    out.write_text(plans_text([other, untimed, timed]))
    words = timing(tmp_path, ListedGemm(9, 8, 8), ListedGemm(10, 8, 8), ListedGemm(12, 8, 8))
    assert command(*words[:-1]).exit_code == 0
    assert library == []
    assert [product.row.m for product in read_plans([out])] == [9, 9, 10, 12]
    assert command(*words).exit_code == 0
    assert library == [9, 12]
    assert [product.seconds for product in read_plans([out])] == [5e-6, None, 7e-6, 2e-6]


@pytest.mark.parametrize(("n", "why", "code"), [(11, "Ctrl-C", INTERRUPTED), (13, "misaligned address: made up", 1)])
def test_what_stops_the_asking_keeps_what_is_known(library, tmp_path, n, why, code):
    rows = [ListedGemm(8, 8, 8), ListedGemm(8, 8, 7), ListedGemm(n, 8, 8), ListedGemm(8, 8, 16)]
    words = timing(tmp_path, *rows)
    result = command(*words)
    assert result.exit_code == code
    shown = " ".join(result.output.split())
    assert f"stopped by {why} with 2 products left; wrote" in shown
    assert "says nothing of 1 others" in shown
    assert [product.row for product in read_plans([tmp_path / "plans.csv"])] == rows[:1]
    document = json.loads(command(*words, "--json").stdout)
    assert (document["stopped"], document["left"], document["products"]) == (why, 2, 1)


def test_a_device_that_fails_at_once_is_an_error(library, tmp_path):
    failed = command(*timing(tmp_path, ListedGemm(13, 8, 8)))
    assert "a GPU: failed (misaligned address: made up)" in str(failed.exception)
    assert "give the same command again" in str(failed.exception)
    assert not (tmp_path / "plans.csv").exists()


def test_a_killed_process_loses_a_few_seconds(library, tmp_path, monkeypatch):
    monkeypatch.setattr(plans_module, "SAVE_SECONDS", 0.0)

    def kill(done, of):
        if done == 3:
            raise SystemExit("killed")

    rows = [ListedGemm(8, 8, 8), ListedGemm(12, 8, 8), ListedGemm(14, 8, 8), ListedGemm(16, 8, 8)]
    timing(tmp_path, *rows)
    with pytest.raises(SystemExit):
        write_plans([tmp_path / "list.csv"], tmp_path / "plans.csv", "bfloat16", None, True, kill)
    assert [product.row for product in read_plans([tmp_path / "plans.csv"])] == rows[:2]


def test_ctrl_c_before_anything_is_known_leaves_no_file(library, tmp_path):
    timing(tmp_path, ListedGemm(11, 8, 8))
    with pytest.raises(KeyboardInterrupt):
        write_plans([tmp_path / "list.csv"], tmp_path / "plans.csv", "bfloat16", None, times=True)
    assert not (tmp_path / "plans.csv").exists()


@pytest.mark.parametrize("name", [*(DATA_TYPES[letter].dtype for letter in INPUTS), "tf32"])
def test_every_data_type_can_be_asked_for(device, tmp_path, name):
    (tmp_path / "list.csv").write_text(gemm_list_text([ListedGemm(16, 32, 64, trans_b=True)]))
    write_plans([tmp_path / "list.csv"], tmp_path / "plans.csv", name, None)
    (problem,) = FakeLauncher.problems
    assert data_type_of(problem).split(" ")[0] == name
    # float8 is tuned and multiplied with scales, so a fit looks for plans of that type.
    assert ("ScaleAB" in problem.type.fields) == name.startswith("float8")
    assert set(plans_of(list(read_plans([tmp_path / "plans.csv"])), "a GPU", [problem])) == {problem}


def test_what_cannot_be_asked_or_written_is_told(device, tmp_path):
    listed = tmp_path / "list.csv"
    listed.write_text(gemm_list_text([ListedGemm(8, 8, 7)]))
    with pytest.raises(UserError, match=r"no data type.*tf32"):
        write_plans([listed], tmp_path / "plans.csv", "words", None)
    with pytest.raises(UserError, match="its library does not say"):
        write_plans([listed], tmp_path / "plans.csv", "bfloat16", None)
    text = listed.read_text()
    with pytest.raises(UserError, match="there is no column type"):
        write_plans([listed], listed, "bfloat16", None)
    assert listed.read_text() == text


def test_a_fit_and_a_judgement_take_the_plans(run, tmp_path, monkeypatch):
    """The fake device has no library, so that the model has no trees for one. The matrices have the plans."""
    folder, listed = run
    (bare,) = read_matrices(MatrixTask((folder,), (listed,), with_vendor=True)).subjects
    device, kind = bare.target.name, bare.matrix.problems[0].type.name
    rows = [replace(planned(kind, device), row=row) for row in products()]
    (tmp_path / "plans.csv").write_text(plans_text(rows))
    (tmp_path / "some.csv").write_text(plans_text(rows[:-1]))
    (tmp_path / "others.csv").write_text(plans_text([replace(row, device="another") for row in rows]))
    passed_on = []
    fitted, ordered = fit_choice_module.fit_choice, choosers.expected_order

    def spied_fit(matrix, *arguments):
        passed_on.append(matrix.plans)
        return fitted(matrix, *arguments)

    def spied_order(model, matrix):
        passed_on.append(matrix.plans)
        return ordered(model, matrix)

    for module in (fit_choice_module, choosers):
        monkeypatch.setattr(module, "fit_choice", spied_fit)
    monkeypatch.setattr(choosers, "expected_order", spied_order)
    options = "--plans", tmp_path / "plans.csv"
    model = tmp_path / "choice.yaml"
    fit = "fit", folder, "--method", "choice", "--sizes", listed, "-o", model
    words = "judge", folder, "--choices", "--taught", folder, "--device", "none", "--sizes", listed
    judge = *words, "-o", tmp_path / "judged"
    assert command(*fit, *options).exit_code == 0
    assert read_choice_model(model).library is None
    assert command(*judge, *options).exit_code == command(*judge, "--model", model, *options).exit_code == 0
    assert [len(plans) for plans in passed_on] == [len(rows)] * 4
    shown = command(*fit, "--plans", tmp_path / "some.csv").output
    assert f"1 of {len(rows)} products have no plan in" in " ".join(shown.split())
    failed = command(*fit, "--plans", tmp_path / "others.csv")
    assert f"has no plan of the {len(products())} products" in str(failed.exception)


def test_a_fit_takes_the_times_of_its_device_and_types(run, tmp_path):
    folder, listed = run
    (subject,) = read_matrices(MatrixTask((folder,), (listed,), with_vendor=True)).subjects
    kind, device = subject.matrix.problems[0].type.name, subject.target.name
    family = subject.matrix.families[0]
    timed = replace(planned(kind, device, m=7, n=33, family=family), seconds=2e-6)
    others = [
        planned(kind, device),
        replace(timed, device="another"),
        replace(timed, type=gemm_type("h", transpose_b=False)),
    ]
    strange = replace(timed, row=replace(timed.row, family="a family that no list of the fit has"))
    path = tmp_path / "times.csv"
    path.write_text(plans_text([timed, *others, strange]))
    runs = fit_choice_module.library_runs([path], subject)
    assert runs == [LibraryRun(timed.problem, name, PLAN, 2e-6, str(path)) for name in (family, "33 x 7")]
    assert _family(timed.problem, None) == "33 x 7"


def test_a_fit_is_taught_by_the_times(run, tmp_path, monkeypatch):
    """The fake device has no library, so that the file must be told to have one."""
    folder, listed = run
    (subject,) = read_matrices(MatrixTask((folder,), (listed,), with_vendor=True)).subjects
    kind, device = subject.matrix.problems[0].type.name, subject.target.name
    rows = [replace(planned(kind, device), row=row) for row in products()]
    (tmp_path / "plans.csv").write_text(plans_text(rows))
    (tmp_path / "times.csv").write_text(plans_text([replace(planned(kind, device, m=7), seconds=2e-6)]))
    passed_on, fitted = [], fit_choice_module.fit_choice

    def spied(*arguments):
        passed_on.append(arguments[-1])
        found = fitted(*arguments)
        return replace(found, model=replace(found.model, origin=replace(found.model.origin, library_alone=3)))

    monkeypatch.setattr(fit_choice_module, "fit_choice", spied)
    options = "--plans", tmp_path / "plans.csv", "--plans", tmp_path / "times.csv"
    words = "fit", folder, "--method", "choice", "--sizes", listed, *options, "-o", tmp_path / "choice.yaml"
    assert "the library's times of 3 more products teach it" in command(*words).stdout
    assert json.loads(command(*words, "--json").stdout)["library_alone"] == 3
    assert [[run.seconds for run in runs] for runs in passed_on] == [[2e-6], [2e-6]]


def test_plans_mean_nothing_elsewhere(run, tmp_path):
    folder, _ = run
    options = "--plans", tmp_path / "plans.csv", "-o", tmp_path / "out"
    assert "--plans: means nothing to --method dp" in str(command("fit", folder, *options).exception)
    assert "--plans: means nothing without --choices" in str(command("judge", folder, *options).exception)
