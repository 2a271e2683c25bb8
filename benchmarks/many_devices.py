"""A tuning file on one device and on several: wall time, who was busy, whether the winners are the same, what binds.

    python benchmarks/many_devices.py examples/h200_llm_bf16.yaml --devices all
    python benchmarks/many_devices.py --devices 'fake:GPU:8*2,4,8'
    python benchmarks/many_devices.py --devices 'OpenCL*2'

Without a file, the fake device's file below is tuned. `SELECTOR*2,4,8` repeats the run with each number. Runs go to a
temporary folder, or to `--out`. The floor of a step is the larger of two: the seconds that all devices spent on cells,
over their number, and the seconds of compiling, over the host's cores. Steps wait for each other, so their floors are
added.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith import session
from tunesmith.cluster.opened import open_local
from tunesmith.cluster.selectors import host_devices
from tunesmith.logic import Logic
from tunesmith.session.frame import events

FAKE = """
GlobalParameters: {ConfirmBlocks: 7, WarmUpSeconds: 0.01, SamplingSeconds: 0.02}
BenchmarkProblems:
  - - DataType: s
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      BenchmarkCommonParameters:
        - ProblemSizes:
            - Range: [[8, 1, 71], [8], [8]]
        - LoopUnroll: [4, 8, 16, 32]
          VectorWidth: [1, 2, 4, 8]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Range: [[8, 1, 71], [8], [8]]
"""
"""64 sizes, so that 64 devices have one each. They are tiny: the fake device spends no time, but verifying does."""

OPENCL = """
GlobalParameters: {Noise: 0.05, ConfirmBlocks: 6, MaximumSamples: 20, SamplingSeconds: 0.05, WarmUpSeconds: 0.02}
BenchmarkProblems:
  - - OperationType: GEMM
      DataType: s
    - InitialSolutionParameters:
        - LocalMemory: [False]
      ForkParameters:
        - ThreadTile: [[4, 4], [8, 4]]
        - LoopUnroll: [2, 4]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Range: [[64, 32, 160], 0, 0]
"""


@dataclass
class StepWork:
    """Device seconds and compile seconds of one step, and its wall time."""

    device: float = 0.0
    compiling: float = 0.0
    wall: float = 0.0


class Watch:
    """Adds up what each step cost, from the run's events.

    `own` are this process's processor seconds between two measurements of one batch, over `own_cells` such pairs: to
    send portions, and to take and commit results. What a run spends before and after its batches is not in it.
    """

    def __init__(self) -> None:
        self.steps = [StepWork()]
        self.cells = 0
        self.own, self.own_cells = 0.0, 0
        self._before: float | None = None

    def __call__(self, event: events.Event) -> None:
        step = self.steps[-1]
        match event:
            case events.BatchBegan():
                self._before = None
            case events.CellMeasured(measurement=measurement):
                self.cells += 1
                now = _own_seconds()
                if self._before is not None:
                    self.own, self.own_cells = self.own + now - self._before, self.own_cells + 1
                self._before = now
                step.device += measurement.cost.verify + measurement.cost.timing
                step.compiling += measurement.cost.compile
            case events.StepEnded(seconds=seconds):
                step.wall = seconds
                self.steps.append(StepWork())


@dataclass(frozen=True)
class RunFigures:
    """One run: its devices, wall seconds from the first cell on, and the command's own processor seconds."""

    devices: int
    opening: float
    wall: float
    own: float
    watch: Watch
    outcome: Any

    def floor(self, cores: int) -> tuple[float, str]:
        """The least wall seconds of the run's steps, and what binds most of them."""
        total = {"devices": 0.0, "compiling": 0.0}
        floor = 0.0
        for step in self.watch.steps:
            parts = {"devices": step.device / self.devices, "compiling": step.compiling / cores}
            binding = max(parts, key=lambda name: parts[name])
            total[binding] += parts[binding]
            floor += parts[binding]
        waiting = self.wall - floor
        binds = "steps that wait, and the host" if waiting > floor else max(total, key=lambda name: total[name])
        return floor, binds


@contextmanager
def devices_of(selector: str | None, cache: Path) -> Iterator[dict[str, Any]]:
    """What `session.tune` is handed for one device (no cluster) or for several."""
    if selector is None:
        yield {}
        return
    with open_local(selector, cache, print) as cluster:
        (kind, *others) = cluster.kinds
        if others:
            print(f"only {kind.name} is tuned here, not {', '.join(other.name for other in others)}")
        yield {"device": kind, "benches": cluster.benches_for(kind)}


def run(file: Path, folder: Path, devices: str | None, count: int, device: str | None) -> RunFigures:
    began, watch = time.monotonic(), Watch()
    with devices_of(devices, folder / "cache") as handed:
        opening = time.monotonic() - began
        own, began = _own_seconds(), time.monotonic()
        outcome = session.tune(file, folder, **{"device": device, **handed}, observe=watch)
        return RunFigures(count, opening, time.monotonic() - began, _own_seconds() - own, watch, outcome)


def winners(outcome: Any) -> dict[tuple[str, tuple[int, ...]], set[str]]:
    """By type and size: the winner's configuration and those of its ties."""
    found = {}
    for path in outcome.logic_files:
        document = Logic.load(path).document
        for row in document.rows:
            alike = (row.solution, *row.ties)
            texts = {document.solutions[number].solution.configuration.to_json() for number in alike}
            found[document.problem_type.name, tuple(row.sizes)] = texts
    return found


def agreement(single: Any, several: Any) -> str:
    """How many winners of two runs are equal or tied."""
    first, second = winners(single), winners(several)
    common = [size for size in first if size in second]
    return f"{sum(bool(first[size] & second[size]) for size in common)} of {len(common)}"


def report(figures: RunFigures, single: RunFigures | None) -> None:
    cores = len(os.sched_getaffinity(0))
    floor, binds = figures.floor(cores)
    cells = max(1, figures.watch.cells)
    rate = f"{cells} measurements, {cells / figures.wall:.1f} a second"
    print(f"\n{figures.devices} devices: {figures.wall:.1f} s for {rate}")
    print(f"  opened in {figures.opening:.1f} s; floor {floor:.1f} s; what binds: {binds}")
    watch = figures.watch
    if watch.own_cells:
        print(f"  the command's own processor time: {1e3 * watch.own / watch.own_cells:.2f} ms a measurement")
    print(f"  with all that it did besides (reading, deciding, writing): {figures.own:.1f} s")
    for share in figures.outcome.devices:
        anchor = f"{share.anchor:.3f}" if share.anchor else "unknown"
        busy = f"busy {100 * share.busy:.0f} %, {share.measured} measured"
        print(f"  {share.device}: {busy}, anchor {anchor} of its siblings'")
    for sentence in figures.outcome.look_at:
        print(f"  look at: {sentence}")
    if single is not None:
        print(f"  winners equal or tied: {agreement(single.outcome, figures.outcome)}")
        print(f"  {single.wall / figures.wall:.2f} times as fast as one device")


def _own_seconds() -> float:
    """Processor seconds of this process, all threads, without its children."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _selections(text: str) -> list[str]:
    """`S*2,4,8` as `S*2`, `S*4`, `S*8`; other words as they are."""
    if match := re.fullmatch(r"([^,]+)\*(\d+(?:,\d+)+)", text):
        return [f"{match[1]}*{count}" for count in match[2].split(",")]
    return [text]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--devices", default="all")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--without-one", action="store_true", help="leave out the run on one device")
    parser.add_argument("--single", action="store_true", help="only the run on one device, the first")
    options = parser.parse_args(arguments)
    out = options.out or Path(tempfile.mkdtemp(prefix="many-devices-"))
    selections = _selections(options.devices)
    first = host_devices(selections[0])[0].target
    file = options.file
    if file is None:
        out.mkdir(parents=True, exist_ok=True)
        file = out / "file.yaml"
        file.write_text(FAKE if first.api == "fake" else OPENCL)
    single = None
    if not options.without_one:
        single = run(file, out / "one", None, 1, first.selector)
        report(single, None)
    for selection in () if options.single else selections:
        count = len(host_devices(selection))
        report(run(file, out / f"{count}", selection, count, None), single)


if __name__ == "__main__":
    main()
