"""The tables of README and docs, made from what is recorded: between `<!-- recorded NAME: begin -->` and `... end -->`.

    python benchmarks/show_recorded.py [--check]

Writes the pages anew; with --check it writes nothing, and the exit code is 1 where a page differs.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from random_ratios import Row, read_rows, sums
from tunesmith.models.stream_k import file as stream_k_file

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "benchmarks" / "recorded"
PAGES = ("README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(r"(<!-- recorded (\w+): begin -->\n).*?(<!-- recorded \2: end -->)", re.DOTALL)
TYPES = {"b": "bfloat16", "x": "TF32"}
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
    """The rows of the first run, those of the second in the place of what it measured anew."""
    first, second = (loaded(name, file) for file in ("run.json", "one_word.json"))
    texts = [(RECORDED / name / file).read_text(encoding="utf-8") for file in ("rows.csv", "one_word.csv")]
    every = {row.fill: row for text in texts for row in read_rows(text)}
    again = ", ".join(dict.fromkeys(row.fill.generator for row in read_rows(texts[1])))
    device, driver, curand = (first[key] for key in ("device", "driver", "curand"))
    parts = [f"{device}, {first['date']} ({again}: {second['date']}), driver {driver}, cuRAND {curand}.\n"]
    for size in sorted({fill.bytes for fill in every}, reverse=True):
        known = {(fill.generator, f"{fill.distribution} {fill.value_type}"): row
                 for fill, row in every.items() if fill.bytes == size}  # fmt: skip
        names = list(dict.fromkeys(generator for generator, _ in known))
        rows = [(one, *(_fill(known.get((one, key))) for key in FILLS)) for one in names]
        parts.append(f"Buffers of {size // 2**20} MiB:\n\n{table(('generator', *FILLS.values()), rows)}")
    return "\n".join([*parts, "\n".join(f"- {line}" for line in sums(list(every.values()))) + "\n"])


def _fill(row: Row | None) -> str:
    if row is None:
        return "-"
    ratio = f" ({row.fastest.ratio:.2f} {row.fastest.ordering})" if row.fastest else ""
    return f"{row.ours:.0f}{ratio}"


def stream_k(name: str) -> str:
    run = loaded(name)
    by_list = {folder: _ways(name, folder) for folder in ("fit", "score")}
    heads = ("", *(one.title for one in by_list.values()))
    ways = [(way, *(one.cells[way] for one in by_list.values())) for way in by_list["fit"].cells]
    constants = [
        (
            row["rule"],
            *(f"{value:g}" for value in row["constants"].values()),
            f"{row['first']:.3f}",
            f"{row['second']:.3f}",
        )
        for row in run["rows"]
    ]
    names = (*(key.upper() for key in run["rows"][0]["constants"]), *by_list)
    return f"{table(heads, ways)}\n{table(('constants', *names), constants)}"


class Ways(NamedTuple):
    """A sweep's title, and for each way to choose the geometric mean of its efficiency and the worst."""

    title: str
    cells: dict[str, str]


def _ways(name: str, folder: str) -> Ways:
    with (RECORDED / name / folder / "sweep.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, list[float]] = {}
    for row in rows:
        for way in filter(None, row["chosen_by"].split("; ")):
            found.setdefault(way, []).append(float(row["efficiency"]))
    problems = len({(row["m"], row["n"], row["k"]) for row in rows})
    cells = {way: f"{statistics.geometric_mean(found[way]):.3f}, {min(found[way]):.3f}" for way in found}
    (made,) = stream_k_file.read(RECORDED / name / folder / "calibration.yaml")
    of, tile = made.subject, made.subject.tile
    named = TYPES.get(of.data_type, of.data_type)
    where = f"{of.device}, {made.origin.driver}, {made.origin.compiler}, {made.origin.date}"
    return Ways(f"{folder}: {problems} products, {named}, tile {tile.m}x{tile.n}; {where}", cells)


def batches(name: str) -> str:
    rows: list[dict[str, Any]] = json.loads((RECORDED / name / "run.json").read_text(encoding="utf-8"))
    heads = ("device", "batch", "ours", "95 %", "peer", "theirs", "95 %", "theirs / ours")
    cells = [
        (
            row["device"], row["batch"], f"{row['ours']:.1f} us", _range(row["ours_interval"]), row["peer"],
            f"{row['theirs']:.1f} us", _range(row["theirs_interval"]), f"{row['ratio']:.3f}",
        )
        for row in rows
    ]  # fmt: skip
    return table(heads, cells)


def _range(ends: Sequence[float]) -> str:
    return f"{ends[0]:.1f} to {ends[1]:.1f}"


def policies(name: str) -> str:
    run = loaded(name)
    (judged,) = run["judgements"]
    heads = ("policy", "products", "geomean", "95 %", "10th %", "worst", ">= 0.95", "of least", "top 5")
    rows = [
        (
            one["policy"], str(one["score"]["products"]), f"{one['score']['geomean']:.3f}",
            " - ".join(f"{end:.3f}" for end in one["score"]["interval"]),
            *(f"{one['score'][key]:.3f}" for key in ("percentile_10", "worst", "good", "against_least")),
            f"{one['top']['5']:.3f}" if one["top"] else "-",
        )
        for one in judged["policies"]
    ]  # fmt: skip
    noise = f"a time's interval is +-{100 * judged['noise']['half_width']:.1f} % in the median"
    groups = f"{judged['products']} products of {judged['groups']} layers"
    return f"{judged['device']}, {judged['data_type']}, {groups}; {noise}:\n\n{table(heads, rows)}"


SHOWN: dict[str, Callable[[str], str]] = {
    "gemm_bf16": gemm,
    "gemm_bf16_second": held_out,
    "tuning_beside_autotune": tuning_time,
    "random_vs_curand": fills,
    "stream_k": stream_k,
    "batches": batches,
    "policies_cpu": policies,
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
