"""What runs in a worker process: the functions that Dask calls there, over the one bench of the device.

A device's process has one thread for these functions, so one portion runs at a time. Its bench lives as long as the
process: programs stay loaded and candidates stay verified between portions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from distributed import Worker, get_worker

from tunesmith.bench import Batch, Bench, Compilation, Event, Policy, Spawner, WorkerLost
from tunesmith.records import Module, Target, UserError

from .compiling import CompileService
from .messages import MessageKind, Portion
from .wire import plain_measurement


class DeviceHost:
    """Holds the bench of a device, for one policy at a time; `variables` are for the bench's processes."""

    def __init__(self, target: Target, cache: Path, variables: dict[str, str]) -> None:
        self._target, self._cache, self._variables = target, cache, variables
        self._opened = ExitStack()
        self._bench: Bench | None = None
        self._policy: Policy | None = None
        self._observe: Any = None

    def bench(self, policy: Policy, observe: Any) -> Bench:
        """The bench for a policy; events go to `observe` from now on."""
        self._observe = observe
        if self._bench is None or policy != self._policy:
            self.close()
            spawner = self._opened.enter_context(Spawner(self._variables))
            bench = Bench(self._target, policy, self._cache, lambda event: self._observe(event), spawner)
            self._bench, self._policy = self._opened.enter_context(bench), policy
        return self._bench

    def close(self) -> None:
        self._opened.close()
        self._opened, self._bench = ExitStack(), None


host: DeviceHost | None = None
"""The device of this process; set before the worker joins the cluster."""
compilers: CompileService | None = None
"""The compile processes of this process's host; set before the worker joins the cluster."""


def compile_modules(modules: Sequence[Module], target: Target, policy: Policy) -> tuple[Compilation, ...]:
    """Compile modules on a host that compiles; runs in a `Role.COMPILER` process."""
    assert compilers is not None
    return compilers.compile(modules, target, policy)


def open_device(policy: Policy) -> bool:
    """Begin to open this process's device, so that it is open when the first portion's programs are compiled. Returns
    whether that could be begun."""
    assert host is not None
    with suppress(UserError):  # the first portion fails for the same reason, and says it
        host.bench(policy, lambda event: None).prepare(())
        return True
    return False


def measure_portion(portion: Portion, compiled: Sequence[Sequence[Compilation]]) -> None:
    """Measure a portion on this process's device. Every result is sent to the portion's topic at once.

    Ends early, with the bench's processes, if nobody wants the portion any more: the command has ended.
    """
    worker = get_worker()
    key = worker.get_current_task()

    def send(kind: MessageKind, **facts: Any) -> None:
        worker.log_event(portion.topic, {"kind": kind.value, "portion": portion.number, **facts})

    def observe(event: Event) -> None:
        if isinstance(event, WorkerLost):
            send(MessageKind.LOST, pid=event.pid, cause=event.cause, stage=event.stage, key=event.key)

    began = time.monotonic()
    send(MessageKind.BEGAN)
    try:
        assert host is not None
        bench = host.bench(portion.policy, observe)
        bench.supply([compilation for chunk in compiled for compilation in chunk], portion.charged)
        for facts in _results(bench, portion):
            kind = MessageKind.MEASURED if isinstance(portion.work, Batch) else MessageKind.INTERLEAVED
            send(kind, seconds=time.monotonic() - began, **facts)
            if _is_cancelled(worker, key):
                return
    except UserError as error:
        send(MessageKind.FAILED, location=error.location, what=error.what, remedy=error.remedy)
        return
    send(MessageKind.ENDED, seconds=time.monotonic() - began)


def _results(bench: Bench, portion: Portion) -> Iterator[dict[str, Any]]:
    if isinstance(portion.work, Batch):
        for job, measurement in bench.run(portion.work):
            yield {"key": job.key, "result": plain_measurement(measurement)}
    else:
        for name, confirmation in portion.work.items():
            measured = bench.interleave(confirmation.jobs, confirmation.until_clear)
            yield {"key": name, "results": [plain_measurement(measurement) for measurement in measured]}


def _is_cancelled(worker: Worker, key: Any) -> bool:
    """Whether the scheduler has released the task that runs, since its client has ended or cancelled it."""
    task = worker.state.tasks.get(key)
    return task is None or task.state == "cancelled"
