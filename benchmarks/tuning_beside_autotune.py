"""How long does tuning take, and how long does `triton.autotune` take for as much? Like for like.

    python benchmarks/tuning_beside_autotune.py FILE.yaml LIST.csv OUT [--each 2] [--device CUDA] [--json RESULT.json]

FILE is tuned on so many problems of LIST for each layout, by which its steps decide too, so that nothing else is
measured; batches are left out. `triton.autotune` gets a plain matmul, the same problems, and as many configurations as
a problem had here on average. Each side runs twice: with empty caches, and with the programs of its first run but none
of its measurements. Both compile in parallel, on as many cores. What is timed is a whole run of ours, its start
included, and of the other side compiling and the calls, without the start of Python and torch. OUT must be new.
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
    """One run: seconds, and how many configurations a problem had. `compiling` is a part of the seconds, None where it
    goes on beside the rest."""

    name: str
    cache: str
    problems: int
    configurations: float
    seconds: float
    compiling: float | None


def some_of(problems: Sequence[ListedGemm], each: int) -> list[ListedGemm]:
    """So many of each layout, evenly over the list, without batches."""
    chosen: list[ListedGemm] = []
    for trans_a, trans_b in LAYOUTS:
        alike = [one for one in problems if one.batch == 1 and (one.trans_a, one.trans_b) == (trans_a, trans_b)]
        count = min(each, len(alike))
        chosen += [alike[index * len(alike) // count] for index in range(count)]
    return chosen


def with_list(file: Path, problems: Sequence[ListedGemm], folder: Path) -> Path:
    """A copy of a tuning file in `folder`, all of whose lists are these problems. UserError where it names no list."""
    text, count = re.subn(r"(- File:) *\S+", rf"\1 {LIST_NAME}", file.read_text(encoding="utf-8"))
    if not count:
        raise UserError(str(file), "it names no list of problems", "give a file whose ProblemSizes have `- File:`")
    folder.mkdir(parents=True)
    with (folder / LIST_NAME).open("w", encoding="utf-8", newline="") as written:
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in problems:
            layout = ("T" if transposed else "N" for transposed in (one.trans_a, one.trans_b))
            writer.writerow((one.family, one.m, one.n, one.k, one.batch, *layout))
    made = folder / file.name
    made.write_text(text, encoding="utf-8")
    return made


def tuned(file: Path, folder: Path, device: str | None, cache: str) -> tuple[Side, list[Problem]]:
    began = time.perf_counter()
    with ProgressReport(Console(stderr=True)) as progress:
        outcome = tune(file, folder, device=device, observe=progress)
    seconds = time.perf_counter() - began
    with Store.read(folder / FILE_NAME) as store:
        final = final_problems(outcome)
        made = Tuning.of(outcome.target.name, final, list(store.entries()), store.runs())
    return Side("tunesmith", cache, made.problems, made.configurations, seconds, None), final


def autotuned(problems: Sequence[Problem], configurations: int, folder: Path, cache: str) -> tuple[Side, str]:
    """The side, and Triton's version. RuntimeError with what was said if it ends badly."""
    # Row-major, as torch has them: the transposed product of the column-major problem.
    asked = {
        "configurations": configurations,
        "threads": os.cpu_count(),
        "problems": [
            {"m": g.n, "n": g.m, "k": g.k, "trans_a": g.transpose_b, "trans_b": g.transpose_a, "dtype": g.dtype}
            for g in map(Gemm.of, problems)
        ],
    }
    run = [sys.executable, str(AUTOTUNE), json.dumps(asked)]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder)}
    done = subprocess.run(run, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{AUTOTUNE.name} ended with {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    seconds = found["compiling"] + sum(found["seconds"])
    compiling = found["compiling"] if found["threads"] else None
    side = Side("triton.autotune", cache, len(problems), found["configurations"], seconds, compiling)
    return side, str(found["triton"])


def show(sides: Sequence[Side], heading: str) -> None:
    shown = table("", "programs", "problems", "configurations", "seconds", "a problem", "a configuration", "compiling")
    for one in sides:
        shown.add_row(
            *(one.name, one.cache, str(one.problems), f"{one.configurations:.1f}", f"{one.seconds:.1f}"),
            *(f"{one.seconds / one.problems:.2f}", f"{one.seconds / one.problems / one.configurations:.3f}"),
            "-" if one.compiling is None else f"{one.compiling:.1f}",
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
    asked = parser.parse_args()
    asked.out = asked.out.absolute()
    if asked.out.exists():
        parser.error(f"{asked.out} is there already; its programs would be found")
    try:
        file = with_list(asked.file, some_of(read_gemm_list(asked.list), asked.each), asked.out / "file")
    except UserError as error:
        parser.error(str(error))
    os.environ |= {name: str(asked.out / "caches" / name.lower()) for name in ("TUNESMITH_CACHE", "TRITON_CACHE_DIR")}
    first, problems = tuned(file, asked.out / "empty", asked.device, "none")
    shutil.copytree(asked.out / "empty" / CACHE, asked.out / "kept" / CACHE)
    sides = [first, tuned(file, asked.out / "kept", asked.device, "kept")[0]]
    version = ""
    for cache in ("none", "kept"):
        side, version = autotuned(problems, round(first.configurations), asked.out / "caches" / "autotune", cache)
        sides.append(side)
    show(sides, f"Triton {version}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}")
    if asked.json:
        result = {"date": time.strftime("%Y-%m-%d"), "triton": version, "cores": os.cpu_count()}
        written = json.dumps({**result, "sides": [asdict(side) for side in sides]}, indent=1)
        asked.json.write_text(written + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
