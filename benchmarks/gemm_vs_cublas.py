"""GEMM on an NVIDIA GPU: our tuned library against torch.mm or bmm (cuBLAS), over a list of problems.

    python benchmarks/gemm_vs_cublas.py LIST.csv [--logic OUT] [--json FILE] [--csv FILE] [--svg FILE] [--exhaustive]

LIST.csv has the columns that docs/tuning-file.md describes; OUT is the folder of a `tunesmith tune`. Without it, the
library uses the logic that ships with tunesmith, for the data type that --data-type names (b, which is bfloat16).
Float8 operands have a scale each. Both sides get the same torch tensors through their public calls,
`tunesmith.load(OUT).matmul` and `torch.mm`. The calls take several sets of tensors in turn, together twice as large as
the last-level cache. Blocks of calls alternate with a pause between them; the first call of a block is dropped, and
another side begins in each round. Each block is timed twice: on the device alone, by events around calls that are
queued behind a gate so that no call waits for the host; and by the host's clock until the last call is done. Ratios
pair the blocks of a round.

Two more sides are timed in the same blocks: the best of our own kernels (from the run's store), if the logic chose the
vendor's; and torch.mm a second time, whose ratio to itself is the noise. With --exhaustive, every configuration of the
run's tuning file is first measured on every problem (hours), and the best of all is one more side.

`--device cpu` does the same on the host with torch's CPU kernels, to try the script out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track

from gemm_own import explore, own_logics, store_of
from gemm_ratios import AGAIN, EXHAUSTIVE, OURS, OWN, VENDOR, Row, csv_text, document, shown, svg
from gemm_sides import Clock, GpuClock, HostClock, Operands, Precision, alternate, ceilings, difference, operand_sets
from gemm_sides import ours as our_call
from gemm_sides import vendor as vendor_call
from tunesmith.devices import LaunchError
from tunesmith.library import LaunchRecord, Library, load
from tunesmith.logic import Choice, Logic
from tunesmith.problems.gemm import TF32, torch_type
from tunesmith.problems.gemm.fields import INPUTS
from tunesmith.problems.gemm.listed import ListedGemm, read_gemm_list
from tunesmith.records import UserError

ROUNDS = 11
TYPES = {letter: torch_type(letter) for letter in INPUTS} | {"tf32": torch_type(TF32)}
"""What --data-type may be. torch multiplies float8 with scales only."""
GPU = "CUDA:0"
console = Console(highlight=False, width=220)


class WatchedLibrary:
    """A library to be timed, and another one with the same logic that tells what it launches: a caller who wants to be
    told waits longer for each call."""

    def __init__(self, make: Callable[[Callable[[LaunchRecord], None] | None], Library]) -> None:
        self._launched: deque[LaunchRecord] = deque(maxlen=1)
        self.library, self._telling = make(None), make(self._launched.append)

    def choice(self, operands: Operands, precision: Precision) -> Choice:
        """What the library launches for these operands."""
        our_call(self._telling.matmul, operands, precision)()
        return self._launched[0].choice

    def close(self) -> None:
        self.library.close()
        self._telling.close()


class Contest:
    """The sides that are timed on a device: the tuned library, the library with only our own kernels, the vendor's."""

    def __init__(self, folder: Path | None, data_type: str, device: str, rounds: int, explored: Path | None) -> None:
        self.device, self.rounds = device, rounds
        selector = None if folder else GPU
        tuned = WatchedLibrary(lambda launched: load(folder, device=selector, launched=launched))
        self.target, self.precision = (
            tuned.library.target,
            Precision.of(tuned.library.problem_types if folder else [TYPES[data_type]]),
        )
        self.libraries = {OURS: tuned}
        if folder:
            self._add_own(folder, explored)
        self.clock: Clock = GpuClock() if device == "cuda" else HostClock()
        torch.backends.cuda.matmul.allow_tf32 = self.precision.tf32
        self.ceilings = ceilings(self.precision, device, self.clock)

    def _add_own(self, folder: Path, explored: Path | None) -> None:
        """Add the libraries without the vendor's."""
        run = store_of(folder)
        for name, stores in {OWN: [run], EXHAUSTIVE: [run, explored] if explored else []}.items():
            if logics := own_logics(folder, stores):
                self.libraries[name] = WatchedLibrary(partial(self._library, logics))

    def row(self, problem: ListedGemm) -> Row:
        """Time one problem. Raises ArithmeticError if two results differ by more than rounding."""
        precision = self.precision
        sets = operand_sets(problem, precision, self.device, self.target.last_level_cache_bytes)
        theirs = [vendor_call(operands, precision) for operands in sets]
        sides, chosen, side_of = {VENDOR: theirs, AGAIN: theirs}, {}, {}
        for name, watched in self.libraries.items():
            calls = [our_call(watched.library.matmul, operands, precision) for operands in sets]
            error = difference(calls[0], theirs[0], sets[0])
            chosen[name] = choice = watched.choice(sets[0], precision)
            if not error <= precision.tolerance(problem.k):
                raise ArithmeticError(f"{choice.name}: its result lies {error:.2g} from the vendor's")
            # A solution that two libraries choose is timed once.
            if side_of.setdefault(choice.solution, name) == name:
                sides[name] = calls
        samples = alternate(sides, self.clock, self.rounds)
        return Row(
            problem=problem,
            floor=self.ceilings.floor(problem, precision),
            solution=chosen[OURS].name,
            kernel=chosen[OURS].solution.kernel,
            rule=chosen[OURS].rule.value,
            own=chosen[OWN].name if OWN in chosen else "",
            sides=samples | {name: samples[side_of[choice.solution]] for name, choice in chosen.items()},
        )

    def facts(self) -> dict[str, Any]:
        target, reached = self.target, self.ceilings
        return {
            "date": time.strftime("%Y-%m-%d"),
            "device": target.name,
            "driver": target.driver,
            "torch": torch.__version__,
            "compiled_launches": importlib.util.find_spec("tunesmith_native") is not None,
            "precision": self.precision.dtype + (" (tf32)" if self.precision.tf32 else ""),
            "tflops": reached.flops * 1e-12,
            "fill_gigabytes_per_second": reached.fill * 1e-9,
            "copy_gigabytes_per_second": reached.copy * 1e-9,
            "rounds": self.rounds,
            "starved_blocks": getattr(self.clock, "starved", 0),
        }

    def close(self) -> None:
        for watched in self.libraries.values():
            watched.close()

    def _library(self, logics: list[tuple[Path, Logic]], launched: Callable[[LaunchRecord], None] | None) -> Library:
        return Library(logics, device=self.target.selector, launched=launched)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path, help="a list of problems")
    parser.add_argument("--logic", type=Path, metavar="OUT", help="the folder of a tuning run")
    parser.add_argument("--data-type", choices=TYPES, default="b", help="without --logic: A and B's letter, or tf32")
    parser.add_argument("--family", action="append", help="only problems of this family; may be given again")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="blocks of each side")
    parser.add_argument("--exhaustive", action="store_true", help="measure the tuning file's whole space first")
    for kind in ("json", "csv", "svg"):
        parser.add_argument(f"--{kind}", type=Path, help="write the result here too")
    options = parser.parse_args()
    if not options.logic and (options.exhaustive or options.device == "cpu"):
        parser.error("--logic is missing: the logic in the package is for GPUs, and has no tuning file")
    try:
        problems = [
            problem
            for problem in read_gemm_list(options.list)
            if not options.family or problem.family in options.family
        ]
        explored = explore(options.logic, problems) if options.exhaustive else None
        contest = Contest(options.logic, options.data_type, options.device, options.rounds, explored)
    except UserError as error:
        parser.error(str(error))
    rows, failed = [], []
    try:
        for problem in track(problems, console=Console(stderr=True), transient=True):
            try:
                rows.append(contest.row(problem))
            except (ArithmeticError, RuntimeError, UserError, LaunchError) as error:
                if isinstance(error, LaunchError) and error.poisoned:
                    raise
                failed.append(f"{problem}: {type(error).__name__}: {str(error)[:300]}")
    finally:
        # The rows so far are shown after an error, too.
        report(rows, failed, contest.facts(), options)
        contest.close()
    return 1 if failed or not rows else 0


def report(rows: list[Row], failed: list[str], facts: dict[str, Any], options: argparse.Namespace) -> None:
    heading = f"{facts['device']}, {facts['precision']}, {facts['date']}"
    console.print(
        ", ".join(
            f"{name} {value:.5g}" if isinstance(value, float) else f"{name} {value}" for name, value in facts.items()
        )
    )
    for failure in failed:
        console.print(f"  did not run: {failure}", markup=False)
    if not rows:
        return
    console.print(shown(rows))
    for path, text in (
        (options.json, lambda: json.dumps(document(rows, facts), indent=1) + "\n"),
        (options.csv, lambda: csv_text(rows)),
        (options.svg, lambda: svg(rows, heading)),
    ):
        if path:
            path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
