"""Calibrating a roofline: a large product is timed for the peak, and a large copy for the bandwidth."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.devices import APIS, asks_for_hidden, choose
from tunesmith.kernels import KERNELS, VENDOR, families_of
from tunesmith.logic import write_atomically
from tunesmith.models.roofline.measured import (
    MeasuredRoofline,
    dump_rooflines,
    merged_rooflines,
    read_rooflines,
)
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import TF32, gemm_type
from tunesmith.records import Configuration, Problem, ProblemType, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out
from tunesmith.spaces import Space

from .listed import letter_of

POLICY = Policy(noise=0.01, maximum_samples=60, sampling_seconds=1.0, warm_up_seconds=0.2)

CPU_SIDE, GPU_SIDE = 2048, 8192
"""Rows, columns and K of the product: so large that the launch and the last wave take a negligible share of the
time."""

CACHES, LEAST_BYTES, MOST_BYTES = 4, 1 << 27, 1 << 29
"""Each of the copy's two arrays has so many times the bytes of the last-level cache, within these limits."""
WHOLE = 4 * 256 * 16
"""The elements of an array are a multiple of this, as all of the copy's configurations need."""


@dataclass(frozen=True, slots=True)
class LargeProblems:
    """The side of the square product, and the number of elements (of four bytes) in the array that is copied."""

    side: int
    elements: int

    @staticmethod
    def on(target: Target) -> LargeProblems:
        room = min(target.max_allocation_bytes, target.global_memory_bytes // 8, MOST_BYTES)
        array = min(max(CACHES * target.last_level_cache_bytes, LEAST_BYTES), room)
        side = CPU_SIDE if target.kind == "CPU" else GPU_SIDE
        return LargeProblems(side, max(array // 4 // WHOLE, 1) * WHOLE)


def calibrate_roofline(
    types: Sequence[str],
    out: Path,
    *,
    device: str | None = None,
    large: LargeProblems | None = None,
    policy: Policy = POLICY,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    store: str | None = None,
    wait: bool = False,
    observe: events.Observer = events.nobody,
) -> RunOutcome[RooflinePlan]:
    """Measure peak and bandwidth for data types (words that `letter_of` knows) and write them to `out`.

    Entries of other devices and types in `out` stay. The measurements are kept in a folder beside it, so that the same
    call resumes. Raises UserError for a type, file or device that makes no sense.
    """
    plan = RooflinePlan(types, out, device, large, policy)
    return carry_out(
        plan, roofline_runs(out), budget_minutes=budget_minutes, reuse=reuse, store=store, wait=wait, observe=observe
    )


def roofline_runs(out: Path) -> Path:
    """The folder with the measurements of a roofline file."""
    return out.with_name(f"{out.stem}.runs")


class RooflinePlan(RunPlan):
    """The plan of a roofline's calibration; `made` are the rooflines measured by this run."""

    def __init__(
        self, types: Sequence[str], path: Path, device: str | None, large: LargeProblems | None, policy: Policy
    ) -> None:
        self.path, self.policy = path, policy
        self._letters = list(dict.fromkeys(map(letter_of, types)))
        self._known = read_rooflines(path) if path.exists() else ()
        self.target = choose(device)
        self._large = large or LargeProblems.on(self.target)
        self._hidden = asks_for_hidden(device)
        self.steps = 1 + len(self._letters)
        self.made: list[MeasuredRoofline] = []
        self._failures: list[str] = []

    def carry_out(self, run: Run) -> None:
        best_copy = self._best(run, self._copy(), "a copy")
        for letter in self._letters if best_copy else ():
            kind = _product_type(letter)
            product = Problem(kind, (self._large.side,) * 3)
            best = self._best(run, product, f"a product of {letter}")
            if best and best_copy:
                self.made.append(self._roofline(letter, product, *best, *best_copy))
                run.say(f"{letter}: ridge {self.made[-1].roofline.ridge:.4g} FLOP/byte")
                run.decided()

    @property
    def unfinished(self) -> str:
        done = len(self.made) + len(self._failures)
        return f"{done} of {len(self._letters)} data types are measured" if done < len(self._letters) else ""

    def outputs(self, run: Run) -> Iterator[Output]:
        if self.made:
            text = dump_rooflines(merged_rooflines(self._known, self.made))
            yield Output(self.path.absolute(), partial(write_atomically, text=text))

    def remarks(self) -> Iterator[str]:
        yield from self._failures

    def _copy(self) -> Problem:
        operation, folder = OPERATIONS["Custom"], files("tunesmith.session.intensity") / "source"
        kind = operation.type_of({"OperationType": "Custom", "Kernel": "copy.yaml"}, str, Path(str(folder)))
        return Problem(kind, (self._large.elements,))

    def _best(self, run: Run, problem: Problem, purpose: str) -> tuple[str, float] | None:
        """Family and seconds of the fastest kernel for a problem; None, and a remark, if nothing ran."""
        measure = run.measure(problem.type)
        measure.purpose = purpose
        for names in self._families(problem.type):
            configs = [config for name in names for config in self._configured(name, problem.type)]
            times = measure.screen([configs], [problem], racing=False).cells
            if times:
                fastest = min(times, key=lambda cell: times[cell].seconds)
                return measure.oracle.family(fastest[0]).name, times[fastest].seconds
        self._failures.append(f"{purpose}: nothing that runs on {self.target.name} computes it")
        return None

    def _families(self, kind: ProblemType) -> list[list[str]]:
        """Groups of families to try in turn: the vendor's library, then all our families with legal defaults."""
        general = [kernel for kernel in families_of(kind.operation, self._hidden) if not kernel.named_by]
        legal = [
            kernel.name
            for kernel in general
            if kernel.language in APIS[self.target.api].languages
            and (space := kernel.space(kind, self.target)).parameters
            and not any(kernel.rejections(space.defaults, kind, self.target))
        ]
        groups = ([name for name in legal if name == VENDOR], [name for name in legal if name != VENDOR])
        return [group for group in groups if group]

    def _configured(self, name: str, kind: ProblemType) -> list[Configuration]:
        """A family's defaults; for the copy, all configurations."""
        space = KERNELS[name].space(kind, self.target)
        return _all_of(space) if kind.operation == "Custom" else [space.defaults]

    def _roofline(
        self, letter: str, product: Problem, family: str, seconds: float, copy_family: str, copy_seconds: float
    ) -> MeasuredRoofline:
        target, moved = self.target, 2 * 4 * self._large.elements
        return MeasuredRoofline(
            target.api,
            target.name,
            target.architecture,
            target.driver,
            letter,
            OPERATIONS["GEMM"].flops(product) / seconds,
            f"a product of {product} by {family}",
            moved / copy_seconds,
            f"a copy of {moved // 2 / 2**20:.0f} MiB, read and written",
            time.strftime("%Y-%m-%d"),
        )


def _product_type(letter: str) -> ProblemType:
    """The type of the large product: for TF32 and float8, K is contiguous in both operands, as tensor cores read
    them."""
    along_k = letter in (TF32, "f8", "b8")
    return gemm_type("s" if letter == TF32 else letter, tf32=letter == TF32, transpose_a=along_k, transpose_b=False)


def _all_of(space: Space) -> list[Configuration]:
    configs = [Configuration()]
    for parameter in space:
        configs = [config | {parameter.name: value} for config in configs for value in parameter.values]
    return configs
