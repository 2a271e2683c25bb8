"""The bench's public class: jobs in, measurements out, even if candidates crash or hang their processes."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tunesmith.devices import environment
from tunesmith.records import Measurement, Module, Target, UserError
from tunesmith.toolchains import BinaryCache

from .alternating_run import AlternatingRun
from .bench_tools import BenchTools, ReadyJob
from .details import JobDetails
from .events import Event
from .job import Batch, Job, Policy
from .processes.compilers import Compilation, Compilers
from .processes.messages import Done, InterleaveRequest, MeasureRequest
from .processes.process import Spawner
from .processes.worker_handle import Death, wait_until
from .processes.workers import Workers
from .run import BatchRun


class Bench:
    """Compiles, verifies and times jobs on one device, each step in a process of its own.

    Its requests are data (`Batch`, `Job`, `Module`), which can be pickled and sent from another process. `cache_dir`
    holds compiled programs and the compilers' own caches; runs may share it. `observe` is called with every event.
    `spawner` starts the processes; without it, the bench makes a spawner for this cache. Use the bench as a context
    manager, or call `close`. Its processes end with it, except for a worker that may wait for the program's next bench
    (`keep_server`); all end with the program that made it.
    """

    def __init__(
        self,
        target: Target,
        policy: Policy,
        cache_dir: Path,
        observe: Callable[[Event], None] = lambda event: None,
        spawner: Spawner | None = None,
    ) -> None:
        try:
            cache_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(str(cache_dir), f"cannot be made ({error.strerror})", "make its folder writable") from None
        variables = environment(cache_dir)
        self._opened = ExitStack()
        if spawner is None:
            spawner = self._opened.enter_context(Spawner(variables))
        workers = Workers(spawner, target, policy, observe)
        compilers = Compilers(spawner, target, policy, observe, BinaryCache(cache_dir, target))
        folders = (cache_dir, Path(variables["POCL_CACHE_DIR"]), Path(tempfile.gettempdir()))
        self._tools = BenchTools(target, workers, compilers, observe, folders, policy.seed)

    def compile(self, modules: Sequence[Module]) -> Iterator[Compilation]:
        """Compile modules, each once, and yield each when it is finished. The device is not opened, and may be absent.

        Binaries that can be kept are in `cache_dir` afterwards, where a bench for a device of the same architecture
        finds them. Raises UserError when compilers cannot write.
        """
        compilers = self._tools.compilers
        waiting = {module.digest(): module for module in modules}
        compilers.request(waiting.items())
        while waiting:
            compilers.pump()
            decided = (compilers.compilation(digest, module) for digest, module in waiting.items())
            finished = [compilation for compilation in decided if compilation]
            for compilation in finished:
                del waiting[compilation.module.digest()]
                if isinstance(compilation.made, Measurement):
                    self._tools.check_folders(compilation.made)
            yield from finished
            if waiting and not finished:
                wait_until(compilers.connections, compilers.deadline)

    def supply(self, compilations: Sequence[Compilation], charged: Container[str] = ()) -> None:
        """Take modules that were compiled elsewhere, for this target. Jobs are charged for those whose digests are in
        `charged`."""
        for compilation in compilations:
            self._tools.compilers.supply(compilation, compilation.module.digest() in charged)

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Begin what measuring these jobs will need, beside whatever is asked next: open the device, compile, and bring
        the first job's problem to the device. Does nothing if the device is the host's CPU, since that would disturb
        timing."""
        if self._tools.target.shares_the_host:
            return
        self._tools.workers.begin()
        for job in jobs:
            self._tools.request(JobDetails(job, self._tools.target))
        self._tools.compilers.hand_out()
        for job in jobs[:1]:
            self._tools.prepare(job.problem)

    def run(self, batch: Batch) -> Iterator[tuple[Job, Measurement]]:
        """Measure every job once. Results come as they are made, not always in the order of the jobs.

        A good result is yielded when the next job has its own result, or at the end. Raises UserError when the device
        cannot be opened, and when compilers cannot write.
        """
        run = AlternatingRun if self._tools.target.shares_the_host else BatchRun
        return run(self._tools, batch).results()

    def run_together(self, batch: Batch) -> Iterator[list[tuple[Job, Measurement]]]:
        """`run`, with the results that came together in one list. No result waits for another."""
        yield from ([result] for result in self.run(batch))

    def interleave(self, jobs: Sequence[Job], until_clear: bool = False) -> list[Measurement]:
        """Measure jobs of one problem against each other, in alternating blocks: sample i of each job is from round i.

        With `until_clear`, the blocks end early if one job is clearly faster than all others. A job that fails is left
        out, and the others are measured without it. The policy's seed determines the order of blocks. Raises ValueError
        for jobs of different problems.
        """
        if len({job.problem for job in jobs}) > 1:
            raise ValueError("only jobs of one problem can be interleaved")
        built = self._built(jobs)
        results = {index: result for index, result in enumerate(built) if isinstance(result, Measurement)}
        ready = {index: ready_job for index, ready_job in enumerate(built) if isinstance(ready_job, ReadyJob)}
        unexplained, began = 0, time.time()
        while ready:
            request = InterleaveRequest(tuple(map(self._tools.candidate, ready.values())), until_clear)
            ready_jobs = [ready_job.job for ready_job in ready.values()]
            answer = self._tools.ask(self._tools.workers.current(), request, ready_jobs)
            if isinstance(answer, Done):
                for position, (index, ready_job) in enumerate(ready.items()):
                    results[index] = ready_job.outcome(answer, position, began)
                    if results[index].ok:
                        self._tools.verified.add(ready_job.fingerprint)
                break
            guilty = self._deaths_alone(ready)
            unexplained += not guilty
            if unexplained == 2:
                suspect = list(ready)[answer.index]
                guilty = {suspect: ready[suspect].outcome(answer, answer.index, began)}
            results |= guilty
            ready = {index: ready_job for index, ready_job in ready.items() if index not in guilty}
        for result in results.values():
            self._tools.check_folders(result)
        return [results[index] for index in range(len(jobs))]

    def close(self) -> None:
        """Kill every process at once, except for a worker that waits for the next bench."""
        self._tools.workers.close()
        self._tools.compilers.close()
        self._opened.close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _built(self, jobs: Sequence[Job]) -> list[ReadyJob | Measurement]:
        """Build every job: what can be sent to a worker, or the measurement that says why nothing can."""
        compilers, results = self._tools.compilers, []
        details = [JobDetails(job, self._tools.target) for job in jobs]
        for job in details:
            self._tools.request(job)
        for job in details:
            while (binaries := self._tools.binaries(job)) is None:
                # `binaries` may have added a probe. It must start before the wait, or there is nothing to wait for.
                compilers.hand_out()
                wait_until(compilers.connections, compilers.deadline)
                compilers.pump()
            results.append(self._tools.ready_job(job, binaries))
        return results

    def _deaths_alone(self, ready: Mapping[int, ReadyJob]) -> dict[int, Measurement]:
        """Run each job alone in a fresh worker; the measurements of the jobs whose worker died."""
        guilty, tools = {}, self._tools
        for index, ready_job in ready.items():
            worker, began = tools.workers.fresh(), time.time()
            answer = tools.ask(worker, MeasureRequest(tools.candidate(ready_job), math.inf), [ready_job.job])
            if isinstance(answer, Death):
                guilty[index] = ready_job.outcome(answer, 0, began)
        return guilty
