"""The bench's face: jobs in, measurements out, whatever the candidates do to their processes."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tunesmith.devices import environment
from tunesmith.records import Measurement, Module, Target, UserError
from tunesmith.toolchains import BinaryCache

from .bench_tools import BenchTools, ReadyJob
from .details import JobDetails
from .events import Event
from .job import Batch, Job, Policy
from .processes.compilers import Compilation, Compilers
from .processes.messages import Done, InterleaveRequest, MeasureRequest
from .processes.process import Spawner
from .processes.workers import Death, Workers, wait_until
from .run import BatchRun


class Bench:
    """Compiles, verifies and times jobs on one device, each step in a process of its own.

    What it is asked is data (`Batch`, `Job`, `Module`), which can be pickled and sent from another process. `cache_dir`
    holds what was compiled and what compilers keep (it may be shared between runs); `observe` is told what happens. Use
    it as a context manager, or call `close`: no process outlives it, nor the program that made it.
    """

    def __init__(
        self, target: Target, policy: Policy, cache_dir: Path, observe: Callable[[Event], None] = lambda event: None
    ) -> None:
        try:
            cache_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(str(cache_dir), f"cannot be made ({error.strerror})", "make its folder writable") from None
        variables = environment(cache_dir)
        self._spawner = Spawner(variables)
        workers = Workers(self._spawner, target, policy, observe)
        compilers = Compilers(self._spawner, target, policy, observe, BinaryCache(cache_dir, target))
        folders = (cache_dir, Path(variables["POCL_CACHE_DIR"]), Path(tempfile.gettempdir()))
        self._tools = BenchTools(target, workers, compilers, observe, folders)

    def compile(self, modules: Sequence[Module]) -> Iterator[Compilation]:
        """Compile modules, each once, without opening the device, which need not be there; as they are finished.

        What can be kept is in `cache_dir` then, where a bench for a device of the same architecture finds it. Raises
        UserError when compilers cannot write.
        """
        compilers = self._tools.compilers
        waiting = {module.digest(): module for module in modules}
        compilers.request(waiting.items())
        while waiting:
            compilers.pump()
            finished = [made for one in waiting.items() if (made := compilers.compilation(*one))]
            for made in finished:
                del waiting[made.module.digest()]
                if isinstance(made.made, Measurement):
                    self._tools.look_at_the_machine(made.made)
            yield from finished
            if waiting and not finished:
                wait_until(compilers.connections, compilers.deadline)

    def run(self, batch: Batch) -> Iterator[tuple[Job, Measurement]]:
        """Measure every job once; results come as they are made, not always in the order of the jobs.

        A good result is handed out when the job after it has its own, or at the end. Raises UserError when the device
        cannot be opened, and when compilers cannot write.
        """
        return BatchRun(self._tools, batch).results()

    def interleave(self, jobs: Sequence[Job], until_clear: bool = False) -> list[Measurement]:
        """Measure jobs of one problem against each other, in alternating blocks: sample i of all is from round i.

        With `until_clear` there are fewer blocks where one job is faster than all others beyond any doubt. One that
        fails is left out and the others are measured without it. The order of blocks follows the policy's seed. Raises
        ValueError for jobs of different problems.
        """
        if len({job.problem for job in jobs}) > 1:
            raise ValueError("only jobs of one problem can be interleaved")
        made = self._trials(jobs)
        results = {index: trial for index, trial in enumerate(made) if isinstance(trial, Measurement)}
        trials = {index: trial for index, trial in enumerate(made) if isinstance(trial, ReadyJob)}
        unexplained, began = 0, time.time()
        while trials:
            request = InterleaveRequest(tuple(map(self._tools.candidate, trials.values())), until_clear)
            answer = self._tools.ask(self._tools.workers.current(), request, [trial.job for trial in trials.values()])
            if isinstance(answer, Done):
                for position, (index, trial) in enumerate(trials.items()):
                    results[index] = trial.outcome(answer, position, began)
                    if results[index].ok:
                        self._tools.verified.add(trial.fingerprint)
                break
            guilty = self._died_alone(trials)
            unexplained += not guilty
            if unexplained == 2:
                suspect = list(trials)[answer.index]
                guilty = {suspect: trials[suspect].outcome(answer, answer.index, began)}
            results |= guilty
            trials = {index: trial for index, trial in trials.items() if index not in guilty}
        for result in results.values():
            self._tools.look_at_the_machine(result)
        return [results[index] for index in range(len(jobs))]

    def close(self) -> None:
        """End every process, at once."""
        self._tools.workers.close()
        self._tools.compilers.close()
        self._spawner.close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _trials(self, jobs: Sequence[Job]) -> list[ReadyJob | Measurement]:
        """Build all: what to send of each, or why there is nothing to send."""
        compilers, made = self._tools.compilers, []
        details = [JobDetails(job, self._tools.target) for job in jobs]
        for job in details:
            compilers.request(job.modules)
        for job in details:
            while (built := compilers.binaries(job)) is None:
                # Asking may have added a probe. Nothing is collected yet: something must be left to wait for.
                compilers.hand_out()
                wait_until(compilers.connections, compilers.deadline)
                compilers.pump()
            made.append(self._tools.trial(job, built))
        return made

    def _died_alone(self, trials: Mapping[int, ReadyJob]) -> dict[int, Measurement]:
        """Each runs again alone; those that take their worker with them, with their measurements."""
        guilty, tools = {}, self._tools
        for index, trial in trials.items():
            worker, began = tools.workers.fresh(), time.time()
            answer = tools.ask(worker, MeasureRequest(tools.candidate(trial), math.inf), [trial.job])
            if isinstance(answer, Death):
                guilty[index] = trial.outcome(answer, 0, began)
        return guilty
