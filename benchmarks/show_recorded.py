"""The tables of README and docs, made from what is recorded: between `<!-- recorded NAME: begin -->` and `... end -->`.

    python benchmarks/show_recorded.py [--check]

Writes the pages anew; with --check it writes nothing, and the exit code is 1 where a page differs.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "benchmarks" / "recorded"
PAGES = ("README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"(<!-- recorded (\w+): begin -->\n).*?(<!-- recorded \2: end -->)", re.DOTALL)
FILLS = {
    "uniform float": "uniform float", "uniform double": "uniform double", "normal float": "normal float",
    "normal double": "normal double", "log_normal float": "log-normal float", "log_normal double": "log-normal double",
    "poisson unsigned_int": "Poisson",
}  # fmt: skip


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def loaded(name: str, file: str = "run.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / name / file).read_text(encoding="utf-8"))
    return found


def gemm(name: str) -> str:
    run = loaded(name)
    heads = ("", "problems", "geometric mean", "5th percentile", "worst", "cuBLAS chosen", "own kernels alone", "host")
    rows = [
        (
            one["family"], str(one["count"]), *(f"{one[key]:.3f}" for key in ("geomean", "percentile_5", "worst")),
            f"{100 * one['vendor_chosen']:.0f} %", "-" if one["own"] is None else f"{one['own']:.3f}",
            f"{one['host']:.3f}",
        )
        for one in run["summaries"]
    ]  # fmt: skip
    torch = f"torch {run['torch']}"
    return f"{run['device']}, {run['date']}, driver {run['driver']}, {torch}:\n\n{table(heads, rows)}"


def held_out(name: str) -> str:
    run = loaded(name)
    heads = ("sizes asked", "first list, left out", "second list", "5th percentile", "worst", "cuBLAS's time / ours")
    keys = ("fitted", "scored", "percentile_5", "worst", "over_vendor")
    rows = [(str(one["asked"]), *(f"{one[key]:.3f}" for key in keys)) for one in run["rows"]]
    said = f"Fitted on the first list: {run['fitted']}; in use: {run['in_use']}.\n"
    return f"{table(heads, rows)}\n{said}"


def tuning_time(name: str) -> str:
    run = loaded(name)
    heads = ("", "programs", "problems", "configurations", "seconds", "a problem", "a configuration")
    rows = [
        (
            one["name"], one["cache"], str(one["problems"]), f"{one['configurations']:.1f}", f"{one['seconds']:.1f}",
            f"{one['seconds'] / one['problems']:.2f}",
            f"{one['seconds'] / one['problems'] / one['configurations']:.3f}",
        )
        for one in run["sides"]
    ]  # fmt: skip
    return f"{run['date']}, Triton {run['triton']}, {run['cores']} cores:\n\n{table(heads, rows)}"


def fills(name: str) -> str:
    run = loaded(name)
    with (RECORDED / name / "rows.csv").open(encoding="utf-8", newline="") as file:
        every = list(csv.DictReader(file))
    parts = [f"{run['device']}, {run['date']}, driver {run['driver']}, cuRAND {run['curand']}.\n"]
    for size in sorted({int(row["bytes"]) for row in every}, reverse=True):
        known = {(row["generator"], f"{row['distribution']} {row['value_type']}"): row
                 for row in every if int(row["bytes"]) == size}  # fmt: skip
        names = list(dict.fromkeys(generator for generator, _ in known))
        rows = [(one, *(_fill(known.get((one, key))) for key in FILLS)) for one in names]
        parts.append(f"Buffers of {size // 2**20} MiB:\n\n{table(('generator', *FILLS.values()), rows)}")
    return "\n".join([*parts, "\n".join(f"- {line}" for line in run["summary"]) + "\n"])


def _fill(row: dict[str, str] | None) -> str:
    if row is None:
        return "-"
    ratio = f" ({float(row['over_curand']):.2f} {row['ordering']})" if row["over_curand"] else ""
    return f"{float(row['ours']):.0f}{ratio}"


SHOWN: dict[str, Callable[[str], str]] = {
    "gemm_bf16": gemm,
    "gemm_bf16_second": held_out,
    "tuning_beside_autotune": tuning_time,
    "random_vs_curand": fills,
}


def block(name: str) -> str:
    """What stands between the marks; a sentence where nothing is recorded yet."""
    if not (RECORDED / name / "run.json").exists():
        return f"No record yet: `benchmarks/recorded/{name}/run` measures it.\n"
    return SHOWN[name](name)


def page(text: str) -> str:
    return BLOCK.sub(lambda found: f"{found[1]}{block(found[2])}{found[3]}", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    asked = parser.parse_args()
    differing = []
    for path in map(ROOT.joinpath, PAGES):
        text = path.read_text(encoding="utf-8")
        if (made := page(text)) != text:
            differing.append(path)
            if not asked.check:
                path.write_text(made, encoding="utf-8")
    for path in differing:
        print(path)
    return 1 if asked.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
