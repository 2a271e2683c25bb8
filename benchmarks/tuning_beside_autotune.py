"""How long does tuning take, and how long does `triton.autotune` take for the same amount of work?

    python benchmarks/tuning_beside_autotune.py FILE.yaml LIST.csv OUT [--each 2] [--device CUDA] [--json RESULT.json]

FILE is tuned on `--each` problems of LIST for each layout, without batches. Its steps also decide by these problems, so
nothing else is measured. `triton.autotune` gets a plain matmul, the same problems, and as many configurations as our
problems had on average. Each side runs twice: with empty caches, and with the programs of its first run but none of its
measurements. Both sides compile in parallel, on the same number of cores. Our time is that of a whole run with its
start; the other side's is that of compiling and calling, without the start of Python and torch. OUT must be new.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tunesmith.problems.gemm import Gemm
from tunesmith.problems.gemm.listed import ListedGemm, read_gemm_list
from tunesmith.records import Problem, UserError
from tunesmith.report import ProgressReport
from tunesmith.report.table import table, titled
from tunesmith.session.frame.outputs import CACHE
from tunesmith.session.tuning_file import tune
from tunesmith.store import FILE_NAME, Store
from tuning_time import Tuning, final_problems

AUTOTUNE = Path(__file__).parent / "triton_autotune.py"
LIST_NAME = "problems.csv"
COLUMNS = ("family", "m", "n", "k", "batch", "trans_a", "trans_b")
LAYOUTS = ((False, True), (False, False), (True, False))
console = Console(highlight=False, width=120)


@dataclass(frozen=True, slots=True)
class Side:
    """One run: its seconds, and the configurations of a problem on average. `compiling` is a part of the seconds; None
    if compiling goes on during the rest."""

    name: str
    cache: str
    problems: int
    configurations: float
    seconds: float
    compiling: float | None


def some_of(problems: Sequence[ListedGemm], each: int) -> list[ListedGemm]:
    """`each` problems of each layout, evenly over the list, without batches."""
    chosen: list[ListedGemm] = []
    for trans_a, trans_b in LAYOUTS:
        of_layout = [
            problem
            for problem in problems
            if problem.batch == 1 and (problem.trans_a, problem.trans_b) == (trans_a, trans_b)
        ]
        count = min(each, len(of_layout))
        chosen += [of_layout[index * len(of_layout) // count] for index in range(count)]
    return chosen


def with_list(file: Path, problems: Sequence[ListedGemm], folder: Path) -> Path:
    """A copy of a tuning file in `folder` whose lists are all replaced by these problems.

    Raises UserError if the file names no list.
    """
    text, count = re.subn(r"(- File:) *\S+", rf"\1 {LIST_NAME}", file.read_text(encoding="utf-8"))
    if not count:
        raise UserError(str(file), "it names no list of problems", "give a file whose ProblemSizes have `- File:`")
    folder.mkdir(parents=True)
    with (folder / LIST_NAME).open("w", encoding="utf-8", newline="") as written:
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(COLUMNS)
        for problem in problems:
            layout = ("T" if transposed else "N" for transposed in (problem.trans_a, problem.trans_b))
            writer.writerow((problem.family, problem.m, problem.n, problem.k, problem.batch, *layout))
    copy = folder / file.name
    copy.write_text(text, encoding="utf-8")
    return copy


def tuned(file: Path, folder: Path, device: str | None, cache: str) -> tuple[Side, list[Problem]]:
    began = time.perf_counter()
    with ProgressReport(Console(stderr=True)) as progress:
        outcome = tune(file, folder, device=device, observe=progress)
    seconds = time.perf_counter() - began
    with Store.read(folder / FILE_NAME) as store:
        final = final_problems(outcome)
        tuning = Tuning.of(outcome.target.name, final, list(store.entries()), store.runs())
    return Side("tunesmith", cache, tuning.problems, tuning.configurations, seconds, None), final


def autotuned(problems: Sequence[Problem], configurations: int, folder: Path, cache: str) -> tuple[Side, str]:
    """The side, and Triton's version. Raises RuntimeError with the program's errors if it fails."""
    # torch's matrices are row-major: the transposed product of the column-major problem.
    task = {
        "configurations": configurations,
        "threads": os.cpu_count(),
        "problems": [
            {
                "m": gemm.n,
                "n": gemm.m,
                "k": gemm.k,
                "trans_a": gemm.transpose_b,
                "trans_b": gemm.transpose_a,
                "dtype": gemm.dtype,
            }
            for gemm in map(Gemm.of, problems)
        ],
    }
    run = [sys.executable, str(AUTOTUNE), json.dumps(task)]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder)}
    done = subprocess.run(run, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{AUTOTUNE.name} ended with {done.returncode}: {done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    seconds = result["compiling"] + sum(result["seconds"])
    compiling = result["compiling"] if result["threads"] else None
    side = Side("triton.autotune", cache, len(problems), result["configurations"], seconds, compiling)
    return side, str(result["triton"])


def show(sides: Sequence[Side], heading: str) -> None:
    shown = table("", "programs", "problems", "configurations", "seconds", "a problem", "a configuration", "compiling")
    for side in sides:
        shown.add_row(
            *(side.name, side.cache, str(side.problems), f"{side.configurations:.1f}", f"{side.seconds:.1f}"),
            *(f"{side.seconds / side.problems:.2f}", f"{side.seconds / side.problems / side.configurations:.3f}"),
            "-" if side.compiling is None else f"{side.compiling:.1f}",
        )
    console.print(titled(heading, shown))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a tuning file of GEMMs, with lists of problems")
    parser.add_argument("list", type=Path, help="a list of problems")
    parser.add_argument("out", type=Path, help="a new folder")
    parser.add_argument("--each", type=int, default=2, help="problems for each layout")
    parser.add_argument("--device", help="a selector or part of a name, as `tunesmith devices` shows them")
    parser.add_argument("--json", type=Path, help="write the result here too")
    options = parser.parse_args()
    options.out = options.out.absolute()
    if options.out.exists():
        parser.error(f"{options.out} is there already; its programs would be found")
    try:
        file = with_list(options.file, some_of(read_gemm_list(options.list), options.each), options.out / "file")
    except UserError as error:
        parser.error(str(error))
    os.environ |= {name: str(options.out / "caches" / name.lower()) for name in ("TUNESMITH_CACHE", "TRITON_CACHE_DIR")}
    first, problems = tuned(file, options.out / "empty", options.device, "none")
    shutil.copytree(options.out / "empty" / CACHE, options.out / "kept" / CACHE)
    sides = [first, tuned(file, options.out / "kept", options.device, "kept")[0]]
    version = ""
    for cache in ("none", "kept"):
        side, version = autotuned(problems, round(first.configurations), options.out / "caches" / "autotune", cache)
        sides.append(side)
    show(sides, f"Triton {version}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}")
    if options.json:
        result = {"date": time.strftime("%Y-%m-%d"), "triton": version, "cores": os.cpu_count()}
        written = json.dumps({**result, "sides": [asdict(side) for side in sides]}, indent=1)
        options.json.write_text(written + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
