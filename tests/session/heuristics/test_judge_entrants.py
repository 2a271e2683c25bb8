"""The entrants: heuristics with the same file name have different names, and a fit on a judged matrix is reported."""

from __future__ import annotations

import csv
import json

import pytest

from judge_fakes import DEVICE, QUICK, fake_mapping, tables, tuned
from tunesmith.models.intensity.fit.heuristic import BucketSeed, CutPoint, FitOrigin, FittedHeuristic, MetricRule
from tunesmith.models.intensity.fit.heuristic_file import dump_heuristic
from tunesmith.records import Configuration
from tunesmith.session.heuristics.entrants import entrants, fitted_here
from tunesmith.session.heuristics.judge import JudgeTask, judge_heuristics
from tunesmith.session.heuristics.matrices import MatrixTask
from tunesmith.store import FILE_NAME

__all__ = ["fake_mapping"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("entrants"))


def heuristic(path, tile, *sources):
    """The file of a heuristic that always asks for the same tile."""
    origin = FitOrigin(sources or ("a.csv",), "all", "a GPU", "f32", 8, 4, 4.0, 4.0, "dp", "0.1.0", "2026-01-02")
    seed = BucketSeed(Configuration({"MacroTile": tile}), None, 4)
    rule = MetricRule("mnk", (CutPoint(1e9),))
    path.parent.mkdir(exist_ok=True)
    path.write_text(dump_heuristic(FittedHeuristic(origin, 100.0, 8, {}, rule, (seed, seed))))
    return path


@pytest.mark.usefixtures("fake_mapping")
def test_heuristics_of_one_file_name_have_rows_of_their_own(run, tmp_path):
    """One heuristic chooses small tiles, the other large ones. A file that is given twice is judged once."""
    small, large = heuristic(tmp_path / "a" / "h.yaml", (16, 16)), heuristic(tmp_path / "b" / "h.yaml", (128, 128))
    task = JudgeTask(MatrixTask((run,)), ("latency",), (small, large, small), ("FakeGemm",))
    done = judge_heuristics(task, tmp_path / "out", device=DEVICE, policy=QUICK)
    (judgement,) = done.plan.judgements
    names = [verdict.entrant.name for verdict in judgement.verdicts]
    assert names == ["latency", f"fitted: {small}", f"fitted: {large}"]
    rows = list(csv.DictReader((tmp_path / "out" / "judged.csv").open()))
    chosen = {name: {row["configuration"] for row in rows if row["policy"] == f"{name} FakeGemm"} for name in names[1:]}
    for verdict in judgement.verdicts[1:]:
        guesses = judgement.guesses[verdict.entrant]
        expected = {json.dumps(json.loads(ranked[0].configuration.to_json())) for ranked in guesses}
        assert chosen[verdict.entrant.name] == expected
    assert not set.intersection(*chosen.values())


def test_a_file_name_that_is_alone_is_the_name(tmp_path):
    first, other = heuristic(tmp_path / "h.yaml", (16, 16)), heuristic(tmp_path / "i.yaml", (16, 16))
    assert [entrant.name for entrant in entrants(("latency",), (first, other))] == [
        *("latency", "fitted: h.yaml", "fitted: i.yaml")
    ]


def test_a_heuristic_that_was_fitted_on_a_judged_matrix_is_told(run, tmp_path):
    """The matrix may be the final's table itself, or the folder or the store of its run."""
    (table,) = tables(run)
    own, other = (
        heuristic(tmp_path / "own.yaml", (16, 16), "a.csv", table.name),
        heuristic(tmp_path / "o.yaml", (16, 16)),
    )
    judged = entrants(("latency",), (own, other), ("RegisterGemm",))
    for matrix in (table, run, run / FILE_NAME):
        (remark,) = fitted_here(judged, (tmp_path, matrix))
        assert remark.startswith(f"fitted: own.yaml was fitted on {table.name}, and a judged matrix has that name")
    assert not list(fitted_here(judged, (tmp_path / "another_Final.csv",)))
    task = JudgeTask(MatrixTask((table,)), ("latency",), (own,), ("RegisterGemm",))
    done = judge_heuristics(task, tmp_path / "out", device="none")
    assert any("was fitted on" in remark for remark in done.plan.remarks())
