"""Solutions on a live device: compiled at first use, bound to memory, launched."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.devices import Buffer, Device, Prepared, Program
from tunesmith.kernels import KERNELS, Kernel
from tunesmith.library.arrays._matrices import Stored
from tunesmith.logic import Choice, Logic
from tunesmith.records import (
    Binary,
    CompiledFacts,
    GemmCall,
    Launch,
    Module,
    Plan,
    Problem,
    Rejection,
    Solution,
    TensorMapArgument,
    UserError,
)
from tunesmith.toolchains import TOOLCHAINS, CompileError

from ._stream_k import StreamK

REMEMBERED = 1024
"""Problems whose plans are kept."""

ALIGNMENT = 16
"""Bytes to which the addresses of operands may have to be aligned: of tensor maps, and where a program was promised it.
"""

Storage = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Launched:
    """What was launched: the choice, the problem it was for, the plan that was carried out, and the solution that it is
    of: the choice's, with what was decided at run time (`_stream_k`)."""

    choice: Choice
    problem: Problem
    plan: Plan
    solution: Solution


@dataclass(frozen=True, slots=True)
class Compiled:
    """A solution's programs, one for each module, and what the compiler said of them. `aligned` says that they read
    memory in pieces of ALIGNMENT bytes."""

    programs: tuple[Program, ...]
    facts: tuple[CompiledFacts, ...]
    aligned: bool


@dataclass(slots=True)
class Ready:
    """A problem's choice with its plan; `prepared` is bound to the pool of that `generation`."""

    launched: Launched
    compiled: Compiled
    prepared: Prepared | None = None
    generation: int = -1


class Launcher:
    """One device with the programs, plans and memory that were needed on it so far. Not for several threads at once.

    `places` are the folders that the logics came from.
    """

    def __init__(self, device: Device, places: Collection[Path] = ()) -> None:
        self.device = device
        self._stream_k = StreamK(device.target, places)
        self._pool = _Pool(device)
        self._programs: dict[str, tuple[Program, Binary]] = {}
        self._compiled: dict[Solution, Compiled | Rejection] = {}
        self._legal: dict[Solution, Rejection | None] = {}
        self._ready: dict[tuple[Problem, bool], Ready] = {}

    def choices(self, logic: Logic, problem: Problem) -> Iterator[Choice]:
        """The logic's candidates without those that are known not to run this problem here."""
        return (choice for choice, solution in self._candidates(logic, problem) if not self._refusal(solution, problem))

    def launch(self, logic: Logic, problem: Problem, reads: Mapping[str, Storage], d: Stored) -> Launched:
        """Carry out the first choice that compiles, and wait. `reads` are A, B and, where beta is not 0, C; `d` is
        written. Raises UserError when nothing runs, LaunchError when the device fails."""
        ready = self.ready(logic, problem)
        read_only = {name: _read_only(storage) for name, storage in reads.items()}
        wrapped = {name: self.device.wrap(storage) for name, storage in {**read_only, "D": d.storage}.items()}
        try:
            self._carry_out(ready, {name: buffer for name, buffer in wrapped.items() if buffer is not None}, reads, d)
        finally:
            self.device.release(*(buffer for buffer in wrapped.values() if buffer is not None))
        return ready.launched

    def ready(self, logic: Logic, problem: Problem, aligned: bool = True) -> Ready:
        """The first choice that compiles, with its plan; where operands are not `aligned` to ALIGNMENT bytes, the first
        that needs no such thing. Raises UserError when nothing runs."""
        ready = self._ready.get((problem, aligned))
        if ready is None:
            if len(self._ready) >= REMEMBERED:
                self._ready.clear()
            ready = self._ready[problem, aligned] = self._first(logic, problem, aligned)
        return ready

    def close(self) -> None:
        """Give memory and programs back."""
        self._ready.clear()
        self._programs.clear()
        self._pool.close()

    def _carry_out(self, ready: Ready, wrapped: Mapping[str, Buffer], reads: Mapping[str, Storage], d: Stored) -> None:
        sizes = {name: storage.nbytes for name, storage in {**reads, "D": d.storage}.items() if name not in wrapped}
        plan = ready.launched.plan
        buffers = {**self._pool.buffers({**sizes, _WORKSPACE: plan.workspace_bytes}), **wrapped}
        for name, storage in reads.items():
            if name not in wrapped:
                self.device.write(buffers[name], storage.view(np.uint8))
        prepared = self._prepared(ready, buffers, reusable=not wrapped)
        prepared.enqueue()
        self.device.synchronize()
        if "D" not in wrapped:
            d.fill(self.device.read(buffers["D"], d.storage.nbytes).view(d.storage.dtype))

    def _prepared(self, ready: Ready, buffers: Mapping[str, Buffer], reusable: bool) -> Prepared:
        if reusable and ready.prepared is not None and ready.generation == self._pool.generation:
            return ready.prepared
        # With beta = 0 nothing reads C, but a kernel has an argument for it.
        operands = {"C": buffers["D"], **{name: buffer for name, buffer in buffers.items() if name != _WORKSPACE}}
        programs = ready.compiled.programs
        prepared = self.device.prepare(ready.launched.plan.from_scratch, programs, operands, buffers.get(_WORKSPACE))
        if reusable:
            ready.prepared, ready.generation = prepared, self._pool.generation
        return prepared

    def _first(self, logic: Logic, problem: Problem, aligned: bool) -> Ready:
        why: list[str] = []
        for choice, solution in self._candidates(logic, problem):
            refusal = self._refusal(solution, problem)
            compiled = refusal or self._compile(solution)
            if isinstance(compiled, Rejection):
                why.append(f"{choice.name}: {compiled}")
                continue
            plan = _kernel(solution).plan(solution.configuration, problem, self.device.target, compiled.facts)
            if not aligned and (compiled.aligned or _asks_for_alignment(plan)):
                why.append(f"{choice.name}: alignment ({ALIGNMENT} bytes, of every operand's address)")
                continue
            return Ready(Launched(choice, problem, plan, solution), compiled)
        raise UserError(
            problem.type.name,
            f"no solution runs {problem} on {self.device.target.name} ({'; '.join(why)})",
            "tune for such sizes, or on this device",
        )

    def _candidates(self, logic: Logic, problem: Problem) -> Iterator[tuple[Choice, Solution]]:
        """The logic's, with what each may be launched as."""
        for choice in logic.candidates(problem.sizes, problem.leading):
            yield from ((choice, solution) for solution in self._stream_k.solutions(choice, problem))

    def _refusal(self, solution: Solution, problem: Problem) -> Rejection | None:
        """Why this solution cannot run, as far as is known without compiling it."""
        target = self.device.target
        if solution not in self._legal:
            kernel = _kernel(solution)
            self._legal[solution] = next(kernel.rejections(solution.configuration, solution.type, target), None)
        compiled = self._compiled.get(solution)
        known = compiled if isinstance(compiled, Rejection) else self._legal[solution]
        return known or next(_kernel(solution).rejections_for(solution.configuration, problem, target), None)

    def _compile(self, solution: Solution) -> Compiled | Rejection:
        if solution not in self._compiled:
            self._compiled[solution] = self._compile_now(solution)
        return self._compiled[solution]

    def _compile_now(self, solution: Solution) -> Compiled | Rejection:
        kernel, config = _kernel(solution), solution.configuration
        modules = kernel.modules(config, solution.type)
        try:
            loaded = [self._load(module) for module in modules]
        except CompileError as error:
            return Rejection(error.reason, error.log)
        facts = tuple(fact for _, binary in loaded for fact in binary.facts)
        useless = next(kernel.rejections_compiled(config, facts, self.device.target), None)
        programs = tuple(program for program, _ in loaded)
        return useless or Compiled(programs, facts, aligned=any(map(_promised, modules)))

    def _load(self, module: Module) -> tuple[Program, Binary]:
        digest = module.digest()
        if digest not in self._programs:
            toolchain = TOOLCHAINS[module.language]
            if reason := toolchain.unavailable():
                raise CompileError("no compiler", reason)
            binary = toolchain.compile(module, self.device.target)
            self._programs[digest] = self.device.load(binary), binary
        return self._programs[digest]


def _promised(module: Module) -> bool:
    """Whether a Triton module was promised that addresses are multiples of 16 (`toolchains.triton` has the words)."""
    pairs: Any = module.constants.get("signature", ())
    pointers = {name for name, kind in pairs if kind.startswith("*")}
    promised: Any = module.constants.get("divisible_by_16", ())
    return not pointers.isdisjoint(promised)


def _asks_for_alignment(plan: Plan) -> bool:
    """Tensor maps do, and the vendor's BLAS of operands of one byte."""
    launches = [step for step in plan.steps if isinstance(step, Launch)]
    has_maps = any(isinstance(argument, TensorMapArgument) for step in launches for argument in step.arguments)
    calls = [step for step in plan.steps if isinstance(step, GemmCall)]
    return has_maps or any(call.dtype.startswith(("float8", "int8")) for call in calls)


def _read_only(storage: Storage) -> Storage:
    """So wrapped, the device need not show the host what it cannot have written."""
    view = storage.view()
    view.flags.writeable = False
    return view


class _Pool:
    """One buffer for each operand and the workspace, as large as the largest so far: calls come one at a time."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._held: dict[str, tuple[int, Buffer]] = {}
        self.generation = 0
        """Counts up whenever a buffer is replaced, so that what is bound to the old one is not used again."""

    def buffers(self, sizes: Mapping[str, int]) -> dict[str, Buffer]:
        """Buffers of at least these sizes in bytes; none for a size of zero."""
        return {name: self._at_least(name, size) for name, size in sizes.items() if size}

    def close(self) -> None:
        self._device.release(*(buffer for _, buffer in self._held.values()))
        self._held.clear()

    def _at_least(self, name: str, size: int) -> Buffer:
        held = self._held.get(name)
        if held and held[0] >= size:
            return held[1]
        if held:
            del self._held[name]
            self.generation += 1
            self._device.release(held[1])
        made = self._device.allocate(size)
        self._held[name] = size, made
        return made


_WORKSPACE = "workspace"


def _kernel(solution: Solution) -> Kernel:
    try:
        return KERNELS[solution.kernel]
    except KeyError as error:
        raise UserError(
            solution.type.name, str(error.args[0]), "use the tunesmith that wrote the logic, or register your kernel"
        ) from None
