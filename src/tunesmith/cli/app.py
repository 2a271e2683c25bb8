"""The application `tunesmith`: the lists of its commands and groups. Each command has a file of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from tunesmith import __version__

from .lazy import SETTINGS, LazyCommands, group_of, lazy_group

COMMANDS = ("devices", "plan", "tune", "show", "select", "compare", "import", "characterize", "worker")
"""Each is a module of this package with a function of the same name (`import_` for `import`)."""

GROUPS = {
    "random": (
        "Tune launch shapes of random number generators, and choose from what was measured.",
        ("tune", "select", "grid-sizes"),
    ),
    "portblas": (
        "GEMM kernels from portBLAS's parameter files: list them, generate them, tune them.",
        ("generate", "configs", "tune"),
    ),
    "calibrate": ("Measure what models need to know of a device.", ("stream-k", "roofline")),
    "heuristics": (
        "Configurations for products that nobody tuned: by rules, models, and fits to kernels that were tuned.",
        ("explain", "fit", "audit", "judge", "design", "learn", "plans"),
    ),
    "logic": (
        "Library logic, Tensile's or tunesmith's: show it, build it from a store, export it.",
        ("show", "build", "export"),
    ),
    "store": ("Copy measurements between stores, and count what a store holds.", ("copy", "show")),
    "stream-k": ("How the tiles of a product are split over a device's work-groups.", ("explain", "sweep")),
}
"""The purpose and the commands of each group, by name. The command `tune` of `random` is the function `tune` of the
module `random.tune`."""

TAKES_SIZES = ("select", "stream-k explain", "heuristics explain")
"""Commands that take any number of words after `--size`."""

_commands = LazyCommands(
    COMMANDS, TAKES_SIZES, {name: group_of(name, *described, TAKES_SIZES) for name, described in GROUPS.items()}
)

app = typer.Typer(
    name="tunesmith",
    help="Tune once, ship the logic, launch the best kernel.\n\n"
    "Exit codes: 0 done; 1 finished with something to look at; 2 a mistake in what was given; 130 interrupted.",
    no_args_is_help=True,
    cls=lazy_group(_commands),
    **SETTINGS,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"tunesmith {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options of the application itself."""
