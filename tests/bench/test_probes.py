"""Which launches of a compile process compile all that a job will launch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench_jobs import CPU, QUICK, batch, job, problem
from tunesmith.bench import Bench, Spawner
from tunesmith.bench.details import SMALL_GRID, JobDetails, _variants
from tunesmith.bench.processes.compilers import Compilers, _Task
from tunesmith.devices import environment
from tunesmith.problems.gemm import GemmOperation
from tunesmith.toolchains import BinaryCache

GROUP = 16
"""Work-items along each dimension of a work-group, each with a tile of its own of one element."""
SMALL, LARGE = problem(48, 48, 48), problem(SMALL_GRID, 8, 8)
HUGE = problem(1 << 26, 8, 8)


def details(size):
    return JobDetails(job(size=size, WorkGroup=(GROUP, GROUP, 1), ThreadTile=(1, 1)), CPU)


@pytest.mark.parametrize(
    ("size", "probed"),
    [
        (SMALL, GemmOperation().small(SMALL)),
        (problem(SMALL_GRID - GROUP, 8, 8), GemmOperation().small(problem(4096, 8, 8))),
        (LARGE, LARGE),
        (HUGE, GemmOperation().small(HUGE)),
    ],
    ids=["small", "just small", "large", "too large to be launched twice"],
)
def test_a_small_problem_is_launched_unless_it_compiles_something_else(size, probed):
    (probe,) = details(size).probes
    assert probe.problem == probed
    assert probe.is_small == (probed != LARGE)


def test_a_probe_compiles_what_the_job_launches():
    for size in (SMALL, LARGE):
        made = details(size)
        plans = made.plans(())
        needed = set().union(*(_variants(plan) for plan in (plans.timed, *(plan for _, plan in plans.checks))))
        compiled = set().union(*(_variants(probe.plan) for probe in made.probes))
        assert needed <= compiled


def test_jobs_of_one_program_share_probes(tmp_path):
    """Two small problems need one launch, a large one a second, and each problem has its measurement."""
    launched = []
    jobs = [job(size=size, WorkGroup=(4, 4, 1), ThreadTile=(1, 1)) for size in (SMALL, problem(40, 40, 40), LARGE)]
    with Bench(CPU, QUICK, tmp_path, observe=lambda event: launched.append(event)) as bench:
        found = [measurement for _, measurement in bench.run(batch(jobs))]
    assert all(measurement.ok for measurement in found)
    digests = [event.digest for event in launched if type(event).__name__ == "ModuleCompiled"]
    probes = [digest for digest in digests if digest.startswith("probe")]
    assert len(digests) == 1 + len(probes)
    assert len(probes) == 2


@pytest.mark.parametrize(("tried", "expected"), [(0, ["own", "first", "last"]), (1, ["first", "own", "last"])])
def test_a_process_launches_first_what_it_compiled_itself(tmp_path, tried, expected):
    """Another process would have to load it. A task that is tried again is not passed over."""
    compilers = Compilers(None, CPU, QUICK, print, BinaryCache(tmp_path, CPU))
    process = SimpleNamespace(child=SimpleNamespace(pid=7))
    compilers._queue.extend([_Task("first", None, (8,), tried=tried), _Task("own", None, (7,)), _Task("last", None)])
    assert [compilers._next_task(process).key for _ in range(3)] == expected


def test_only_the_worker_pins_its_threads(tmp_path, monkeypatch):
    """Pinned threads of several compile processes would share a core."""
    started, start = {}, Spawner.start

    def noted(spawner, module, *variables):
        started[module.rpartition(".")[2]] = variables
        return start(spawner, module, *variables)

    monkeypatch.setattr(Spawner, "start", noted)
    with Bench(CPU, QUICK, tmp_path) as bench:
        assert [measurement.ok for _, measurement in bench.run(batch([job()]))] == [True]
    assert started == {"compiler": ({"POCL_AFFINITY": "0"},), "worker": ()}
    assert environment(tmp_path)["POCL_AFFINITY"] == "1"
