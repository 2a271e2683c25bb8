"""`tunesmith.tune`: tunes a tuning file, or a kernel that a Python program describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tunesmith.devices import begin_to_choose
from tunesmith.records import Value

from .callables import CALLABLE_SECONDS, callers_location

if TYPE_CHECKING:
    from tunesmith.session import Reuse, RunOutcome, TuningPlan
    from tunesmith.session.frame import events

    from .arguments import Formula, Formulas, KernelLaunch
    from .tuned import Tuned


@overload
def tune(
    kernel: str | Path,
    folder: str | Path | None = None,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    quiet: bool = False,
    max_size: int | None = None,
    order: str | None = None,
    reuse: Reuse = ...,
    store: str | None = None,
    observe: events.Observer | None = None,
) -> RunOutcome[TuningPlan]: ...


@overload
def tune(
    kernel: str | Path | Mapping[str, str | Path],
    folder: str | Path | None = None,
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
    bytes: Formula | None = None,
    settle_first: Sequence[str | Sequence[str]] = (),
    fork: Sequence[str] = (),
    settings: Mapping[str, Value] | None = None,
    name: str = "",
    language: str = "",
    options: Sequence[str] = (),
    divisible_by_16: Sequence[str] = (),
    callable_seconds: float = CALLABLE_SECONDS,
    device: str | None = None,
    budget_minutes: float | None = None,
    quiet: bool = False,
    reuse: Reuse = ...,
    store: str | None = None,
    observe: events.Observer | None = None,
) -> Tuned: ...


def tune(kernel: Any, folder: str | Path | None = None, **options: Any) -> Any:
    """Tune a kernel of your own, or carry out a tuning file.

    `tune("file.yaml", "out")` does what `tunesmith tune file.yaml -o out` does, and returns its outcome. Otherwise
    `kernel` is the text of a kernel in OpenCL C or CUDA C++, or its file; a mapping gives a text for each language.
    Everything is measured by the same bench: configurations are compiled in parallel, a hanging or wrong one is
    recorded and not chosen, and the same call goes on with what `folder` has. Without `folder`, that is a folder of
    the kernel's own in the user's cache.

    `arguments` names the kernel's arguments in their order (`In`, `Out`, `InOut`, `Scratch`, `Scalar`, `LocalMemory`;
    a bare array is read, a bare number or expression is passed by value). `sizes` is a mapping of names to numbers, or
    several of them; without it, all shapes are those of the given arrays. `parameters` has the values of each macro.
    `grid` counts work-groups, `work_items` the work-items of all groups. `constraints` must hold for a configuration
    to be tried. `reference` is called with the inputs, sizes and numbers that its parameters name, and returns the
    output, a pair (output, magnitude), or a mapping of these by the outputs' names; see docs/custom-kernels.md for
    magnitude and `tolerance`. Formulas are numbers, expressions, or functions of sizes and parameters.

    By default every legal configuration is measured at every size. `settle_first` lists parameters (or groups of them)
    that are decided before the others, one after the other; each value of the parameters in `fork` is tuned by itself.
    `settings` are GlobalParameters of a tuning file, such as SearchStrategy. After `budget_minutes` the run stops.
    `store` is the path or URL of a store that keeps the measurements, if that is no file in the folder. A call waits
    for another process that tunes in the folder.

    Raises UserError with the line of the program for what is wrong, and if nothing ran right. Ctrl-C keeps everything
    that was measured.
    """
    location = callers_location()
    # The search for devices goes on while the rest is imported.
    begin_to_choose(options.get("device"))
    from .tuning import tune_file, tune_kernel

    if not options.keys() & {"arguments", "parameters", "reference"}:
        return tune_file(kernel, folder, location, **options)
    return tune_kernel(kernel, folder, location, **options)
