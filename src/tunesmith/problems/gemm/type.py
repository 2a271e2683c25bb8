"""`gemm_type` makes a GEMM's problem type, with Tensile's name; `Gemm` is a typed view of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tunesmith.records import Configuration, Problem, ProblemType, Value

from .fields import ACTIVATIONS, DATA_TYPES, INPUTS

EQUALLY_FAST = {"b": "h", "h": "b"}
TF32 = "x"
"""The letter of single precision with products in TF32."""


class GemmTypeError(ValueError):
    """Fields that do not go together: the key of the wrong field, and why."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"{key}: {what}")
        self.key = key


def gemm_type(
    data_type: str = "s",
    *,
    dest: str = "",
    tf32: bool = False,
    transpose_a: bool = False,
    transpose_b: bool = True,
    batched: bool = False,
    use_beta: bool = True,
    interleaved: bool = False,
    bias: bool = False,
    activation: str = "none",
    scaled: bool = False,
) -> ProblemType:
    """The problem type of a GEMM, with Tensile's name.

    `Cijk_Ailk_Bljk_SB` is a batched single-precision NN with beta. `Ckij_Akil_Bklj_SB` is the same with its batch
    interleaved, since the first index is the fastest. i and j are M and N; with a batch, k is the batch and l the
    summation index, otherwise k is the summation index. If D has another type than the operands, the letter of D's type
    follows theirs. The parts of an epilogue come at the end: `Cij_Aki_Bkj_F8BB_Bias_Relu`.

    `data_type` is one of `INPUTS`, `dest` the type of C, D and the bias (the default is the first that DATA_TYPES
    names), `activation` one of `ACTIVATIONS`. The defaults are Tensile's. Raises GemmTypeError, a ValueError, for
    fields that do not go together.
    """
    if data_type not in INPUTS:
        raise ValueError(f"data type {data_type!r}; there are {', '.join(INPUTS)}")
    operands = DATA_TYPES[data_type]
    dest = dest or operands.dest[0]
    is_integer, dests = operands.sums == "int32", ", ".join(operands.dest)
    for wrong, key, what in (
        (dest not in operands.dest, "DestDataType", f"{dest} of {data_type} operands; there is {dests}"),
        (tf32 and data_type != "s", "F32XdlMathOp", "TF32 is made of single precision (s) only"),
        (activation not in ACTIVATIONS, "Activation", f"{activation!r}; there are {', '.join(ACTIVATIONS)}"),
        (is_integer and activation not in ("none", "relu"), "Activation", "of integers there is only relu"),
        (scaled and data_type not in ("f8", "b8"), "ScaleAB", "only float8 operands (f8, b8) have scales"),
        (interleaved and not batched, "Interleaved", "only a batch (Batched: True) can be interleaved"),
    ):
        if wrong:
            raise GemmTypeError(key, what)
    indices, matrices = _indices(transpose_a, transpose_b, batched, interleaved)
    letters = data_type + (dest if dest != data_type else "") + ("b" if use_beta else "")
    # A type has one of these fields only if it differs from the default: so the names and hashes of all other types
    # stay as they were.
    optional: dict[str, tuple[Value, str]] = {
        "Interleaved": (interleaved, ""),
        "DestDataType": (dest if dest != operands.dest[0] else "", ""),
        "F32XdlMathOp": ("x" if tf32 else "", "_MX"),
        "UseBias": (bias, "_Bias"),
        "Activation": (activation if activation != "none" else "", f"_{activation.capitalize()}"),
        "ScaleAB": (scaled, "_ScaleAB"),
    }
    fields: dict[str, Value] = {
        "DataType": data_type,
        "TransposeA": transpose_a,
        "TransposeB": transpose_b,
        "Batched": batched,
        "StridedBatched": True,
        "UseBeta": use_beta,
    }
    fields.update({name: value for name, (value, _) in optional.items() if value})
    name = "_".join((*matrices, letters.upper())) + "".join(suffix for value, suffix in optional.values() if value)
    return ProblemType("GEMM", name, indices, Configuration(fields))


def _indices(
    transpose_a: bool, transpose_b: bool, batched: bool, interleaved: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the sizes, and the names of C, A and B with their index letters, the fastest first."""
    batch, summed = ("k", "l") if batched else ("", "k")
    a = summed + "i" if transpose_a else "i" + summed
    b = "j" + summed if transpose_b else summed + "j"
    before, behind = (batch, "") if interleaved else ("", batch)
    matrices = tuple(f"{name}{before}{letters}{behind}" for name, letters in (("C", "ij"), ("A", a), ("B", b)))
    return (("M", "N", "Batch", "K") if batched else ("M", "N", "K")), matrices


@dataclass(frozen=True, slots=True)
class Gemm:
    """A GEMM problem with named attributes.

    Sizes, leading dimensions and strides (from one matrix of a batch to the next) are in elements. `dtype`, `dest` and
    `sums` are NumPy's names for the types of A and B, of C, D and the bias, and of the sums. `alpha` and `beta` are
    already rounded to the type of the sums, as a kernel receives them. `tf32` says that products may be made in TF32,
    `scaled` that A and B have a scale each. In an interleaved batch a leading dimension counts groups of `batch`
    elements.
    """

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
    dest: str
    sums: str
    tf32: bool = False
    bias: bool = False
    activation: str = "none"
    scaled: bool = False

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(problem: Problem) -> Gemm:
        """The typed view of a problem, which is asked for many times. Raises ValueError for a problem of another
        operation."""
        if problem.type.operation != "GEMM":
            raise ValueError(f"{problem.type.name} is no GEMM")
        sizes = dict(zip(problem.type.indices, problem.sizes, strict=True))
        fields = problem.type.fields
        data_type = DATA_TYPES[fields.word("DataType")]
        ldd, ldc, lda, ldb = problem.leading or (extent for _, extent in smallest_leading(problem.type, problem.sizes))
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
            dest=DATA_TYPES[dest_of(problem.type)].dtype,
            sums=data_type.sums,
            tf32="F32XdlMathOp" in fields,
            bias="UseBias" in fields,
            activation=str(fields.get("Activation", "none")),
            scaled="ScaleAB" in fields,
        )

    @property
    def step(self) -> int:
        """Elements from one element of a column to the next; of a transposed operand, from one element of a row."""
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


def smallest_leading(problem_type: ProblemType, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """The name of each leading dimension, and its smallest value in elements."""
    extent = dict(zip(problem_type.indices, sizes, strict=True))
    a = extent["K"] if problem_type.fields.flag("TransposeA") else extent["M"]
    b = extent["N"] if problem_type.fields.flag("TransposeB") else extent["K"]
    return (("LDD", extent["M"]), ("LDC", extent["M"]), ("LDA", a), ("LDB", b))


def dest_of(problem_type: ProblemType) -> str:
    """The letter of the type of C, D and the bias."""
    fields = problem_type.fields
    return str(fields.get("DestDataType", DATA_TYPES[fields.word("DataType")].dest[0]))


def torch_type(
    letter: str, *, transpose_a: bool = False, transpose_b: bool = False, batched: bool = False
) -> ProblemType:
    """The type by which torch's plain products are tuned: without beta, and of float8 with scales. `letter` is one of
    INPUTS, or TF32."""
    return gemm_type(
        "s" if letter == TF32 else letter,
        tf32=letter == TF32,
        scaled=letter != TF32 and DATA_TYPES[letter].dtype.startswith("float8"),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        batched=batched,
        use_beta=False,
    )


def equally_fast(problem_type: ProblemType) -> ProblemType | None:
    """The same GEMM of float16 if it is of bfloat16, and the reverse; None for all other types.

    Both types have 16 bits, and a tensor core multiplies both at one rate (float16 and bfloat16 share a row in NVIDIA's
    tables of peak rates), so times of the one tell which solution is best for the other.
    """
    fields = problem_type.fields
    if problem_type.operation != "GEMM" or (letter := EQUALLY_FAST.get(fields.word("DataType"))) is None:
        return None
    return _like(problem_type, letter, fields.flag("Batched"))


def of_batches(problem_type: ProblemType) -> ProblemType:
    """The same GEMM type with a batch."""
    return _like(problem_type, problem_type.fields.word("DataType"), batched=True)


def _like(problem_type: ProblemType, letter: str, batched: bool) -> ProblemType:
    """The GEMM with another data type, or with a batch or without."""
    fields = problem_type.fields
    return gemm_type(
        letter,
        dest=str(fields.get("DestDataType", "")),
        tf32="F32XdlMathOp" in fields,
        transpose_a=fields.flag("TransposeA"),
        transpose_b=fields.flag("TransposeB"),
        batched=batched,
        use_beta=fields.flag("UseBeta"),
        interleaved=is_interleaved(problem_type),
        bias="UseBias" in fields,
        activation=str(fields.get("Activation", "none")),
        scaled="ScaleAB" in fields,
    )


def is_interleaved(problem_type: ProblemType) -> bool:
    """Whether the batch is the fastest index of all operands."""
    return "Interleaved" in problem_type.fields
