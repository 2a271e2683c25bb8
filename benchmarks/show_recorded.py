"""Puts tables of recorded results into README and docs, between `<!-- recorded NAME: begin -->` and `... end -->`.

    python benchmarks/show_recorded.py [--check]

With --check nothing is written, and the exit code is 1 if a page differs.
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
from tunesmith.models.stream_k import calibration_file as stream_k_file

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
    content: dict[str, Any] = json.loads((RECORDED / name / file).read_text(encoding="utf-8"))
    return content


def gemm(name: str) -> str:
    run = loaded(name)
    heads = ("", "problems", "geometric mean", "5th percentile", "worst", "cuBLAS chosen", "own kernels alone", "host")
    rows = [
        (
            family["family"], str(family["count"]),
            *(f"{family[key]:.3f}" for key in ("geomean", "percentile_5", "worst")),
            f"{100 * family['vendor_chosen']:.0f} %", "-" if family["own"] is None else f"{family['own']:.3f}",
            f"{family['host']:.3f}",
        )
        for family in run["summaries"]
    ]  # fmt: skip
    torch = f"torch {run['torch']}"
    return f"{run['device']}, {run['date']}, driver {run['driver']}, {torch}:\n\n{table(heads, rows)}"


def host_times(name: str) -> str:
    compiled, in_python = loaded(name), loaded(name, "python.json")
    heads = ("launch", "type", "call", "compiled", "in Python", "torch.mm", "compiled less it", "in Python less it")
    rows = [
        (
            row["launches"], row["dtype"], row["case"], f"{row['ours']:.1f}", f"{other['ours']:.1f}",
            f"{row['theirs']:.1f}, {other['theirs']:.1f}", f"{row['ours'] - row['theirs']:+.1f}",
            f"{other['ours'] - other['theirs']:+.1f}",
        )
        for row, other in zip(compiled["rows"], in_python["rows"], strict=True)
    ]  # fmt: skip
    size = compiled["rows"][0]["size"]
    made = f"{compiled['device']}, {compiled['date']}, torch {compiled['torch']}"
    return f"{made}; M = N = K = {size}, microseconds a call:\n\n{table(heads, rows)}"


def held_out(name: str) -> str:
    run = loaded(name)
    heads = ("sizes asked", "first list, left out", "second list", "5th percentile", "worst", "cuBLAS's time / ours")
    keys = ("fitted", "scored", "percentile_5", "worst", "over_vendor")
    rows = [(str(row["asked"]), *(f"{row[key]:.3f}" for key in keys)) for row in run["rows"]]
    sentence = f"Fitted on the first list: {run['fitted']}; in use: {run['in_use']}.\n"
    return f"{table(heads, rows)}\n{sentence}"


def tuning_time(name: str) -> str:
    run = loaded(name)
    heads = ("", "programs", "problems", "configurations", "seconds", "a problem", "a configuration")
    rows = [
        (
            side["name"], side["cache"], str(side["problems"]), f"{side['configurations']:.1f}",
            f"{side['seconds']:.1f}", f"{side['seconds'] / side['problems']:.2f}",
            f"{side['seconds'] / side['problems'] / side['configurations']:.3f}",
        )
        for side in run["sides"]
    ]  # fmt: skip
    return f"{run['date']}, Triton {run['triton']}, {run['cores']} cores:\n\n{table(heads, rows)}"


def fills(name: str) -> str:
    """Tables of all fills. A row of the second run replaces the first run's row of the same fill."""
    first, second = (loaded(name, file) for file in ("run.json", "one_word.json"))
    texts = [(RECORDED / name / file).read_text(encoding="utf-8") for file in ("rows.csv", "one_word.csv")]
    every = {row.fill: row for text in texts for row in read_rows(text)}
    again = ", ".join(dict.fromkeys(row.fill.generator for row in read_rows(texts[1])))
    device, driver, curand = (first[key] for key in ("device", "driver", "curand"))
    parts = [f"{device}, {first['date']} ({again}: {second['date']}), driver {driver}, cuRAND {curand}.\n"]
    for size in sorted({fill.bytes for fill in every}, reverse=True):
        rows_of_size = {
            (fill.generator, f"{fill.distribution} {fill.value_type}"): row
            for fill, row in every.items()
            if fill.bytes == size
        }
        names = list(dict.fromkeys(generator for generator, _ in rows_of_size))
        rows = [(generator, *(_fill(rows_of_size.get((generator, key))) for key in FILLS)) for generator in names]
        parts.append(f"Buffers of {size // 2**20} MiB:\n\n{table(('generator', *FILLS.values()), rows)}")
    return "\n".join([*parts, "\n".join(f"- {line}" for line in sums(list(every.values()))) + "\n"])


def _fill(row: Row | None) -> str:
    if row is None:
        return "-"
    ratio = f" ({row.fastest.ratio:.2f} {row.fastest.ordering})" if row.fastest else ""
    return f"{row.ours:.0f}{ratio}"


def stream_k(name: str) -> str:
    run = loaded(name)
    by_list = {folder: _sweep_summary(name, folder) for folder in ("fit", "score")}
    heads = ("", *(summary.title for summary in by_list.values()))
    methods = by_list["fit"].cells
    cells_by_method = [(method, *(summary.cells[method] for summary in by_list.values())) for method in methods]
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
    return f"{table(heads, cells_by_method)}\n{table(('constants', *names), constants)}"


class SweepSummary(NamedTuple):
    """A sweep's title, and for each way to choose the geometric mean and the worst of its efficiency."""

    title: str
    cells: dict[str, str]


def _sweep_summary(name: str, folder: str) -> SweepSummary:
    with (RECORDED / name / folder / "sweep.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, list[float]] = {}
    for row in rows:
        for method in filter(None, row["chosen_by"].split("; ")):
            found.setdefault(method, []).append(float(row["efficiency"]))
    problems = len({(row["m"], row["n"], row["k"]) for row in rows})
    cells = {method: f"{statistics.geometric_mean(found[method]):.3f}, {min(found[method]):.3f}" for method in found}
    (calibration,) = stream_k_file.read(RECORDED / name / folder / "calibration.yaml")
    subject, tile = calibration.subject, calibration.subject.tile
    named = TYPES.get(subject.data_type, subject.data_type)
    where = f"{subject.device}, {calibration.origin.driver}, {calibration.origin.compiler}, {calibration.origin.date}"
    return SweepSummary(f"{folder}: {problems} products, {named}, tile {tile.m}x{tile.n}; {where}", cells)


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


def beside_numpy(name: str) -> str:
    run = loaded(name)
    heads = (
        *("", "products", "own kernels", "from 128^3: geomean", "worst", "of the fastest calls: geomean", "worst"),
        *("from 512^3: geomean", "worst", "below 128^3: extra us, median", "most"),
    )
    keys = (
        *("large_geomean", "large_worst", "large_least_geomean", "large_least_worst"),
        *("from_512_geomean", "from_512_worst", "small_median_extra", "small_most_extra"),
    )
    rows = [
        (
            case["name"], str(len(case["rows"])), str(case["summary"]["own_kernels"]),
            *(f"{case['summary'][key]:.3f}" for key in keys),
        )
        for case in run["cases"]
    ]  # fmt: skip
    load = f"load average {run['load_before']:.0f} before and {run['load_after']:.0f} after the run"
    return f"{run['date']}, NumPy's BLAS is {run['blas']}; {load}:\n\n{table(heads, rows)}"


FAMILIES = {"policies_cpu": "layers", "policies_h200": "families"}
"""What the families of a list of products are."""


def policies(name: str) -> str:
    run = loaded(name)
    (judged,) = run["judgements"]
    heads = ("policy", "products", "geomean", "95 %", "10th %", "worst", ">= 0.95", "of least", "top 5")
    rows = [
        (
            policy["policy"], str(policy["score"]["products"]), f"{policy['score']['geomean']:.3f}",
            " - ".join(f"{end:.3f}" for end in policy["score"]["interval"]),
            *(f"{policy['score'][key]:.3f}" for key in ("percentile_10", "worst", "good", "against_least")),
            f"{policy['top']['5']:.3f}" if policy["top"] else "-",
        )
        for policy in judged["policies"]
    ]  # fmt: skip
    noise = f"a time's interval is +-{100 * judged['noise']['half_width']:.1f} % in the median"
    groups = f"{judged['products']} products of {judged['groups']} {FAMILIES[name]}"
    return f"{judged['device']}, {judged['data_type']}, {groups}; {noise}:\n\n{table(heads, rows)}"


def own_kernels(name: str) -> str:
    heads = ("device", "kernel", "configurations", "tunesmith", "Kernel Tuner", "ratio", "their winner / ours", "lines")
    rows = [
        (
            machine["name"], row["kernel"], str(row["configurations"]), f"{row['ours']['seconds']:.1f} s",
            f"{row['theirs']['seconds']:.1f} s", f"{row['ours']['seconds'] / row['theirs']['seconds']:.2f}",
            f"{row['their_best'] / row['our_best']:.3f}", f"{row['our_lines']} and {row['their_lines']}",
        )
        for machine in loaded(name)["machines"]
        for row in machine["rows"]
    ]  # fmt: skip
    return table(heads, rows)


def first_calls(name: str) -> str:
    run = loaded(name)
    heads = ("kernel", "configurations", "tunesmith", "triton.autotune", "ratio", "our winner", "their winner / ours")
    rows = [
        (
            row["kernel"], str(row["configurations"]), *(f"{row['seconds'][side]:.1f} s" for side in SIDES),
            f"{row['seconds']['tunesmith'] / row['seconds']['triton']:.2f}", row["winner"],
            f"{row['times']['triton'] / row['times']['tunesmith']:.3f}",
        )
        for row in run["rows"]
    ]  # fmt: skip
    where = f"{run['device']}, {run['processors']} processors, {run['date']}, Triton {run['triton']}"
    ready = f"The import and all first calls of a second process took {run['second']['ready']:.2f} s.\n"
    return f"{where}:\n\n{table(heads, rows)}\n{ready}"


SIDES = ("tunesmith", "triton")

SHOWN: dict[str, Callable[[str], str]] = {
    "gemm_bf16": gemm,
    "gemm_shipped_h100": gemm,
    "gemm_shipped_h200": gemm,
    "gemm_shipped_second": gemm,
    "gemm_shipped_batched": gemm,
    "gemm_shipped_fp16": gemm,
    "gemm_shipped_tf32": gemm,
    "gemm_shipped_fp8": gemm,
    "gemm_tuned": gemm,
    "matmul_overhead": host_times,
    "gemm_bf16_second": held_out,
    "tuning_beside_autotune": tuning_time,
    "random_vs_curand": fills,
    "stream_k": stream_k,
    "batches": batches,
    "cpu_vs_numpy": beside_numpy,
    "policies_cpu": policies,
    "policies_h200": policies,
    "beside_kernel_tuner": own_kernels,
    "autotune_beside_triton": first_calls,
}


def block(name: str) -> str:
    """The text between the marks; a sentence if nothing is recorded yet."""
    if not (RECORDED / name / "run.json").exists():
        return f"No record yet: `benchmarks/recorded/{name}/run` measures it.\n"
    return SHOWN[name](name)


def page(text: str) -> str:
    return BLOCK.sub(lambda found: f"{found[1]}{block(found[2])}{found[3]}", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    differing = []
    for path in map(ROOT.joinpath, PAGES):
        text = path.read_text(encoding="utf-8")
        if (new_text := page(text)) != text:
            differing.append(path)
            if not options.check:
                path.write_text(new_text, encoding="utf-8")
    for path in differing:
        print(path)
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
