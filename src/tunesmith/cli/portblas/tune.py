"""`tunesmith portblas tune nn|nt|tn|tt|all M K N BATCH REP`: every combination of a list, measured and ranked."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.records import UserError
from tunesmith.report.portblas import outcome as report
from tunesmith.session import Reuse
from tunesmith.session.portblas.plan import tune_portblas
from tunesmith.session.portblas.task import ALL, FAMILIES, LAYOUTS, TRANSPOSES, TYPES, PortBlasTask

from ..many_devices import Cluster, Devices, ManyDevicesOptions, WaitFor
from ..output import Device, Json
from ..runs import Budget, KeptIn, Out, Quiet, Remeasure, RetryFailed, Wait, carried_out
from .generate import Folders

SIZES = ("M", "K", "N", "BATCH", "REP")
LARGEST = 2**31 - 1
_ORDER = f"the order is {ALL}|{'|'.join(TRANSPOSES)} M K N BATCH REP [{'|'.join(LAYOUTS)}]"


def tune(
    transposes: Annotated[str, typer.Argument(metavar="|".join((*TRANSPOSES, ALL)), help="What is transposed.")],
    sizes: Annotated[
        list[str],
        typer.Argument(
            metavar="M K N BATCH REP [LAYOUT]",
            help="Sizes of C = A B, matrices of the batch, least samples of a time; strided or interleaved.",
        ),
    ],
    out: Out = Path("out/portblas"),
    config: Annotated[
        str, typer.Option(help="A parameter file, or a set's name; the device's own set if absent.")
    ] = "",
    folder: Folders = None,
    logic: Annotated[
        Path | None,
        typer.Option(help="The current library: a logic or a folder of them; OUT's own if absent."),
    ] = None,
    device: Device = None,
    devices: Devices = None,
    cluster: Cluster = None,
    wait_for: WaitFor = 1,
    language: Annotated[str, typer.Option(help=f"{' or '.join(FAMILIES)}; the device's first if absent.")] = "",
    data_type: Annotated[str, typer.Option("--type", help=f"Precision: {', '.join(TYPES)}.")] = "s",
    guided: Annotated[
        bool, typer.Option("--guided", help="Measure a tenth of the list, where a model expects most.")
    ] = False,
    vendor: Annotated[
        bool, typer.Option("--vendor", help="Let the logic choose the system BLAS where it is the fastest.")
    ] = False,
    budget: Budget = None,
    retry_failed: RetryFailed = False,
    remeasure: Remeasure = False,
    store: KeptIn = None,
    wait: Wait = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure the system BLAS, the current library and every combination; print them from the worst to the best.

    The arguments are in the original's order. Everything is verified and timed alike. The winner of each transposition
    goes into library logic, which `tunesmith.load` uses, and into a C++ header for portBLAS. Ctrl-C keeps everything
    that was measured; the same command goes on. Lists of more than 500 kernels are guided where there is a budget.

    Example: `tunesmith portblas tune nn 1024 1024 1024 1 10`

    Example: `tunesmith portblas tune all 64 64 64 64 10 interleaved --config default -o out/small`
    """
    words = [word.lower() for word in sizes]
    m, k, n, batch, repetitions = _sizes(words)
    task = PortBlasTask(
        transposes=transposes.lower(),
        m=m,
        k=k,
        n=n,
        batch=batch,
        repetitions=repetitions,
        layout=words[-1] if len(words) > len(SIZES) else LAYOUTS[0],
        data_type=data_type.lower(),
        language=next((name for name in FAMILIES if name.lower() == language.lower()), language),
        config=config,
        folders=tuple(folder or ()),
        logic=logic,
        guided=guided,
        vendor=vendor,
    )
    work = partial(
        tune_portblas,
        task,
        folder=out,
        device=device,
        budget_minutes=budget,
        reuse=Reuse.of(retry_failed, remeasure),
        store=store,
        wait=wait,
    )
    many = ManyDevicesOptions(devices, cluster, wait_for, device)
    carried_out(work, out, report.document, report.tables, quiet=quiet, as_json=as_json, many=many)


def _sizes(words: list[str]) -> list[int]:
    """M, K, N, BATCH and REP, of words that a layout may follow."""
    numbers = [_number(name, word) for name, word in zip(SIZES, words, strict=False)]
    if len(numbers) < len(SIZES):
        raise UserError(SIZES[len(numbers)], "is missing", _ORDER)
    if len(words) > len(SIZES) + 1:
        raise UserError(words[len(SIZES) + 1], "is one argument too many", _ORDER)
    return numbers


def _number(name: str, word: str) -> int:
    """The number of a word. Raises UserError for other words; the original reads them as zero, and divides by it."""
    if word in LAYOUTS:
        raise UserError(name, f"is missing before {word}", _ORDER)
    if not (word.isascii() and word.isdigit() and 1 <= int(word[:12]) <= LARGEST):
        raise UserError(name, f"{word!r} is no whole number from 1", _ORDER)
    return int(word)
