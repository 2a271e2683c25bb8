"""Older tables and failures in the matrices on which policies are judged."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from judge_fakes import DEVICE, QUICK, SIZES, fake_mapping, seconds_of, tables, tuned, without_columns
from tunesmith.cli.app import app
from tunesmith.logic import FinalTable, TableCell, details_of, read_csv, write_csv
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, Measurement, Outcome, Solution, UserError
from tunesmith.session.heuristics.entrants import entrants
from tunesmith.session.heuristics.judge import JudgeTask, judge_heuristics
from tunesmith.session.heuristics.matrices import MatrixTask, read_matrices
from tunesmith.session.heuristics.verdicts import judged
from tunesmith.store import FILE_NAME, Store

__all__ = ["fake_mapping"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("finals"))


@pytest.fixture
def old(run, tmp_path):
    """A table as an older version wrote it, with the logic beside it."""
    (table,) = tables(run)
    for path in (table, details_of(table)):
        shutil.copy(path, tmp_path / path.name)
    shutil.copytree(run / "logic", tmp_path / "logic")
    without_columns(tmp_path / table.name)
    return tmp_path / table.name


def edited(table, change):
    """Change header and rows of a table in place."""
    header, *rows = csv.reader(table.open())
    change(header, rows)
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def subject_of(*paths, **more):
    (subject,) = read_matrices(MatrixTask(paths, **more)).subjects  # type: ignore[arg-type]
    return subject


def add_unnamed(header, rows):
    """A solution that no logic names, twice as fast as all others on the first two products."""
    first = header.index("TotalFlops") + 1
    header.append("Cij_Aik_Bjk_SB_of_old")
    for number, row in enumerate(rows):
        best = max(float(cell) for cell in row[first:] if cell)
        row.append(str(2 * best) if number < 2 else "")


@pytest.mark.usefixtures("fake_mapping")
def test_the_best_known_that_cannot_be_measured_is_passed_over_and_told(old, tmp_path):
    """Each of the products has solutions that only the table names."""
    edited(old, add_unnamed)
    unnamed = sum(solution.kernel == "?" for solution in subject_of(old).matrix.solutions)
    assert unnamed >= 1
    task = JudgeTask(MatrixTask((old,)), ("latency",), kernels=("FakeGemm",))
    done = judge_heuristics(task, tmp_path / "out", device=DEVICE, policy=QUICK)
    (judgement,) = done.plan.judgements
    assert judgement.is_measured
    assert {problem.sizes for problem in judgement.matrix.problems} == set(SIZES)
    assert {solution.kernel for solution in judgement.matrix.solutions} == {"FakeGemm"}
    (remark,) = [note for note in done.plan.remarks() if "cannot be measured here" in note]
    matrix = subject_of(old).matrix
    lacking = [
        sum(matrix.solutions[column].kernel == "?" for column in np.argsort(times)[:5] if np.isfinite(times[column]))
        for times in matrix.seconds
    ]
    affected = sum(count > 0 for count in lacking)
    assert f"{sum(lacking)} times a configuration among the 5 fastest of a product cannot be measured here" in remark
    assert f"On {affected} of 4 products the best known may be too slow" in remark


@pytest.mark.usefixtures("fake_mapping")
@pytest.mark.parametrize("change", ["an absent parameter", "an unknown parameter", "another type", "an illegal value"])
def test_a_configuration_that_this_version_does_not_have_is_passed_over(run, tmp_path, change):
    """The kernel is known, and the configuration's time is the best of all."""
    subject = subject_of(run / FILE_NAME)
    known = subject.matrix.solutions[0].configuration
    made = {
        "an absent parameter": known.without(["WorkGroup"]),
        "an unknown parameter": known | {"OfOld": 1},
        "another type": known | {"WorkGroup": "large"},
        "an illegal value": known | {"WorkGroup": (1024, 1024, 1)},
    }[change]
    problems, kind = subject.matrix.problems, subject.matrix.problems[0].type
    fast = Solution(kind, "FakeGemm", made)
    solutions = (*subject.matrix.solutions, fast)
    times = [[*row, row.min() / 2] for row in subject.matrix.seconds]
    cells = {
        (problem, solution): TableCell(Outcome.OK, estimate=Estimate(time, time, time, 7))
        for problem, row in zip(problems, times, strict=True)
        for solution, time in zip(solutions, row, strict=True)
    }
    table = tmp_path / "01_Final.csv"
    write_csv(FinalTable(kind, problems, (1e6,) * len(problems), solutions, cells), table, subject.target)
    task = JudgeTask(MatrixTask((table,)), ("latency",), kernels=("FakeGemm",))
    done = judge_heuristics(task, tmp_path / "out", device=DEVICE, policy=QUICK)
    (judgement,) = done.plan.judgements
    assert fast not in judgement.matrix.solutions
    (remark,) = done.plan.remarks()
    assert "4 times a configuration among the 5 fastest" in remark
    assert "On 4 of 4 products" in remark


def test_the_noise_of_a_table_without_intervals_is_not_known(old):
    noise = subject_of(old).noise
    assert math.isnan(noise.half_width)
    assert math.isnan(noise.ratio)
    words = ["heuristics", "judge", str(old), "--kernel", "RegisterGemm", "--policy", "latency", "--device", "none"]
    text = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert "noise of the times is not known" in " ".join(text.split())
    assert "+-" not in text


@pytest.mark.parametrize("work", ["0", "-1", "nan", "inf"])
def test_a_row_without_work_has_no_times(old, work):
    def change(header, rows):
        rows[0][header.index("TotalFlops")] = work

    lost = tuple(int(size) for size in next(iter(list(csv.reader(old.open()))[1:]))[:3])
    edited(old, change)
    found = {problem.sizes for problem in subject_of(old).matrix.problems}
    assert found == set(SIZES) - {lost}
    assert all(row for row, _, _ in read_csv(old).times()), "row 0 has none"


def test_a_table_takes_the_entries_of_its_own_type_from_a_store(run, tmp_path):
    """One type's name begins with another's; the longest name that matches is the table's type."""
    (table,) = tables(run)
    copied = tmp_path / table.name
    shutil.copy(table, copied)
    shutil.copy(run / FILE_NAME, tmp_path)
    with Store.read(tmp_path / FILE_NAME) as store:
        entries = list(store.entries())
    plain = entries[0].problem.type
    biased = gemm_type("s", transpose_b=False, bias=True)
    assert biased.name == f"{plain.name}_Bias"
    copied.write_text(copied.read_text().replace(plain.name, biased.name))
    with pytest.raises(UserError, match="no product"):
        read_matrices(MatrixTask((copied,)))
    with Store.open(tmp_path / FILE_NAME) as store:
        store.commit(
            replace(
                entry,
                key=f"{entry.key} biased",
                problem=replace(entry.problem, type=biased),
                solution=replace(entry.solution, type=biased),
            )
            for entry in entries
        )
    assert {problem.type for problem in subject_of(copied).matrix.problems} == {biased}
    assert seconds_of(copied) == seconds_of(run / FILE_NAME), "the biased entries have the others' times"


def test_a_row_of_the_list_is_found_by_batch_and_layout(run, tmp_path):
    """64 x 64 x 64 is there, but neither as a batch of two nor transposed."""
    sizes = tmp_path / "list.csv"
    sizes.write_text("m,n,k,batch,trans_a\n64,64,64,1,N\n64,64,64,2,N\n64,64,64,1,T\n")
    assert read_matrices(MatrixTask((run,), (sizes,))).notes == (f"2 of 3 products of {sizes} are in no matrix",)


def failing(run, folder, outcome, reason):
    """A store in which the latency policy's choice failed at the first product, and that choice."""
    folder.mkdir()
    shutil.copy(run / FILE_NAME, folder)
    before = subject_of(folder)
    (latency,) = entrants(("latency",), kernels=("FakeGemm",))
    ((choice, *_),) = [latency.ranked(before.matrix.problems[0], before.target, 1)]
    with Store.open(folder / FILE_NAME) as store:
        entry = next(entry for entry in store.entries() if entry.problem.bare == before.matrix.problems[0].bare)
        failure = Measurement(outcome, reason)
        store.commit([replace(entry, key="a failure", solution=choice, measurement=failure)])
    return subject_of(folder), choice


@pytest.mark.usefixtures("fake_mapping")
def test_a_choice_that_failed_in_the_store_is_unanswered(run, tmp_path):
    known = subject_of(run / FILE_NAME).matrix.columns
    subject, choice = failing(run, tmp_path / "wrong", Outcome.WRONG_RESULT, "wrong value")
    assert choice not in known, "nobody measured it, so that a neighbour would stand in"
    matrix = subject.matrix
    judged_on = entrants(("latency", "trip-count"), kernels=("FakeGemm",))
    guesses = {who: [who.ranked(problem, subject.target, 1) for problem in matrix.problems] for who in judged_on}
    judgement = judged(subject, matrix, subject.noise, guesses, is_measured=False)
    latency, trips = judgement.verdicts
    assert latency.score
    assert trips.score
    assert latency.score.rows == (1, 2, 3)
    assert latency.score.unanswered == 1
    assert trips.score.rows == (0, 1, 2, 3)
    assert judgement.common == 3
    words = ["--policy", "latency", "--policy", "trip-count", "--kernel", "FakeGemm", "--device", "none"]
    command = ["heuristics", "judge", str(tmp_path / "wrong"), *words]
    text = CliRunner().invoke(app, command, catch_exceptions=False).stdout
    assert re.search(r"95 % +common +10th %", text)
    assert "common: the geomean on the 3 products that every policy answered" in text
    document = json.loads(CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False).stdout)["judgements"][0]
    assert document["common_products"] == 3
    assert [row["common_geomean"] for row in document["policies"]] == [latency.common_geomean, trips.common_geomean]


def test_leaving_out_a_hard_product_does_not_score_better(run):
    """Both choose the fastest for three products. For the last product, one chooses the slowest and the other
    nothing."""
    subject = subject_of(run / FILE_NAME)
    matrix = subject.matrix
    fastest, slowest = (
        [matrix.solutions[find(row)] for row in matrix.seconds] for find in (np.nanargmin, np.nanargmax)
    )
    brave, careful, silent = entrants(("latency", "trip-count", "published-intensity"))
    guesses = {
        brave: [*((solution,) for solution in fastest[:3]), (slowest[3],)],
        careful: [*((solution,) for solution in fastest[:3]), ()],
        silent: [(), (), (), ()],
    }
    judgement = judged(subject, matrix, subject.noise, guesses, is_measured=False)
    first, second, third = judgement.verdicts
    assert first.score
    assert second.score
    assert first.score.geomean < second.score.geomean == 1
    assert judgement.common == 3, "who never answers does not count"
    assert first.common_geomean == second.common_geomean == 1
    assert third.score is None
    assert math.isnan(third.common_geomean)


@pytest.mark.usefixtures("fake_mapping")
def test_a_failure_that_is_the_machines_is_no_answer(run, tmp_path):
    subject, choice = failing(run, tmp_path / "killed", Outcome.CRASH, "SIGKILL")
    assert choice not in subject.matrix.columns


def test_the_details_of_a_final_say_what_failed(run, tmp_path):
    """A solution that was not measured has not failed."""
    subject = subject_of(run / FILE_NAME)
    problems, solutions = subject.matrix.problems[:2], subject.matrix.solutions[:3]
    first, second, third = solutions
    ran = TableCell(Outcome.OK, estimate=Estimate(1.0, 0.9, 1.1, 7))
    cells = {(problem, solution): ran for problem in problems for solution in (first, second)}
    cells[problems[0], third] = TableCell(Outcome.CRASH, "SIGSEGV")
    table = tmp_path / "01_Final.csv"
    write_csv(FinalTable(problems[0].type, problems, (1e6, 1e6), solutions, cells), table, subject.target)
    matrix = subject_of(table).matrix
    assert matrix.failed is not None
    assert matrix.failed[:, matrix.columns[third]].tolist() == [True, False]
    assert not matrix.failed[:, [matrix.columns[first], matrix.columns[second]]].any()
    words = ["heuristics", "judge", str(table), "--kernel", "RegisterGemm", "--device", "none", "--json"]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
