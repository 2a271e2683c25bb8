"""`tunesmith heuristics judge MATRIX...`: how close every policy comes to the best known time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.records import UserError
from tunesmith.report.heuristics import policies as report
from tunesmith.session import Reuse
from tunesmith.session.heuristics.judge import JudgeTask, judge_heuristics
from tunesmith.session.heuristics.matrices import MatrixTask

from ..output import Json
from ..runs import Budget, KeptIn, Quiet, Remeasure, RetryFailed, Wait, carried_out


def judge(
    matrices: Annotated[
        list[Path], typer.Argument(metavar="MATRIX...", help="Stores, folders that hold one, tables of finals.")
    ],
    policy: Annotated[
        list[str], typer.Option("--policy", help="A policy to judge; all, with the ablation, if absent.")
    ] = [],  # noqa: B006  # typer's own way to say "none"
    heuristic: Annotated[
        list[Path], typer.Option("--heuristic", help="The file of a fitted heuristic to judge, too.")
    ] = [],  # noqa: B006
    kernel: Annotated[
        list[str],
        typer.Option(
            "--kernel", help="A kernel family to choose from; the first that can compute a product if absent."
        ),
    ] = [],  # noqa: B006
    sizes: Annotated[
        Path | None,
        typer.Option("--sizes", help="LIST.csv (m, n, k, batch, trans_a, trans_b, family): only these products count."),
    ] = None,
    without: Annotated[
        list[Path], typer.Option("--without", help="A matrix whose products do not count: what a policy was fitted on.")
    ] = [],  # noqa: B006
    choices: Annotated[
        bool,
        typer.Option(
            "--choices",
            help="Also judge what chooses among the measured solutions, the vendor's library among these: the nearest "
            "sizes, a choice model, the vendor alone. Both learn from other families, or from --taught.",
        ),
    ] = False,
    taught: Annotated[
        list[Path], typer.Option("--taught", help="A matrix that --choices learns from, instead of other families.")
    ] = [],  # noqa: B006
    model: Annotated[
        list[Path],
        typer.Option("--model", help="A choice model's file that is judged, instead of a model fitted to --taught."),
    ] = [],  # noqa: B006
    plans: Annotated[
        list[Path],
        typer.Option("--plans", help="For --choices: what the library says of the products, by `heuristics plans`."),
    ] = [],  # noqa: B006
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for what is measured; the same one again goes on.")
    ] = Path("judged"),
    device: Annotated[
        str | None,
        typer.Option("--device", help="The matrices' device, where several are here; none: measure nothing."),
    ] = None,
    budget: Budget = None,
    retry_failed: RetryFailed = False,
    remeasure: Remeasure = False,
    store: KeptIn = None,
    wait: Wait = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Score policies that choose a configuration unmeasured: the best known time over the time of what they choose.

    Where the matrices' device is here, the choices are measured side by side with the best known configurations;
    elsewhere a choice that nobody measured is scored by its nearest measured neighbour, and the table says how many
    were.

    Example: `tunesmith heuristics judge results/ --sizes list.csv --kernel CudaWgmmaGemm --kernel TritonGemm -o judged`

    Example: `tunesmith heuristics judge results/measurements.sqlite --device none --heuristic fitted.yaml`
    """
    if taught and not choices:
        raise UserError("--taught", "means nothing without --choices", "give both")
    if plans and not choices:
        raise UserError("--plans", "means nothing without --choices", "give both")
    if model and not taught:
        raise UserError(
            "--model", "means nothing without --taught", "give the matrices whose solutions it chooses from"
        )
    task = JudgeTask(
        MatrixTask(tuple(matrices), (sizes,) if sizes else (), tuple(without), plans=tuple(plans)),
        tuple(policy),
        tuple(heuristic),
        tuple(kernel),
        choices,
        tuple(taught),
        tuple(model),
    )
    reuse = Reuse.of(retry_failed, remeasure)
    work = partial(
        judge_heuristics, task, out, device=device, budget_minutes=budget, reuse=reuse, store=store, wait=wait
    )
    carried_out(work, out, report.judged_document, report.judged, quiet=quiet, as_json=as_json)
