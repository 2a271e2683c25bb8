"""`tunesmith random tune -o DIR`: launch shapes of random generators, measured and chosen."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.records import UserError
from tunesmith.report import CompilingReport
from tunesmith.report.random import tuned as report
from tunesmith.session import Reuse
from tunesmith.session.random.compile import compile_random
from tunesmith.session.random.plan import tune_random
from tunesmith.session.random.task import RandomTask

from ..many_devices import Cluster, Devices, ManyDevicesOptions, WaitFor
from ..output import Device, Json
from ..runs import Budget, KeptIn, Out, Quiet, Remeasure, RetryFailed, Wait, carried_out

_UNITS = {"": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class Format(StrEnum):
    """The values of google-benchmark's option `--benchmark_out_format` that work here: JSON only."""

    JSON = "json"


def tune(
    out: Out,
    generators: Annotated[str, typer.Option(help="Names, separated by commas; all if absent.")] = "",
    distributions: Annotated[str, typer.Option(help="uniform, normal, log_normal, poisson; all if absent.")] = "",
    types: Annotated[str, typer.Option(help="float, half, double, unsigned_int ...; rocRAND's if absent.")] = "",
    block_sizes: Annotated[str, typer.Option(help="Work-items of a work-group, such as 64,128,256.")] = "",
    grid_sizes: Annotated[str, typer.Option(help="Work-groups, such as 512,1024 (tunesmith random grid-sizes).")] = "",
    min_threads: Annotated[int | None, typer.Option(min=1, help="Fewest work-items of a launch.")] = None,
    sizes: Annotated[
        str, typer.Option("--bytes", help="What a call writes, such as 1GiB,16MiB; 512MiB if absent.")
    ] = "",
    lam: Annotated[float, typer.Option("--lambda", min=1e-3, help="Mean of the Poisson distribution.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all generators.")] = 0,
    grow: Annotated[bool, typer.Option(help="Extend the grid sizes when a winner lies on their edge.")] = True,
    arch: Annotated[
        str | None,
        typer.Option("--arch", help="Only compile, for a device that is not here, such as sm_90."),
    ] = None,
    device: Device = None,
    devices: Devices = None,
    cluster: Cluster = None,
    wait_for: WaitFor = 1,
    budget: Budget = None,
    benchmark_filter: Annotated[
        str,
        typer.Option("--benchmark_filter", help="Regular expression on names such as xorwow_uniform_float_t256_b512."),
    ] = "",
    benchmark_out: Annotated[
        Path | None, typer.Option("--benchmark_out", help="Another place for google-benchmark's JSON.")
    ] = None,
    benchmark_out_format: Annotated[Format, typer.Option("--benchmark_out_format")] = Format.JSON,
    retry_failed: RetryFailed = False,
    remeasure: Remeasure = False,
    store: KeptIn = None,
    wait: Wait = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure launch shapes for random generators, choose, and write the table that `tunesmith.random` uses.

    Ctrl-C keeps everything that was measured; the same command goes on. With --arch nothing is launched: programs are
    compiled into the folder, where the same command without it finds them on such a device.

    Example: `tunesmith random tune --generators philox4_32_10,xorwow --types float -o out/random`

    Example: `tunesmith random tune --arch sm_90 -o out/h200`
    """
    task = RandomTask(
        generators=_names(generators),
        distributions=_names(distributions),
        value_types=_names(types),
        pattern=benchmark_filter,
        blocks=_numbers("--block-sizes", block_sizes),
        grids=_numbers("--grid-sizes", grid_sizes),
        min_threads=min_threads,
        bytes=tuple(_bytes(word) for word in _names(sizes)),
        lam=lam,
        seed=seed,
        grow=grow,
    )
    many = ManyDevicesOptions(devices, cluster, wait_for, device)
    if arch is not None:
        if device is not None or many.option:
            option = many.option or "--device"
            raise UserError("--arch", "is for a device that is not here", f"give --arch or {option}")
        compiling = partial(compile_random, task, out, arch)
        document, tables = report.compiled_document, report.compiled
        carried_out(compiling, out, document, tables, quiet=quiet, as_json=as_json, report=CompilingReport)
    else:
        tuning = partial(
            tune_random,
            task,
            folder=out,
            device=device,
            budget_minutes=budget,
            reuse=Reuse.of(retry_failed, remeasure),
            store=store,
            wait=wait,
            benchmark_out=benchmark_out,
        )
        carried_out(tuning, out, report.tuned_document, report.tuned, quiet=quiet, as_json=as_json, many=many)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _numbers(option: str, text: str) -> tuple[int, ...]:
    numbers = []
    for word in _names(text):
        if not word.isascii() or not word.isdigit() or not 1 <= int(word[:12]) < 2**31:
            raise UserError(option, f"{word!r} is no whole number from 1", "give numbers separated by commas")
        numbers.append(int(word))
    return tuple(sorted(set(numbers)))


def _bytes(word: str) -> int:
    match = re.fullmatch(r"([0-9]{1,15})\s*([KMG]iB)?", word, re.IGNORECASE)
    if not match or int(match[1]) == 0:
        raise UserError("--bytes", f"{word!r} is no size", "give bytes, or a number with KiB, MiB or GiB")
    return int(match[1]) * _UNITS[(match[2] or "").upper()]
