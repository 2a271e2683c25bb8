"""Lists of products with what the vendor's library says of each: its plans.

They are asked for once, on the device, and kept in a file, since a fit and a judgement need no device.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tunesmith.devices import choose, open_device
from tunesmith.library.launch._launcher import Launcher
from tunesmith.logic import write_atomically
from tunesmith.problems.gemm import DATA_TYPES, gemm_type
from tunesmith.problems.gemm.listed import COLUMNS, NEEDED, ListedGemm, gemm_row, read_gemm_list
from tunesmith.problems.lists import Column, read_list
from tunesmith.records import LibraryPlan, Problem, UserError


@dataclass(frozen=True, slots=True)
class ForeseenProduct:
    """A product in a data type, by NumPy's name, and the library's plan for it."""

    row: ListedGemm
    data_type: str
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
DATA_TYPE = {"data_type": Column(lambda text: text or None, "a data type, such as bfloat16", "of the operands")}


def read_plans(paths: Sequence[Path]) -> Iterator[ForeseenProduct]:
    """The rows of files. Raises UserError for a file that cannot be read or has a mistake."""
    columns, needed = COLUMNS | DATA_TYPE | PLAN_COLUMNS, (*NEEDED, *DATA_TYPE, *PLAN_COLUMNS)
    for path in paths:
        for values in read_list(path, columns, needed, "plans"):
            plan = LibraryPlan(**{name: values.pop(name) for name in PLAN_COLUMNS})
            data_type = values.pop("data_type")
            yield ForeseenProduct(ListedGemm(**values), data_type, plan)


def plans_text(products: Sequence[ForeseenProduct]) -> str:
    """The text of a file, from which `read_plans` reads the same rows."""
    text = io.StringIO()
    rows = [gemm_row(product.row) | {"data_type": product.data_type} | asdict(product.plan) for product in products]
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def plans_of(
    products: Sequence[ForeseenProduct], data_type: str, problems: Sequence[Problem]
) -> Mapping[Problem, LibraryPlan]:
    """The plan of each problem that is one of the products, in this data type and with natural leading dimensions."""
    by_sizes: dict[tuple[int, ...], list[ForeseenProduct]] = {}
    for product in products:
        if product.data_type == data_type:
            row = product.row
            by_sizes.setdefault((row.m, row.n, row.k, row.batch), []).append(product)
    found = {}
    for problem in problems:
        sizes = dict(zip(problem.type.indices, problem.sizes, strict=True))
        # A list is row-major: its m is a problem's N.
        key = sizes["N"], sizes["M"], sizes["K"], sizes.get("Batch", 1)
        for product in () if problem.leading else by_sizes.get(key, ()):
            if product.row.fits(problem.type):
                found[problem] = product.plan
    return found


def write_plans(lists: Sequence[Path], out: Path, data_type: str, device: str | None) -> WrittenPlans:
    """Ask the library of a device for its plan of each product of the lists, and write what it says.

    Raises UserError for a list that cannot be read, an unknown data type, a device whose library says nothing, and for
    an existing file `out` that has no plans.
    """
    letters = {DATA_TYPES[letter].dtype: letter for letter in DATA_TYPES}
    if data_type not in letters:
        raise UserError("--data-type", f"there is no {data_type}", f"there are {', '.join(letters)}")
    if out.exists():
        list(read_plans([out]))
    rows = list(dict.fromkeys(row for path in lists for row in read_gemm_list(path)))
    opened = open_device(choose(device or "CUDA"))
    try:
        launcher = Launcher(opened, {}, {})
        asked = [(row, launcher.foreseen(_problem(row, letters[data_type]))) for row in rows]
        launcher.close()
    finally:
        opened.close()
    products = [ForeseenProduct(row, data_type, plan) for row, plan in asked if plan]
    if not products:
        what = "has no library that says how it would compute a product"
        raise UserError(opened.target.name, what, "use an NVIDIA GPU with cuBLAS")
    write_atomically(out, plans_text(products))
    return WrittenPlans(products, len(rows) - len(products), out)


def _problem(row: ListedGemm, letter: str) -> Problem:
    kind = gemm_type(letter, transpose_a=row.trans_b, transpose_b=row.trans_a, batched=row.batch > 1, use_beta=False)
    return Problem(kind, row.sizes(kind))
