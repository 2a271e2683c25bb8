"""How calls are carried out: a recipe is made once for each layout of arguments, and leaves addresses open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tunesmith.library.arrays._view import ALIGNMENT, NOT_YET, View
from tunesmith.library.launch._host_launch import WORKSPACE, HostOperand
from tunesmith.library.launch._launcher import Launcher, LaunchRecord, ReadyLaunch, with_left_out, with_loose_sums
from tunesmith.records import ZEROED_HEAD, Configuration, Problem, ProblemType, UserError, unraised_copy

from ._approach import approach_to
from ._batches import numpy_serves, vendors_batch, vendors_match
from ._checked_call import CheckedCall
from ._halves import Halved, halved, spread_out
from ._layouts import LayoutMatch, misfits, problem_of, sizes_by
from ._request import GemmRequest
from ._untuned import may_be_tuned, nearest_type, no_logic, reasons_of, unserved_type

if TYPE_CHECKING:
    from tunesmith.devices.cuda.device import RepeatedPlan

Addresses = Sequence[int]
"""The addresses of a call's `Arguments`, in their order; 0 for a missing argument."""


@dataclass(frozen=True, slots=True)
class DirectLaunch:
    """Launch the plan of one problem on the arrays as they lie; for a batch without a type of its own, once for each
    matrix (`launches`).

    `steps` are the bytes from one matrix of a, b, c and out to the next. `reads` lists the present arguments among a,
    b, c and bias: the index in a call's addresses, and the bytes from the first element to the end of the last.
    `writes` are these bytes of out. On a GPU, `plan` works for any memory, and a missing scale is read at the address
    `unit_scale`; on the host `plan` is None. For a batch that no type serves, `type_to_tune` is the type to tune.
    """

    ready: ReadyLaunch
    plan: RepeatedPlan | None
    swapped: bool
    launches: int
    steps: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]
    writes: int
    unit_scale: int
    type_to_tune: ProblemType | None = None

    def enqueue(self, stream: int, workspace: int, addresses: Addresses, out: int, on_zeros: bool = True) -> None:
        """Launch on a GPU, with the result at `out`; returns at once. Raises LaunchError.

        `on_zeros`: the workspace is one of `Workspaces`, whose head is zeroed.
        """
        arguments = operands(addresses, out, self.swapped, workspace, self.unit_scale)
        self.plan.enqueue(stream, arguments, on_zeros and self.ready.launched.plan.zeroed <= ZEROED_HEAD)  # type: ignore[union-attr]
        if self.launches > 1:
            self._enqueue_others(stream, arguments)

    def _enqueue_others(self, stream: int, arguments: dict[str, int]) -> None:
        assert self.plan
        steps = dict(zip("BACD" if self.swapped else "ABCD", self.steps, strict=True))
        for _ in range(1, self.launches):
            for name, step in steps.items():
                arguments[name] += step
            self.plan.enqueue(stream, arguments, on_zeros=True)

    def host_operands(self, addresses: Addresses) -> list[HostOperand]:
        """Where the operands lie on the host, by the problem's operand names. Without a bias."""
        names = ("B", "A", "C") if self.swapped else ("A", "B", "C")
        read = [HostOperand(names[index], addresses[index], span, False) for index, span in self.reads]
        return [*read, HostOperand("D", addresses[-1], self.writes, True)]

    def overwrites(self, addresses: Addresses) -> bool:
        """Whether the output lies where an operand is read."""
        out = addresses[-1]
        end = out + self.writes
        for index, span in self.reads:  # noqa: SIM110 (any() takes three times as long)
            if addresses[index] < end and out < addresses[index] + span:
                return True
        return False


def operands(addresses: Addresses, out: int, swapped: bool, workspace: int, unit_scale: int) -> dict[str, int]:
    """The addresses by the problem's operand names. With beta = 0 nothing reads C, but the kernel has an argument for C
    and gets the output's address."""
    a, b, c, bias, scale_a, scale_b, _ = addresses
    if swapped:
        a, b, scale_a, scale_b = b, a, scale_b, scale_a
    arguments = {WORKSPACE: workspace, "A": a, "B": b, "C": c or out, "D": out}
    if bias:
        arguments["Bias"] = bias
    if unit_scale:
        arguments["ScaleA"], arguments["ScaleB"] = scale_a or unit_scale, scale_b or unit_scale
    return arguments


@dataclass(frozen=True, slots=True)
class Copied:
    """Copy some arguments first. `axes` has the arguments with the order of their copies' axes, the slowest first;
    `why` is the reason. The `shared` argument, which serves the whole batch, is copied as one matrix; the other
    arguments are copied with a matrix for each matrix of the batch."""

    axes: Mapping[str, tuple[int, int, int]]
    shared: str
    why: str


@dataclass(frozen=True, slots=True)
class Unfused:
    """No type computes the whole request: a kernel computes the part `computed`, then the arrays' library computes the
    `remaining` part. `fused_type` is the type of the whole, to tune if a kernel computes it (`has_kernel`)."""

    computed: GemmRequest
    remaining: GemmRequest
    fused_type: ProblemType
    has_kernel: bool = True


@dataclass(frozen=True, slots=True)
class ByBlas:
    """Compute the whole call by the host's BLAS, through NumPy, since BLAS is the choice for its problem. `shared` is
    the argument that serves the whole batch, if the batch is one tall or wide product."""

    launched: LaunchRecord
    shared: str


@dataclass(frozen=True, slots=True)
class ByNumPy:
    """Compute the whole call by NumPy: a batch on the host that no type serves. `type_to_tune` is the type to tune, if
    a kernel computes it (`has_kernel`)."""

    type_to_tune: ProblemType
    has_kernel: bool = True


@dataclass(frozen=True, slots=True)
class Empty:
    """The sums have no terms, or the result has no elements."""


Recipe = DirectLaunch | Copied | Unfused | ByBlas | ByNumPy | Halved | Empty

ROWS_FIRST = (0, 1, 2)


def recipe_for(launcher: Launcher, unfolded_call: CheckedCall) -> Recipe:
    """The recipe for calls with this layout. Compiles programs, allocates memory and waits if need be. Raises UserError
    if no logic and no policy has a kernel for the data types, if no solution runs, and in a strict library if no logic
    is for the product or its batch."""
    if 0 in unfolded_call.sizes:
        return Empty()
    call, shared = _folded(unfolded_call)
    if (approach := approach_to(launcher, call)) is None and launcher.strict:
        raise _not_tuned(launcher, nearest_type(call))
    if approach is None:
        if (kind := unserved_type(launcher, call)) and numpy_serves(launcher, call):
            return ByNumPy(kind, has_kernel=False)
        raise _unserved(call, launcher)
    match, part, to_copy = approach
    if set(to_copy) - {shared} and call is not unfolded_call:
        # The whole batch is copied. It stays one tall matrix, unless there is a type for batches.
        unfolded = approach_to(launcher, unfolded_call)
        if unfolded and not unfolded[0].one_by_one:
            call, shared = unfolded_call, ""
            match, part, to_copy = unfolded
    if match.one_by_one and launcher.strict:
        raise _not_tuned(launcher, call.request.type_like(match.type, batched=True))
    if match.one_by_one and numpy_serves(launcher, call):
        return ByNumPy(call.request.type_like(match.type, batched=True))
    if match.computed != call.request:
        return _unfused(launcher, call.request, match)
    if by_blas := _by_blas(launcher, part, match, shared):
        return by_blas
    if call.request.bias and not _is_contiguous(call.extra["Bias"]):
        return Copied({"bias": ROWS_FIRST}, shared, "its elements do not follow one another")
    if match.one_by_one and (by_vendor := _by_vendor(launcher, call, match)):
        return by_vendor
    axes = {name: _unfolded(order, shared if name != shared else "") for name, order in match.axes.items()}
    if to_copy and not match.one_by_one and (as_it_lies := _batch_as_it_lies(launcher, call, match)):
        return as_it_lies
    if to_copy:
        nearest = "the nearest type with a logic" if match.type in launcher.logics else "the nearest type"
        why = f"{match.type.name}, {nearest}, does not take it as it lies"
        return Copied({name: axes[name] for name in to_copy}, shared, why)
    try:
        with launcher.at_home():
            if direct := _direct(launcher, call, part, match):
                return direct
    except UserError:
        most = launcher.device.target.max_allocation_bytes
        if call.out.on_host and (parts := halved(unfolded_call, most)):
            return parts
        if call.out.on_host and (spread := spread_out(call, most)):
            return Copied({name: axes[name] for name in spread}, shared, "no buffer of the device holds it as it lies")
        raise
    why = f"no solution takes addresses that are no multiples of {ALIGNMENT} bytes"
    return Copied({name: axes.get(name, ROWS_FIRST) for name in _unaligned(call)}, shared, why)


def _direct(launcher: Launcher, call: CheckedCall, part: CheckedCall, match: LayoutMatch) -> DirectLaunch | None:
    """The launch on the arrays as they lie. None if no solution runs because of an address. Raises UserError if none
    runs for another reason."""
    problem = problem_of(part, match)
    misplaced, uneven = _misplaced(call, match.one_by_one)
    on_host = call.out.on_host
    try:
        ready = launcher.ready(problem, aligned=on_host or not (misplaced or uneven))
    except UserError:
        if on_host or uneven or not misplaced:
            raise
        launcher.ready(problem)  # raises where the address is not the reason
        return None
    return _bound(launcher, call, match, ready)


def _by_blas(launcher: Launcher, part: CheckedCall, match: LayoutMatch, shared: str) -> ByBlas | None:
    """The product by the host's BLAS, if BLAS is the choice for it. BLAS takes most layouts as they lie, and what
    copies for a kernel would cost is not known."""
    if not part.out.on_host or match.one_by_one:
        return None
    if misfits(part, match.type, match.swapped):
        scalars = Configuration({"alpha": part.alpha, "beta": part.beta})
        record = launcher.by_host_blas(Problem(match.type, sizes_by(part, match), (), scalars), kernels_fit=False)
    else:
        record = launcher.by_host_blas(problem_of(part, match))
    return ByBlas(record, shared) if record else None


def _by_vendor(launcher: Launcher, call: CheckedCall, match: LayoutMatch) -> DirectLaunch | Copied | None:
    """One call of the vendor's BLAS for a batch that no type serves; None if the vendor's BLAS does not take it."""
    vendors = vendors_match(launcher, call, match)
    if vendors is None:
        return None
    if to_copy := misfits(call.first().only(match.computed), vendors.type, vendors.swapped):
        shared = next((name for name in to_copy if name != "out" and call.matrices[name].strides[0] == 0), "")
        why = "the vendor's BLAS, which serves batches without a logic, does not take it as it lies"
        return Copied({name: vendors.axes[name] for name in to_copy}, shared, why)
    direct = _vendors_call(launcher, call, vendors)
    if direct is None:
        return None
    kind = direct.ready.launched.problem.type
    # A type for batches would not take a batch whose matrices lie at another distance, so that nothing is to tune.
    has_natural_strides = not misfits(call.only(match.computed), kind, vendors.swapped)
    return replace(direct, type_to_tune=kind) if has_natural_strides else direct


def _batch_as_it_lies(launcher: Launcher, call: CheckedCall, match: LayoutMatch) -> DirectLaunch | None:
    """One call of the vendor's BLAS for a batch on a GPU that would have to be copied for the match's type, most often
    since its matrices lie at another distance. None if the vendor's BLAS would need copies, too."""
    if call.out.on_host or call.out.shape[0] == 1 or launcher.strict:
        return None
    vendors = vendors_match(launcher, call, match)
    return _vendors_call(launcher, call, vendors) if vendors and not vendors.copied_bytes else None


def _vendors_call(launcher: Launcher, call: CheckedCall, vendors: LayoutMatch) -> DirectLaunch | None:
    """The call for a whole batch; None if the vendor's BLAS does not take it (`vendors_batch`)."""
    with launcher.at_home():
        aligned = call.out.on_host or not any(_misplaced(call, batch=True))
        ready = vendors_batch(launcher, call, vendors, aligned)
        return _bound(launcher, call, replace(vendors, one_by_one=False), ready) if ready else None


def _misplaced(call: CheckedCall, batch: bool) -> tuple[bool, bool]:
    """Whether an argument's address is no multiple of ALIGNMENT, and whether the address of a later matrix of a batch
    is none. A copy mends only the former: it begins at an aligned address, but its matrices follow without gaps."""
    matrices = (call.a, call.b, call.c or call.out, call.out)
    return bool(_unaligned(call)), batch and any(x.strides[0] % ALIGNMENT for x in matrices)


def _bound(
    launcher: Launcher,
    call: CheckedCall,
    match: LayoutMatch,
    ready: ReadyLaunch,
) -> DirectLaunch:
    """The launch of `ready` for calls with this layout."""
    matrices = (call.a, call.b, call.c or call.out, call.out)
    read = call.a, call.b, call.c, call.extra.get("Bias")
    unit_scale, plan = launcher.unit_scale.address if call.request.scaled else 0, None
    if not call.out.on_host:
        extra = [call.extra[name].address if name in call.extra else 0 for name in ("Bias", "ScaleA", "ScaleB")]
        first = operands(
            (*(x.address for x in matrices[:3]), *extra, 0), call.out.address, match.swapped, NOT_YET, unit_scale
        )
        if call.loose_sums:
            ready = with_loose_sums(ready)
        plan = launcher.gpu.repeated_plan(ready.launched.plan, ready.compiled.programs, first)
    return DirectLaunch(
        ready=ready,
        plan=plan,
        swapped=match.swapped,
        launches=call.out.shape[0] if match.one_by_one else 1,
        steps=tuple(x.strides[0] for x in matrices),
        reads=tuple((index, x.span) for index, x in enumerate(read) if x is not None),
        writes=call.out.span,
        unit_scale=unit_scale,
    )


def _folded(call: CheckedCall) -> tuple[CheckedCall, str]:
    """A batch that shares b as one tall product, or a batch that shares a as one wide product, if the arrays' layouts
    allow it; and the name of the shared argument, else the call itself and ""."""
    if call.out.shape[0] > 1 and call.b.strides[0] == 0 and (tall := _tall(call)):
        return tall, "b"
    transposed = call.transposed()
    if call.out.shape[0] > 1 and call.a.strides[0] == 0 and not call.request.bias and (tall := _tall(transposed)):
        return tall.transposed(), "a"
    return call, ""


def _tall(call: CheckedCall) -> CheckedCall | None:
    """A batch that shares b as one tall product; None if another argument's matrices do not lie one below the other."""
    matrices = {"b": call.b.first()}
    for name, x in call.matrices.items():
        if name != "b":
            if (tall := x.one_below_the_other()) is None:
                return None
            matrices[name] = tall
    return call.with_matrices(matrices)


def _unfolded(axes: tuple[int, int, int], shared: str) -> tuple[int, int, int]:
    """The axes of one tall matrix (`shared` is b) or one wide matrix (`shared` is a), as axes of the batch that the
    matrix is made of."""
    rows_first = axes.index(1) < axes.index(2)
    if shared == "b":
        return ROWS_FIRST if rows_first else (2, 0, 1)
    return (1, 0, 2) if shared and rows_first else axes


def _unfused(launcher: Launcher, request: GemmRequest, match: LayoutMatch) -> Unfused:
    """The recipe by a match that computes only a part of the request."""
    computed = match.computed
    remaining = replace(
        request,
        beta=request.beta and not computed.beta,
        bias=request.bias and not computed.bias,
        scaled=request.scaled and not computed.scaled,
    )
    fused_type = request.type_like(match.type, batched=match.one_by_one)
    return Unfused(computed, remaining, fused_type, may_be_tuned(launcher, fused_type))


def _not_tuned(launcher: Launcher, kind: ProblemType) -> UserError:
    """A strict library's error for a product that no logic is for."""
    message = with_left_out(no_logic(launcher, kind), launcher.left_out)
    return UserError("matmul", f"{message}, and the library is strict", f"tune {kind.name}, or load it without strict")


def _unserved(call: CheckedCall, launcher: Launcher) -> UserError:
    """The error for a product that no kernel computes: no usable logic has a type for it, and policies have no kernel.
    If an unusable logic has such a type, the error says why that logic cannot be used."""
    request, kind = call.request, unserved_type(launcher, call)
    if launcher.absent and not kind:
        return unraised_copy(launcher.absent)
    for attempt in request.attempts:
        for unused_type, error in launcher.unused.items():
            if attempt.served_by(unused_type):
                return unraised_copy(error)
    what = request.operands
    if request.dest != request.data:
        what += f" operands and a {request.result} result"
    names = ", ".join(kind.name for kind in launcher.logics)
    offered = f"; there are {names}" if names else ""
    message = with_left_out(f"no logic serves {what}{offered}", launcher.left_out)
    if kind:
        message += f"; without a logic nothing computes {kind.name} on {launcher.device.target.name}"
        message += f" ({reasons_of(launcher, kind)})"
    return UserError("matmul", message, "give another data type" if kind else "tune a GEMM of that type")


def _is_contiguous(bias: View) -> bool:
    return bias.native and (bias.shape[0] == 1 or bias.strides[0] == bias.itemsize)


def _unaligned(call: CheckedCall) -> list[str]:
    """The arguments at addresses that are no multiples of ALIGNMENT."""
    views = {**call.matrices, **({"bias": call.extra["Bias"]} if "Bias" in call.extra else {})}
    return [name for name, x in views.items() if x.address % ALIGNMENT]
