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

MOST_SETS = 512
"""Sets of operands at most, as in the bench of a tuning. From 0.25 MB a set, so many exceed a cache of 60 MB twice."""


@dataclass(frozen=True, slots=True)
class Precision:
    """The types of A and B and of C, by the names that NumPy and torch share; whether products may be TF32; and whether
    A and B have a scale each."""

    dtype: str
    dest: str
    tf32: bool
    scaled: bool

    @staticmethod
    def of(problem_types: Collection[ProblemType]) -> Precision:
        """The precision of these GEMM types. Raises UserError if they have several, or if there is no GEMM type."""
        gemms = [
            Gemm.of(Problem(problem_type, (1,) * len(problem_type.indices)))
            for problem_type in problem_types
            if problem_type.operation == "GEMM"
        ]
        precisions = {Precision(gemm.dtype, gemm.dest, gemm.tf32, gemm.scaled) for gemm in gemms}
        if len(precisions) != 1:
            names = " and ".join(sorted(precision.dtype for precision in precisions)) or "no GEMM"
            raise UserError("--logic", f"it has {names}", "give a folder with GEMMs of one precision")
        return precisions.pop()

    @property
    def bytes(self) -> tuple[int, int]:
        """Bytes of an element of A or B, and of C."""
        return getattr(torch, self.dtype).itemsize, getattr(torch, self.dest).itemsize

    def tolerance(self, k: int) -> float:
        """The largest relative distance, in Euclidean norm, between two right results.

        Each result rounds its products, its sums (their errors add like a random walk) and its elements once; the
        tolerance is four times that.
        """
        rounded = 2**-11 if self.tf32 else 0.0
        if self.dest == "int32":
            return 0.0
        summed = torch.finfo(torch.float64 if self.dtype == "float64" else torch.float32).eps / 2
        return 4 * (rounded + math.sqrt(k) * summed + torch.finfo(getattr(torch, self.dest)).eps / 2)


@dataclass(frozen=True, slots=True)
class Operands:
    """A, B and C as m x k, k x n and m x n; a batch has its index in front. An operand that the list calls transposed
    is a transposed view. `scales` are those of A and B."""

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
                elements = torch.randint(-8, 9, shape, dtype=torch.int8, device=device)
            else:
                elements = torch.randn(shape, device=device).to(getattr(torch, precision.dtype))
            return elements.transpose(-1, -2) if transposed else elements

        a = filled(problem.m, problem.k, problem.trans_a)
        b = filled(problem.k, problem.n, problem.trans_b)
        out = torch.empty((*batch, problem.m, problem.n), dtype=getattr(torch, precision.dest), device=device)
        scale = torch.ones((), device=device)
        return Operands(a, b, out, (scale, scale.clone()))

    @property
    def size(self) -> int:
        return sum(x.numel() * x.element_size() for x in (self.a, self.b, self.out))


def operand_sets(problem: ListedGemm, precision: Precision, device: str, cache_bytes: int) -> list[Operands]:
    """Sets of operands, together twice as large as the last-level cache, so that a set in turn is not in the cache."""
    first = Operands.of(problem, precision, device)
    count = min(max(2, math.ceil(2 * cache_bytes / first.size)), MOST_SETS)
    return [first, *(Operands.of(problem, precision, device) for _ in range(count - 1))]


def ours(matmul: Callable[..., object], operands: Operands, precision: Precision) -> Call:
    """The call that a user of tunesmith makes."""
    scales = {"scale_a": operands.scales[0], "scale_b": operands.scales[1]} if precision.scaled else {}
    return lambda: matmul(operands.a, operands.b, out=operands.out, **scales)


def vendor(operands: Operands, precision: Precision) -> Call:
    """The call that a user of torch makes."""
    if precision.dtype.startswith("float8"):
        scale_a, scale_b = operands.scales
        return lambda: torch._scaled_mm(
            operands.a, operands.b, scale_a, scale_b, out_dtype=operands.out.dtype, out=operands.out
        )
    if precision.dtype == "int8":
        return lambda: torch._int_mm(operands.a, operands.b, out=operands.out)
    product = torch.bmm if operands.a.dim() == 3 else torch.mm
    wider = {} if precision.dtype == precision.dest else {"out_dtype": operands.out.dtype}
    return lambda: product(operands.a, operands.b, out=operands.out, **wider)


def difference(ours: Call, theirs: Call, operands: Operands) -> float:
    """Euclidean norm of the difference over that of the vendor's result; C is filled with NaN before each call."""
    results = []
    for call in (ours, theirs):
        operands.out.fill_(math.nan if operands.out.is_floating_point() else -1)
        call()
        results.append(operands.out.double().clone())
    return float((results[0] - results[1]).norm() / results[1].norm())


# --- clocks ---------------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Times blocks of calls, taken in turn from an iterator; the first call of a block does not count."""

    pause: float
    block_seconds: float
    most_calls: int

    def kernel(self, turn: Turn, count: int) -> float:
        """Seconds a call on the device alone."""
        ...

    def host(self, turn: Turn, count: int) -> float:
        """Seconds a call for a caller who waits until the last call is done."""
        ...


class HostClock:
    """The clock for the host's CPU. A call returns when it is done, so both times are the same."""

    # Threads of a BLAS spin for some 30 ms after their last call, which would slow the other side down.
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
    """The clock for a GPU. Kernel times are between events around calls that are queued behind a gate: a kernel that
    keeps the GPU busy until all calls are queued, so that no call waits for the host. `starved` counts the blocks for
    which the longest gate was too short."""

    pause, block_seconds, most_calls = 0.01, 2e-3, 200

    HERTZ = 2.0e9
    FIRST_GATE, LONGEST_GATE = 1e-3, 0.06
    """About the GPU's clock rate, and the seconds of a gate."""

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
                # Begin with the short gate again: a side of hundreds of launches must not slow down the others.
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
    """Samples of every side, from blocks of the sides in turn with a pause before each; another side begins in each
    round. A side is a list of calls with different operands."""
    turns = {name: cycle(calls) for name, calls in sides.items()}
    counts = {}
    for name, turn in turns.items():
        clock.host(turn, 1)
        seconds = clock.host(turn, 2)
        counts[name] = max(3, min(clock.most_calls, math.ceil(clock.block_seconds / max(seconds, 1e-7))))
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
    """Speeds that this device reached in this run: FLOP a second in a large product of the vendor's, and bytes a second
    when memory is filled and when it is copied (read plus written)."""

    flops: float
    fill: float
    copy: float

    def floor(self, problem: ListedGemm, precision: Precision) -> float:
        """The least seconds of the problem: for its operations, or for moving A, B and C once, whichever is longer."""
        operations = 2.0 * problem.m * problem.n * problem.k * problem.batch
        operand, result = precision.bytes
        moved = operand * (problem.m + problem.n) * problem.k + result * problem.m * problem.n
        return max(operations / self.flops, problem.batch * moved / max(self.fill, self.copy))


LARGE = {"cuda": (8192, 2**30), "cpu": (1024, 2**26)}
"""M = N = K of the large product, and bytes to fill and to copy."""


def ceilings(precision: Precision, device: str, clock: Clock) -> Ceilings:
    side, size = LARGE[device]
    # B is stored n x k, the only layout that the vendor has for every type.
    product = vendor(Operands.of(ListedGemm(side, side, side, trans_b=True), precision, device), precision)
    source, destination = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))

    def seconds(call: Call) -> float:
        turn = cycle([call])
        clock.host(turn, 2)
        return statistics.median(clock.kernel(turn, 5) for _ in range(5))

    return Ceilings(
        2.0 * side**3 / seconds(product),
        size / seconds(source.zero_),
        2 * size / seconds(lambda: destination.copy_(source)),
    )
