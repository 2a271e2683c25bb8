"""D = activation(alpha op(A) op(B) + bias) + beta C as an operation: types, operands, inputs and the reference.

Everything is column-major, as in BLAS and Tensile. D and C are M x N with M contiguous. A is M x K with M contiguous,
or K contiguous when transposed. B is K x N with K contiguous, or N contiguous when transposed. The matrices of a batch
follow one another, or lie interleaved: neighbours along the contiguous dimension are then `Batch` elements apart.
Without an activation this is BLAS's GEMM; with an activation, C is a residual that is added after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tunesmith.problems.base import Array, Expected, Operation, refuse_mismatch, strided, traffic
from tunesmith.problems.keys import shortened, unknown_key
from tunesmith.problems.mistakes import Mistakes
from tunesmith.records import Configuration, Operand, Problem, ProblemType, UserError, Value

from .fields import DATA_TYPES, GEMM_FIELDS, HIGH_PRECISION, SCALARS, UNSUPPORTED, data_type
from .type import Gemm, GemmTypeError, gemm_type, is_interleaved, smallest_leading

if TYPE_CHECKING:
    from tunesmith.problems.lists import ListedProblem

FIELDS = (*GEMM_FIELDS, *SCALARS)
"""Every supported key of a GEMM's ProblemType."""

DATA_TYPE_FIELDS = ("DataType", "DestDataType", "ComputeDataType")
SCALES = ("ScaleA", "ScaleB")
_BETWEEN_INTEGERS = 85
"""Fills the gaps between columns of integers, which have no NaN."""


class GemmOperation(Operation):
    """Operands A, B and C are read; D is written and never shares storage with C.

    A type without beta keeps C as an operand full of NaN, so that a kernel that reads C nevertheless is found out.

    Lists, inputs and references are imported at their first use, since a program that only launches needs none.
    """

    name = "GEMM"
    single = ("Batch",)

    def type_of(self, fields: Mapping[str, Value], location: Callable[[str], str], folder: Path) -> ProblemType:
        values = {key.name: key.default for key in GEMM_FIELDS} | _checked(fields, location)
        try:
            return gemm_type(
                str(values["DataType"]),
                dest=str(values["DestDataType"] or ""),
                tf32=values["F32XdlMathOp"] == "x",
                transpose_a=bool(values["TransposeA"]),
                transpose_b=bool(values["TransposeB"]),
                batched=bool(values["Batched"]),
                use_beta=bool(values["UseBeta"]),
                interleaved=bool(values["Interleaved"]),
                bias=bool(values["UseBias"]),
                activation=str(values["Activation"]),
                scaled=bool(values["ScaleAB"]),
            )
        except GemmTypeError as error:
            remedy = f"leave {error.key} out, or see ProblemType in docs/tuning-file.md for what goes together"
            raise UserError(location(error.key), str(error), remedy) from None

    def validate(self, problem_type: ProblemType) -> None:
        refuse_mismatch(problem_type, self.type_of(problem_type.fields, str, Path()))

    def scalars_of(self, fields: Mapping[str, Value], location: Callable[[str], str]) -> Configuration:
        scalars = {}
        letter = data_type("DataType", fields.get("DataType", "s"), location("DataType"))
        for key in SCALARS:
            value = key.check(fields[key.name], location(key.name)) if key.name in fields else key.default
            scalars[key.name.lower()] = number = float(value)  # type: ignore[arg-type]  # a number by its key
            if DATA_TYPES[letter].sums == "int32" and not number.is_integer():
                raise UserError(location(key.name), f"{key.name} of integers cannot be {number}", "give an integer")
        if scalars["beta"] and fields.get("UseBeta", True) in (False, 0):
            raise UserError(location("Beta"), "Beta is given without UseBeta", "leave it out, or set UseBeta: True")
        return Configuration(scalars)

    def assumed(self, fields: Mapping[str, Value]) -> Iterator[str]:
        if "DataType" not in fields:
            yield "no DataType is given: single precision (DataType: s) is assumed"
        operands = DATA_TYPES[data_type("DataType", fields.get("DataType", "s"), "DataType")]
        if operands.sums != operands.dtype and fields.get(HIGH_PRECISION[0], True) in (False, 0):
            yield f"{HIGH_PRECISION[0]} is ignored: sums of {operands.dtype} operands are always in {operands.sums}"

    def leading(self, problem_type: ProblemType, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        return smallest_leading(problem_type, sizes)

    def listed(self, problem_type: ProblemType, path: Path, location: str) -> Sequence[ListedProblem]:
        """The rows of a list of row-major products (`listed.ListedGemm`).

        A row whose transposes or batch are not those of the type has no sizes.
        """
        if is_interleaved(problem_type):
            what = f"a File lists GEMMs of whole matrices, {problem_type.name} is something else"
            raise UserError(location, what, "give it a Range or an Exact")
        from tunesmith.problems.lists import ListedProblem

        from .listed import read_gemm_list

        return [
            ListedProblem(row.sizes(problem_type) if row.fits(problem_type) else (), row.family, row.weight, row.layout)
            for row in read_gemm_list(path)
        ]

    def none_listed(self, problem_type: ProblemType, location: str, name: str, others: str) -> UserError:
        what = f"{name} has no problem of {problem_type.name}; as trans_a and trans_b it has {others}"
        return UserError(location, what, "change TransposeA, TransposeB or Batched (docs/tuning-file.md), or the list")

    def operands(self, problem: Problem) -> tuple[Operand, ...]:
        """A, B, C and D, then Bias (M) and the scales of A and B (1 each) if the type has them.

        Logical shapes are op(A): M x K, op(B): K x N, C and D: M x N, with the batch last. A transposed operand differs
        only in its strides.
        """
        g = Gemm.of(problem)
        a = (g.lda, 1) if g.transpose_a else (1, g.lda)
        b = (g.ldb, 1) if g.transpose_b else (1, g.ldb)

        def matrix(name: str, dtype: str, shape: tuple[int, int], strides: tuple[int, int], stride: int) -> Operand:
            role = "out" if name == "D" else "in"
            batch, batch_stride = ((g.batch,), (stride,)) if g.batched else ((), ())
            matrix_strides = (strides[0] * g.step, strides[1] * g.step)
            return Operand(name, dtype, shape + batch, matrix_strides + batch_stride, role)  # type: ignore[arg-type]

        bias = (Operand("Bias", g.dest, (g.m,), (1,), "in"),) if g.bias else ()
        scales = tuple(Operand(name, "float32", (1,), (1,), "in") for name in SCALES) if g.scaled else ()
        return (
            matrix("A", g.dtype, (g.m, g.k), a, g.stride_a),
            matrix("B", g.dtype, (g.k, g.n), b, g.stride_b),
            matrix("C", g.dest, (g.m, g.n), (1, g.ldc), g.stride_c),
            matrix("D", g.dest, (g.m, g.n), (1, g.ldd), g.stride_d),
            *bias,
            *scales,
        )

    def inputs(self, problem: Problem, random: np.random.Generator) -> dict[str, Array]:
        """Random numbers (`inputs.random_numbers`), with NaN between the columns.

        All of C is NaN if beta is 0, because C must not be read then.
        """
        g = Gemm.of(problem)
        read = (operand for operand in self.operands(problem) if operand.role != "out")
        return {operand.name: _storage(operand, g, random) for operand in read}

    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """D in float64 with its tolerance (`reference.expected`).

        A big problem is checked at sampled rows, columns and matrices of the batch.
        """
        from .reference import Epilogue, expected

        g = Gemm.of(problem)
        operands = (operand for operand in self.operands(problem) if operand.name in inputs)
        arrays = {operand.name: strided(operand, inputs[operand.name]) for operand in operands}
        scale = math.prod(float(arrays[name][0]) for name in SCALES) if g.scaled else 1.0
        epilogue = Epilogue(arrays.get("Bias"), g.activation, g.dest)
        c = arrays["C"] if g.beta else None
        return {"D": expected(arrays["A"], arrays["B"], c, g.alpha * scale, g.beta, g.sums, epilogue)}

    def checks(self, problem: Problem) -> tuple[Problem, ...]:
        """The problem; then the same with beta = 0 (C is all NaN), or with beta /= 0 if its beta is 0 already.

        The alpha of the second problem is not 1, so that a kernel that confuses alpha with beta fails.
        """
        g = Gemm.of(problem)
        alpha, second_alpha, beta = (-3.0, 2.0, 2.0) if g.sums == "int32" else (-0.75, 1.5, 1.25)
        other_beta = 0.0 if g.beta or not g.use_beta else beta
        other_scalars = Configuration({"alpha": alpha if g.alpha != alpha else second_alpha, "beta": other_beta})
        return problem, replace(problem, scalars=other_scalars)

    def small(self, problem: Problem) -> Problem:
        most = {"Batch": 2}
        sizes = zip(problem.type.indices, super().small(problem).sizes, strict=True)
        return replace(problem, sizes=tuple(min(size, most.get(index, size)) for index, size in sizes), leading=())

    def flops(self, problem: Problem) -> float:
        """2 M N K batch."""
        return 2.0 * math.prod(problem.sizes)

    def bytes(self, problem: Problem) -> float:
        """A, B and D once each, C if beta is not 0, and the bias and scales if the type has them."""
        unread = () if Gemm.of(problem).beta else ("C",)
        return float(sum(traffic(operand) for operand in self.operands(problem) if operand.name not in unread))


def _storage(operand: Operand, gemm: Gemm, random: np.random.Generator) -> Array:
    """The operand's numbers at its strides. Gaps between its columns hold NaN, or `_BETWEEN_INTEGERS`."""
    from .inputs import random_numbers, storage_order

    readable = operand.name != "C" or gemm.beta != 0
    if readable and operand.storage_elements == math.prod(operand.shape):
        return random_numbers(operand, gemm, random).reshape(-1)
    filler = np.array([np.nan if np.dtype(operand.dtype).kind != "i" else _BETWEEN_INTEGERS], operand.dtype)
    # Filled as words: NumPy fills these faster than types that are not its own.
    storage = np.full(operand.storage_elements, filler.view(f"u{filler.itemsize}")).view(operand.dtype)
    if readable:
        logical = strided(operand, storage, writeable=True).transpose(storage_order(operand))
        logical[...] = random_numbers(operand, gemm, random)
    return storage


def _checked(fields: Mapping[str, Value], location: Callable[[str], str]) -> dict[str, Value]:
    """Every field that defines the type, in its canonical form. Raises UserError for all fields and values that are not
    supported."""
    by_name, mistakes, values = {key.name: key for key in FIELDS}, Mistakes(), dict[str, Value]()
    for name, value in fields.items():
        with mistakes.caught():
            if name in UNSUPPORTED and not _is_default(name, value, fields, location):
                raise UserError(location(name), f"{name}: {shortened(value)} is not supported", UNSUPPORTED[name].doc)
            if name not in by_name and name not in UNSUPPORTED:
                raise unknown_key(location(name), name, by_name, "the ProblemType of a GEMM")
            if name in DATA_TYPE_FIELDS:
                values[name] = data_type(name, value, location(name))
            elif name in by_name:
                values[name] = by_name[name].check(value, location(name))
    operands = DATA_TYPES[str(values.get("DataType", "s"))]
    if "ComputeDataType" in values and not ("DataType" in fields and "DataType" not in values):
        sums = DATA_TYPES[str(values["ComputeDataType"])].dtype
        if sums != operands.sums:
            what = f"ComputeDataType: sums of {operands.dtype} operands are in {operands.sums}, not {sums}"
            mistakes.add(UserError(location("ComputeDataType"), what, "leave it out"))
    mistakes.tell()
    return values


def _is_default(name: str, value: Value, fields: Mapping[str, Value], location: Callable[[str], str]) -> bool:
    """Whether a field of UNSUPPORTED has the value that always holds."""
    if name in HIGH_PRECISION and value in (True, 1):
        operands = DATA_TYPES[data_type("DataType", fields.get("DataType", "s"), location("DataType"))]
        return operands.sums != operands.dtype
    return value == UNSUPPORTED[name].default
