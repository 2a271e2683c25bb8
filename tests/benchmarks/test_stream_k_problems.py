"""The list of problems for stream-K sweeps: its length, its depths, and a part of it."""

from __future__ import annotations

import csv
import io
import sys

import pytest

import stream_k_problems as benchmark

TILES = ("256x128", "128x128", "192x128", "160x128")


def listed(monkeypatch, capsys, *words):
    """The problems that the program prints."""
    monkeypatch.setattr(sys, "argv", ["stream_k_problems.py", *words])
    benchmark.main()
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    return [(int(row["m"]), int(row["n"]), int(row["k"])) for row in rows if row["trans_b"] == "T"]


@pytest.mark.parametrize("tile", TILES)
def test_a_tile_has_enough_problems_and_none_that_takes_seconds(monkeypatch, capsys, tile):
    problems = listed(monkeypatch, capsys, "--tile", tile)
    assert len(set(problems)) == len(problems) >= 120
    assert {k for *_, k in problems} == {128, 512, 2048, 8192, 32768, 65536}
    assert max((m + n) * k for m, n, k in problems) <= 1 << 28


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("units", ["64", "108"])
def test_a_part_has_its_share_of_every_depth_in_the_order_of_all(monkeypatch, capsys, tile, units):
    words = ("--tile", tile, "--compute-units", units)
    every, part = listed(monkeypatch, capsys, *words), listed(monkeypatch, capsys, *words, "--count", "60")
    assert len(part) == 60
    assert part == [sizes for sizes in every if sizes in part]
    for depth in {k for *_, k in every}:
        share = 60 / len(every) * sum(k == depth for *_, k in every)
        assert abs(sum(k == depth for *_, k in part) - share) < 1


def test_more_than_there_are_is_a_mistake(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        listed(monkeypatch, capsys, "--tile", "128x128", "--count", "999")
    assert "--count is 999; there are 133 problems" in capsys.readouterr().err
