"""`tunesmith portblas COMMAND`: portBLAS's auto-tuner for GEMM. This file holds the commands together."""

from __future__ import annotations

from importlib import import_module

import typer

COMMANDS = ("generate", "configs", "tune")
"""Each is a module of this package, `portblas_` before its name, with a function of that name."""

app = typer.Typer(
    name="portblas",
    help="GEMM kernels from portBLAS's parameter files: list them, generate them, tune them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

for _command in COMMANDS:
    app.command(_command)(getattr(import_module(f"tunesmith.cli.portblas_{_command}"), _command))
