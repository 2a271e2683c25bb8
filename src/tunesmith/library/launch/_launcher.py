"""Turns choices into programs, plans, bound arguments and launches, for one device with its logics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from tunesmith.devices import Device
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.kernels.vendor.blas import EXTENDED_WORKSPACE
from tunesmith.library._shipped import of_siblings, packaged_types, stand_ins
from tunesmith.library.arrays._libraries import Array
from tunesmith.library.arrays._view import ALIGNMENT
from tunesmith.logic import Choice, Logic, Rule
from tunesmith.records import (
    Launch,
    LibraryCall,
    LibraryPlan,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    Solution,
    Step,
    TensorMapArgument,
    UserError,
    Value,
)

from ._foreseen import foreseen
from ._heuristic import heuristic_choices, heuristic_refusals
from ._host_launch import (
    NOTHING,
    Addresses,
    BoundPlan,
    HostLaunches,
    HostOperand,
    seconds_of_a_launch,
    seconds_of_a_repeated_launch,
)
from ._memory import Workspaces
from ._predicted import PredictedChoices
from ._programs import CompiledPrograms, Programs
from ._stream_k import StreamK

if TYPE_CHECKING:
    from tunesmith.devices.cuda.device import CudaDevice, CudaMemory

REMEMBERED = 1024
"""The most problems whose plans are kept."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """A launch: the choice, the problem, the plan that was carried out, and the plan's solution: the choice's solution
    with the parameters that were decided at run time (`_stream_k`)."""

    choice: Choice
    problem: Problem
    plan: Plan
    solution: Solution


class FloorRule(Protocol):
    """Says for a problem whether the host's BLAS is the choice (`gemm._floor`)."""

    def choice(self, problem: Problem, first: Choice | None) -> Choice | None: ...


@dataclass(slots=True)
class ReadyLaunch:
    """A problem's choice with its plan and programs. `bound` is for launches on arrays of the host."""

    launched: LaunchRecord
    compiled: CompiledPrograms
    bound: BoundPlan

    @staticmethod
    def of(launched: LaunchRecord, compiled: CompiledPrograms) -> ReadyLaunch:
        return ReadyLaunch(launched, compiled, BoundPlan(launched.plan.from_scratch, compiled.programs))


class Launcher:
    """One device with its logics, and the programs, plans and memory that calls needed so far. Not thread-safe.

    `unused` has the errors for problem types whose logic is not used on this device, `left_out` the errors of files
    that could not be used, `absent` the error if no logic is used on this device at all. `strict`: only types with a
    logic are served. `floor`, if there is one, gives problems to the host's BLAS. `packaged` are the types whose logic
    is the package's, `stand_ins` types without a logic that go by another type's.
    """

    def __init__(
        self,
        device: Device,
        logics: Mapping[ProblemType, tuple[Path, Logic]],
        unused: Mapping[ProblemType, UserError],
        left_out: Sequence[UserError] = (),
        absent: UserError | None = None,
        strict: bool = False,
    ) -> None:
        self.device, self.unused, self.left_out, self.absent = device, unused, left_out, absent
        self.strict = strict
        self.floor: FloorRule | None = None
        self.logics = {kind: logic for kind, (_, logic) in logics.items()}
        self.warned: set[str] = set()
        """The warnings that were issued, about problem types without a logic."""
        files = [file for file, _ in logics.values()]
        self._stream_k = StreamK(device.target, [file.parent for file in files])
        self._predicted = PredictedChoices(files, self.foreseen)
        self.packaged, self.stand_ins = packaged_types(logics), stand_ins(logics)
        self._of_siblings = of_siblings(logics, device.target)
        self._on_host, self._programs = HostLaunches(device), Programs()
        self._compiled: dict[Solution, CompiledPrograms | Rejection] = {}
        self._legal: dict[Solution, Rejection | None] = {}
        self._ready: dict[tuple[Problem, bool], ReadyLaunch] = {}

    @property
    def on_gpu(self) -> bool:
        """Whether the device is one whose memory other libraries use, too."""
        return self.device.target.selector.startswith("CUDA:")

    @property
    def gpu(self) -> CudaDevice:
        """The device, which must be a CUDA device."""
        assert self.on_gpu
        return cast("CudaDevice", self.device)

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

    @cached_property
    def launch_seconds(self) -> float:
        """The host's time for a launch on arrays of the host, without the kernel's own time. Measured once."""
        program = self._programs.loaded(self.device, NOTHING)
        with self.at_home():
            return seconds_of_a_launch(self._on_host, program)

    @cached_property
    def repeated_launch_seconds(self) -> float:
        """The least host's time for a launch on the same arrays of the host as before. Measured once."""
        program = self._programs.loaded(self.device, NOTHING)
        with self.at_home():
            return seconds_of_a_repeated_launch(self._on_host, program)

    def at_home(self) -> AbstractContextManager[None]:
        """A context manager. On a GPU, its body runs in the device's own context and on the device's own stream."""
        return self.gpu.on(None) if self.on_gpu else nullcontext()

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
        plan = kernel.plan(solution.configuration, problem, target, compiled.facts)
        plan = replace(plan, steps=tuple(_changed(step, changes) for step in plan.steps))
        if not aligned and _asks_for_alignment(plan):
            return None
        record = LaunchRecord(Choice(solution, VENDOR, Rule.FALLBACK), problem, plan, solution)
        return ReadyLaunch.of(record, compiled)

    def foreseen(self, problem: Problem) -> LibraryPlan | None:
        """How a GPU's BLAS would compute a problem, without computing it. None if it does not say. It is not asked for
        types whose logic was made with another release of the BLAS, which has other kernels."""
        if not self.on_gpu:
            return None
        # What cuBLAS has on its own it may use in a plain call, too.
        changes = {"workspace_bytes": EXTENDED_WORKSPACE}
        logic = self.logics.get(self.stand_ins.get(problem.type, problem.type))
        made_with = logic.document.origin.toolchain if logic else None
        return foreseen(self.gpu, lambda: self.by_vendor(problem, changes, aligned=True), made_with)

    def ready_of(self, choice: Choice, problem: Problem) -> ReadyLaunch | None:
        """A choice with its plan for a problem, for which it need not have been made. None if it cannot run it here."""
        solution = choice.solution
        compiled = self._refusal(solution, problem) or self._compile(solution)
        if isinstance(compiled, Rejection):
            return None
        plan = KERNELS[solution.kernel].plan(solution.configuration, problem, self.device.target, compiled.facts)
        return ReadyLaunch.of(LaunchRecord(choice, problem, plan, solution), compiled)

    def by_host_blas(self, problem: Problem, kernels_fit: bool = True) -> LaunchRecord | None:
        """The record of a call of the host's BLAS, if BLAS is the choice for the problem on a CPU. Nothing is loaded
        for it: NumPy makes the call. None if a kernel is the choice, and on other devices. Unless `kernels_fit`, a
        kernel would need copies of operands, so that no kernel is known to be faster."""
        if self.device.target.kind != "CPU":
            return None
        choice = None if kernels_fit or self.floor is None else self.floor.choice(problem, None)
        choice = choice or next(self.choices(problem), None)
        if choice is None or choice.solution.kernel != VENDOR:
            return None
        plan = KERNELS[VENDOR].plan(choice.solution.configuration, problem, self.device.target)
        return LaunchRecord(choice, problem, plan, choice.solution)

    def run(
        self, ready: ReadyLaunch, arrays: Mapping[str, Array], roles: Mapping[str, str], stand_ins: Mapping[str, str]
    ) -> None:
        """Carry out a plan on arrays of the host, by operand name, and wait for it. Raises LaunchError.

        `roles` are those of `Operand`, the default is "in". Strides must not be negative. An argument that the kernel
        has but does not read (a GEMM's C with beta = 0) needs no array: `stand_ins` names the operand whose memory it
        gets.
        """
        with self.at_home():
            self._on_host.run(ready.bound, arrays, roles, stand_ins)
        self._programs.keep_new(self.device)

    def run_in_place(
        self,
        ready: ReadyLaunch,
        addresses: Addresses,
        memory: Callable[[], Sequence[HostOperand]],
        stand_ins: Mapping[str, str],
    ) -> bool:
        """`run` on the operands' own memory, by its addresses; a call with the addresses of an earlier one costs the
        least. `memory` gives the operands in full if they are needed. False, and nothing is done, if the device does
        not work on the host's memory."""
        if self._on_host.again(ready.bound, addresses):
            return True
        if not self._on_host.bind(ready.bound, addresses, memory(), stand_ins):
            return False
        self._on_host.again(ready.bound, addresses)
        self._programs.keep_new(self.device)
        return True

    def close(self) -> None:
        """Release memory and programs. In a forked child nothing is released: they belong to the parent."""
        if self.device.lost:
            return
        with self.at_home():
            self._ready.clear()
            self._compiled.clear()
            self._programs.clear()
            self._on_host.close()
            if "workspaces" in vars(self):
                self.workspaces.close()
            if "unit_scale" in vars(self):
                self.device.release(self.unit_scale)

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
            return ReadyLaunch.of(LaunchRecord(choice, problem, plan, solution), compiled)
        reasons = "; ".join(f"{name}: {reason}" for name, reason in (self.refusals(problem) | refusals).items())
        raise UserError(
            problem.type.name,
            f"no solution runs {problem} on {self.device.target.name} ({reasons})",
            "tune for such sizes, or on this device",
        )

    def _candidates(self, problem: Problem) -> Iterator[tuple[Choice, Solution]]:
        """The BLAS if the floor chooses it. Then the choices of the logic, or without a logic the policy's, each with
        the solutions to launch for it."""
        if choice := self._by_floor(problem):
            yield choice, choice.solution
        yield from self._candidates_above(problem)

    def _by_floor(self, problem: Problem) -> Choice | None:
        if self.floor is None or (self.strict and problem.type not in self.logics):
            return None
        first = None
        if problem.type in self.logics:
            candidates = self._candidates_above(problem)
            first = next((choice for choice, solution in candidates if not self._refusal(solution, problem)), None)
            if first and self._stream_k.is_asked_for(first.solution):
                return None
        return self.floor.choice(problem, first)

    def _candidates_above(self, problem: Problem) -> Iterator[tuple[Choice, Solution]]:
        logic = self.logics.get(problem.type)
        if logic is None and self.strict:
            return
        if logic:
            candidates = self._of_logic(logic, problem)
        elif other := self.stand_ins.get(problem.type):
            candidates = chain(self._of_stand_in(other, problem), heuristic_choices(problem, self.device.target))
        else:
            candidates = heuristic_choices(problem, self.device.target)
        for choice in candidates:
            yield from ((choice, solution) for solution in self._stream_k.solutions(choice, problem))

    def _of_logic(self, logic: Logic, problem: Problem) -> Iterator[Choice]:
        if problem.type not in self._of_siblings:
            return self._predicted.candidates(logic, problem)
        return map(_unmeasured, self._predicted.candidates(logic, problem, problem))

    def _of_stand_in(self, other: ProblemType, problem: Problem) -> Iterator[Choice]:
        """What the logic of the `other` type, which is as fast, says of the problem."""
        for choice in self._predicted.candidates(self.logics[other], replace(problem, type=other), problem):
            name = choice.name.replace(other.name, problem.type.name, 1)
            solution = replace(choice.solution, type=problem.type)
            yield _unmeasured(replace(choice, solution=solution, name=name))

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


def _unmeasured(choice: Choice) -> Choice:
    """A choice of a logic that nobody measured on this device, or for this type."""
    return replace(choice, rule=Rule.SIBLING, expected_seconds=None, doubt=None)


def with_left_out(what: str, errors: Sequence[UserError]) -> str:
    """The message with the files that could not be used appended: the missing type may be in one of them."""
    return what + "".join(f"; left out: {error.location}: {error.what}" for error in errors)


def with_loose_sums(ready: ReadyLaunch) -> ReadyLaunch:
    """A launch whose calls of the vendor's BLAS may round parts of sums. Its choice has a name of its own. A launch
    without such calls stays as it is, and so does a call of cuBLASLt, which has no such setting."""
    from tunesmith.devices.gemm_call import GemmCall  # imported here since only the vendor's BLAS needs it

    launched = ready.launched
    steps = tuple(
        _changed(step, {"loose_sums": True})
        if isinstance(step, LibraryCall) and not GemmCall.of(step).needs_cublas_lt
        else step
        for step in launched.plan.steps
    )
    if steps == launched.plan.steps:
        return ready
    choice = replace(launched.choice, name=f"{launched.choice.name}, loose sums")
    return ReadyLaunch.of(replace(launched, choice=choice, plan=replace(launched.plan, steps=steps)), ready.compiled)


def _changed(step: Step, changes: Mapping[str, Value]) -> Step:
    """A step, with changes to the parameters if it is a library's call."""
    return replace(step, parameters=step.parameters | changes) if isinstance(step, LibraryCall) else step


def _asks_for_alignment(plan: Plan) -> bool:
    """Whether a plan needs aligned operands: tensor maps do, and the vendor's BLAS with operands of one byte."""
    launches = [step for step in plan.steps if isinstance(step, Launch)]
    has_maps = any(isinstance(argument, TensorMapArgument) for step in launches for argument in step.arguments)
    calls = [step for step in plan.steps if isinstance(step, LibraryCall)]
    return has_maps or any(str(call.parameters.get("dtype")).startswith(("float8", "int8")) for call in calls)
