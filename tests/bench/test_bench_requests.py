"""A bench's requests are data: another process can send them, and gets the same results as a caller in this process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import is_dataclass, replace

import pytest

from bench_jobs import CPU, GPU, QUICK, job, problem
from tunesmith.bench import Batch, Bench, Race
from tunesmith.kernels import KERNELS

SIZES = problem(48), problem(300, 200, 100)
RACES = (
    Race(tuple(job(size, LoopUnroll=unroll) for size in SIZES for unroll in (4, 8)), {SIZES[0]: 1.0, SIZES[1]: 1e-9}),
    Race((job(fault="wrong value"), job(fault="compile error"))),
)
BATCH = Batch(RACES, racing=True)
FINALISTS = (job(LoopUnroll=4, FakeNoise=1), job(LoopUnroll=8, FakeNoise=1))
MODULES = KERNELS["FakeGemm"].modules(FINALISTS[0].solution.configuration, problem().type)

ELSEWHERE = """
import pickle, sys
from pathlib import Path
from tunesmith.bench import Bench
target, policy, batch, finalists, modules = pickle.load(sys.stdin.buffer)
with Bench(target, policy, Path(sys.argv[1])) as bench:
    answers = (
        {job.key: measurement for job, measurement in bench.run(batch)},
        bench.interleave(finalists),
        list(bench.compile(modules)),
    )
sys.stdout.buffer.write(pickle.dumps(answers))
"""


def without_clock(measurement):
    return replace(measurement, started=0.0, cost=type(measurement.cost)())


@pytest.mark.parametrize("target", [GPU, CPU], ids=["GPU", "CPU"])
def test_another_process_can_be_asked_by_pickles_and_measures_the_same(target, tmp_path):
    asked = pickle.dumps((target, QUICK, BATCH, FINALISTS, MODULES))
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "there")]
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, env=variables, check=True, timeout=120)
    ran, finals, compiled = pickle.loads(done.stdout)
    with Bench(target, QUICK, tmp_path / "here") as bench:
        here = {job.key: measurement for job, measurement in bench.run(BATCH)}
        finals_here = bench.interleave(FINALISTS)
    assert ran.keys() == here.keys() == {job.key for race in RACES for job in race.jobs}
    assert {found.outcome.value for found in ran.values()} == {"ok", "wrong result", "compile error"}
    for key, found in here.items():
        if not found.raced:
            assert without_clock(ran[key]) == without_clock(found)
    assert [final.ok for final in finals] == [final.ok for final in finals_here] == [True, True]
    assert [compilation.module for compilation in compiled] == list(MODULES)


def test_a_request_is_made_of_records_and_equal_to_its_copy():
    copy = pickle.loads(pickle.dumps(BATCH))
    assert copy == BATCH
    for record in (copy, *copy.races, *copy.races[0].jobs):
        assert is_dataclass(record)
        assert not any(map(callable, (getattr(record, name) for name in record.__slots__)))


def test_what_a_race_has_to_beat_counts_from_the_beginning(tmp_path):
    with Bench(GPU, QUICK, tmp_path) as bench:
        raced = {job.key: found.raced for job, found in bench.run(BATCH) if found.ok}
    assert raced == {job.key: job.problem == SIZES[1] for job in RACES[0].jobs}


def test_a_module_compiled_elsewhere_is_charged_once_whichever_portion_of_work_comes_first(tmp_path):
    """Another portion that needs the module may come before the one that is charged for it."""
    jobs = [job(size, LoopUnroll=4) for size in map(problem, (16, 32, 48))]
    modules = KERNELS["FakeGemm"].modules(jobs[0].solution.configuration, problem().type)
    with Bench(GPU, QUICK, tmp_path / "elsewhere") as bench:
        (compiled,) = bench.compile(modules)
    digest = compiled.module.digest()
    assert compiled.seconds > 0
    charged = []
    with Bench(GPU, QUICK, tmp_path / "here") as bench:
        for each, digests in zip(jobs, ((), (digest,), ()), strict=True):
            bench.supply([compiled], digests)
            ((_, found),) = bench.run(Batch((Race((each,)),)))
            charged.append(found.cost.compile)
    assert charged == [0, compiled.seconds, 0]
