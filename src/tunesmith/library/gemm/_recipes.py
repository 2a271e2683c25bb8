"""What a call on memory of a GPU comes to, found out once for each layout of its arguments; addresses are left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.devices.cuda import CudaDevice, Memory, RepeatedPlan
from tunesmith.library.arrays._matrices import Matrices
from tunesmith.library.launch._launcher import ALIGNMENT, Launched, Launcher
from tunesmith.library.launch._workspaces import Workspaces
from tunesmith.logic import Logic
from tunesmith.problems.gemm import is_interleaved
from tunesmith.records import ZEROED_HEAD, ProblemType, UserError

from ._call import Call
from ._gpu_call import Arguments
from ._layouts import Way, best_way, columns_first, leading_dimensions, misfits, problem_of
from ._request import Wanted

REMEMBERED = 4096
"""Layouts whose recipes are kept."""

WORKSPACE = ""
"""By which name a plan's addresses have it."""

NOT_YET = 256
"""Stands for the workspace's address until there is one: aligned as it will be, and not null, so that tensor maps of it
can be encoded."""


Addresses = Sequence[int]
"""Of a call's `Arguments` on the GPU, in their order; 0 for what was not given."""


def addresses_of(seen: Arguments) -> Addresses:
    """Of arrays that lie on a GPU."""
    return tuple(0 if x is None else x.address for x in seen)


@dataclass(frozen=True, slots=True)
class Direct:
    """The plan of one problem, on memory as it lies; for a batch that has no type of its own, once for each matrix.

    `steps` are the bytes from one matrix of a, b, c and out to the next. `reads` has, of those of a, b, c and bias that
    are given, the places among a call's addresses, with the bytes from the first element to the end of the last;
    `writes` are those of out. A scale that is not given lies at `one`.
    """

    told: Launched
    plan: RepeatedPlan
    swapped: bool
    launches: int
    steps: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]
    writes: int
    one: int

    @property
    def workspace_bytes(self) -> int:
        return self.told.plan.workspace_bytes

    def enqueue(self, stream: int, workspace: int, at: Addresses, out: int, on_zeros: bool = True) -> None:
        """Start it, with the result at `out`; returns at once. Raises LaunchError.

        `on_zeros` says that the workspace is one of `Workspaces`, whose head is zeroed.
        """
        named = operands(at, out, self.swapped, workspace, self.one)
        self.plan.enqueue(stream, named, on_zeros and self.told.plan.zeroed <= ZEROED_HEAD)
        if self.launches > 1:
            self._enqueue_others(stream, named)

    def _enqueue_others(self, stream: int, named: dict[str, int]) -> None:
        steps = dict(zip("BACD" if self.swapped else "ABCD", self.steps, strict=True))
        for _ in range(1, self.launches):
            for name, step in steps.items():
                named[name] += step
            self.plan.enqueue(stream, named, on_zeros=True)

    def overwrites(self, at: Addresses) -> bool:
        """Whether what is written lies where something is read."""
        out = at[-1]
        end = out + self.writes
        for place, span in self.reads:  # noqa: SIM110 (any() takes three times as long)
            if at[place] < end and out < at[place] + span:
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
    """Arguments that have to be copied first, each with its columns contiguous or else its rows, and why. One that the
    batch shares is copied as one matrix, if it is `shared`; else for each of the batch."""

    columns_first: Mapping[str, bool]
    shared: str
    why: str


@dataclass(frozen=True, slots=True)
class Unfused:
    """No type does all of it: `done` comes first, `left` follows. `like` would be the type to tune."""

    done: Wanted
    left: Wanted
    like: ProblemType


@dataclass(frozen=True, slots=True)
class Empty:
    """There are no terms to add up, or no sums."""


Recipe = Direct | Copied | Unfused | Empty


class Gpu:
    """One GPU with the logics that serve there."""

    def __init__(self, launcher: Launcher, device: CudaDevice, logics: Mapping[ProblemType, Logic]) -> None:
        self.launcher, self.device, self.logics = launcher, device, logics
        self.workspaces = Workspaces(device)
        self._one: Memory | None = None

    def recipe(self, given: Call[Matrices]) -> Recipe:
        """Compiles, allocates and waits where it must. Raises UserError where no logic serves the types, or nothing
        runs."""
        if 0 in given.sizes:
            return Empty()
        call, shared = folded(given)
        way, part, wrong = self._approach(call)
        if set(wrong) - {shared} and call is not given:
            # What goes on from matrix to matrix cannot be copied as one by who has it as a batch.
            call, shared = given, ""
            way, part, wrong = self._approach(call)
        if way.done != call.wanted:
            return unfused(call.wanted, way)
        columns = columns_first(way.type, way.swapped)
        if wrong:
            why = f"{way.type.name}, the nearest type with a logic, does not take it as it lies"
            return Copied({name: columns[name] for name in wrong}, shared, why)
        if call.wanted.bias and not _adjacent(call.extra["Bias"]):
            return Copied({"bias": False}, shared, "its elements do not follow one another")
        with self.device.on(None):
            if direct := self._direct(call, part, way):
                return direct
        why = f"no solution takes addresses that are no multiples of {ALIGNMENT} bytes"
        return Copied({name: columns.get(name, False) for name in _unaligned(call)}, shared, why)

    def _approach(self, call: Call[Matrices]) -> tuple[Way, Call[Matrices], list[str]]:
        """The best way, what it launches for at once, and the arguments that do not fit."""
        way = self._way(call)
        part = call.matrix(0) if way.one_by_one else call
        return way, part, misfits(part.only(way.done), way.type, way.swapped)

    def _way(self, call: Call[Matrices]) -> Way:
        """No batch is interleaved for the sake of a type that wants it so."""
        way = best_way(call, self.logics)
        if way and way.copied and is_interleaved(way.type) and call.out.shape[0] > 1:
            way = best_way(call, {kind: one for kind, one in self.logics.items() if not is_interleaved(kind)})
        if way is None:
            raise unserved(call.wanted, self.logics)
        return way

    def close(self) -> None:
        """Give back what is not the launcher's."""
        with self.device.on(None):
            self.workspaces.close()
            if self._one is not None:
                self.device.release(self._one)
                self._one = None

    def _direct(self, call: Call[Matrices], part: Call[Matrices], way: Way) -> Direct | None:
        """None where an address is the reason that nothing runs."""
        problem, logic = problem_of(part, way, leading_dimensions(part, way)), self.logics[way.type]
        matrices = (call.a, call.b, call.c or call.out, call.out)
        # Copies lie at aligned addresses, but their matrices follow one another wherever that is.
        misplaced, uneven = _unaligned(call), way.one_by_one and any(x.strides[0] % ALIGNMENT for x in matrices)
        try:
            ready = self.launcher.ready(logic, problem, aligned=not (misplaced or uneven))
        except UserError:
            if uneven or not misplaced:
                raise
            self.launcher.ready(logic, problem)  # raises where the address is not the reason
            return None
        one = self.one() if call.wanted.scaled else 0
        read = call.a, call.b, call.c, call.extra.get("Bias")
        extra = [call.extra[name].address if name in call.extra else 0 for name in ("Bias", "ScaleA", "ScaleB")]
        first = operands((*(x.address for x in matrices[:3]), *extra, 0), call.out.address, way.swapped, NOT_YET, one)
        plan = self.device.repeated_plan(ready.launched.plan, ready.compiled.programs, first)
        return Direct(
            told=ready.launched,
            plan=plan,
            swapped=way.swapped,
            launches=call.out.shape[0] if way.one_by_one else 1,
            steps=tuple(x.strides[0] for x in matrices),
            reads=tuple((place, x.span) for place, x in enumerate(read) if x is not None),
            writes=call.out.span,
            one=one,
        )

    def one(self) -> int:
        """Where 1.0 lies, a float32: the scale of an operand that has none. Made at the first use."""
        if self._one is None:
            self._one = self.device.allocate(4)
            self.device.write(self._one, np.ones(1, np.float32).view(np.uint8))
        return self._one.address


def folded(call: Call[Matrices]) -> tuple[Call[Matrices], str]:
    """A batch that shares b as one tall product, and one that shares a as one wide product, where they lie so; and
    which is shared, or nothing."""
    if call.out.shape[0] > 1 and call.b.strides[0] == 0 and (tall := _tall(call)):
        return tall, "b"
    if call.out.shape[0] > 1 and call.a.strides[0] == 0 and not call.wanted.bias and (tall := _tall(_transposed(call))):
        return _transposed(tall), "a"
    return call, ""


def _tall(call: Call[Matrices]) -> Call[Matrices] | None:
    a, out = call.a.one_below_the_other(), call.out.one_below_the_other()
    c = None if call.c is None else call.c.one_below_the_other()
    if a is None or out is None or (call.c is not None and c is None):
        return None
    return replace(call, a=a, b=call.b[:1], c=c, out=out)


def _transposed(call: Call[Matrices]) -> Call[Matrices]:
    c = None if call.c is None else call.c.swapaxes(1, 2)
    return replace(call, a=call.b.swapaxes(1, 2), b=call.a.swapaxes(1, 2), c=c, out=call.out.swapaxes(1, 2))


def unfused(wanted: Wanted, way: Way) -> Unfused:
    """What follows the product in a way that does not do all of it."""
    done = way.done
    left = replace(
        wanted,
        beta=wanted.beta and not done.beta,
        bias=wanted.bias and not done.bias,
        scaled=wanted.scaled and not done.scaled,
    )
    return Unfused(done, left, wanted.type_like(way.type))


def unserved(wanted: Wanted, kinds: Mapping[ProblemType, object]) -> UserError:
    """No logic has a type for as much as the product."""
    said = wanted.operands if wanted.dest == wanted.data else f"{wanted.operands} operands and a {wanted.result} result"
    known = ", ".join(kind.name for kind in kinds)
    return UserError("matmul", f"no logic serves {said}; there are {known}", "tune a GEMM of that type")


def _adjacent(bias: Matrices) -> bool:
    return bias.shape[0] == 1 or bias.strides[0] == bias.itemsize


def _unaligned(call: Call[Matrices]) -> list[str]:
    """Arguments at addresses that are no multiples of ALIGNMENT."""
    given = {"a": call.a, "b": call.b, "c": call.c, "bias": call.extra.get("Bias"), "out": call.out}
    return [name for name, x in given.items() if x is not None and x.address % ALIGNMENT]
