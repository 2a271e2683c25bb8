"""Lists of products with what the vendor's library says of each, its plans, and how long it takes.

They are asked for once, on the device, and kept in a file, since a fit and a judgement need no device.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from tunesmith.devices import LaunchError, choose, open_device
from tunesmith.library.launch._launcher import Launcher
from tunesmith.logic import write_atomically
from tunesmith.problems.gemm import gemm_type_named, torch_type
from tunesmith.problems.gemm.listed import COLUMNS, HEADER, NEEDED, ListedGemm, gemm_cells, read_gemm_list
from tunesmith.problems.lists import Column, read_list
from tunesmith.records import LibraryPlan, Problem, ProblemType, UserError
from tunesmith.session.intensity.listed import letter_of

from .library_times import library_seconds


@dataclass(frozen=True, slots=True)
class ForeseenProduct:
    """A product as a GEMM of a problem type, and the plan for it of the library on `device`, a device's name; and the
    library's `seconds`, if it was timed."""

    row: ListedGemm
    type: ProblemType
    device: str
    plan: LibraryPlan
    seconds: float | None = None

    @property
    def problem(self) -> Problem:
        return Problem(self.type, self.row.sizes(self.type))


CTRL_C = "Ctrl-C"
SAVE_SECONDS = 10.0
"""So often what is known is written, since a process may be killed."""


@dataclass(frozen=True)
class WrittenPlans:
    """The products of a file, and of how many the library said nothing. If the command was `stopped`, why (CTRL_C, or
    the device's failure), and how many products are `left` that the library was not asked about."""

    products: Sequence[ForeseenProduct]
    silent: int
    path: Path
    left: int = 0
    stopped: str = ""


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _positive(text: str) -> float | None:
    return _number(text) or None


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


PLAN_COLUMNS = {
    field.name: Column(_number, "a number of at least zero", "waves of work-groups")
    if field.type == "float"
    else Column(_whole, "a whole number of at least zero", "a number of the plan")
    for field in fields(LibraryPlan)
}
SECONDS = Column(lambda text: math.nan if text == "-" else _positive(text), "seconds, or -", "the library's time")
"""The column of the times; one that was not measured is a dash. Files of plans alone lack it."""
NAMES = {
    "type": Column(lambda text: text if gemm_type_named(text) else None, "the name of a GEMM's type", "what was asked"),
    "device": Column(lambda text: text or None, "the name of a device", "the device whose library was asked"),
}


def read_plans(paths: Sequence[Path]) -> Iterator[ForeseenProduct]:
    """The rows of files. Raises UserError for a file that cannot be read or has a mistake."""
    columns, needed = COLUMNS | NAMES | PLAN_COLUMNS | {"seconds": SECONDS}, (*NEEDED, *NAMES, *PLAN_COLUMNS)
    for path in paths:
        for values in read_list(path, columns, needed, "plans"):
            plan = LibraryPlan(**{name: values.pop(name) for name in PLAN_COLUMNS})
            kind, device = gemm_type_named(values.pop("type")), values.pop("device")
            seconds = values.pop("seconds", math.nan)
            if kind:
                timed = None if math.isnan(seconds) else seconds
                yield ForeseenProduct(ListedGemm(**values), kind, device, plan, timed)


def plans_text(products: Sequence[ForeseenProduct]) -> str:
    """The text of a file, from which `read_plans` reads the same rows, but for their weights and the seventh digit of
    seconds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    is_timed = any(product.seconds for product in products)
    writer.writerow((*HEADER, *NAMES, *PLAN_COLUMNS, *(["seconds"] if is_timed else [])))
    for product in products:
        times = [f"{product.seconds:.6g}" if product.seconds else "-"] if is_timed else []
        writer.writerow((*gemm_cells(product.row), product.type.name, product.device, *astuple(product.plan), *times))
    return text.getvalue()


def plans_of(
    products: Iterable[ForeseenProduct], device: str, problems: Sequence[Problem]
) -> Mapping[Problem, LibraryPlan]:
    """The plan of each problem that is one of the products on the device. Its scalars do not matter."""
    plans = {product.problem: product.plan for product in products if product.device == device}
    return {problem: plans[problem.bare] for problem in problems if problem.bare in plans}


def write_plans(
    lists: Sequence[Path],
    out: Path,
    data_type: str,
    device: str | None,
    times: bool = False,
    observe: Callable[[int, int], None] = lambda done, of: None,
) -> WrittenPlans:
    """Ask the library of a device for its plan of each product of the lists, with `times` also for its time, and write
    what it says. `data_type` is a word for the operands' type, such as b or bfloat16. `observe` is told how many
    products of how many are done.

    What the file `out` has is kept, and not asked for again, but for times that it lacks. Ctrl-C, or a failure of the
    device, ends the asking, and what is known until then is written.

    Raises UserError for a list that cannot be read, an unknown data type, a device whose library says nothing or that
    fails at once, and for an existing file `out` that has no plans.
    """
    letter = letter_of(data_type)
    kept = list(read_plans([out])) if out.exists() else []
    found = ((_type(letter, row), row) for path in lists for row in read_gemm_list(path))
    rows = {Problem(kind, row.sizes(kind)): row for kind, row in found}
    opened = open_device(choose(device or "CUDA"))
    name, silent, stopped = opened.target.name, 0, ""
    known = {(product.device, product.problem): product for product in kept}
    needed = [problem for problem in rows if not _is_answered(known.get((name, problem)), times)]
    done, saved = 0, time.monotonic()
    try:
        with closing(Launcher(opened, {}, {})) as launcher:
            for problem in needed:
                plan = launcher.foreseen(problem)
                seconds = library_seconds(opened, launcher, problem) if plan and times else None
                if plan:
                    known[name, problem] = ForeseenProduct(rows[problem], problem.type, name, plan, seconds)
                done, silent = done + 1, silent + (plan is None)
                observe(done, len(needed))
                if known and time.monotonic() - saved >= SAVE_SECONDS:
                    write_atomically(out, plans_text([*known.values()]))
                    saved = time.monotonic()
    except KeyboardInterrupt:
        if not known:
            raise
        stopped = CTRL_C
    except LaunchError as error:
        stopped = f"{error.reason}: {error.detail}"
    finally:
        with suppress(LaunchError):
            opened.close()
    if not known and stopped:
        raise UserError(name, f"failed ({stopped})", "give the same command again, or another device")
    if not known:
        what = "its library does not say how it would compute a product"
        raise UserError(name, what, "use an NVIDIA GPU with cuBLAS")
    write_atomically(out, plans_text([*known.values()]))
    return WrittenPlans([*known.values()], silent, out, len(needed) - done, stopped)


def _is_answered(product: ForeseenProduct | None, times: bool) -> bool:
    """Whether a file has what would be asked for."""
    return product is not None and (product.seconds is not None or not times)


def _type(letter: str, row: ListedGemm) -> ProblemType:
    """The type of a row-major product, which is that of the transposed one in column-major order."""
    return torch_type(letter, transpose_a=row.trans_b, transpose_b=row.trans_a, batched=row.batch > 1)
