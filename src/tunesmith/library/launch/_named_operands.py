"""Launches any operation on arrays that the caller passes by operand name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tunesmith.library.arrays._libraries import (
    Arrays,
    NumPyArrays,
    TorchArrays,
    as_tensor,
    check_tensors,
    common_gpu,
    host_array,
    torch_and_gpu,
    view_of_numpy,
    view_of_torch,
    view_on_gpu,
)
from tunesmith.library.arrays._streams import current_handle, follow, handle_for, not_ready
from tunesmith.library.arrays._view import ALIGNMENT, NOT_YET, View
from tunesmith.library.call_adapters import call_adapter_of
from tunesmith.problems import OPERATIONS
from tunesmith.records import ZEROED_HEAD, Configuration, Operand, Problem, ProblemType

from ._host_launch import WORKSPACE
from ._launcher import Launcher, ReadyLaunch
from ._layout_cache import LayoutCache

if TYPE_CHECKING:
    from tunesmith.devices.cuda.device import RepeatedPlan

Views = Mapping[str, View]


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A caller's request: a problem type, arrays by operand name, sizes that no array's shape shows, and scalars."""

    type: ProblemType
    arrays: Mapping[str, Any]
    sizes: Mapping[str, int]
    scalars: Configuration

    @staticmethod
    def of(
        kind: ProblemType, named: Mapping[str, Any], sizes: Mapping[str, int], scalars: Mapping[str, Any]
    ) -> LaunchRequest:
        """The request of a call. `named` may hold scalars, too; an entry that is None counts as missing. Raises
        TypeError for an unknown scalar."""
        present = {name: x for name, x in named.items() if x is not None}
        defaults = OPERATIONS[kind.operation].scalars_of(kind.fields, str)
        numbers = {**{name: x for name, x in present.items() if name in defaults}, **scalars}
        if unknown := [name for name in numbers if name not in defaults]:
            offered = f"; there are {', '.join(defaults)}" if defaults else ""
            raise TypeError(f"{kind.name} has no scalar {unknown[0]!r}{offered}")
        arrays = {name: x for name, x in present.items() if name not in defaults}
        converted = {name: type(defaults[name])(value) for name, value in numbers.items()}
        return LaunchRequest(kind, arrays, sizes, defaults | converted)


@dataclass(frozen=True, slots=True)
class PreparedLaunch:
    """The launch for one layout of operands: the problem's operands by name, the choice with its plan, and on a GPU the
    plan made ready for any memory. `stand_ins` names the operand whose memory an unread operand gets."""

    operands: Mapping[str, Operand]
    ready: ReadyLaunch
    stand_ins: Mapping[str, str]
    plan: RepeatedPlan | None

    @property
    def outputs(self) -> dict[str, Operand]:
        return {name: operand for name, operand in self.operands.items() if operand.role != "in"}

    def allocated(self, arrays: Arrays, present: Mapping[str, Any]) -> dict[str, Any]:
        """Memory for the missing outputs."""
        return {
            name: arrays.strided(arrays.empty((out.storage_elements,), out.dtype), out.shape, out.strides)
            for name, out in self.outputs.items()
            if name not in present
        }


class NamedOperandLaunch(LayoutCache[PreparedLaunch]):
    """Launches operations on arrays by operand name. A layout's launch is prepared once."""

    def launch(self, request: LaunchRequest, stream: Any) -> Any:
        """The outputs: one, or several by name. See `Library.launch`."""
        beside = next(iter(request.arrays), "the output")
        first: Any = request.arrays.get(beside)
        torch, is_on_gpu = torch_and_gpu(first, beside, stream)
        with self._lock:
            if is_on_gpu:
                arrays = None if torch is None else TorchArrays(torch, first.device)
                prepared, allocated = self._on_gpu(arrays, request, beside, stream)
            else:
                prepared, allocated = self._on_host(torch, request, beside)
            if self._launched:
                self._launched(prepared.ready.launched)
        arrays_by_name = {**request.arrays, **allocated}
        outputs = {name: arrays_by_name[name] for name in prepared.outputs}
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def _on_host(self, torch: Any, request: LaunchRequest, beside: str) -> tuple[PreparedLaunch, Mapping[str, Any]]:
        arrays = {name: host_array(x, name, beside) for name, x in request.arrays.items()}
        launcher = self._launcher_of("")
        prepared = self._prepared(launcher, request, {name: view_of_numpy(x) for name, x in arrays.items()})
        allocated = prepared.allocated(NumPyArrays(launcher.device.alignment), arrays)
        roles = {name: operand.role for name, operand in prepared.outputs.items()}
        launcher.run(prepared.ready, {**arrays, **allocated}, roles, prepared.stand_ins)
        return prepared, allocated if torch is None else {name: as_tensor(torch, x) for name, x in allocated.items()}

    def _on_gpu(
        self, arrays: TorchArrays | None, request: LaunchRequest, beside: str, stream: Any
    ) -> tuple[PreparedLaunch, Mapping[str, Any]]:
        """Launch on torch tensors, where `arrays` allocates missing outputs; with None, on arrays of another library,
        which must have all outputs."""
        operands = request.arrays
        if arrays:
            check_tensors(arrays.torch, operands)
            views = {name: view_of_torch(x) for name, x in operands.items()}
            handle = current_handle(arrays.torch)(arrays.device.index or 0)
        else:
            handle = handle_for(operands.values(), stream)
            views = {name: view_on_gpu(x, name, handle, beside) for name, x in operands.items()}
        launcher = self._launcher_of(common_gpu(views.values()))
        with launcher.gpu.on(handle):
            capturing = launcher.gpu.capturing()
        prepared = self._prepared(launcher, request, views, capturing)
        missing = [name for name in prepared.outputs if name not in views]
        if missing and not arrays:
            raise ValueError(f"give {missing[0]}: arrays like {beside} cannot be made here")
        allocated = prepared.allocated(arrays, views) if arrays else {}
        views.update({name: view_of_torch(x) for name, x in allocated.items()})
        follow(launcher.gpu, views.values(), handle)
        plan = prepared.ready.launched.plan
        addresses = {name: view.address for name, view in views.items()}
        addresses |= {name: addresses[stand_in] for name, stand_in in prepared.stand_ins.items()}
        assert prepared.plan
        if capturing and arrays:
            # The workspace comes from the graph's own pool: a replay may run beside other work of the stream that the
            # graph was captured on.
            own = arrays.empty((plan.workspace_bytes,), "uint8")
            prepared.plan.enqueue(handle, {**addresses, WORKSPACE: own.data_ptr()}, False)
        else:
            workspace = launcher.workspaces.of(handle, plan)
            prepared.plan.enqueue(handle, {**addresses, WORKSPACE: workspace}, plan.zeroed <= ZEROED_HEAD)
        return prepared, allocated

    def _prepared(
        self, launcher: Launcher, request: LaunchRequest, views: Views, capturing: bool = False
    ) -> PreparedLaunch:
        """The launch for the layout of these operands. Overlaps depend on addresses, so they are checked at every
        call."""
        layouts = ((name, x.layout) for name, x in views.items())
        key = request.type, launcher.device, request.scalars, tuple(request.sizes.items()), *layouts
        prepared = self._entries.get(key)
        if prepared is None:
            if capturing:
                raise not_ready()
            prepared = self._remember(key, self._prepare(launcher, request, views))
        _check_overlaps(prepared, views)
        return prepared

    def _prepare(self, launcher: Launcher, request: LaunchRequest, views: Views) -> PreparedLaunch:
        if why := launcher.unused.get(request.type):
            raise why
        operation = OPERATIONS[request.type.operation]
        sizes = operation.sizes_from(request.type, {name: view.shape for name, view in views.items()}, request.sizes)
        strides = {name: tuple(step // view.itemsize for step in view.strides) for name, view in views.items()}
        problem = Problem(request.type, sizes, operation.leading_from(request.type, sizes, strides), request.scalars)
        operands = {operand.name: operand for operand in operation.operands(problem)}
        unread = [name for name in call_adapter_of(request.type).unread(problem) if name not in views]
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
            return PreparedLaunch(operands, launcher.ready(problem), stand_ins, None)
        with launcher.at_home():
            ready = launcher.ready(problem, aligned=not any(view.address % ALIGNMENT for view in views.values()))
            first = {WORKSPACE: NOT_YET} | {
                name: views[name].address if name in views else NOT_YET for name in operands
            }
            plan = launcher.gpu.repeated_plan(ready.launched.plan, ready.compiled.programs, first)
        return PreparedLaunch(operands, ready, stand_ins, plan)


def _check(operand: Operand, view: View, problem: Problem) -> None:
    """Raises TypeError for a wrong data type, ValueError for a wrong shape or strides, and for a read-only output."""
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


def _check_overlaps(prepared: PreparedLaunch, views: Views) -> None:
    for (name, view), (other, beside) in combinations(views.items(), 2):
        roles = {prepared.operands[name].role, prepared.operands[other].role}
        if roles != {"in"} and view.overlaps(beside):
            raise ValueError(f"{name} shares memory with {other}, and is written: give another array")
