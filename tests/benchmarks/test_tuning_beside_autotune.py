"""Tuning beside `triton.autotune`: the same problems on both sides, as far as it runs without a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tunesmith.problems.gemm import Gemm, gemm_type
from tunesmith.problems.gemm.listed import ListedGemm, read_gemm_list
from tunesmith.records import Problem, UserError
from tunesmith.session.tuning_file.file import read

ROOT = Path(__file__).parents[2]
BENCHMARKS = str(ROOT / "benchmarks")
sys.path.insert(0, BENCHMARKS)
import tuning_beside_autotune as benchmark  # noqa: E402

LIST = read_gemm_list(ROOT / "benchmarks" / "recorded" / "gemm_bf16" / "list.csv")


def test_as_many_problems_of_each_layout_are_taken_from_all_of_the_list_and_no_batches():
    chosen = benchmark.some_of(LIST, 4)
    assert [problem.layout for problem in chosen] == ["N T"] * 4 + ["N N"] * 4 + ["T N"] * 4
    assert {problem.family for problem in chosen} >= {"decode", "prefill", "training", "random"}
    assert benchmark.some_of(LIST[:3], 4) == [problem for problem in LIST[:3] if problem.layout == "N T"]


def test_the_steps_and_the_final_of_the_copy_have_these_problems_and_no_others(tmp_path):
    chosen = benchmark.some_of(LIST, 2)
    copy = benchmark.with_list(ROOT / "examples" / "h200_llm_bf16.yaml", chosen, tmp_path / "file")
    file = read(copy, None, "CUDA")
    sizes_by_type = {}
    for phases in file.groups:
        for step in phases.steps:
            if problems := getattr(step, "problems", ()):
                sizes_by_type.setdefault(phases.problem_type, set()).add(
                    frozenset(problem.sizes for problem in problems)
                )
    for problem_type, sizes in sizes_by_type.items():
        assert sizes == {frozenset(problem.sizes(problem_type) for problem in chosen if problem.fits(problem_type))}
    assert sum(len(next(iter(sizes))) for sizes in sizes_by_type.values()) == len(chosen) == 6


def test_a_tuning_file_without_lists_is_refused(tmp_path):
    with pytest.raises(UserError, match="names no list of problems"):
        benchmark.with_list(ROOT / "examples" / "quickstart.yaml", LIST[:1], tmp_path / "file")


STANDING_IN = """
import json, os, sys
asked = json.loads(sys.argv[1])
marker = os.path.join(os.environ["TRITON_CACHE_DIR"], "seen")
kept = os.path.exists(marker)
os.makedirs(marker, exist_ok=True)
assert asked["threads"] == os.cpu_count() and asked["configurations"] == 34
times = [[0.5, 1.0][kept] * problem["m"] for problem in asked["problems"]]
print(json.dumps({"configurations": 33, "compiling": 8.0, "seconds": times, "threads": 4, "triton": "3.6"}))
"""


def test_the_other_side_gets_the_same_problems_as_torch_has_them_and_its_time_holds_compiling(tmp_path, monkeypatch):
    stand_in = tmp_path / "stand_in.py"
    stand_in.write_text(STANDING_IN)
    monkeypatch.setattr(benchmark, "AUTOTUNE", stand_in)
    problem_type = gemm_type("b", transpose_a=True)
    listed = [ListedGemm(16, 64, 32, trans_b=True), ListedGemm(4, 8, 2, trans_b=True)]
    problems = [Problem(problem_type, row.sizes(problem_type)) for row in listed]
    assert [Gemm.of(problem).n for problem in problems] == [16, 4]
    first, version = benchmark.autotuned(problems, 34, tmp_path / "cache", "none")
    again, _ = benchmark.autotuned(problems, 34, tmp_path / "cache", "kept")
    assert (first.problems, first.configurations, version) == (2, 33, "3.6")
    assert (first.seconds, again.seconds, first.compiling) == (18.0, 28.0, 8.0)


def test_a_side_that_ends_badly_says_what_was_said(tmp_path, monkeypatch):
    stand_in = tmp_path / "stand_in.py"
    stand_in.write_text("raise SystemExit('no such device')")
    monkeypatch.setattr(benchmark, "AUTOTUNE", stand_in)
    with pytest.raises(RuntimeError, match="no such device"):
        benchmark.autotuned([], 34, tmp_path / "cache", "none")


INTERPRETED = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, sys.argv[1])
import torch, triton_autotune
for m, n, k, group in ((37, 29, 50, 1), (70, 60, 33, 4)):
    a, b, c = torch.randn(m, k), torch.randn(n, k).t(), torch.full((m, n), float("nan"))
    triton_autotune.launch(triton_autotune.matmul, a, b, c, ROWS=16, COLUMNS=16, DEPTH=32, GROUP=group)
    print(bool((c - a @ b).abs().max() < 1e-4))
one, other = (triton_autotune.configurations(40, 2) for _ in range(2))
print(len({str(config) for config in one}) == 40 and [str(x) for x in one] == [str(x) for x in other])
"""


def test_the_matmul_for_autotune_is_right_and_its_configurations_are_as_many_as_asked():
    """The matmul runs in Triton's interpreter, on sizes that no tile divides."""
    pytest.importorskip("triton", reason="Triton is not installed")
    run = [sys.executable, "-c", INTERPRETED, BENCHMARKS]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 3, done.stderr


def test_all_problems_are_compiled_in_parallel_before_any_is_timed(monkeypatch):
    triton = pytest.importorskip("triton", reason="Triton is not installed")
    if not hasattr(triton, "AsyncCompileMode"):
        pytest.skip("this Triton compiles nothing in parallel")
    from triton.runtime import _async_compile as mode

    import triton_autotune

    asked = []

    class Tuned:
        def warmup(self, *arguments, grid):
            pool = mode.active_mode.get().executor
            asked.append((arguments[3:6], pool._max_workers, grid({"ROWS": 16, "COLUMNS": 32})))

    class Matrix:
        def __init__(self, *shape):
            self.shape = shape

        def stride(self, *_):
            return (self.shape[1], 1)

    monkeypatch.setattr(triton_autotune, "operands", lambda rows: (Matrix(rows, 8), Matrix(8, 64), Matrix(rows, 64)))
    assert triton_autotune.compiled([16, 33], Tuned(), 3) >= 0
    assert asked == [((16, 64, 8), 3, (2,)), ((33, 64, 8), 3, (6,))]
    asked.clear()
    triton_autotune.compiled([16], Tuned(), 0)
    assert asked == []
