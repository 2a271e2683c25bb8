"""The sides of `gemm_vs_cublas.py`: operands as torch tensors, the calls to compare, the clocks, the ceilings."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Protocol

import torch

from gemm_ratios import Samples
from tunesmith.problems.gemm import Gemm
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Problem, ProblemType, UserError

Call = Callable[[], object]
Turn = Iterator[Call]

MOST_SETS = 64
"""Sets of operands at most: enough to leave a cache even where they are small, without filling memory."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Types of A and B, and of C, by the names that NumPy and torch share; whether products may be made in TF32, and
    whether A and B have a scale each."""

    dtype: str
    dest: str
    tf32: bool
    scaled: bool

    @staticmethod
    def of(kinds: Collection[ProblemType]) -> Precision:
        """The one that all these GEMM types have; UserError for several or none."""
        gemms = [Gemm.of(Problem(kind, (1,) * len(kind.indices))) for kind in kinds if kind.operation == "GEMM"]
        found = {Precision(gemm.dtype, gemm.dest, gemm.tf32, gemm.scaled) for gemm in gemms}
        if len(found) != 1:
            said = " and ".join(sorted(one.dtype for one in found)) or "no GEMM"
            raise UserError("--logic", f"it has {said}", "give a folder with GEMMs of one precision")
        return found.pop()

    @property
    def bytes(self) -> tuple[int, int]:
        """Of an element of A or B, and of C."""
        return getattr(torch, self.dtype).itemsize, getattr(torch, self.dest).itemsize

    def tolerance(self, k: int) -> float:
        """How far two right results may lie apart, relative in Euclidean norm: each rounds its products, its sums
        (their errors add like a random walk) and its elements once; four times that."""
        rounded = 2**-11 if self.tf32 else 0.0
        if self.dest == "int32":
            return 0.0
        summed = torch.finfo(torch.float64 if self.dtype == "float64" else torch.float32).eps / 2
        return 4 * (rounded + math.sqrt(k) * summed + torch.finfo(getattr(torch, self.dest)).eps / 2)


@dataclass(frozen=True, slots=True)
class Operands:
    """A, B and C as m x k, k x n and m x n, of a batch with its index in front; views where the list says stored
    transposed. `scales` are A's and B's."""

    a: Any
    b: Any
    out: Any
    scales: tuple[Any, Any]

    @staticmethod
    def of(problem: ListedGemm, precision: Precision, device: str) -> Operands:
        batch = (problem.batch,) if problem.batch > 1 else ()

        def filled(rows: int, columns: int, transposed: bool) -> Any:
            shape = (*batch, columns, rows) if transposed else (*batch, rows, columns)
            if precision.dtype == "int8":
                made = torch.randint(-8, 9, shape, dtype=torch.int8, device=device)
            else:
                made = torch.randn(shape, device=device).to(getattr(torch, precision.dtype))
            return made.transpose(-1, -2) if transposed else made

        a = filled(problem.m, problem.k, problem.trans_a)
        b = filled(problem.k, problem.n, problem.trans_b)
        out = torch.empty((*batch, problem.m, problem.n), dtype=getattr(torch, precision.dest), device=device)
        scale = torch.ones((), device=device)
        return Operands(a, b, out, (scale, scale.clone()))

    @property
    def size(self) -> int:
        return sum(x.numel() * x.element_size() for x in (self.a, self.b, self.out))


def operand_sets(problem: ListedGemm, precision: Precision, device: str, cache_bytes: int) -> list[Operands]:
    """As many that two rounds of the last-level cache lie between two uses of the same one."""
    first = Operands.of(problem, precision, device)
    count = min(max(2, math.ceil(2 * cache_bytes / first.size)), MOST_SETS)
    return [first, *(Operands.of(problem, precision, device) for _ in range(count - 1))]


def ours(matmul: Callable[..., object], one: Operands, precision: Precision) -> Call:
    """What a user of ours would call."""
    scales = {"scale_a": one.scales[0], "scale_b": one.scales[1]} if precision.scaled else {}
    return lambda: matmul(one.a, one.b, out=one.out, **scales)


def vendor(one: Operands, precision: Precision) -> Call:
    """What a user of torch would call."""
    if precision.dtype.startswith("float8"):
        scale_a, scale_b = one.scales
        return lambda: torch._scaled_mm(one.a, one.b, scale_a, scale_b, out_dtype=one.out.dtype, out=one.out)
    if precision.dtype == "int8":
        return lambda: torch._int_mm(one.a, one.b, out=one.out)
    product = torch.bmm if one.a.dim() == 3 else torch.mm
    wider = {} if precision.dtype == precision.dest else {"out_dtype": one.out.dtype}
    return lambda: product(one.a, one.b, out=one.out, **wider)


def difference(mine: Call, theirs: Call, one: Operands) -> float:
    """Euclidean norm of the difference over that of the vendor's result; C holds NaN before each."""
    results = []
    for call in (mine, theirs):
        one.out.fill_(math.nan if one.out.is_floating_point() else -1)
        call()
        results.append(one.out.double().clone())
    return float((results[0] - results[1]).norm() / results[1].norm())


# --- clocks ---------------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Times blocks of calls that are taken from a turn; the first call of a block is not counted."""

    pause: float
    block_seconds: float
    most_calls: int

    def kernel(self, turn: Turn, count: int) -> float:
        """Seconds a call on the device alone."""
        ...

    def host(self, turn: Turn, count: int) -> float:
        """Seconds a call for a caller who waits until the last one is done."""
        ...


class HostClock:
    """For a device that is the host's CPU, where a call returns when it is done: both times are the same."""

    # Threads of a BLAS spin for some 30 ms after their last call; the other side must not meet them.
    pause, block_seconds, most_calls = 0.08, 0.05, 2000

    def kernel(self, turn: Turn, count: int) -> float:
        return self.host(turn, count)

    def host(self, turn: Turn, count: int) -> float:
        next(turn)()
        seconds = []
        for _ in range(count):
            call = next(turn)
            began = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)


class GpuClock:
    """Kernel times by events around calls that are all queued behind a kernel which keeps the GPU busy until then, so
    that none waits for the host. `starved` counts blocks for which the longest such gate was too short."""

    pause, block_seconds, most_calls = 0.01, 2e-3, 200

    HERTZ = 2.0e9
    FIRST_GATE, LONGEST_GATE = 1e-3, 0.06
    """The GPU's clock, about, and seconds of a gate."""

    def __init__(self) -> None:
        self.starved = 0
        self._gate = self.FIRST_GATE

    def kernel(self, turn: Turn, count: int) -> float:
        while True:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(int(self.HERTZ * self._gate))
            next(turn)()
            start.record()
            for _ in range(count):
                next(turn)()
            kept_busy = not start.query()
            end.record()
            end.synchronize()
            if not kept_busy and self._gate < self.LONGEST_GATE:
                self._gate *= 2
                continue
            if not kept_busy:
                # Others need no such gate: a side of hundreds of launches must not slow down the rest of a list.
                self.starved, self._gate = self.starved + 1, self.FIRST_GATE
            return float(start.elapsed_time(end)) * 1e-3 / count

    def host(self, turn: Turn, count: int) -> float:
        next(turn)()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            next(turn)()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / count


def alternate(sides: Mapping[str, Sequence[Call]], clock: Clock, rounds: int) -> dict[str, Samples]:
    """Blocks of every side in turn, with a pause before each; who begins changes from round to round. A side is given
    as calls over different operands."""
    turns = {name: cycle(calls) for name, calls in sides.items()}
    counts = {}
    for name, turn in turns.items():
        clock.host(turn, 1)
        once = clock.host(turn, 2)
        counts[name] = max(3, min(clock.most_calls, math.ceil(clock.block_seconds / max(once, 1e-7))))
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    order = list(sides)
    for _ in range(rounds):
        for name in order:
            time.sleep(clock.pause)
            taken[name].append((clock.kernel(turns[name], counts[name]), clock.host(turns[name], counts[name])))
        order = order[1:] + order[:1]
    return {name: Samples(*zip(*blocks, strict=True)) for name, blocks in taken.items()}


# --- ceilings -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What this device reached in this run: operations a second in a large product of the vendor's, and bytes a second
    in filling memory and in copying it (read and written)."""

    flops: float
    fill: float
    copy: float

    def floor(self, problem: ListedGemm, precision: Precision) -> float:
        """Seconds that the problem takes at least: its operations, or A, B and C once each."""
        operations = 2.0 * problem.m * problem.n * problem.k * problem.batch
        operand, result = precision.bytes
        moved = operand * (problem.m + problem.n) * problem.k + result * problem.m * problem.n
        return max(operations / self.flops, problem.batch * moved / max(self.fill, self.copy))


LARGE = {"cuda": (8192, 2**30), "cpu": (1024, 2**26)}
"""Side of the large product, and bytes to fill and to copy."""


def ceilings(precision: Precision, device: str, clock: Clock) -> Ceilings:
    side, size = LARGE[device]
    # With B stored n x k, which is the only layout that the vendor has for every type.
    product = vendor(Operands.of(ListedGemm(side, side, side, trans_b=True), precision, device), precision)
    one, other = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))

    def seconds(call: Call) -> float:
        turn = cycle([call])
        clock.host(turn, 2)
        return statistics.median(clock.kernel(turn, 5) for _ in range(5))

    return Ceilings(
        2.0 * side**3 / seconds(product), size / seconds(one.zero_), 2 * size / seconds(lambda: other.copy_(one))
    )
