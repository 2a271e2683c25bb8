"""The commands as one application. One file a command; this one holds them together."""

from __future__ import annotations

from importlib import import_module

import typer

COMMANDS = ("devices", "plan", "tune", "show", "select", "compare")
"""Each is a module of this package with a function of the same name."""

GROUPS = {
    "random": (
        "Tune launch shapes of random number generators, and choose from what was measured.",
        ("tune", "select", "grid-sizes"),
    ),
    "portblas": (
        "GEMM kernels from portBLAS's parameter files: list them, generate them, tune them.",
        ("generate", "configs", "tune"),
    ),
    "calibrate": ("Measure what models need to know of a device.", ("stream-k",)),
    "stream-k": ("How the tiles of a product are split over a device's work-groups.", ("explain", "sweep")),
}
"""By name: what a group of commands is for, and its commands. The command `tune` of `random` is the function `tune` of
the module `random_tune`."""

TAKES_SIZES = ("select", "stream-k explain")
"""Commands that take any number of words after `--size`."""

app = typer.Typer(
    name="tunesmith",
    help="Tune once, ship the logic, launch the best kernel.\n\n"
    "Exit codes: 0 done; 1 finished with something to look at; 2 a mistake in what was given; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _add(to: typer.Typer, words: str) -> None:
    """Add a command, which is named by all words that call it."""
    name = words.split()[-1]
    module = import_module(f"tunesmith.cli.{words.replace('-', '_').replace(' ', '_')}")
    settings = {"allow_extra_args": words in TAKES_SIZES}
    to.command(name, context_settings=settings)(getattr(module, name.replace("-", "_")))


for _command in COMMANDS:
    _add(app, _command)

for _group, (_help, _commands) in GROUPS.items():
    _typer = typer.Typer(name=_group, help=_help, no_args_is_help=True, rich_markup_mode="markdown")
    for _command in _commands:
        _add(_typer, f"{_group} {_command}")
    app.add_typer(_typer)
