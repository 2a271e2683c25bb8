"""Turns choices into programs, plans, bound arguments and launches, for one device with its logics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from tunesmith.devices import Buffer, Device, Prepared
from tunesmith.devices.cuda.device import CudaDevice, CudaMemory
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library.arrays._libraries import Array
from tunesmith.library.arrays._view import ALIGNMENT
from tunesmith.logic import Choice, Logic, Rule
from tunesmith.records import (
    Launch,
    LibraryCall,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    Solution,
    Step,
    TensorMapArgument,
    UserError,
)

from ._heuristic import heuristic_choices, heuristic_refusals
from ._memory import Pool, Workspaces, lent
from ._programs import CompiledPrograms, Programs
from ._stream_k import StreamK

REMEMBERED = 1024
"""The most problems whose plans are kept."""

WORKSPACE = ""
"""The workspace's name among a plan's memory."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """A launch: the choice, the problem, the plan that was carried out, and the plan's solution: the choice's solution
    with the parameters that were decided at run time (`_stream_k`)."""

    choice: Choice
    problem: Problem
    plan: Plan
    solution: Solution


@dataclass(slots=True)
class ReadyLaunch:
    """A problem's choice with its plan. `prepared` is bound to the pool's buffers of that `generation`."""

    launched: LaunchRecord
    compiled: CompiledPrograms
    prepared: Prepared | None = None
    generation: int = -1


class Launcher:
    """One device with its logics, and the programs, plans and memory that calls needed so far. Not thread-safe.

    `unused` has the errors for problem types whose logic is not used on this device, `left_out` the errors of files
    that could not be used, `absent` the error if no logic is used on this device at all.
    """

    def __init__(
        self,
        device: Device,
        logics: Mapping[ProblemType, tuple[Path, Logic]],
        unused: Mapping[ProblemType, UserError],
        left_out: Sequence[UserError] = (),
        absent: UserError | None = None,
    ) -> None:
        self.device, self.unused, self.left_out, self.absent = device, unused, left_out, absent
        self.logics = {kind: logic for kind, (_, logic) in logics.items()}
        self.warned: set[str] = set()
        """The warnings that were issued, about problem types without a logic."""
        self._stream_k = StreamK(device.target, [file.parent for file, _ in logics.values()])
        self._pool, self._programs = Pool(device), Programs()
        self._compiled: dict[Solution, CompiledPrograms | Rejection] = {}
        self._legal: dict[Solution, Rejection | None] = {}
        self._ready: dict[tuple[Problem, bool], ReadyLaunch] = {}

    @property
    def gpu(self) -> CudaDevice:
        """The device, which must be a CUDA device: one whose memory other libraries use, too."""
        assert isinstance(self.device, CudaDevice)
        return self.device

    @cached_property
    def workspaces(self) -> Workspaces:
        """The workspaces of a GPU's streams."""
        return Workspaces(self.gpu)

    @cached_property
    def unit_scale(self) -> CudaMemory:
        """A float32 1.0 in a GPU's memory: the scale of an operand without a scale."""
        memory = self.gpu.allocate(4)
        self.gpu.write(memory, np.ones(1, np.float32).view(np.uint8))
        return memory

    def at_home(self) -> AbstractContextManager[None]:
        """A context manager. On a GPU, its body runs in the device's own context and on the device's own stream."""
        return self.device.on(None) if isinstance(self.device, CudaDevice) else nullcontext()

    def choices(self, problem: Problem) -> Iterator[Choice]:
        """The logic's candidates, or without a logic the policy's, except those known not to run this problem here."""
        return (choice for choice, solution in self._candidates(problem) if not self._refusal(solution, problem))

    def refusals(self, problem: Problem) -> dict[str, Rejection]:
        """Why solutions are known not to run this problem here, by the solutions' names. Without a logic also why
        families have no solution, by the families' names."""
        checked = ((choice.name, self._refusal(solution, problem)) for choice, solution in self._candidates(problem))
        of_families = {} if problem.type in self.logics else heuristic_refusals(problem, self.device.target)
        return of_families | {name: refusal for name, refusal in checked if refusal}

    def ready(self, problem: Problem, aligned: bool = True) -> ReadyLaunch:
        """The first choice that compiles, with its plan. If operands are not `aligned` to ALIGNMENT bytes, choices that
        need aligned operands are passed over. Raises UserError if no choice is left."""
        ready = self._ready.get((problem, aligned))
        if ready is None:
            if len(self._ready) >= REMEMBERED:
                self._ready.clear()
            ready = self._ready[problem, aligned] = self._first(problem, aligned)
        return ready

    def by_vendor(self, problem: Problem, changes: Mapping[str, int], aligned: bool) -> ReadyLaunch | None:
        """The vendor's BLAS for a problem of any type, with `changes` to the parameters of its calls. None if the
        vendor's BLAS does not compute the problem, is not installed, or needs aligned operands that are not."""
        kernel, target = KERNELS[VENDOR], self.device.target
        solution = Solution(problem.type, VENDOR, kernel.space(problem.type, target).defaults)
        compiled = self._refusal(solution, problem) or self._compile(solution)
        if isinstance(compiled, Rejection):
            return None

        def changed(step: Step) -> Step:
            return replace(step, parameters=step.parameters | changes) if isinstance(step, LibraryCall) else step

        plan = kernel.plan(solution.configuration, problem, target, compiled.facts)
        plan = replace(plan, steps=tuple(map(changed, plan.steps)))
        if not aligned and _asks_for_alignment(plan):
            return None
        return ReadyLaunch(LaunchRecord(Choice(solution, VENDOR, Rule.FALLBACK), problem, plan, solution), compiled)

    def run(
        self, ready: ReadyLaunch, arrays: Mapping[str, Array], roles: Mapping[str, str], stand_ins: Mapping[str, str]
    ) -> None:
        """Carry out a plan on arrays of the host, by operand name, and wait for it. Raises LaunchError.

        `roles` are those of `Operand`, the default is "in". Strides must not be negative. An argument that the kernel
        has but does not read (a GEMM's C with beta = 0) needs no array: `stand_ins` names the operand whose memory it
        gets.
        """
        with self.at_home(), lent(self.device, self._pool, arrays, roles) as buffers:
            self._prepared(ready, buffers, stand_ins).enqueue()
        self._programs.keep_new(self.device)

    def close(self) -> None:
        """Release memory and programs. In a forked child nothing is released: they belong to the parent."""
        if self.device.lost:
            return
        with self.at_home():
            self._ready.clear()
            self._compiled.clear()
            self._programs.clear()
            self._pool.close()
            if "workspaces" in vars(self):
                self.workspaces.close()
            if "unit_scale" in vars(self):
                self.device.release(self.unit_scale)

    def _prepared(self, ready: ReadyLaunch, buffers: Mapping[str, Buffer], stand_ins: Mapping[str, str]) -> Prepared:
        plan = ready.launched.plan
        workspace = self._pool.at_least(WORKSPACE, plan.workspace_bytes) if plan.workspace_bytes else None
        reusable = all(buffer is self._pool.get(name) for name, buffer in buffers.items())
        if reusable and ready.prepared is not None and ready.generation == self._pool.generation:
            return ready.prepared
        operands = {**buffers, **{name: buffers[other] for name, other in stand_ins.items()}}
        prepared = self.device.prepare(plan.from_scratch, ready.compiled.programs, operands, workspace)
        if reusable:
            ready.prepared, ready.generation = prepared, self._pool.generation
        return prepared

    def _first(self, problem: Problem, aligned: bool) -> ReadyLaunch:
        """The first candidate that runs, with its plan. Raises UserError with all reasons if none does."""
        refusals: dict[str, Rejection] = {}
        for choice, solution in self._candidates(problem):
            refusal = self._refusal(solution, problem)
            compiled = refusal or self._compile(solution)
            if isinstance(compiled, Rejection):
                refusals[choice.name] = compiled
                continue
            kernel = KERNELS[solution.kernel]
            plan = kernel.plan(solution.configuration, problem, self.device.target, compiled.facts)
            if not aligned and (compiled.aligned or _asks_for_alignment(plan)):
                refusals[choice.name] = Rejection("alignment", f"{ALIGNMENT} bytes, of every operand's address")
                continue
            return ReadyLaunch(LaunchRecord(choice, problem, plan, solution), compiled)
        reasons = "; ".join(f"{name}: {reason}" for name, reason in (self.refusals(problem) | refusals).items())
        raise UserError(
            problem.type.name,
            f"no solution runs {problem} on {self.device.target.name} ({reasons})",
            "tune for such sizes, or on this device",
        )

    def _candidates(self, problem: Problem) -> Iterator[tuple[Choice, Solution]]:
        """The choices of the logic, or without a logic the policy's, each with the solutions to launch for it."""
        logic = self.logics.get(problem.type)
        candidates = (
            logic.candidates(problem.sizes, problem.leading)
            if logic
            else heuristic_choices(problem, self.device.target)
        )
        for choice in candidates:
            yield from ((choice, solution) for solution in self._stream_k.solutions(choice, problem))

    def _refusal(self, solution: Solution, problem: Problem) -> Rejection | None:
        """Why this solution cannot run, as far as that is known without compiling it."""
        kernel, config, target = KERNELS[solution.kernel], solution.configuration, self.device.target
        if solution not in self._legal:
            self._legal[solution] = next(kernel.rejections(config, solution.type, target), None)
        compiled = self._compiled.get(solution)
        at_every_size = compiled if isinstance(compiled, Rejection) else self._legal[solution]
        return at_every_size or next(kernel.rejections_for(config, problem, target), None)

    def _compile(self, solution: Solution) -> CompiledPrograms | Rejection:
        if solution not in self._compiled:
            kernel, config = KERNELS[solution.kernel], solution.configuration
            self._compiled[solution] = self._programs.compiled(self.device, kernel, config, solution.type)
        return self._compiled[solution]


def with_left_out(what: str, errors: Sequence[UserError]) -> str:
    """The message with the files that could not be used appended: the missing type may be in one of them."""
    return what + "".join(f"; left out: {error.location}: {error.what}" for error in errors)


def _asks_for_alignment(plan: Plan) -> bool:
    """Whether a plan needs aligned operands: tensor maps do, and the vendor's BLAS with operands of one byte."""
    launches = [step for step in plan.steps if isinstance(step, Launch)]
    has_maps = any(isinstance(argument, TensorMapArgument) for step in launches for argument in step.arguments)
    calls = [step for step in plan.steps if isinstance(step, LibraryCall)]
    return has_maps or any(str(call.parameters.get("dtype")).startswith(("float8", "int8")) for call in calls)
