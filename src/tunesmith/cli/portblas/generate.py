"""`tunesmith portblas generate CONFIG`: the list of candidates and their sources, as a build step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.formats.portblas.parameter_files import RuleSet
from tunesmith.records import UserError, printable
from tunesmith.report.portblas import lists as report
from tunesmith.session.portblas.generate import generate as generate_files

from ..output import Json, messages, print_facts

Folders = Annotated[
    list[Path] | None,
    typer.Option("--folder", help="Folder of your own sets; may be repeated."),
]


def generate(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="A parameter file, or a set's name.")],
    definition: Annotated[
        Path | None,
        typer.Argument(metavar="DEF", help="File for the list; standard output if absent."),
    ] = None,
    source_dir: Annotated[
        Path | None,
        typer.Option("--source-dir", "--source_dir", help="Folder for the sources."),
    ] = None,
    list_files: Annotated[
        bool, typer.Option("--list-files", "--list_files", help="Only print the sources' paths; write nothing.")
    ] = False,
    mode: Annotated[
        RuleSet, typer.Option(help="Whose rules decide what is valid: ours, or compat: the original's, to the byte.")
    ] = RuleSet.OURS,
    folder: Folders = None,
    as_json: Json = False,
) -> None:
    """Write the list of candidates (`BENCH_PARAMS` lines), or with --source-dir an OpenCL source for each of them.

    Each source has kernels gemm_nn, gemm_tn, gemm_nt and gemm_tt and can be compiled by itself. What would not change
    is not touched; sources of an earlier run that are no longer listed are removed. With DEF and --source-dir both are
    written. The exit code is 1 where no combination is valid.

    Example: `tunesmith portblas generate nvidia candidates.def --source-dir gen`

    Example: `tunesmith portblas generate default.json --mode compat > generated_combinations.def`

    Example: `tunesmith portblas generate default.json --source-dir gen --list-files`
    """
    if list_files and definition is not None:
        raise UserError("--list-files", f"writes nothing, so not {definition}", "leave one of the two out")
    result = generate_files(config, mode, definition, source_dir, list_files, tuple(folder or ()))
    writes = not list_files and (definition is not None or source_dir is not None)
    if as_json or writes:
        print_facts(as_json, report.generated_document, report.generated, result)
    else:
        # A build gets the paths unchanged; on a terminal, control characters are escaped.
        paths = map(printable, result.listed) if sys.stdout.isatty() else result.listed
        sys.stdout.write("".join(f"{path}\n" for path in paths) if list_files else result.definition)
        for sentence in report.sentences(result):
            messages.print(sentence)
    if not result.candidates:
        raise typer.Exit(1)
