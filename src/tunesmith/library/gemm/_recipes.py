"""What a call comes to, found out once for each layout of its arguments; addresses are left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.devices.cuda.device import RepeatedPlan
from tunesmith.library.arrays._view import ALIGNMENT, NOT_YET, View
from tunesmith.library.launch._launcher import WORKSPACE, Launcher, ReadyLaunch, with_left_out
from tunesmith.problems.gemm import is_interleaved
from tunesmith.records import ZEROED_HEAD, ProblemType, UserError, fresh

from ._batches import numpy_serves, vendors_batch, vendors_match
from ._call import Call
from ._halves import Halved, halved, spread_out
from ._layouts import LayoutMatch, best_match, misfits, problem_of
from ._request import GemmRequest
from ._untuned import reasons_of, unserved_type, untuned_match

Addresses = Sequence[int]
"""Of a call's `Arguments`, in their order; 0 for what was not given."""


@dataclass(frozen=True, slots=True)
class DirectLaunch:
    """The plan of one problem, on memory as it lies; for a batch that has no type of its own, once for each matrix.

    `steps` are the bytes from one matrix of a, b, c and out to the next. `reads` has, of those of a, b, c and bias that
    are given, the indices among a call's addresses, with the bytes from the first element to the end of the last;
    `writes` are those of out. On a GPU, `plan` is ready for any memory, and a scale that is not given lies at `one`;
    on the host there is no plan. For a batch that no type serves, `instead` is the type to tune.
    """

    ready: ReadyLaunch
    plan: RepeatedPlan | None
    swapped: bool
    launches: int
    steps: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]
    writes: int
    one: int
    instead: ProblemType | None = None

    def enqueue(self, stream: int, workspace: int, at: Addresses, out: int, on_zeros: bool = True) -> None:
        """Start it on a GPU, with the result at `out`; returns at once. Raises LaunchError.

        `on_zeros` says that the workspace is one of `Workspaces`, whose head is zeroed.
        """
        named = operands(at, out, self.swapped, workspace, self.one)
        self.plan.enqueue(stream, named, on_zeros and self.ready.launched.plan.zeroed <= ZEROED_HEAD)  # type: ignore[union-attr]
        if self.launches > 1:
            self._enqueue_others(stream, named)

    def _enqueue_others(self, stream: int, named: dict[str, int]) -> None:
        assert self.plan
        steps = dict(zip("BACD" if self.swapped else "ABCD", self.steps, strict=True))
        for _ in range(1, self.launches):
            for name, step in steps.items():
                named[name] += step
            self.plan.enqueue(stream, named, on_zeros=True)

    def overwrites(self, at: Addresses) -> bool:
        """Whether what is written lies where something is read."""
        out = at[-1]
        end = out + self.writes
        for index, span in self.reads:  # noqa: SIM110 (any() takes three times as long)
            if at[index] < end and out < at[index] + span:
                return True
        return False


def operands(at: Addresses, out: int, swapped: bool, workspace: int, one: int) -> dict[str, int]:
    """Addresses by the problem's names. With beta = 0 nothing reads C, but a kernel has an argument for it."""
    a, b, c, bias, scale_a, scale_b, _ = at
    if swapped:
        a, b, scale_a, scale_b = b, a, scale_b, scale_a
    named = {WORKSPACE: workspace, "A": a, "B": b, "C": c or out, "D": out}
    if bias:
        named["Bias"] = bias
    if one:
        named["ScaleA"], named["ScaleB"] = scale_a or one, scale_b or one
    return named


@dataclass(frozen=True, slots=True)
class Copied:
    """Arguments that have to be copied first, each with its axes from the slowest to the fastest, and why. The `shared`
    argument, which serves a whole batch, is copied as one matrix; the others for each of the batch."""

    axes: Mapping[str, tuple[int, int, int]]
    shared: str
    why: str


@dataclass(frozen=True, slots=True)
class Unfused:
    """No type does all of it: `done` comes first, `left` follows. `like` would be the type to tune."""

    done: GemmRequest
    left: GemmRequest
    like: ProblemType


@dataclass(frozen=True, slots=True)
class ByNumPy:
    """A batch on the host that no type serves: all of the call by NumPy. `instead` is the type to tune, unless no
    kernel `is_there` that computes it."""

    instead: ProblemType
    is_there: bool = True


@dataclass(frozen=True, slots=True)
class Empty:
    """There are no terms to add up, or no sums."""


Recipe = DirectLaunch | Copied | Unfused | ByNumPy | Halved | Empty

ROWS_FIRST = (0, 1, 2)


def recipe(launcher: Launcher, given: Call) -> Recipe:
    """Compiles, allocates, waits where it must. Raises UserError where no logic serves the types and no policy has a
    kernel for them, or nothing runs."""
    if 0 in given.sizes:
        return Empty()
    call, shared = _folded(given)
    if (approach := _approach(launcher, call)) is None:
        if (kind := unserved_type(launcher, call)) and numpy_serves(launcher, call):
            return ByNumPy(kind, is_there=False)
        raise _unserved(call, launcher)
    match, part, wrong = approach
    if set(wrong) - {shared} and call is not given:
        # Copies come for the whole batch: as one tall matrix, unless there is a type of batches.
        unfolded = _approach(launcher, given)
        if unfolded and not unfolded[0].one_by_one:
            call, shared = given, ""
            match, part, wrong = unfolded
    if match.one_by_one and numpy_serves(launcher, call):
        return ByNumPy(call.request.type_like(match.type, batched=True))
    if match.done != call.request:
        return _unfused(call.request, match)
    if match.one_by_one and (by_vendor := _by_vendor(launcher, call, match)):
        return by_vendor
    axes = {name: _unfolded(order, shared if name != shared else "") for name, order in match.axes.items()}
    if wrong:
        nearest = "the nearest type with a logic" if match.type in launcher.logics else "the nearest type"
        why = f"{match.type.name}, {nearest}, does not take it as it lies"
        return Copied({name: axes[name] for name in wrong}, shared, why)
    if call.request.bias and not _adjacent(call.extra["Bias"]):
        return Copied({"bias": ROWS_FIRST}, shared, "its elements do not follow one another")
    try:
        with launcher.at_home():
            if direct := _direct(launcher, call, part, match):
                return direct
    except UserError:
        most = launcher.device.target.max_allocation_bytes
        if call.out.on_host and (parts := halved(given, most)):
            return parts
        if call.out.on_host and (spread := spread_out(call, most)):
            return Copied({name: axes[name] for name in spread}, shared, "no buffer of the device holds it as it lies")
        raise
    why = f"no solution takes addresses that are no multiples of {ALIGNMENT} bytes"
    return Copied({name: axes.get(name, ROWS_FIRST) for name in _unaligned(call)}, shared, why)


def _approach(launcher: Launcher, call: Call) -> tuple[LayoutMatch, Call, list[str]] | None:
    """The best match, what it launches for at once, and the arguments that do not fit: of a type with a logic, else of
    one that policies choose kernels for. On a GPU no batch is interleaved for the sake of a type that wants it so. None
    where nothing computes the product."""
    logics = launcher.logics
    match = best_match(call, logics)
    if match and match.copied and is_interleaved(match.type) and call.out.shape[0] > 1 and not call.out.on_host:
        match = best_match(call, {kind: logic for kind, logic in logics.items() if not is_interleaved(kind)})
    match = match or untuned_match(launcher, call)
    if match is None:
        return None
    part = call.first() if match.one_by_one else call
    return match, part, misfits(part.only(match.done), match.type, match.swapped)


def _direct(launcher: Launcher, call: Call, part: Call, match: LayoutMatch) -> DirectLaunch | None:
    """None where an address is the reason that nothing runs."""
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


def _by_vendor(launcher: Launcher, call: Call, match: LayoutMatch) -> DirectLaunch | Copied | None:
    """One call of the vendor's BLAS for a batch that no type serves, where it takes it."""
    vendors = vendors_match(launcher, call, match)
    if vendors is None:
        return None
    if wrong := misfits(call.first().only(match.done), vendors.type, vendors.swapped):
        shared = next((name for name in wrong if name != "out" and call.matrices[name].strides[0] == 0), "")
        why = "the vendor's BLAS, which serves batches without a logic, does not take it as it lies"
        return Copied({name: vendors.axes[name] for name in wrong}, shared, why)
    with launcher.at_home():
        aligned = call.out.on_host or not any(_misplaced(call, batch=True))
        ready = vendors_batch(launcher, call, vendors, aligned)
        if ready is None:
            return None
        return _bound(launcher, call, replace(vendors, one_by_one=False), ready, ready.launched.problem.type)


def _misplaced(call: Call, batch: bool) -> tuple[bool, bool]:
    """Whether addresses are no multiples of ALIGNMENT, and whether those of later matrices of a batch are not: copies
    lie at aligned addresses, but their matrices follow one another wherever that is."""
    matrices = (call.a, call.b, call.c or call.out, call.out)
    return bool(_unaligned(call)), batch and any(x.strides[0] % ALIGNMENT for x in matrices)


def _bound(
    launcher: Launcher, call: Call, match: LayoutMatch, ready: ReadyLaunch, instead: ProblemType | None = None
) -> DirectLaunch:
    """A plan for the memory of such calls."""
    matrices = (call.a, call.b, call.c or call.out, call.out)
    read = call.a, call.b, call.c, call.extra.get("Bias")
    one, plan = 0, None
    if not call.out.on_host:
        one = launcher.one.address if call.request.scaled else 0
        extra = [call.extra[name].address if name in call.extra else 0 for name in ("Bias", "ScaleA", "ScaleB")]
        first = operands((*(x.address for x in matrices[:3]), *extra, 0), call.out.address, match.swapped, NOT_YET, one)
        plan = launcher.gpu.repeated_plan(ready.launched.plan, ready.compiled.programs, first)
    return DirectLaunch(
        ready=ready,
        plan=plan,
        swapped=match.swapped,
        launches=call.out.shape[0] if match.one_by_one else 1,
        steps=tuple(x.strides[0] for x in matrices),
        reads=tuple((index, x.span) for index, x in enumerate(read) if x is not None),
        writes=call.out.span,
        one=one,
        instead=instead,
    )


def _folded(call: Call) -> tuple[Call, str]:
    """A batch that shares b as one tall product, and one that shares a as one wide product, where they lie so; and
    which is shared, or nothing."""
    if call.out.shape[0] > 1 and call.b.strides[0] == 0 and (tall := _tall(call)):
        return tall, "b"
    turned = call.transposed()
    if call.out.shape[0] > 1 and call.a.strides[0] == 0 and not call.request.bias and (tall := _tall(turned)):
        return tall.transposed(), "a"
    return call, ""


def _tall(call: Call) -> Call | None:
    tall = {"b": call.b.first()}
    for name, x in call.matrices.items():
        if name != "b":
            if (goes_on := x.one_below_the_other()) is None:
                return None
            tall[name] = goes_on
    return call.with_matrices(tall)


def _unfolded(axes: tuple[int, int, int], shared: str) -> tuple[int, int, int]:
    """Axes of one tall matrix (`b` is shared) or a wide one (`a`) as those of the batch that it is made of."""
    rows_first = axes.index(1) < axes.index(2)
    if shared == "b":
        return ROWS_FIRST if rows_first else (2, 0, 1)
    return (1, 0, 2) if shared and rows_first else axes


def _unfused(request: GemmRequest, match: LayoutMatch) -> Unfused:
    """What follows the product by a match that does not do all of it."""
    done = match.done
    left = replace(
        request,
        beta=request.beta and not done.beta,
        bias=request.bias and not done.bias,
        scaled=request.scaled and not done.scaled,
    )
    return Unfused(done, left, request.type_like(match.type, batched=match.one_by_one))


def _unserved(call: Call, launcher: Launcher) -> UserError:
    """No logic has a type for as much as the product, since the one that has cannot be used, or there is none; and no
    kernel can be chosen without."""
    request, kind = call.request, unserved_type(launcher, call)
    if launcher.absent and not kind:
        return fresh(launcher.absent)
    for attempt in request.attempts:
        for sunk, why in launcher.sunk.items():
            if attempt.served_by(sunk):
                return fresh(why)
    what = request.operands
    if request.dest != request.data:
        what += f" operands and a {request.result} result"
    known = ", ".join(kind.name for kind in launcher.logics)
    there = f"; there are {known}" if known else ""
    message = with_left_out(f"no logic serves {what}{there}", launcher.left_out)
    if kind:
        message += f"; without a logic nothing computes {kind.name} on {launcher.device.target.name}"
        message += f" ({reasons_of(launcher, kind)})"
    return UserError("matmul", message, "give another data type" if kind else "tune a GEMM of that type")


def _adjacent(bias: View) -> bool:
    return bias.native and (bias.shape[0] == 1 or bias.strides[0] == bias.itemsize)


def _unaligned(call: Call) -> list[str]:
    """Arguments at addresses that are no multiples of ALIGNMENT."""
    given = {**call.matrices, **({"bias": call.extra["Bias"]} if "Bias" in call.extra else {})}
    return [name for name, x in given.items() if x.address % ALIGNMENT]
