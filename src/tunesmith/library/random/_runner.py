"""One generator on one device: its launches, and its tables and engines in device memory between calls."""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tunesmith.devices import Buffer as Memory
from tunesmith.devices import Device, LaunchError, Program
from tunesmith.devices.cuda.device import CudaDevice, Mark, RepeatedLaunch
from tunesmith.kernels.random import COUNT_ARGUMENT, start_argument, with_arguments, work_groups_of_fill
from tunesmith.library.arrays._streams import Stream
from tunesmith.library.launch._memory import Pool, lent
from tunesmith.library.launch._programs import Programs
from tunesmith.problems.random import GeneratorKind, RandomFill, random_type, scalars_for
from tunesmith.records import Configuration, Launch, LaunchShape, Plan, Problem, Rejection, Step, Write

from ._buffers import Buffer
from ._devices import cannot_run, family_on, programs_of
from ._position import Position
from ._settings import Settings, Shapes

REMEMBERED = 256
"""The most requests whose plans are kept."""

POISSON_ROOM = 1 << 14
"""Bytes, at least those of any Poisson distribution's table. With so much extra, the workspace serves all requests."""

WORKSPACE = "workspace"

OUT = 0
"""The index of the buffer among the arguments of `generate`."""

WIDEST_VECTOR = 16
"""Bytes of the largest vector that an engine deals."""

REPLAYED = 1 << 26
"""About so many bytes of scratch memory are used for engines that cannot skip and so generate earlier numbers again."""


@dataclass(frozen=True, slots=True)
class FillRequest:
    """What a buffer is to be filled with: a distribution, a value type, and the distribution's parameters."""

    distribution: str
    value_type: str
    mean: float = 0.0
    stddev: float = 1.0
    lam: float = 1.0


@dataclass(frozen=True, slots=True)
class GeneratorLaunch:
    """A launch: the problem type's name, the number of values, the launch shape, and the device's name."""

    name: str
    count: int
    shape: LaunchShape
    device: str


@dataclass(slots=True)
class _Planned:
    """A request's plan for one value, with its programs.

    A vector has `values` values and moves the position by `width` words (for a quasi generator: points). `shape` is
    the launch shape for a buffer with work for all work-groups. `repeated` is the launch made ready on a GPU.
    """

    request: FillRequest
    problem: Problem
    config: Configuration
    programs: tuple[Program, ...]
    workspace_bytes: int
    tables: tuple[Write, ...]
    launch: Launch
    shape: LaunchShape
    width: int
    values: int
    itemsize: int
    repeated: RepeatedLaunch | None = None


class Runner:
    """Fills buffers. `close` releases its memory, as does the end of its last reference."""

    def __init__(self, settings: Settings, shapes: Shapes, device: Device) -> None:
        self.device = device
        self._settings, self._shapes = settings, shapes
        self._kernel, self._programs = family_on(device.target), programs_of(device)
        self.shape = shapes.own(device.target.architecture)
        self._engines = self.shape.threads if settings.engines_depend else 1
        self._plans: dict[FillRequest, _Planned] = {}
        self._pool = Pool(device)
        self._written: dict[int, str] = {}
        self._seeded = False
        self._last: FillRequest | None = None
        self._used_on: Stream | None = None
        self.close = weakref.finalize(self, _release, device, self._programs, self._pool)
        self.close.atexit = False

    def fill(
        self, request: FillRequest, position: Position, buffer: Buffer, stream: Stream | None
    ) -> tuple[Position, GeneratorLaunch]:
        """Fill the buffer with the sequence from `position` on: on the caller's stream without waiting, or, for None,
        on the device's own stream until it is done.

        Returns the next position, and the launch. Raises UserError if the request cannot run on the device, LaunchError
        if the device fails.
        """
        with self._programs.lock, _on(self.device, stream.handle if stream else None):
            planned = self._planned(request)
            count = buffer.count // self._settings.dimensions
            begin = position.fit_for(planned.width, self._engines)
            try:
                self._wait_for_others(buffer, stream)
                self._write_tables(planned)
                self._move_engines(planned, position, begin)
                self._launch(planned, begin, count, buffer, waits=stream is None)
                self._let_others_wait()
            except BaseException:
                # How far the call got is unknown, so the next call seeds engines and writes tables again.
                self._seeded = False
                self._written = dict.fromkeys(self._written, "")
                raise
        self._last = request
        vectors, skips = -(-count // planned.values), self._settings.generator.skips
        launched = GeneratorLaunch(planned.problem.type.name, buffer.count, planned.shape, self.device.target.name)
        return begin.after(vectors, planned.width, self._engines, skips), launched

    def reseed(self) -> None:
        """Have the next call seed the engines, since it does not go on where the last call ended."""
        self._seeded = False

    def _planned(self, request: FillRequest) -> _Planned:
        planned = self._plans.get(request)
        if planned is None:
            if len(self._plans) >= REMEMBERED:
                self._plans.clear()
            planned = self._plans[request] = self._plan(request)
        return planned

    def _plan(self, request: FillRequest) -> _Planned:
        settings, target = self._settings, self.device.target
        distribution, value_type = request.distribution, request.value_type
        kind = random_type(settings.generator.name, distribution, value_type, dynamic=settings.dynamic)
        shape = self._shapes.launch(target.architecture, distribution, value_type)
        config = self._kernel.space(kind).defaults | {"BlockSize": shape.block, "GridSize": shape.grid}
        scalars = scalars_for(
            distribution, seed=settings.seed, mean=request.mean, stddev=request.stddev, lam=request.lam
        )
        problem = Problem(kind, (1, settings.dimensions)[: len(kind.indices)], (), scalars)
        refusal = next(self._kernel.rejections(config, kind, target), None)
        compiled = refusal or self._programs.compiled(self.device, self._kernel, config, kind)
        if isinstance(compiled, Rejection):
            raise cannot_run(kind, target, compiled)
        plan = self._kernel.plan(config, problem, target)
        tables = tuple(step for step in plan.setup if isinstance(step, Write))
        (launch,) = (step for step in plan.steps if isinstance(step, Launch))
        fill = RandomFill.of(problem)
        words = 1 if settings.generator.kind is GeneratorKind.QUASI else fill.width.words
        return _Planned(
            request, problem, config, compiled.programs, plan.workspace_bytes, tables, launch, shape, words,
            fill.width.values, np.dtype(fill.dtype).itemsize,
        )  # fmt: skip

    def _wait_for_others(self, buffer: Buffer, stream: Stream | None) -> None:
        """Make the following work wait for our last call, and for the work that wrote a buffer without a stream."""
        if not isinstance(self.device, CudaDevice):
            return
        before, self._used_on = self._used_on, stream
        if before and not (before.lasts and stream and before.handle == stream.handle):
            if before.lasts:
                with self.device.on(before.handle):
                    self.device.record(self._marked)
            self.device.follow(self._marked)
        if stream is None and buffer.written_on is not None:
            with self.device.on(buffer.written_on):
                self.device.synchronize()

    def _let_others_wait(self) -> None:
        """Mark the end of the call if it cannot be marked later. Marks between short kernels would cost time."""
        if self._pool.get(WORKSPACE) is None:
            self._used_on = None
        elif isinstance(self.device, CudaDevice) and self._used_on and not self._used_on.lasts:
            self.device.record(self._marked)

    @cached_property
    def _marked(self) -> Mark:
        return Mark()

    def _write_tables(self, planned: _Planned) -> None:
        """Write the tables that the launch reads and the workspace lacks."""
        if not planned.workspace_bytes:
            return
        if self._pool.get(WORKSPACE) is None:
            self._pool.at_least(WORKSPACE, planned.workspace_bytes + POISSON_ROOM)
        missing = tuple(step for step in planned.tables if self._written.get(step.offset) != step.digest)
        if missing and not self._written:
            # No kernel uses the workspace yet, and the driver may wait before it copies much memory.
            with _on(self.device, None):
                self._carry_out(planned, missing)
                self.device.synchronize()
        elif missing:
            self._carry_out(planned, missing)
        self._written.update((step.offset, step.digest) for step in missing)

    def _move_engines(self, planned: _Planned, position: Position, begin: Position) -> None:
        """Move the engines to `begin`: from the seed on, or from `position`, where the last call left them."""
        if not self._settings.engines_depend:
            return
        skips = self._settings.generator.skips
        if not self._seeded:
            self._seed(planned, begin, skips)
        elif begin != position and skips and self._last:
            # Leave out the rest of the turn; engines that cannot skip do so by themselves.
            self._discard(self._last, position, self._engines - position.vectors)
        self._seeded = True

    def _seed(self, planned: _Planned, begin: Position, skips: bool) -> None:
        offset = begin.offset if skips else 0
        problem = replace(planned.problem, scalars=planned.problem.scalars | {"offset": offset})
        setup = self._kernel.plan(planned.config, problem, self.device.target).setup
        self._carry_out(planned, tuple(step for step in setup if isinstance(step, Launch)))
        if not skips:
            most = max(1, REPLAYED // (4 * self._engines)) * self._engines
            for done in range(0, begin.offset, most):
                self._discard(FillRequest("uniform", "unsigned_int"), Position(0), min(most, begin.offset - done))
        if begin.vectors:
            self._discard(planned.request, Position(begin.offset), begin.vectors)

    def _discard(self, request: FillRequest, begin: Position, vectors: int) -> None:
        """Have the engines deal vectors into scratch memory: less than a turn, or any number of single words."""
        planned = self._planned(request)
        scratch = self._pool.at_least("scratch", max(self._engines * WIDEST_VECTOR, 4 * vectors))
        self._enqueue(planned, begin, vectors * planned.values, scratch)

    def _launch(self, planned: _Planned, begin: Position, count: int, buffer: Buffer, waits: bool) -> None:
        if buffer.array is None:
            assert isinstance(self.device, CudaDevice)
            self._repeat(self.device, planned, begin, count, buffer.address)
            if waits:
                self.device.synchronize()
            return
        problem = replace(planned.problem, sizes=(count, *planned.problem.sizes[1:]))
        if reason := next(self._kernel.rejections_for(planned.config, problem, self.device.target), None):
            raise cannot_run(problem.type, self.device.target, reason)
        with lent(self.device, self._pool, {"Out": buffer.array}, {"Out": "out"}) as buffers:
            self._enqueue(planned, begin, count, buffers["Out"])
        self._programs.keep_new(self.device)

    def _enqueue(self, planned: _Planned, begin: Position, count: int, out: Memory) -> None:
        grid, numbers = self._sized(planned, begin, count)
        self._carry_out(planned, (with_arguments(planned.launch, grid, numbers),), out)

    def _repeat(self, device: CudaDevice, planned: _Planned, begin: Position, count: int, address: int) -> None:
        if planned.repeated is None:
            planned.repeated = device.repeated(planned.launch, planned.programs[0], self._pool.get(WORKSPACE))
        grid, numbers = self._sized(planned, begin, count)
        device.launch(planned.repeated, grid, ((OUT, address), *numbers))

    def _sized(self, planned: _Planned, begin: Position, count: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The number of work-groups and the arguments for `count` values (of each dimension) from a position on."""
        generator, start = self._settings.generator, begin.offset
        if self._settings.engines_depend:
            start = (start + begin.vectors) % self._engines
        grid = work_groups_of_fill(generator, planned.shape.block, planned.shape.grid, count * planned.itemsize)
        return grid, ((COUNT_ARGUMENT, count), (start_argument(generator), start))

    def _carry_out(self, planned: _Planned, steps: tuple[Step, ...], out: Memory | None = None) -> None:
        plan = Plan(steps, planned.workspace_bytes)
        operands = {} if out is None else {"Out": out}
        self.device.prepare(plan, planned.programs, operands, self._pool.get(WORKSPACE)).enqueue()


def _on(device: Device, stream: int | None) -> AbstractContextManager[None]:
    return device.on(stream) if isinstance(device, CudaDevice) else nullcontext()


def _release(device: Device, programs: Programs, pool: Pool) -> None:
    with suppress(LaunchError), programs.lock, _on(device, None):
        pool.close()
