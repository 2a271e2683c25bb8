"""What `tunesmith.tune` does: a kernel that a Python program describes becomes a tuning file, which is carried out."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from tunesmith.problems.custom import caller
from tunesmith.records import UserError, Value
from tunesmith.report import ProgressReport
from tunesmith.session import Reuse, RunOutcome, TuningPlan, keep_server
from tunesmith.session import tune as carry_out
from tunesmith.session.frame import events
from tunesmith.toolchains import user_cache

from .arguments import DenseArray, Formula, Formulas, KernelLaunch, argument_of
from .callables import CALLABLE_SECONDS, in_time, location_of, parameters_of
from .kernel import (
    DescriptionText,
    KernelDescription,
    KernelSource,
    contents_key,
    digest_of,
    parameter_values,
    reference_key,
    source_of,
)
from .tuned import Tuned

TUNING_FILES = (".yaml", ".yml")
PRELOADED = ("tunesmith.library.logic_check_process",)
"""What a run's processes need beside the bench's own modules."""

ELEMENTS = "Elements"
"""The name of the only size of a kernel whose arrays have fixed shapes: the elements of the largest array."""


def tune_file(
    file: Any,
    folder: str | Path | None,
    location: str,
    *,
    quiet: bool = False,
    observe: events.Observer | None = None,
    **options: Any,
) -> RunOutcome[TuningPlan]:
    if not isinstance(file, str | Path) or Path(file).suffix not in TUNING_FILES:
        remedy = "give a tuning file, or a kernel with arguments=, parameters= and reference="
        raise UserError(location, "tune was called with neither a tuning file nor a described kernel", remedy)
    if folder is None:
        raise UserError(location, "tune has no folder for the results", 'name one: tune("file.yaml", "out")')
    with progress(quiet, observe) as observer:
        return carry_out(Path(file), Path(folder), observe=observer, **{"wait": True, **options})


def tune_kernel(
    kernel: Any,
    folder: str | Path | None,
    location: str,
    *,
    settle_first: Sequence[str | Sequence[str]] = (),
    fork: Sequence[str] = (),
    settings: Mapping[str, Value] | None = None,
    device: str | None = None,
    budget_minutes: float | None = None,
    quiet: bool = False,
    reuse: Reuse = Reuse.ALL,
    store: str | None = None,
    observe: events.Observer | None = None,
    **described: Any,
) -> Tuned:
    description = described_kernel(kernel, location, **described)
    # The process that forks all others imports while this one searches the device and plans.
    keep_server(PRELOADED)
    text = DescriptionText(description)
    tuning = tuning_text(description, settle_first, fork, settings or {})
    register(description)
    results = Path(folder) if folder is not None else _default_folder(description, text)
    run: dict[str, Any] = {"device": device, "budget_minutes": budget_minutes, "reuse": reuse, "store": store}
    path = write(results / "source", description, text, tuning)
    with progress(quiet, observe) as observer, _in_users_lines(path, text):
        outcome = carry_out(path, results, wait=True, observe=observer, **run)
    return Tuned(outcome, description, tuning, path.parent)


def described_kernel(
    kernel: Any,
    location: str,
    *,
    arguments: Mapping[str, Any],
    reference: Callable[..., Any],
    parameters: Mapping[str, Sequence[Value]],
    sizes: Mapping[str, int] | Sequence[Mapping[str, int]] | None = None,
    entry: str = "",
    work_group: Formulas | None = None,
    grid: Formulas | None = None,
    work_items: Formulas | None = None,
    local_memory: Formula | None = None,
    launches: Sequence[KernelLaunch] = (),
    constraints: Formula | Sequence[Formula] = (),
    tolerance: Formula | None = None,
    flops: Formula | None = None,
    bytes: Formula | None = None,  # noqa: A002
    name: str = "",
    language: str = "",
    options: Sequence[str] = (),
    divisible_by_16: Sequence[str] = (),
    callable_seconds: float = CALLABLE_SECONDS,
) -> KernelDescription:
    """The checked description of what `tune` was told."""
    kernels = kernel if isinstance(kernel, Mapping) else {language: kernel}
    sources = [source_of(text, language, location) for language, text in kernels.items()]
    if not launches:
        launch = KernelLaunch(entry or _only_entry(sources, location), (), work_group, grid, work_items, local_memory)
        launches = [launch]
    named = {name: argument_of(name, argument, location) for name, argument in arguments.items()}
    listed = constraints if isinstance(constraints, list | tuple) else (constraints,)
    if not callable(reference):
        what = f"the reference is a {type(reference).__name__}"
        raise UserError(location, what, "give a function of the inputs that returns the output")
    return KernelDescription(
        name=name or launches[0].entry,
        sources=sources,
        arguments=named,
        sizes=_sizes(sizes, named, location),
        parameters={name: parameter_values(name, values, location) for name, values in parameters.items()},
        launches=launches,
        constraints=listed,
        reference=reference,
        tolerance=tolerance,
        flops=flops,
        bytes=bytes,
        options=options,
        divisible_by_16=divisible_by_16,
        location=location,
        callable_seconds=callable_seconds,
    )


def tuning_text(
    kernel: KernelDescription,
    settle_first: Sequence[str | Sequence[str]],
    fork: Sequence[str],
    settings: Mapping[str, Value],
) -> str:
    """The tuning file that says what the call said."""
    groups = [[names] if isinstance(names, str) else list(names) for names in settle_first]
    earlier = [*fork, *(name for names in groups for name in names)]
    for name in earlier:
        if name not in kernel.parameters:
            remedy = f"name some of {', '.join(kernel.parameters)}"
            raise UserError(kernel.location, f"there is no parameter {name} to settle or fork", remedy)
    sizes = [f"        - Exact: {json.dumps(list(size.values()))}" for size in kernel.sizes]

    def varied(names: Sequence[str]) -> Iterator[str]:
        for position, name in enumerate(names):
            yield f"        {'-' if position == 0 else ' '} {name}: {json.dumps(kernel.parameters[name])}"

    lines = ["BenchmarkProblems:", f"  - - {{OperationType: Custom, Kernel: {kernel.name}.kernel.yaml}}"]
    if settings:
        lines.insert(0, f"GlobalParameters: {json.dumps(dict(settings))}")
    measured = ["        - ProblemSizes:", *(f"    {line}" for line in sizes)]
    settled = [line for names in groups for line in varied(names)]
    last = [line for name in kernel.parameters if name not in earlier for line in varied([name])]
    phases = {
        "BenchmarkCommonParameters": [] if fork or not settled else [*measured, *settled],
        "ForkParameters": [line for name in fork for line in varied([name])],
        "BenchmarkForkParameters": [*measured, *settled] if fork and settled else [],
        "BenchmarkFinalParameters": [*measured, *last],
    }
    first = "    - "
    for phase, content in phases.items():
        if content:
            lines += [f"{first}{phase}:", *content]
            first = "      "
    return "\n".join([*lines, ""])


def _only_entry(sources: Sequence[KernelSource], location: str) -> str:
    found = sources[0].entries
    if len(found) == 1:
        return found[0]
    what = f"the source has the kernels {', '.join(found)}" if found else "the source has no kernel that was recognised"
    raise UserError(location, what, "name the one to launch: entry=.., or list launches=[KernelLaunch(..), ..]")


def _sizes(
    sizes: Mapping[str, int] | Sequence[Mapping[str, int]] | None, arguments: Mapping[str, Any], location: str
) -> list[dict[str, int]]:
    if sizes is None:
        arrays = [argument for argument in arguments.values() if isinstance(argument, DenseArray)]
        if any(not all(isinstance(extent, int) for extent in array.shape) for array in arrays) or not arrays:
            remedy = 'give sizes={"Rows": 4096, ..}, or arrays for all arguments'
            raise UserError(location, "tune has no sizes", remedy)
        count = max(_product(array.shape) for array in arrays)
        return [{ELEMENTS: count}]
    listed = [dict(sizes)] if isinstance(sizes, Mapping) else [dict(size) for size in sizes]
    if not listed or not listed[0]:
        raise UserError(location, "sizes is empty", 'give sizes={"Rows": 4096, ..}')
    for size in listed:
        if list(size) != list(listed[0]):
            what = f"one size has {', '.join(size)}, another {', '.join(listed[0])}"
            raise UserError(location, what, "give the same names everywhere, in the same order")
    return [{name: int(number) for name, number in size.items()} for size in listed]


def _product(shape: Sequence[Any]) -> int:
    product = 1
    for extent in shape:
        product *= int(extent)
    return product


def register(kernel: KernelDescription) -> None:
    """Hand the reference and the arrays' contents to the processes that the run will start."""
    function, location = kernel.reference, location_of(kernel.reference)
    needed = parameters_of(function, location)
    numbers = {name: formula for name, argument in kernel.arguments.items() if (formula := _number(argument))}

    def reference(sizes: dict[str, Any], arrays: dict[str, Any]) -> Any:
        known = {"sizes": sizes, "arrays": arrays, **numbers, **sizes, **arrays}
        if unknown := [name for name in needed if name not in known]:
            remedy = f"it may take {', '.join(known)}"
            raise UserError(location, f"the reference has a parameter {unknown[0]}", remedy)
        result = in_time(
            lambda: function(**{name: known[name] for name in needed}),
            kernel.callable_seconds,
            "the reference",
            location,
        )
        return result if isinstance(result, Mapping) else dict.fromkeys(outputs[:1], result)

    outputs = [
        name
        for name, argument in kernel.arguments.items()
        if isinstance(argument, DenseArray) and argument.role in ("out", "inout")
    ]
    caller.register_reference(reference_key(function), reference)
    for argument in kernel.arguments.values():
        if isinstance(argument, DenseArray) and argument.contents is not None:
            caller.register_contents(contents_key(argument), argument.contents)


def _number(argument: Any) -> int | float | None:
    """The value of a number that does not depend on sizes."""
    value = getattr(argument, "value", None)
    return value if isinstance(value, int | float) else None


def _default_folder(kernel: KernelDescription, text: DescriptionText) -> Path:
    """A folder for this kernel in the user's cache; a temporary one if nothing can be kept there."""
    digest = digest_of(text.text, *(source.text for source in kernel.sources))
    folder = user_cache() / "tuned" / f"{kernel.name}-{digest}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix=f"tunesmith-{kernel.name}-"))
    return folder


def write(folder: Path, kernel: KernelDescription, text: DescriptionText, tuning: str) -> Path:
    """Write the sources, the description and the tuning file; the path of the last."""
    files = {f"{kernel.name}.kernel.yaml": text.text, f"{kernel.name}.yaml": tuning}
    files |= {text.file_of(source): source.text for source in kernel.sources}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UserError(str(folder), f"cannot be written ({error.strerror})", "name another folder") from None
    return folder / f"{kernel.name}.yaml"


@contextmanager
def progress(quiet: bool, observe: events.Observer | None = None) -> Iterator[events.Observer]:
    """The progress report, in a terminal, a notebook or a log; or the caller's own observer."""
    if observe is not None:
        yield observe
        return
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    with ProgressReport(console, quiet) as report:
        yield report


@contextmanager
def _in_users_lines(path: Path, text: DescriptionText) -> Iterator[None]:
    """Tell mistakes that are found in the description at the line of the user's program that made them."""
    try:
        yield
    except UserError as error:
        translated = [_translated(each, path, text) for each in error.errors]
        if [each.location for each in translated] == [each.location for each in error.errors]:
            raise
        raise translated[0] from error


def _translated(error: UserError, path: Path, text: DescriptionText) -> UserError:
    description = re.fullmatch(rf".*{re.escape(path.stem)}\.kernel\.yaml:(\d+)", error.location)
    if description:
        return UserError(text.location_at(int(description[1])), error.what, error.remedy)
    if error.location.startswith(str(path) + ":"):
        return UserError(text.kernel.location, error.what, error.remedy)
    return error
