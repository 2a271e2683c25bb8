"""Lists of products with what the vendor's library says of each: its plans.

They are asked for once, on the device, and kept in a file, since a fit and a judgement need no device.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tunesmith.devices import choose, open_device
from tunesmith.library.launch._launcher import Launcher
from tunesmith.logic import write_atomically
from tunesmith.problems.gemm import DATA_TYPES, gemm_type
from tunesmith.problems.gemm.fields import INPUTS
from tunesmith.problems.gemm.listed import COLUMNS, NEEDED, ListedGemm, gemm_row, read_gemm_list
from tunesmith.problems.lists import Column, read_list
from tunesmith.records import LibraryPlan, Problem, ProblemType, UserError


@dataclass(frozen=True, slots=True)
class ForeseenProduct:
    """A product as a GEMM of the problem type `type`, and the plan for it of the library on `device`, both by name."""

    row: ListedGemm
    type: str
    device: str
    plan: LibraryPlan


@dataclass(frozen=True)
class WrittenPlans:
    """The products of which the library said its plan, and how many it said nothing of."""

    products: Sequence[ForeseenProduct]
    silent: int
    path: Path


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


PLAN_COLUMNS = {
    field.name: Column(_number, "a number of at least zero", "waves of work-groups")
    if field.type == "float"
    else Column(_whole, "a whole number of at least zero", "a number of the plan")
    for field in fields(LibraryPlan)
}
NAMES = {
    "type": Column(lambda text: text or None, "the name of a problem type", "the GEMM that the library was asked for"),
    "device": Column(lambda text: text or None, "the name of a device", "the device whose library was asked"),
}


TF32, LETTERS = "tf32", {DATA_TYPES[letter].dtype: letter for letter in INPUTS}
"""The letters of the operands' types by their names; TF32 is made of float32."""


def read_plans(paths: Sequence[Path]) -> Iterator[ForeseenProduct]:
    """The rows of files. Raises UserError for a file that cannot be read or has a mistake."""
    columns, needed = COLUMNS | NAMES | PLAN_COLUMNS, (*NEEDED, *NAMES, *PLAN_COLUMNS)
    for path in paths:
        for values in read_list(path, columns, needed, "plans"):
            plan = LibraryPlan(**{name: values.pop(name) for name in PLAN_COLUMNS})
            kind, device = (values.pop(name) for name in NAMES)
            yield ForeseenProduct(ListedGemm(**values), kind, device, plan)


def plans_text(products: Sequence[ForeseenProduct]) -> str:
    """The text of a file, from which `read_plans` reads the same rows, but for their weights."""
    text = io.StringIO()
    names = (*gemm_row(ListedGemm(1, 1, 1)), *NAMES, *PLAN_COLUMNS)
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for product in products:
        written = {"type": product.type, "device": product.device}
        writer.writerow(gemm_row(product.row) | written | asdict(product.plan))
    return text.getvalue()


def plans_of(
    products: Iterable[ForeseenProduct], device: str, problems: Sequence[Problem]
) -> Mapping[Problem, LibraryPlan]:
    """The plan of each problem that is one of the products on the device, with natural leading dimensions."""
    plans = {
        (product.type, product.row.n, product.row.m, product.row.k, product.row.batch): product.plan
        for product in products
        if product.device == device
    }
    found = {}
    for problem in problems:
        # A list is row-major: its m is a problem's N.
        sizes = {"Batch": 1} | dict(zip(problem.type.indices, problem.sizes, strict=True))
        plan = plans.get((problem.type.name, sizes["M"], sizes["N"], sizes["K"], sizes["Batch"]))
        if plan and not problem.leading:
            found[problem] = plan
    return found


def write_plans(lists: Sequence[Path], out: Path, data_type: str, device: str | None) -> WrittenPlans:
    """Ask the library of a device for its plan of each product of the lists, and write what it says.

    Raises UserError for a list that cannot be read, an unknown data type, a device whose library says nothing, and for
    an existing file `out` that has no plans.
    """
    if data_type not in (names := (*LETTERS, TF32)):
        raise UserError("--data-type", f"there is no {data_type}", f"there are {', '.join(names)}")
    if out.exists():
        list(read_plans([out]))
    rows = {(row.m, row.n, row.k, row.layout, row.batch): row for path in lists for row in read_gemm_list(path)}
    problems = {row: Problem(kind := _type(data_type, row), row.sizes(kind)) for row in rows.values()}
    opened = open_device(choose(device or "CUDA"))
    try:
        launcher = Launcher(opened, {}, {})
        try:
            plans = {row: launcher.foreseen(problem) for row, problem in problems.items()}
        finally:
            launcher.close()
    finally:
        opened.close()
    name = opened.target.name
    products = [ForeseenProduct(row, problems[row].type.name, name, plan) for row, plan in plans.items() if plan]
    if not products:
        raise UserError(
            name, "its library does not say how it would compute a product", "use an NVIDIA GPU with cuBLAS"
        )
    write_atomically(out, plans_text(products))
    return WrittenPlans(products, len(rows) - len(products), out)


def _type(data_type: str, row: ListedGemm) -> ProblemType:
    letter = "s" if data_type == TF32 else LETTERS[data_type]
    return gemm_type(
        letter,
        tf32=data_type == TF32,
        transpose_a=row.trans_b,
        transpose_b=row.trans_a,
        batched=row.batch > 1,
        use_beta=False,
    )
