"""Commands that run for minutes: the options that they share, and how they show progress, stop and end."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from rich.console import Group, RenderableType

from tunesmith.records import printable
from tunesmith.report import CompilingReport, ProgressReport
from tunesmith.session.frame.events import Message
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse

from .many_devices import ManyDevicesOptions
from .output import Device, Json, messages, print_facts

INTERRUPTED = 130

Out = Annotated[Path, typer.Option("-o", "--out", help="Folder for results; the same one again goes on.")]
Budget = Annotated[float | None, typer.Option("--budget", min=0.01, help="Minutes to keep to.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Measure again what failed in an earlier run.")]
Remeasure = Annotated[bool, typer.Option("--remeasure", help="Measure everything again, whatever the folder has.")]
KeptIn = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Keep measurements there, not in a file of the folder: postgresql://USER@HOST/DATABASE, or a path.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait", help="If another command tunes in the folder, wait until it ends.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]

PlanT = TypeVar("PlanT")


@dataclass(frozen=True)
class RunOptions:
    """The last options of commands that measure on a device, in the order of the help page (`takes_run_options`)."""

    device: Device = None
    budget: Budget = None
    retry_failed: RetryFailed = False
    remeasure: Remeasure = False
    store: KeptIn = None
    wait: Wait = False
    quiet: Quiet = False
    as_json: Json = False

    @property
    def reuse(self) -> Reuse:
        """Which stored measurements the options let a run reuse."""
        return Reuse.of(self.retry_failed, self.remeasure)


def takes_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `RunOptions` in the place of its last parameter, `run`. Typer reads the options
    from the signature."""
    *own, last = inspect.signature(command, eval_str=True).parameters.values()
    assert last.name == "run"
    types = get_type_hints(RunOptions, include_extras=True)
    shared = [
        inspect.Parameter(field.name, last.kind, default=field.default, annotation=types[field.name])
        for field in fields(RunOptions)
    ]

    @wraps(command)
    def with_options(**arguments: Any) -> None:
        run = RunOptions(**{option.name: arguments.pop(option.name) for option in shared})
        command(**arguments, run=run)

    with_options.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
    return with_options


def _warn(sentence: str) -> None:
    """Print a warning, whatever the output is."""
    messages.print(printable(sentence))


def carried_out(
    work: Callable[..., RunOutcome[PlanT]],
    folder: Path,
    document: Callable[[RunOutcome[PlanT]], Mapping[str, Any]],
    tables: Callable[[RunOutcome[PlanT]], RenderableType],
    *,
    quiet: bool,
    as_json: bool,
    report: type[ProgressReport] | type[CompilingReport] = ProgressReport,
    many: ManyDevicesOptions | None = None,
) -> None:
    """Do the work with an observer, and print the outcome. The exit code is 1 if there is something to look at.

    With several devices (`many`), the work is done for each kind of device, and all outcomes are printed.

    Ctrl-C and SIGTERM end the work, with a message that everything so far is in `folder`.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with report(messages, quiet or as_json) as progress:
            if many and many.option:
                with many.kinds(folder, lambda sentence: progress(Message(sentence)), _warn) as kinds:
                    outcomes = [work(observe=progress, **vars(kind)) for kind in kinds]
            else:
                outcomes = [work(observe=progress)]
    except KeyboardInterrupt:
        done = "compiled" if report is CompilingReport else "measured"
        messages.print(
            f"stopped; everything {done} is in {printable(str(folder))}, and the same command goes on from there"
        )
        raise typer.Exit(INTERRUPTED) from None
    if len(outcomes) == 1:
        print_facts(as_json, document, tables, outcomes[0])
    else:
        print_facts(
            as_json,
            lambda: {"kinds": [document(outcome) for outcome in outcomes]},
            lambda: Group(*map(tables, outcomes)),
        )
    if any(outcome.look_at for outcome in outcomes):
        raise typer.Exit(1)
