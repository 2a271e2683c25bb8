"""The CSV of a final step: sizes by solutions, read by name. A cell without a speed has nothing that looks like one."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import multiprocessing
import os
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith.devices.fake import fake_target
from tunesmith.logic import FinalTable, Sheet, TableCell, Unit, read_csv, sizes_of, write_atomically, write_csv
from tunesmith.logic.table import unique
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.random import random_type
from tunesmith.records import Configuration, Estimate, Outcome, Problem, ProblemType, Solution, UserError

GEMM = gemm_type("s", transpose_b=False, batched=True)


def solution(**parameters):
    return Solution(GEMM, "tiled", Configuration(parameters))


def problem(*sizes):
    return Problem(GEMM, sizes[:4], sizes[4:])


def ok(seconds):
    return TableCell(Outcome.OK, estimate=Estimate(seconds, seconds * 0.9, seconds * 1.1, 7))


SMALL, LARGE, WIDE, NARROW = problem(64, 64, 1, 64), problem(128, 96, 2, 32), solution(Tile=8), solution(Tile=4)
TABLE = FinalTable(
    GEMM,
    (SMALL, LARGE),
    (2.0 * 64**3, 2.0 * 128 * 96 * 2 * 32),
    (WIDE, NARROW),
    {
        (SMALL, WIDE): ok(1e-3),
        (SMALL, NARROW): TableCell(Outcome.REJECTED, "local memory", "70000 bytes, the device has 65536\nas, it says"),
        (LARGE, NARROW): ok(2e-3),
    },
)


def test_rows_are_sizes_and_columns_are_solutions_in_gflops(tmp_path):
    write_csv(TABLE, tmp_path / "final.csv")
    header, small, large = list(csv.reader((tmp_path / "final.csv").open()))
    assert header == ["M", "N", "Batch", "K", "TotalFlops", *TABLE.names]
    assert small[:4] == ["64", "64", "1", "64"]
    assert float(small[5]) == pytest.approx(2.0 * 64**3 / 1e-3 / 1e9)
    assert small[6] == "", "a rejected cell is empty, never a number"
    assert large[5] == "", "a cell that nobody measured is empty"


def test_details_say_why_a_cell_is_empty(tmp_path):
    details = write_csv(TABLE, tmp_path / "final.csv")
    assert details == tmp_path / "final.details.csv"
    rows = {(row["M"], row["Solution"]): row for row in csv.DictReader(details.open(newline=""))}
    wide, narrow = TABLE.names
    assert len(rows) == 4
    assert rows["64", narrow]["Reason"] == "local memory"
    assert "as, it says" in rows["64", narrow]["Detail"]
    assert rows["64", narrow]["Seconds"] == rows["64", narrow]["GFlops"] == ""
    assert rows["128", wide]["Reason"] == "not measured"
    assert (float(rows["64", wide]["Low"]), rows["64", wide]["Samples"]) == (pytest.approx(0.9e-3), "7")


def test_details_hold_what_ran_and_where_for_programs(tmp_path):
    target = fake_target()
    details = write_csv(TABLE, tmp_path / "final.csv", target)
    row = next(csv.DictReader(details.open(newline="")))
    assert row["Kernel"] == TABLE.solutions[0].kernel
    assert Configuration.from_json(row["Configuration"]) == TABLE.solutions[0].configuration
    assert ProblemType.from_json(row["ProblemType"]) == TABLE.problem_type
    device = json.loads(row["Device"])
    assert target.is_called(device["api"], device["name"], device["architecture"])
    assert device["compute_units"] == target.compute_units


def test_details_tell_the_winner_of_each_size_and_what_ties_with_it(tmp_path):
    other = solution(Tile=2)
    table = replace(TABLE, solutions=(WIDE, NARROW, other), decided={SMALL: (WIDE, other), LARGE: (NARROW,)})
    rows = list(csv.DictReader(write_csv(table, tmp_path / "final.csv").open(newline="")))
    assert [row["Decision"] for row in rows] == ["winner", "", "tie", "", "winner", ""]
    undecided = list(csv.DictReader(write_csv(TABLE, tmp_path / "final.csv").open(newline="")))
    assert {row["Decision"] for row in undecided} == {""}


def test_leading_dimensions_get_columns_only_where_a_row_has_them(tmp_path):
    padded = problem(64, 64, 1, 64, 80, 80, 64, 96)
    table = FinalTable(GEMM, (SMALL, padded), (1e9, 1e9), (WIDE,), {(SMALL, WIDE): ok(1.0), (padded, WIDE): ok(2.0)})
    write_csv(table, tmp_path / "final.csv")
    sheet = read_csv(tmp_path / "final.csv")
    assert sheet.sizes[0] == {"M": 64, "N": 64, "Batch": 1, "K": 64}
    assert sheet.sizes[1] == sheet.sizes[0] | {"LDD": 80, "LDC": 80, "LDA": 64, "LDB": 96}


def test_sizes_have_the_names_of_the_columns():
    sizes = {"M": 64, "N": 32, "Batch": 2, "K": 16}
    assert sizes_of(problem(64, 32, 2, 16)) == sizes
    assert sizes_of(problem(64, 32, 2, 16, 80, 81, 82, 96)) == sizes | {"LDD": 80, "LDC": 81, "LDA": 82, "LDB": 96}


def test_a_table_of_another_operation_says_what_it_counts(tmp_path):
    kind = random_type("philox4_32_10")
    fill, family = Problem(kind, (1000,)), Solution(kind, "random", Configuration())
    details = write_csv(FinalTable(kind, (fill,), (4000.0,), (family,), {(fill, family): ok(2e-6)}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[0].startswith("N,TotalBytes,")
    header = details.read_text().splitlines()[0]
    assert header.endswith(",Samples,GBytes,Decision,Kernel,Configuration,ProblemType,Device")
    sheet = read_csv(tmp_path / "t.csv")
    assert (sheet.unit.rate, list(sheet.rates.values())) == ("GB/s", [pytest.approx(2.0)])


@pytest.mark.parametrize("unit", ["FLOP", "B", "elements"])
def test_a_unit_is_known_by_the_column_of_its_total(unit):
    assert Unit.of_total(Unit(unit).total) == Unit(unit)
    assert Unit.of_total("TotalRows") is Unit.of_total("Totals") is None, "an index may be called so"


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_a_time_that_is_no_time_is_no_speed(tmp_path, bad):
    write_csv(FinalTable(GEMM, (SMALL,), (1e9,), (WIDE,), {(SMALL, WIDE): ok(bad)}), tmp_path / "final.csv")
    assert read_csv(tmp_path / "final.csv").rates == {}


def test_a_fast_wrong_result_is_no_speed(tmp_path):
    wrong = TableCell(Outcome.WRONG_RESULT, "beyond the bound", "", Estimate(1e-9, 1e-9, 1e-9, 3))
    write_csv(FinalTable(GEMM, (SMALL,), (1e9,), (WIDE,), {(SMALL, WIDE): wrong}), tmp_path / "final.csv")
    assert read_csv(tmp_path / "final.csv").rates == {}


def test_the_times_of_a_sheet_follow_from_work_and_rates_where_they_are_times():
    rates = {(0, "a"): 4.0, (1, "a"): 4.0, (1, "b"): 0.5, (2, "a"): 4.0}
    sheet = Sheet(({"M": 1}, {"M": 2}, {"M": 3}), (8e9, 2e9, 0.0), ("a", "b"), rates)
    assert list(sheet.times()) == [(0, "a", 2.0), (1, "a", 0.5), (1, "b", 4.0)]


def test_names_that_are_alike_are_numbered_from_two_and_a_number_that_is_taken_is_left_out():
    assert unique(["a", "b", "a", "a", "b"]) == ("a", "b", "a_2", "a_3", "b_2")
    assert unique(["a_2", "a", "a", "a_2"]) == ("a_2", "a", "a_3", "a_2_2")


def test_columns_have_different_names_even_where_values_print_alike():
    table = FinalTable(GEMM, (), (), (solution(Pad=True), solution(Pad=1), solution(Pad="1")), {})
    assert len(set(table.names)) == 3


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.none() | st.floats(1e-9, 1e3), min_size=3, max_size=3), max_size=5))
def test_what_is_written_is_read(times):
    problems = tuple(problem(8 + row, 8, 1, 8) for row in range(len(times)))
    solutions = tuple(solution(Tile=tile) for tile in range(3))
    cells = {
        (problems[row], solutions[column]): ok(time)
        for row, line in enumerate(times)
        for column, time in enumerate(line)
        if time is not None
    }
    flops = tuple(2.0 * p.sizes[0] * 64 for p in problems)
    table = FinalTable(GEMM, problems, flops, solutions, cells)
    with tempfile.TemporaryDirectory() as folder:
        write_csv(table, Path(folder, "t.csv"))
        sheet = read_csv(Path(folder, "t.csv"))
    assert (sheet.work, sheet.names) == (flops, table.names)
    assert sheet.rates == {
        (row, table.names[column]): flops[row] / time * 1e-9
        for row, line in enumerate(times)
        for column, time in enumerate(line)
        if time is not None
    }


def test_columns_may_be_moved_and_nan_or_minus_one_is_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("K,M,TotalFlops,b,a,c\n3,4,24.0,2.5,nan,-1\n")
    sheet = read_csv(tmp_path / "t.csv")
    assert sheet.sizes == ({"K": 3, "M": 4},)
    assert sheet.rates == {(0, "b"): 2.5}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("M,N,K\n1,2,3\n", 1),
        ("M,TotalFlops,a,a\n1,2,3,4\n", 1),
        ("M,TotalFlops,a\n1,2,3\n1,2\n", 3),
        ("M,TotalFlops,a\n1,2,fast\n", 2),
        ("M,TotalFlops,a\n1.5,2,3\n", 2),
        ("M,TotalFlops,a\n1,2,3\n1,2,3,4\n", 3),
    ],
)
def test_what_is_no_table_is_a_user_error_with_its_line(tmp_path, text, line):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UserError) as caught:
        read_csv(tmp_path / "t.csv")
    assert caught.value.location == f"{tmp_path / 't.csv'}:{line}"


@pytest.mark.parametrize("quoted", ['"3"4', '"3', '"'])
def test_a_cell_whose_quotes_do_not_match_is_refused_and_not_guessed(tmp_path, quoted):
    (tmp_path / "t.csv").write_text('M,TotalFlops,"a"\n1,2,"3"\n')
    assert read_csv(tmp_path / "t.csv").rates == {(0, "a"): 3.0}
    (tmp_path / "t.csv").write_text(f"M,TotalFlops,a\n1,2,{quoted}\n")
    with pytest.raises(UserError, match="cannot be read as CSV"):
        read_csv(tmp_path / "t.csv")


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_a_user_error(junk):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "t.csv").write_bytes(junk)
        with contextlib.suppress(UserError):
            read_csv(Path(folder, "t.csv"))


def test_a_place_that_cannot_be_written_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write_atomically(tmp_path / "file" / "t.csv", "")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="cannot be written"):
        write_atomically(tmp_path / "folder", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"], "nothing is left beside it"


def _write_forever(path, stop):  # type: ignore[no-untyped-def]
    turn = 0
    while True:
        write_atomically(path, "ab"[turn % 2] * 200_000)
        stop.set()
        turn += 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    stop = spawn.Event()
    writer = spawn.Process(target=_write_forever, args=(tmp_path / "t", stop))
    writer.start()
    assert stop.wait(60)
    texts = [(tmp_path / "t").read_text() for _ in range(50)]
    os.kill(writer.pid or 0, signal.SIGKILL)
    writer.join(60)
    texts.append((tmp_path / "t").read_text())
    assert {(len(text), len(set(text))) for text in texts} == {(200_000, 1)}
