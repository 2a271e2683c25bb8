"""The bench's face: jobs in, measurements out, whatever the candidates do to their processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from tunesmith.devices import environment
from tunesmith.records import Cost, Measurement, Module, Outcome, Problem, Rejection, Target
from tunesmith.toolchains import BinaryCache

from ._compilers import Compilation, Compilers, facts
from ._events import Event
from ._job import Job, Policy
from ._messages import Candidate, Done, Interleave, Measure
from ._process import Spawner
from ._run import Run, Shop, candidate, fingerprint, from_death
from ._workers import Death, Workers, wait_until


class Bench:
    """Compiles, verifies and times jobs on one device, each step in a process of its own.

    `cache_dir` holds what was compiled and what compilers keep (it may be shared between runs); `observe` is told what
    happens. Use it as a context manager, or call `close`: no process outlives it, nor the program that made it.
    """

    def __init__(
        self, target: Target, policy: Policy, cache_dir: Path, observe: Callable[[Event], None] = lambda event: None
    ) -> None:
        cache_dir.mkdir(parents=True, exist_ok=True)
        self._spawner = Spawner(environment(cache_dir))
        workers = Workers(self._spawner, target, policy, observe)
        compilers = Compilers(self._spawner, target, policy, observe, BinaryCache(cache_dir, target))
        self._shop = Shop(target, policy, workers, compilers, observe)

    def compile(self, modules: Sequence[Module]) -> Iterator[Compilation]:
        """Compile modules, each once, without opening the device, which need not be there; as they are finished.

        What can be kept is in `cache_dir` then, where a bench for a device of the same architecture finds it.
        """
        compilers = self._shop.compilers
        waiting = {module.digest(): module for module in modules}
        for module in waiting.values():
            compilers.want(module)
        while waiting:
            compilers.pump()
            finished = [one for one in map(compilers.compilation, waiting.values()) if one]
            for one in finished:
                del waiting[one.module.digest()]
            yield from finished
            if waiting and not finished:
                wait_until(compilers.connections, compilers.deadline)

    def run(
        self, groups: Sequence[Sequence[Job]], racing: bool, rivals: Sequence[Mapping[Problem, float]] = ()
    ) -> Iterator[tuple[Job, Measurement]]:
        """Measure every job once; results come as they are made, not always in the order of the jobs.

        With `racing`, a job that is provably slower than the best of its group on the same problem is stopped early.
        `rivals` are what the groups have to beat from the beginning: upper ends of intervals, in seconds, by problem.
        A good result is handed out when the job after it has its own, or at the end. Raises UserError when the device
        cannot be opened.
        """
        return Run(self._shop, groups, racing, rivals).results()

    def interleave(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Measure jobs of one problem against each other, in alternating blocks: sample i of all is from round i.

        One that fails is left out and the others are measured without it. The order of blocks follows the policy's
        seed. Raises ValueError for jobs of different problems.
        """
        if len({job.problem for job in jobs}) > 1:
            raise ValueError("only jobs of one problem can be interleaved")
        results, candidates = self._prepared(jobs)
        unexplained = 0
        while candidates:
            answer = self._ask(Interleave(tuple(candidates.values())), [jobs[place] for place in candidates])
            places = list(candidates)
            if isinstance(answer, Done):
                for place, measurement in zip(places, answer.measurements, strict=True):
                    results[place] = replace(measurement, facts=facts(candidates[place].binaries))
                    if measurement.ok:
                        self._shop.verified.add(fingerprint(candidates[place]))
                break
            guilty = self._died_alone(candidates, jobs)
            unexplained += not guilty
            if unexplained == 2:
                guilty = {places[answer.index]: from_death(answer, answer.index, time.time())}
            results |= guilty
            candidates = {place: one for place, one in candidates.items() if place not in guilty}
        return [results[place] for place in range(len(jobs))]

    def close(self) -> None:
        """End every process, at once."""
        self._shop.workers.close()
        self._shop.compilers.close()
        self._spawner.close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepared(self, jobs: Sequence[Job]) -> tuple[dict[int, Measurement], dict[int, Candidate]]:
        """Build all; by place: why not, or what to send."""
        results: dict[int, Measurement] = {}
        candidates: dict[int, Candidate] = {}
        compilers = self._shop.compilers
        for job in jobs:
            compilers.request(job)
        for place, job in enumerate(jobs):
            while (built := compilers.binaries(job)) is None:
                # Asking may have added a probe. Nothing is collected yet: something must be left to wait for.
                compilers.hand_out()
                wait_until(compilers.connections, compilers.deadline)
                compilers.pump()
            cost = Cost(compile=compilers.charge(job))
            if isinstance(built, Measurement):
                results[place] = replace(built, cost=cost)
            elif isinstance(bound := job.bind(facts(built)), Rejection):
                results[place] = Measurement(
                    Outcome.REJECTED, bound.reason, bound.detail, cost=cost, started=time.time()
                )
            else:
                candidates[place] = candidate(job, built, bound, self._shop.verified)
        return results, candidates

    def _died_alone(self, candidates: dict[int, Candidate], jobs: Sequence[Job]) -> dict[int, Measurement]:
        """Each runs again alone; those that take their worker with them, with their measurements."""
        guilty = {}
        for place, one in candidates.items():
            self._shop.workers.fresh()
            began = time.time()
            answer = self._ask(Measure(one, math.inf), [jobs[place]])
            if isinstance(answer, Death):
                guilty[place] = from_death(answer, 0, began)
        return guilty

    def _ask(self, request: Measure | Interleave, jobs: Sequence[Job]) -> Done | Death:
        worker = self._shop.workers.current()
        worker.ask(request)
        answer = worker.answer()
        if isinstance(answer, Death):
            self._shop.workers.lost(answer, jobs[answer.index].key)
        return answer
