"""Launches of any operation on arrays that the caller gives by the names of its operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tunesmith.devices.cuda.device import RepeatedPlan
from tunesmith.library.arrays._libraries import (
    Arrays,
    NumPyArrays,
    TorchArrays,
    as_tensor,
    check_tensors,
    common_gpu,
    host_array,
    torch_if_there,
    view_of_numpy,
    view_of_torch,
    view_on_gpu,
)
from tunesmith.library.arrays._streams import current_handle, follow, handle_for, not_ready
from tunesmith.library.arrays._view import ALIGNMENT, NOT_YET, View
from tunesmith.library.doors import door_of
from tunesmith.problems import OPERATIONS
from tunesmith.records import ZEROED_HEAD, Configuration, Operand, Problem, ProblemType

from ._launcher import WORKSPACE, Launcher, ReadyLaunch
from ._remembered import RememberedCalls

Views = Mapping[str, View]


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What a caller asks for: a problem type, arrays by the names of operands, sizes that no array tells, scalars."""

    type: ProblemType
    arrays: Mapping[str, Any]
    sizes: Mapping[str, int]
    scalars: Configuration

    @staticmethod
    def of(
        kind: ProblemType, named: Mapping[str, Any], sizes: Mapping[str, int], scalars: Mapping[str, Any]
    ) -> LaunchRequest:
        """`named` may hold scalars, too; what is None was not given. Raises TypeError for an unknown scalar."""
        given = {name: x for name, x in named.items() if x is not None}
        defaults = OPERATIONS[kind.operation].scalars_of(kind.fields, str)
        numbers = {**{name: x for name, x in given.items() if name in defaults}, **scalars}
        if unknown := [name for name in numbers if name not in defaults]:
            there = f"; there are {', '.join(defaults)}" if defaults else ""
            raise TypeError(f"{kind.name} has no scalar {unknown[0]!r}{there}")
        arrays = {name: x for name, x in given.items() if name not in defaults}
        like = {name: type(defaults[name])(value) for name, value in numbers.items()}
        return LaunchRequest(kind, arrays, sizes, defaults | like)


@dataclass(frozen=True, slots=True)
class KnownOperands:
    """What a layout comes to: the problem's operands by name, and its launch; on a GPU ready for any memory."""

    operands: Mapping[str, Operand]
    ready: ReadyLaunch
    stand_ins: Mapping[str, str]
    plan: RepeatedPlan | None

    @property
    def outputs(self) -> dict[str, Operand]:
        return {name: operand for name, operand in self.operands.items() if operand.role != "in"}

    def made(self, arrays: Arrays, given: Mapping[str, Any]) -> dict[str, Any]:
        """Memory for the outputs that were not given."""
        return {
            name: arrays.strided(arrays.empty((out.storage_elements,), out.dtype), out.shape, out.strides)
            for name, out in self.outputs.items()
            if name not in given
        }


class OperandCalls(RememberedCalls[KnownOperands]):
    """Launches by layout."""

    def launch(self, asked: LaunchRequest, stream: Any) -> Any:
        """The outputs: one, or several by name. See `Library.launch`."""
        beside = next(iter(asked.arrays), "the output")
        first: Any = asked.arrays.get(beside)
        torch, there = torch_if_there(first, beside, stream)
        with self._lock:
            if there:
                arrays = None if torch is None else TorchArrays(torch, first.device)
                known, made = self._on_gpu(arrays, asked, beside, stream)
            else:
                known, made = self._on_host(torch, asked, beside)
            if self._launched:
                self._launched(known.ready.launched)
        found = {name: asked.arrays[name] if name in asked.arrays else made[name] for name in known.outputs}
        return next(iter(found.values())) if len(found) == 1 else found

    def _on_host(self, torch: Any, asked: LaunchRequest, beside: str) -> tuple[KnownOperands, Mapping[str, Any]]:
        arrays = {name: host_array(x, name, beside) for name, x in asked.arrays.items()}
        launcher = self._launcher_of("")
        known = self._prepared(launcher, asked, {name: view_of_numpy(x) for name, x in arrays.items()})
        made = known.made(NumPyArrays(launcher.device.alignment), arrays)
        roles = {name: operand.role for name, operand in known.outputs.items()}
        launcher.run(known.ready, {**arrays, **made}, roles, known.stand_ins)
        return known, made if torch is None else {name: as_tensor(torch, x) for name, x in made.items()}

    def _on_gpu(
        self, arrays: TorchArrays | None, asked: LaunchRequest, beside: str, stream: Any
    ) -> tuple[KnownOperands, Mapping[str, Any]]:
        """Torch's tensors, which make more of their kind, or without `arrays` those of any other library."""
        given = asked.arrays
        if arrays:
            check_tensors(arrays.torch, given)
            views = {name: view_of_torch(x) for name, x in given.items()}
            handle = current_handle(arrays.torch)(arrays.device.index or 0)
        else:
            handle = handle_for(given.values(), stream)
            views = {name: view_on_gpu(x, name, handle, beside) for name, x in given.items()}
        launcher = self._launcher_of(common_gpu(views.values()))
        with launcher.gpu.on(handle):
            capturing = launcher.gpu.capturing()
        known = self._prepared(launcher, asked, views, capturing)
        missing = [name for name in known.outputs if name not in views]
        if missing and not arrays:
            raise ValueError(f"give {missing[0]}: arrays like {beside} cannot be made here")
        made = known.made(arrays, views) if arrays else {}
        views.update({name: view_of_torch(x) for name, x in made.items()})
        follow(launcher.gpu, views.values(), handle)
        plan = known.ready.launched.plan
        at = {name: view.address for name, view in views.items()}
        at |= {name: at[other] for name, other in known.stand_ins.items()}
        assert known.plan
        if capturing and arrays:
            # From the graph's own pool: a replay may run beside other work of the stream that it was captured on.
            own = arrays.empty((plan.workspace_bytes,), "uint8")
            known.plan.enqueue(handle, {**at, WORKSPACE: own.data_ptr()}, False)
        else:
            workspace = launcher.workspaces.of(handle, plan)
            known.plan.enqueue(handle, {**at, WORKSPACE: workspace}, plan.zeroed <= ZEROED_HEAD)
        return known, made

    def _prepared(
        self, launcher: Launcher, asked: LaunchRequest, views: Views, capturing: bool = False
    ) -> KnownOperands:
        """The launch for a layout. Overlaps depend on addresses, and are looked for at every call."""
        layouts = ((name, x.layout) for name, x in views.items())
        key = asked.type, launcher.device, asked.scalars, tuple(asked.sizes.items()), *layouts
        known = self._known.get(key)
        if known is None:
            if capturing:
                raise not_ready()
            known = self._remember(key, self._learn(launcher, asked, views))
        _check_overlaps(known, views)
        return known

    def _learn(self, launcher: Launcher, asked: LaunchRequest, views: Views) -> KnownOperands:
        if why := launcher.sunk.get(asked.type):
            raise why
        operation = OPERATIONS[asked.type.operation]
        sizes = operation.sizes_from(asked.type, {name: view.shape for name, view in views.items()}, asked.sizes)
        strides = {name: tuple(step // view.itemsize for step in view.strides) for name, view in views.items()}
        problem = Problem(asked.type, sizes, operation.leading_from(asked.type, sizes, strides), asked.scalars)
        operands = {operand.name: operand for operand in operation.operands(problem)}
        unread = [name for name in door_of(asked.type).unread(problem) if name not in views]
        if unknown := [name for name in views if name not in operands]:
            raise TypeError(f"{problem.type.name} has no operand {unknown[0]!r}; there are {', '.join(operands)}")
        for name, operand in operands.items():
            if name in views:
                _check(operand, views[name], problem)
            elif operand.role != "out" and name not in unread:
                shape = "x".join(map(str, operand.shape))
                raise TypeError(f"{name} is missing: {problem.type.name} reads it ({operand.dtype}, {shape})")
        stand_ins = dict.fromkeys(unread, next(name for name, operand in operands.items() if operand.role != "in"))
        if all(view.on_host for view in views.values()):
            return KnownOperands(operands, launcher.ready(problem), stand_ins, None)
        with launcher.at_home():
            ready = launcher.ready(problem, aligned=not any(view.address % ALIGNMENT for view in views.values()))
            first = {WORKSPACE: NOT_YET} | {
                name: views[name].address if name in views else NOT_YET for name in operands
            }
            plan = launcher.gpu.repeated_plan(ready.launched.plan, ready.compiled.programs, first)
        return KnownOperands(operands, ready, stand_ins, plan)


def _check(operand: Operand, view: View, problem: Problem) -> None:
    """Raises TypeError for another data type, ValueError for shapes, strides, and outputs that must not be written."""
    name, steps = operand.name, tuple(stride * view.itemsize for stride in operand.strides)
    if view.dtype != operand.dtype or not view.native:
        other = "" if view.native else " in another byte order"
        raise TypeError(f"{name} is {view.dtype}{other}; {problem.type.name} takes {operand.dtype}")
    if view.shape != operand.shape:
        sizes = ", ".join(f"{index}={size}" for index, size in zip(problem.type.indices, problem.sizes, strict=True))
        raise ValueError(f"{name} has shape {view.shape}; {problem.type.name} of {sizes} asks for {operand.shape}")
    if not view.has_strides(steps):
        what = f"{name} has strides {view.strides} in bytes, {problem.type.name} takes {steps}"
        raise ValueError(f"{what}: give a contiguous copy")
    if view.address % view.itemsize:
        raise ValueError(f"{name} lies at an address that is no multiple of {view.itemsize} bytes: give a copy")
    if operand.role != "in" and view.read_only:
        raise ValueError(f"{name} must not be written; give a writeable array")
    if operand.role != "in" and view.overlaps_itself:
        raise ValueError(f"{name} shares memory with itself: give an array whose elements lie apart")


def _check_overlaps(known: KnownOperands, views: Views) -> None:
    for (name, view), (other, beside) in combinations(views.items(), 2):
        roles = {known.operands[name].role, known.operands[other].role}
        if roles != {"in"} and view.overlaps(beside):
            raise ValueError(f"{name} shares memory with {other}, and is written: give another array")
