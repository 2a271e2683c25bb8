"""`show` names a few of the problems that each device measured, not all of a long list; `--json` has all."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from tunesmith import session
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem
from tunesmith.report import documents, tables
from tunesmith.session.tuning_file.summary import MeasuringDevice
from tuning_runs import fake_file


def test_a_few_problems_of_each_device_are_named_and_the_rest_is_counted(tmp_path):
    done = session.tune(fake_file(tmp_path), tmp_path / "out", device="fake:GPU:8")
    problems = tuple(Problem(gemm_type(), (size, 5, 6)) for size in range(1, 301))
    measured = (MeasuringDevice("CUDA:0", 7, problems), MeasuringDevice("CUDA:1", 8, problems[: tables.MOST_PROBLEMS]))
    summary = replace(session.summarise(done.folder), devices=measured)
    stream = io.StringIO()
    Console(file=stream, width=200).print(tables.summary(summary))
    first, second = (line for line in stream.getvalue().splitlines() if "CUDA:" in line)
    assert "8x5x6 and 292 more; --json lists them" in first
    assert "9x5x6" not in first
    assert second.rstrip().endswith("8x5x6")
    assert len(documents.summary(summary)["devices"][0]["sizes"]) == len(problems)
