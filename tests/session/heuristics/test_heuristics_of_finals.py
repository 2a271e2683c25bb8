"""Heuristics fitted to the tables of our own finals: a matrix of times, judged by regret."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tuned_samples import products
from tunesmith.cli.app import app
from tunesmith.devices.fake import fake_target
from tunesmith.formats.winners.final_matrix import read_final
from tunesmith.logic import FinalTable, TableCell, details_of, write_csv
from tunesmith.models.intensity.fit.heuristic_file import read_heuristic
from tunesmith.models.intensity.metrics import Product
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.problems.gemm import DATA_TYPES, gemm_type
from tunesmith.records import Configuration, Estimate, Outcome, Problem, Solution, UserError
from tunesmith.session.heuristics.fit import FitMethod, FitTask, fit_heuristic
from tunesmith.session.heuristics.sources import SourceTask, keep_of, read_sample

GEMM = gemm_type("h", batched=True)
BREAK = 1e8


def seconds(product, tile):
    """The small tile is twice as fast below BREAK, the large one beyond."""
    return product.mnk * 1e-12 * (1.0 if (tile == 16) == (product.mnk < BREAK) else 2.0)


def final(folder, count=80, missing=0, target=None, gemm=GEMM):
    """A run's table of `count` sizes and two solutions; the large tile did not run on the first `missing` sizes."""
    shapes = list({(p.m, p.n, p.k): p for p in products(count)}.values())
    solutions = tuple(Solution(gemm, "tiled", Configuration({"Tile": tile})) for tile in (16, 64))
    problems = tuple(Problem(gemm, (p.m, p.n, 1, p.k), ()) for p in shapes)
    cells = {
        (problem, solution): TableCell(Outcome.OK, estimate=Estimate(time, time, time, 7))
        for number, (problem, p) in enumerate(zip(problems, shapes, strict=True))
        for solution in solutions
        if (time := seconds(p, solution.configuration.integer("Tile")))
        and (number >= missing or solution is solutions[0])
    }
    path = folder / "01_Final.csv"
    write_csv(FinalTable(gemm, problems, tuple(p.flops for p in shapes), solutions, cells), path, target)
    return path


def task(path, **more):
    return SourceTask((path,), ridge=100.0, units=100, **more)  # type: ignore[arg-type]


def test_the_times_of_a_final_come_back(tmp_path):
    matrix = read_final(final(tmp_path, missing=3))
    assert matrix.data_type == "f16"
    for (m, n, k, batch), times in zip(matrix.sizes, matrix.seconds, strict=True):
        assert batch == 1
        # Seconds go through GFLOP/s and back: two roundings.
        assert times[0] == pytest.approx(seconds(Product(m, n, k), 16), rel=1e-12)
    assert np.isnan(matrix.seconds[:3, 1]).all()
    assert not np.isnan(matrix.seconds[3:]).any()


def test_the_break_and_both_solutions_are_found(tmp_path):
    path, out = final(tmp_path), tmp_path / "h.yaml"
    fit_heuristic(FitTask(task(path), out))
    heuristic = read_heuristic(out)
    assert [seed.configuration for seed in heuristic.seeds] == [
        Configuration({"Kernel": "tiled", "Tile": tile}) for tile in (16, 64)
    ]
    below = [p for p in products(80) if p.mnk < BREAK]
    assert all(heuristic.bucket(p) == 0 for p in below)
    assert heuristic.scores["efficiency"] > 0.9
    assert all(seed.tile_area is None for seed in heuristic.seeds)


def test_a_table_without_configurations_gives_names(tmp_path):
    path, out = final(tmp_path), tmp_path / "h.yaml"
    details_of(path).unlink()
    fit_heuristic(FitTask(task(path), out))
    names = [seed.configuration["Solution"] for seed in read_heuristic(out).seeds]
    assert [name.rpartition("_")[2] for name in names] == ["T16", "T64"]


def test_the_device_that_a_table_names_has_the_ridge(tmp_path):
    """1000 TFLOP/s of half precision over 4.8 TB/s (NVIDIA's data sheet: 989.4). A given number takes precedence."""
    path, out = final(tmp_path, target=known_target("sm_90")), tmp_path / "h.yaml"
    fit_heuristic(FitTask(SourceTask((path,)), out))
    heuristic = read_heuristic(out)
    assert heuristic.ridge == pytest.approx(989.4 / 4.8, rel=0.01)
    assert (heuristic.units, heuristic.origin.device) == (132, "NVIDIA H200")
    fit_heuristic(FitTask(SourceTask((path,), units=66), out))
    assert read_heuristic(out).units == 66
    path = final(tmp_path, target=fake_target())
    with pytest.raises(UserError, match="the chip of fake GPU is not known; give --ridge"):
        fit_heuristic(FitTask(SourceTask((path,)), out))


@pytest.mark.parametrize("letter", ["s", "d", "h", "b", "f8", "b8", "i8", "tf32"])
@pytest.mark.parametrize("use_beta", [True, False])
def test_a_product_is_fitted_with_the_bytes_that_a_policy_serves_it_with(tmp_path, letter, use_beta):
    """D of int8 operands is int32, and D of float8 operands has 16 or 32 bits."""
    for dest in DATA_TYPES["s" if letter == "tf32" else letter].dest:
        is_tf32 = letter == "tf32"
        gemm = gemm_type("s" if is_tf32 else letter, dest=dest, tf32=is_tf32, batched=True, use_beta=use_beta)
        path = final(tmp_path, target=known_target("sm_90"), gemm=gemm)
        read = read_sample(SourceTask((path,)))
        m, n, batch, k = (read.sample.products[0].m, read.sample.products[0].n, 1, read.sample.products[0].k)
        served = PolicyInput.of(Problem(gemm, (m, n, batch, k)), known_target("sm_90"))
        assert read.sample.products[0] == served.product
        assert read.sample.ridge == served.ridge
        assert (read.operand_bytes, read.result_bytes) == (served.element_bytes, served.dest_bytes)


def test_details_that_are_damaged_are_told_with_their_line(tmp_path):
    path = final(tmp_path)
    details = details_of(path)
    whole = details.read_text()
    for damaged, message in (
        (whole.replace('""Tile"": 16', '""Tile"": [', 1), "details.csv:2: is no row of details"),
        (whole.replace("GEMM", "GEMS"), "details.csv:2: "),
        (whole.replace(",7,", ",seven,", 1), "details.csv:2: is no row of details"),
    ):
        details.write_text(damaged)
        with pytest.raises(UserError) as caught:
            fit_heuristic(FitTask(task(path), tmp_path / "h.yaml"))
        assert message in str(caught.value)


def test_audit_of_times_shows_efficiency(tmp_path):
    arguments = ["heuristics", "audit", str(final(tmp_path)), "--ridge", "100", "--units", "100"]
    text = CliRunner().invoke(app, arguments, catch_exceptions=False).stdout
    assert "geomean of best time / chosen time" in text
    (family,) = json.loads(CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False).stdout)["families"]
    assert family["lines"] == []
    assert next(rule for rule in family["rules"] if rule["chosen"])["rule"] == "mnk"


def test_what_a_final_cannot_do_is_told(tmp_path):
    path, out = final(tmp_path), tmp_path / "h.yaml"
    with pytest.raises(UserError, match="does not name its chip; give --ridge"):
        fit_heuristic(FitTask(SourceTask((path,)), out))
    with pytest.raises(UserError, match="no tiles for the lines"):
        fit_heuristic(FitTask(task(path), out, FitMethod.PERCENTILE_R2))
    with pytest.raises(UserError, match="no such columns"):
        fit_heuristic(FitTask(task(path, keep=keep_of(["arch=gfx90a"])), out))
    other = tmp_path / "other.csv"
    other.write_text("a\n")
    with pytest.raises(UserError, match=r"other\.csv: has no times"):
        fit_heuristic(FitTask(SourceTask((path, other), ridge=1.0, units=1), out))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M,N,K,TotalFlops,Mystery_S\n4,4,4,128,1\n", "Final.csv:1: no solution of one GEMM type: Mystery_S"),
        ("M,N,TotalFlops,Cij_Aik_Bjk_SB\n4,4,128,1\n", "Final.csv:2: no product: M, N, K and Batch are 4, 4, 0, 1"),
        ("M,N,K,TotalFlops\n4,4,4,128\n", "Final.csv:1: the table has no solution"),
        ("x\n", "Final.csv:1: "),
    ],
)
def test_what_is_no_table_of_a_gemm_is_told_with_its_line(tmp_path, text, message):
    path = tmp_path / "1_Final.csv"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_final(path)
    assert message in str(caught.value)
