"""One pass over jobs on the host's own processor, where compiling and timing would disturb each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from tunesmith.records import Measurement, Problem

from .bench_tools import BenchTools, ReadyJob
from .details import JobDetails
from .job import Batch
from .run import BatchRun, Sent

FIRST_TASKS, MOST_TASKS = 16, 64
"""Tasks that the first round and the largest one give each compile process; each round gives twice as many as the last.
At the end of a round processes wait for each other, but a first result should come soon, and a run that is stopped
loses what was compiled and not yet timed."""


class AlternatingRun(BatchRun):
    """The state of one `Bench.run` on a CPU. It goes by rounds: some jobs are compiled, then they are timed.

    A job that is compiled is verified while the others are, since that disturbs nobody: no time is taken meanwhile.
    """

    def __init__(self, tools: BenchTools, batch: Batch) -> None:
        super().__init__(tools, batch)
        self._to_time: deque[tuple[ReadyJob, Measurement | None]] = deque()
        self._tasks = FIRST_TASKS * tools.compilers.processes
        self._order: dict[int, int] = {}

    @property
    def _is_at_work(self) -> bool:
        return super()._is_at_work or bool(self._to_time) or self._holds_a_verified_job

    def _in_order(self, jobs: Sequence[JobDetails]) -> Iterable[JobDetails]:
        return jobs

    def _request_builds(self) -> None:
        if self._building or self._current or self._to_time or self._holds_a_verified_job:
            return
        added = 0
        while self._waiting and added < self._tasks:
            added += self._build_next()
        self._order = {id(details.job): position for position, details in enumerate(self._building)}
        if added:
            self._tasks = min(2 * self._tasks, MOST_TASKS * self._tools.compilers.processes)

    def _has_room_to_build(self) -> bool:
        return False

    def _dispatch(self) -> None:
        """Verify what is compiled. When all of the round is, time it."""
        while self._current is None and (ready_job := self._line_up()):
            if ready_job.fingerprint in self._tools.verified:
                self._to_time.append((ready_job, None))
            else:
                self._send(ready_job, times=False)
        if self._current is not None or self._building or self._tools.compilers.busy:
            return
        if self._holds_a_verified_job:
            self._release_held()
        if self._to_time:
            # In the order of the jobs, whichever was compiled first.
            first = min(self._to_time, key=lambda entry: self._order[id(entry[0].job)])
            self._to_time.remove(first)
            self._send(*first)

    @property
    def _holds_a_verified_job(self) -> bool:
        return self._held is not None and not self._held[0].request.times

    def _passed(self, sent: Sent, measurement: Measurement) -> None:
        if sent.request.times:
            super()._passed(sent, measurement)
        else:
            self._to_time.append((sent.ready_job, measurement))

    def _ahead(self, problem: Problem) -> tuple[Problem, ...]:
        return ()
