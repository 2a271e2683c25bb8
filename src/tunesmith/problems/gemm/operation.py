"""D = activation(alpha op(A) op(B) + bias) + beta C: operands, inputs, and what it must give.

Everything is column-major, as in BLAS and Tensile: D and C are M x N with M contiguous; A is M x K with M contiguous,
or K contiguous when transposed; B is K x N with K contiguous, or N contiguous when transposed. The matrices of a batch
follow one another, or lie interleaved: then what is said to be contiguous is `Batch` elements apart. Without an
activation it is BLAS's; with one, C is a residual that is added after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tunesmith.problems.base import Array, Expected, Operation, refuse_other, strided, traffic
from tunesmith.problems.keys import shown, unknown_key
from tunesmith.problems.lists import ListedProblem
from tunesmith.problems.mistakes import Mistakes
from tunesmith.records import Configuration, Operand, Problem, ProblemType, UserError, Value

from .fields import DATA_TYPES, GEMM_FIELDS, HIGH_PRECISION, SCALARS, UNSUPPORTED, data_type
from .inputs import random_numbers, storage_order
from .listed import read_gemm_list
from .reference import Epilogue, expected
from .type import Gemm, GemmTypeError, gemm_type, is_interleaved, smallest_leading

FIELDS = (*GEMM_FIELDS, *SCALARS)
"""Every key of a GEMM's ProblemType that means something."""

DATA_TYPE_FIELDS = ("DataType", "DestDataType", "ComputeDataType")
SCALES = ("ScaleA", "ScaleB")
_BETWEEN_INTEGERS = 85


class GemmOperation(Operation):
    """Operands A, B and C are read, D is written and never shares storage with C.

    A type without beta keeps C as an operand full of NaN, so that a kernel which reads it all the same is found out.
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
        refuse_other(problem_type, self.type_of(problem_type.fields, str, Path()))

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
        """The rows of a list of row-major products (`listed.ListedGemm`); those of other transposes and with or without
        a batch have no sizes of this type."""
        if is_interleaved(problem_type):
            what = f"a File lists GEMMs of whole matrices, {problem_type.name} is something else"
            raise UserError(location, what, "give it a Range or an Exact")
        return [
            ListedProblem(row.sizes(problem_type) if row.fits(problem_type) else (), row.family, row.weight, row.layout)
            for row in read_gemm_list(path)
        ]

    def none_listed(self, problem_type: ProblemType, location: str, name: str, others: str) -> UserError:
        what = f"{name} has no problem of {problem_type.name}; as trans_a and trans_b it has {others}"
        return UserError(location, what, "change TransposeA, TransposeB or Batched (docs/tuning-file.md), or the list")

    def operands(self, problem: Problem) -> tuple[Operand, ...]:
        """A, B, C, D with logical shapes op(A): M x K, op(B): K x N, C and D: M x N, the batch last; a transposed
        operand differs only in its strides. Then, where the type has them, Bias (M) and the scales of A and B (1)."""
        g = Gemm.of(problem)
        a = (g.lda, 1) if g.transpose_a else (1, g.lda)
        b = (g.ldb, 1) if g.transpose_b else (1, g.ldb)

        def matrix(name: str, dtype: str, shape: tuple[int, int], strides: tuple[int, int], stride: int) -> Operand:
            role = "out" if name == "D" else "in"
            batch, of_batch = ((g.batch,), (stride,)) if g.batched else ((), ())
            in_matrix = (strides[0] * g.step, strides[1] * g.step)
            return Operand(name, dtype, shape + batch, in_matrix + of_batch, role)  # type: ignore[arg-type]

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
        """Numbers that hide nothing (`_inputs.random_numbers`); NaN between the columns, and in all of a C that
        beta = 0 makes unreadable."""
        g = Gemm.of(problem)
        read = (operand for operand in self.operands(problem) if operand.role != "out")
        return {operand.name: _storage(operand, g, random) for operand in read}

    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """D in float64 with its bound (`_reference.expected`); a big problem at sampled rows, columns and
        matrices of the batch."""
        g = Gemm.of(problem)
        given = {one.name: strided(one, inputs[one.name]) for one in self.operands(problem) if one.name in inputs}
        scale = math.prod(float(given[name][0]) for name in SCALES) if g.scaled else 1.0
        epilogue = Epilogue(given.get("Bias"), g.activation, g.dest)
        return {
            "D": expected(
                given["A"], given["B"], given["C"] if g.beta else None, g.alpha * scale, g.beta, g.sums, epilogue
            )
        }

    def checks(self, problem: Problem) -> tuple[Problem, ...]:
        """The problem; then with beta = 0 (C is all NaN) or, where it has that already, with beta /= 0. The alpha of
        the second is not 1, and tells alpha from beta."""
        g = Gemm.of(problem)
        usual, rest, beta = (-3.0, 2.0, 2.0) if g.sums == "int32" else (-0.75, 1.5, 1.25)
        other_beta = 0.0 if g.beta or not g.use_beta else beta
        other = Configuration({"alpha": usual if g.alpha != usual else rest, "beta": other_beta})
        return problem, replace(problem, scalars=other)

    def small(self, problem: Problem) -> Problem:
        most = {"Batch": 2}
        sizes = zip(problem.type.indices, super().small(problem).sizes, strict=True)
        return replace(problem, sizes=tuple(min(size, most.get(index, size)) for index, size in sizes), leading=())

    def flops(self, problem: Problem) -> float:
        """2 M N K batch."""
        return 2.0 * math.prod(problem.sizes)

    def bytes(self, problem: Problem) -> float:
        """A, B, D, and what else is read (C where beta is not 0, the bias), once each."""
        unread = () if Gemm.of(problem).beta else ("C",)
        return float(sum(traffic(operand) for operand in self.operands(problem) if operand.name not in unread))


def _storage(operand: Operand, gemm: Gemm, random: np.random.Generator) -> Array:
    """The numbers where the operand's strides put them; between its columns nothing that could be part of a result."""
    readable = operand.name != "C" or gemm.beta != 0
    if readable and operand.storage_elements == math.prod(operand.shape):
        return random_numbers(operand, gemm, random).reshape(-1)
    # Integers have no NaN.
    empty = np.array([np.nan if np.dtype(operand.dtype).kind != "i" else _BETWEEN_INTEGERS], operand.dtype)
    # As words, which NumPy fills faster than types that are not its own.
    storage = np.full(operand.storage_elements, empty.view(f"u{empty.itemsize}")).view(operand.dtype)
    if readable:
        logical = strided(operand, storage, writeable=True).transpose(storage_order(operand))
        logical[...] = random_numbers(operand, gemm, random)
    return storage


def _checked(fields: Mapping[str, Value], location: Callable[[str], str]) -> dict[str, Value]:
    """Every field that defines the type, in its canonical form. Raises UserError for all that are not supported."""
    known, mistakes, values = {key.name: key for key in FIELDS}, Mistakes(), dict[str, Value]()
    for name, value in fields.items():
        with mistakes.caught():
            if name in UNSUPPORTED and not _is_so(name, value, fields, location):
                raise UserError(location(name), f"{name}: {shown(value)} is not supported", UNSUPPORTED[name].doc)
            if name not in known and name not in UNSUPPORTED:
                raise unknown_key(location(name), name, known, "the ProblemType of a GEMM")
            if name in DATA_TYPE_FIELDS:
                values[name] = data_type(name, value, location(name))
            elif name in known:
                values[name] = known[name].check(value, location(name))
    operands = DATA_TYPES[str(values.get("DataType", "s"))]
    if "ComputeDataType" in values and not ("DataType" in fields and "DataType" not in values):
        sums = DATA_TYPES[str(values["ComputeDataType"])].dtype
        if sums != operands.sums:
            what = f"ComputeDataType: sums of {operands.dtype} operands are in {operands.sums}, not {sums}"
            mistakes.add(UserError(location("ComputeDataType"), what, "leave it out"))
    mistakes.tell()
    return values


def _is_so(name: str, value: Value, fields: Mapping[str, Value], location: Callable[[str], str]) -> bool:
    """Whether a field that cannot be chosen asks for what is done anyhow."""
    if name in HIGH_PRECISION and value in (True, 1):
        operands = DATA_TYPES[data_type("DataType", fields.get("DataType", "s"), location("DataType"))]
        return operands.sums != operands.dtype
    return value == UNSUPPORTED[name].default
