"""The products (`ListedProduct`) of a tuning file, or of a list of GEMMs or convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tunesmith.kernels import families_meant, families_of, tuning_space
from tunesmith.models.intensity.metrics import Product
from tunesmith.models.intensity.products import implicit_product
from tunesmith.models.stream_k.decision_models import data_type_of
from tunesmith.problems import OPERATIONS
from tunesmith.problems.convolution import read_convolution_list
from tunesmith.problems.gemm import DATA_TYPES, TF32
from tunesmith.problems.gemm.listed import read_gemm_list
from tunesmith.problems.lists import columns_of
from tunesmith.protocol import Fork, read_tuning_file
from tunesmith.records import Problem, ProblemType, UserError
from tunesmith.session.tuning_file.file import LISTS, derived_names
from tunesmith.spaces import Space


@dataclass(frozen=True, slots=True)
class ListedProduct:
    """A problem's name in its list, its product, and the work and traffic of the problem's own arrays.

    `flops` are counted by the field's convention. `bytes` count each element of the problem's arrays once; a
    convolution's implicit product has more. `data_type` is a GEMM's letter.
    """

    problem: str
    family: str
    operation: str
    data_type: str
    product: Product
    flops: float
    bytes: float

    @property
    def intensity_of_arrays(self) -> float:
        """FLOP per byte of the problem's arrays."""
        return self.flops / self.bytes


def letter_of(word: str) -> str:
    """The letter of the data type that a word of `--type` names: s, d, h, b, f8, b8, i8, tf32 or a synonym."""
    if word.lower() in (TF32, "tf32"):
        return TF32
    matches = (letter for letter, kind in DATA_TYPES.items() if kind.dest and word.lower() in kind.words)
    letter = next(matches, None)
    if letter is None:
        offered = ", ".join(letter for letter, kind in DATA_TYPES.items() if kind.dest)
        raise UserError("--type", f"{word!r} is no data type", f"give one of {offered}, tf32")
    return letter


def products_of(path: Path, data_type: str) -> list[ListedProduct]:
    """Every problem of a tuning file (.yaml), each once, or every row of a CSV list, in the file's order.

    `data_type` is the letter for lists without data types. Raises UserError for any mistake in the file, and for an
    operation that is no product.
    """
    if path.suffix.lower() in (".yaml", ".yml"):
        return list(dict.fromkeys(_of_tuning_file(path)))
    if "c" in columns_of(path):
        if data_type == TF32:
            raise UserError("--type", "a convolution's type has no TF32", "give s, whose arrays are the same")
        rows = read_convolution_list(path, data_type)
        return [_listed(row.problem, row.family) for row in rows]
    return list(_of_gemm_list(path, data_type))


def _of_gemm_list(path: Path, data_type: str) -> Iterator[ListedProduct]:
    kind = DATA_TYPES["s" if data_type == TF32 else data_type]
    operand_bytes, result_bytes = (np.dtype(dtype).itemsize for dtype in (kind.dtype, DATA_TYPES[kind.dest[0]].dtype))
    for row in read_gemm_list(path):
        product = Product(row.m, row.n, row.k, row.batch, operand_bytes, result_bytes)
        layout = f" {row.layout}" if row.layout != "N N" else ""
        sizes = f"{row.m}x{row.n}x{row.k}" + (f" x{row.batch}" if row.batch > 1 else "")
        name = sizes + layout.removesuffix(" batched")
        yield ListedProduct(name, row.family, "GEMM", data_type, product, product.flops, product.bytes)


def _of_tuning_file(path: Path) -> Iterator[ListedProduct]:
    file = read_tuning_file(path, _space, derived_names, families=families_meant, lists=LISTS)
    for phases in file.groups:
        for step in phases.steps:
            for problem in () if isinstance(step, Fork) else step.problems:
                try:
                    yield _listed(problem)
                except ValueError as error:
                    raise UserError(str(path), str(error), "characterise GEMMs and convolutions") from None


def _space(problem_type: ProblemType) -> Space:
    """The tuning space; empty for an operation without a kernel, whose problems can still be characterised."""
    return tuning_space(problem_type) if families_of(problem_type.operation) else Space(())


def _listed(problem: Problem, family: str = "") -> ListedProduct:
    kind, operation = problem.type, OPERATIONS[problem.type.operation]
    product = implicit_product(problem)
    return ListedProduct(
        f"{kind.name} {problem}",
        family,
        kind.operation,
        data_type_of(kind),
        product,
        operation.flops(problem),
        operation.bytes(problem),
    )
