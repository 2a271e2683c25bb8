"""D = alpha op(A) op(B) + beta C: types named as Tensile names them, a typed view of a problem, and what it must give.

Everything is column-major, as in BLAS and Tensile: D and C are M x N with M contiguous; A is M x K with M contiguous,
or K contiguous when transposed; B is K x N with K contiguous, or N contiguous when transposed. The matrices of a batch
follow one another, or lie interleaved: then what is said to be contiguous is `Batch` elements apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from tunesmith.records import Configuration, Operand, Problem, ProblemType, UserError, Value

from ._base import Array, Expected, Operation
from ._gemm_fields import DATA_TYPES, GEMM_FIELDS, SCALARS, UNSUPPORTED, data_type
from ._gemm_reference import expected
from ._keys import unknown_key

FIELDS = (*GEMM_FIELDS, *SCALARS)
"""Every key of a GEMM's ProblemType that means something."""


def gemm_type(
    data_type: str = "s",
    *,
    transpose_a: bool = False,
    transpose_b: bool = True,
    batched: bool = False,
    use_beta: bool = True,
    interleaved: bool = False,
) -> ProblemType:
    """The type with Tensile's name: `Cijk_Ailk_Bljk_SB` is a batched single-precision NN with beta, and
    `Ckij_Akil_Bklj_SB` the same with its batch interleaved, since the first index is the fastest.

    `data_type` is "s", "d" or "h". i and j are M and N; batched, k is the batch and l the summation index, else k is
    the summation index. The defaults are Tensile's. Raises ValueError for a data type that is not supported, and for
    an interleaved batch where there is none.
    """
    if data_type not in DATA_TYPES:
        raise ValueError(f"data type {data_type!r}; there are {', '.join(DATA_TYPES)}")
    if interleaved and not batched:
        raise ValueError("only a batch can be interleaved")
    batch, summed = ("k", "l") if batched else ("", "k")
    a = summed + "i" if transpose_a else "i" + summed
    b = "j" + summed if transpose_b else summed + "j"
    before, behind = (batch, "") if interleaved else ("", batch)
    matrices = "_".join(f"{name}{before}{indices}{behind}" for name, indices in (("C", "ij"), ("A", a), ("B", b)))
    name = f"{matrices}_{data_type.upper()}{'B' if use_beta else ''}"
    fields: dict[str, Value] = {
        "DataType": data_type,
        "TransposeA": transpose_a,
        "TransposeB": transpose_b,
        "Batched": batched,
        "StridedBatched": True,
        "UseBeta": use_beta,
    }
    if interleaved:  # said only where it is so: types are part of what is stored
        fields["Interleaved"] = True
    indices = ("M", "N", "Batch", "K") if batched else ("M", "N", "K")
    return ProblemType("GEMM", name, indices, Configuration(fields))


@dataclass(frozen=True, slots=True)
class Gemm:
    """A GEMM problem with names. Sizes, leading dimensions and strides from one matrix of a batch to the next in
    elements; `dtype` is NumPy's name, `sums` that of the sums; `alpha` and `beta` are already rounded to the latter, as
    a kernel receives them. In an interleaved batch a leading dimension counts places of `batch` elements each."""

    m: int
    n: int
    batch: int
    k: int
    ldd: int
    ldc: int
    lda: int
    ldb: int
    transpose_a: bool
    transpose_b: bool
    batched: bool
    interleaved: bool
    use_beta: bool
    alpha: float
    beta: float
    dtype: str
    sums: str

    @staticmethod
    def of(problem: Problem) -> Gemm:
        """Raises ValueError for a problem of another operation."""
        if problem.type.operation != "GEMM":
            raise ValueError(f"{problem.type.name} is no GEMM")
        sizes = dict(zip(problem.type.indices, problem.sizes, strict=True))
        fields = problem.type.fields
        data_type = DATA_TYPES[fields.word("DataType")]
        smallest = [extent for _, extent in GemmOperation().leading(problem.type, problem.sizes)]
        ldd, ldc, lda, ldb = problem.leading or smallest
        round_to = np.dtype(data_type.sums).type
        return Gemm(
            m=sizes["M"],
            n=sizes["N"],
            batch=sizes.get("Batch", 1),
            k=sizes["K"],
            ldd=ldd,
            ldc=ldc,
            lda=lda,
            ldb=ldb,
            transpose_a=fields.flag("TransposeA"),
            transpose_b=fields.flag("TransposeB"),
            batched=fields.flag("Batched"),
            interleaved=is_interleaved(problem.type),
            use_beta=fields.flag("UseBeta"),
            alpha=float(round_to(problem.scalars.get("alpha", 1.0))),
            beta=float(round_to(problem.scalars.get("beta", 0.0))) if fields.flag("UseBeta") else 0.0,
            dtype=data_type.dtype,
            sums=data_type.sums,
        )

    @property
    def step(self) -> int:
        """From one element of a column (of a transposed operand: of a row) to the next."""
        return self.batch if self.interleaved else 1

    @property
    def stride_d(self) -> int:
        return self._stride(self.ldd, self.n)

    @property
    def stride_c(self) -> int:
        return self._stride(self.ldc, self.n)

    @property
    def stride_a(self) -> int:
        return self._stride(self.lda, self.m if self.transpose_a else self.k)

    @property
    def stride_b(self) -> int:
        return self._stride(self.ldb, self.k if self.transpose_b else self.n)

    def _stride(self, leading: int, columns: int) -> int:
        return 1 if self.interleaved else leading * columns


class GemmOperation(Operation):
    """Operands A, B and C are read, D is written and never shares storage with C.

    A type without beta keeps C as an operand full of NaN, so that a kernel which reads it all the same is found out.
    """

    name = "GEMM"

    def type_of(self, fields: Mapping[str, Value], place: Callable[[str], str], folder: Path) -> ProblemType:
        values = {key.name: key.default for key in GEMM_FIELDS} | dict(_checked(fields, place))
        if values["Interleaved"] and not values["Batched"]:
            what = "Interleaved is given without Batched"
            raise UserError(place("Interleaved"), what, "set Batched: True, or leave it out")
        return gemm_type(
            str(values["DataType"]),
            transpose_a=bool(values["TransposeA"]),
            transpose_b=bool(values["TransposeB"]),
            batched=bool(values["Batched"]),
            use_beta=bool(values["UseBeta"]),
            interleaved=bool(values["Interleaved"]),
        )

    def scalars_of(self, fields: Mapping[str, Value], place: Callable[[str], str]) -> Configuration:
        scalars = {}
        for key in SCALARS:
            value = key.check(fields[key.name], place(key.name)) if key.name in fields else key.default
            scalars[key.name.lower()] = float(value)  # type: ignore[arg-type]  # a number by its key
        if scalars["beta"] and fields.get("UseBeta", True) in (False, 0):
            raise UserError(place("Beta"), "Beta is given without UseBeta", "leave it out, or set UseBeta: True")
        return Configuration(scalars)

    def assumed(self, fields: Mapping[str, Value]) -> Iterator[str]:
        if "DataType" not in fields:
            yield "no DataType is given: single precision (DataType: s) is assumed"

    def indices(self, problem_type: ProblemType) -> tuple[str, ...]:
        return problem_type.indices

    def leading(self, problem_type: ProblemType, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        extent = dict(zip(problem_type.indices, sizes, strict=True))
        a = extent["K"] if problem_type.fields.flag("TransposeA") else extent["M"]
        b = extent["N"] if problem_type.fields.flag("TransposeB") else extent["K"]
        return (("LDD", extent["M"]), ("LDC", extent["M"]), ("LDA", a), ("LDB", b))

    def operands(self, problem: Problem) -> tuple[Operand, ...]:
        """A, B, C, D with logical shapes op(A): M x K, op(B): K x N, C and D: M x N, the batch last; a transposed
        operand differs only in its strides."""
        g = Gemm.of(problem)
        a = (g.lda, 1) if g.transpose_a else (1, g.lda)
        b = (g.ldb, 1) if g.transpose_b else (1, g.ldb)

        def operand(name: str, shape: tuple[int, int], strides: tuple[int, int], stride: int) -> Operand:
            role = "out" if name == "D" else "in"
            batch, of_batch = ((g.batch,), (stride,)) if g.batched else ((), ())
            in_matrix = (strides[0] * g.step, strides[1] * g.step)
            return Operand(name, g.dtype, shape + batch, in_matrix + of_batch, role)  # type: ignore[arg-type]

        return (
            operand("A", (g.m, g.k), a, g.stride_a),
            operand("B", (g.k, g.n), b, g.stride_b),
            operand("C", (g.m, g.n), (1, g.ldc), g.stride_c),
            operand("D", (g.m, g.n), (1, g.ldd), g.stride_d),
        )

    def inputs(self, problem: Problem, random: np.random.Generator) -> dict[str, Array]:
        """Magnitudes uniform in [0.5, 1), signs random; NaN between the columns, and in all of a C that beta = 0
        makes unreadable. No product of two elements is smaller than 1/4, so that one term too few is seen."""
        g = Gemm.of(problem)
        filled = {}
        for operand in self.operands(problem):
            if operand.role == "out":
                continue
            storage = np.full(operand.storage_elements, np.nan, operand.dtype)
            if operand.name != "C" or g.beta != 0:
                logical = strided(operand, storage, writeable=True)
                logical.T[...] = _no_zeros(random, logical.T.shape, operand.dtype)
            filled[operand.name] = storage
        return filled

    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """D in float64 with its bound (`_gemm_reference.expected`); a big problem at sampled rows, columns and
        matrices of the batch."""
        g = Gemm.of(problem)
        a, b, c, _ = (
            strided(operand, inputs[operand.name]) if operand.name in inputs else None
            for operand in self.operands(problem)
        )
        assert a is not None
        assert b is not None
        return {"D": expected(a, b, c if g.beta else None, g.alpha, g.beta, g.sums)}

    def checks(self, problem: Problem) -> tuple[Problem, ...]:
        """The problem; then with beta = 0 (C is all NaN) or, where it has that already, with beta /= 0. The alpha of
        the second is not 1, and tells alpha from beta."""
        g = Gemm.of(problem)
        other_beta = 0.0 if g.beta or not g.use_beta else 1.25
        other = Configuration({"alpha": -0.75 if g.alpha != -0.75 else 1.5, "beta": other_beta})
        return problem, replace(problem, scalars=other)

    def small(self, problem: Problem) -> Problem:
        at_most = {"Batch": 2}
        sizes = tuple(
            min(size, at_most.get(index, 64)) for index, size in zip(problem.type.indices, problem.sizes, strict=True)
        )
        return replace(problem, sizes=sizes, leading=())

    def flops(self, problem: Problem) -> float:
        """2 M N K batch."""
        return 2.0 * math.prod(problem.sizes)

    def bytes(self, problem: Problem) -> float:
        """A, B, D, and C where beta reads it, once each."""
        g = Gemm.of(problem)
        matrices = g.m * g.k + g.k * g.n + g.m * g.n * (2 if g.beta else 1)
        return float(matrices * g.batch * np.dtype(g.dtype).itemsize)


def is_interleaved(problem_type: ProblemType) -> bool:
    """Whether the batch is the fastest index of all operands."""
    fields = problem_type.fields
    return "Interleaved" in fields and fields.flag("Interleaved")


def strided(operand: Operand, storage: Array, writeable: bool = False) -> Array:
    """The operand's logical array as a view of its storage. Raises ValueError when the storage is too short."""
    if storage.size < operand.storage_elements:
        raise ValueError(f"{operand.name} needs {operand.storage_elements} elements, its storage has {storage.size}")
    strides = tuple(stride * storage.itemsize for stride in operand.strides)
    return np.lib.stride_tricks.as_strided(storage, operand.shape, strides, writeable=writeable)


def _no_zeros(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Uniform in (-1, -0.5] and [0.5, 1) from one draw each: u - 1/2, moved away from zero by 1/2."""
    precision = np.float32 if dtype == "float32" else np.float64
    centred = random.random(shape, dtype=precision) - precision(0.5)
    return centred + np.copysign(precision(0.5), centred)


def _checked(fields: Mapping[str, Value], place: Callable[[str], str]) -> Iterator[tuple[str, Value]]:
    """Every field that defines the type, in its canonical form. Raises UserError for what is not supported."""
    known = {key.name: key for key in FIELDS}
    of_data = ("DataType", "DestDataType", "ComputeDataType")
    for name, value in fields.items():
        if name in UNSUPPORTED and value != UNSUPPORTED[name].default:
            raise UserError(place(name), f"{name}: {value} is not supported", UNSUPPORTED[name].doc)
        if name not in known and name not in UNSUPPORTED:
            raise unknown_key(place(name), name, known, "the ProblemType of a GEMM")
        if name in known:
            check = partial(data_type, name) if name in of_data else known[name].check
            yield name, check(value, place(name))
    default = str(known["DataType"].default)
    named = {"DataType": default} | {name: fields[name] for name in of_data if name in fields}
    if len({data_type(name, value, place(name)) for name, value in named.items()}) > 1:
        assumed = "" if "DataType" in fields else f": without a DataType it is {default}"
        what = f"input, output and computation differ in type{assumed}"
        raise UserError(place("DataType"), what, "give all the same DataType")
