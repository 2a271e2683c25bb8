"""One device with the logics that serve there: choices become programs, plans, bound arguments, launches."""

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
"""Problems whose plans are kept."""

WORKSPACE = ""
"""By which name a plan's memory has its workspace."""


@dataclass(frozen=True, slots=True)
class Launched:
    """What was launched: the choice, the problem it was for, the plan that was carried out, and the solution that it is
    of: the choice's, with what was decided at run time (`_stream_k`)."""

    choice: Choice
    problem: Problem
    plan: Plan
    solution: Solution


@dataclass(slots=True)
class ReadyLaunch:
    """A problem's choice with its plan; `prepared` is bound to the pool of that `generation`."""

    launched: Launched
    compiled: CompiledPrograms
    prepared: Prepared | None = None
    generation: int = -1


class Launcher:
    """One device with the logics, programs, plans and memory that were needed on it so far. Not for several threads at
    once. `sunk` says why logic of other problem types does not serve here, `left_out` why files could not be used,
    `absent` why no logic serves here at all."""

    def __init__(
        self,
        device: Device,
        logics: Mapping[ProblemType, tuple[Path, Logic]],
        sunk: Mapping[ProblemType, UserError],
        left_out: Sequence[UserError] = (),
        absent: UserError | None = None,
    ) -> None:
        self.device, self.sunk, self.left_out, self.absent = device, sunk, left_out, absent
        self.logics = {kind: logic for kind, (_, logic) in logics.items()}
        self.warned: set[str] = set()
        """Sentences that were said: what no logic is for."""
        self._stream_k = StreamK(device.target, [file.parent for file, _ in logics.values()])
        self._pool, self._programs = Pool(device), Programs()
        self._compiled: dict[Solution, CompiledPrograms | Rejection] = {}
        self._legal: dict[Solution, Rejection | None] = {}
        self._ready: dict[tuple[Problem, bool], ReadyLaunch] = {}

    @property
    def gpu(self) -> CudaDevice:
        """The device, of those whose memory other libraries have too."""
        assert isinstance(self.device, CudaDevice)
        return self.device

    @cached_property
    def workspaces(self) -> Workspaces:
        """By streams, on a GPU."""
        return Workspaces(self.gpu)

    @cached_property
    def one(self) -> CudaMemory:
        """1.0 on a GPU, a float32: the scale of an operand that has none."""
        memory = self.gpu.allocate(4)
        self.gpu.write(memory, np.ones(1, np.float32).view(np.uint8))
        return memory

    def at_home(self) -> AbstractContextManager[None]:
        """On a GPU in the device's own context and on its own stream, whatever the thread did last."""
        return self.device.on(None) if isinstance(self.device, CudaDevice) else nullcontext()

    def choices(self, problem: Problem) -> Iterator[Choice]:
        """The logic's candidates, or without a logic a policy's, but for those that are known not to run this problem
        here."""
        return (choice for choice, solution in self._candidates(problem) if not self._refusal(solution, problem))

    def refusals(self, problem: Problem) -> dict[str, Rejection]:
        """Why solutions, by name, are known not to run this problem here; without a logic, why families have none."""
        every = ((choice.name, self._refusal(solution, problem)) for choice, solution in self._candidates(problem))
        without = {} if problem.type in self.logics else heuristic_refusals(problem, self.device.target)
        return without | {name: refusal for name, refusal in every if refusal}

    def ready(self, problem: Problem, aligned: bool = True) -> ReadyLaunch:
        """The first choice that compiles, with its plan; where operands are not `aligned` to ALIGNMENT bytes, the first
        that needs no such thing. Raises UserError when nothing runs."""
        ready = self._ready.get((problem, aligned))
        if ready is None:
            if len(self._ready) >= REMEMBERED:
                self._ready.clear()
            ready = self._ready[problem, aligned] = self._first(problem, aligned)
        return ready

    def by_vendor(self, problem: Problem, changes: Mapping[str, int], aligned: bool) -> ReadyLaunch | None:
        """The vendor's BLAS for a problem of any type, its calls with these other parameters. None where it does not
        compute it, is not installed, or needs operands that are `aligned`."""
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
        return ReadyLaunch(Launched(Choice(solution, VENDOR, Rule.FALLBACK), problem, plan, solution), compiled)

    def run(
        self, ready: ReadyLaunch, arrays: Mapping[str, Array], roles: Mapping[str, str], stand_ins: Mapping[str, str]
    ) -> None:
        """Carry a plan out on the host's arrays, by operands' names, and wait. Raises LaunchError.

        `roles` are those of `Operand`, the default is "in"; no stride is negative. What a kernel has an argument for
        and nobody reads (a GEMM's C with beta = 0) is no array: it gets the memory of the operand in `stand_ins`.
        """
        with self.at_home(), lent(self.device, self._pool, arrays, roles) as buffers:
            self._prepared(ready, buffers, stand_ins).enqueue()
        self._programs.keep_new(self.device)

    def close(self) -> None:
        """Give memory and programs back; in a forked child they are the parent's."""
        if self.device.lost:
            return
        with self.at_home():
            self._ready.clear()
            self._compiled.clear()
            self._programs.clear()
            self._pool.close()
            if "workspaces" in vars(self):
                self.workspaces.close()
            if "one" in vars(self):
                self.device.release(self.one)

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
        why: dict[str, Rejection] = {}
        for choice, solution in self._candidates(problem):
            refusal = self._refusal(solution, problem)
            compiled = refusal or self._compile(solution)
            if isinstance(compiled, Rejection):
                why[choice.name] = compiled
                continue
            kernel = KERNELS[solution.kernel]
            plan = kernel.plan(solution.configuration, problem, self.device.target, compiled.facts)
            if not aligned and (compiled.aligned or _asks_for_alignment(plan)):
                why[choice.name] = Rejection("alignment", f"{ALIGNMENT} bytes, of every operand's address")
                continue
            return ReadyLaunch(Launched(choice, problem, plan, solution), compiled)
        reasons = "; ".join(f"{name}: {reason}" for name, reason in (self.refusals(problem) | why).items())
        raise UserError(
            problem.type.name,
            f"no solution runs {problem} on {self.device.target.name} ({reasons})",
            "tune for such sizes, or on this device",
        )

    def _candidates(self, problem: Problem) -> Iterator[tuple[Choice, Solution]]:
        """The logic's, or without a logic a policy's, with what each may be launched as."""
        logic = self.logics.get(problem.type)
        candidates = (
            logic.candidates(problem.sizes, problem.leading)
            if logic
            else heuristic_choices(problem, self.device.target)
        )
        for choice in candidates:
            yield from ((choice, solution) for solution in self._stream_k.solutions(choice, problem))

    def _refusal(self, solution: Solution, problem: Problem) -> Rejection | None:
        """Why this solution cannot run, as far as is known without compiling it."""
        kernel, config, target = KERNELS[solution.kernel], solution.configuration, self.device.target
        if solution not in self._legal:
            self._legal[solution] = next(kernel.rejections(config, solution.type, target), None)
        compiled = self._compiled.get(solution)
        known = compiled if isinstance(compiled, Rejection) else self._legal[solution]
        return known or next(kernel.rejections_for(config, problem, target), None)

    def _compile(self, solution: Solution) -> CompiledPrograms | Rejection:
        if solution not in self._compiled:
            kernel, config = KERNELS[solution.kernel], solution.configuration
            self._compiled[solution] = self._programs.compiled(self.device, kernel, config, solution.type)
        return self._compiled[solution]


def with_left_out(what: str, errors: Sequence[UserError]) -> str:
    """What is not there, with the files that could not be used: one of them may be what is meant."""
    return what + "".join(f"; left out: {error.location}: {error.what}" for error in errors)


def _asks_for_alignment(plan: Plan) -> bool:
    """Tensor maps do, and the vendor's BLAS of operands of one byte."""
    launches = [step for step in plan.steps if isinstance(step, Launch)]
    has_maps = any(isinstance(argument, TensorMapArgument) for step in launches for argument in step.arguments)
    calls = [step for step in plan.steps if isinstance(step, LibraryCall)]
    return has_maps or any(str(call.parameters.get("dtype")).startswith(("float8", "int8")) for call in calls)
