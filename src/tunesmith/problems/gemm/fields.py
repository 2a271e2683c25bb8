"""The fields of a GEMM's ProblemType: Tensile's names and defaults, and which values are supported."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes  # noqa: F401  (teaches NumPy the names bfloat16, float8_e4m3fn and float8_e5m2)

from tunesmith.problems.keys import Key, shortened
from tunesmith.records import UserError, Value


@dataclass(frozen=True, slots=True)
class DataType:
    """A type of A and B.

    `dtype` and `sums` are NumPy's names of the type and of its sums. `dest` has the letters of the types that D may
    have, the default first; it is empty for a type that only D can have. `words` are the words, and Tensile's number,
    by which a file may name the type.
    """

    dtype: str
    sums: str
    dest: tuple[str, ...]
    words: tuple[str, ...]


DATA_TYPES = {
    "s": DataType("float32", "float32", ("s",), ("s", "single", "float", "float32", "f32", "0")),
    "d": DataType("float64", "float64", ("d",), ("d", "double", "float64", "f64", "1")),
    "h": DataType("float16", "float32", ("h", "s"), ("h", "half", "float16", "f16", "4")),
    "b": DataType("bfloat16", "float32", ("b", "s"), ("b", "bfloat16", "bf16", "7")),
    "f8": DataType("float8_e4m3fn", "float32", ("b", "h", "s"), ("f8", "fp8", "float8", "float8_e4m3fn", "e4m3", "10")),
    "b8": DataType("float8_e5m2", "float32", ("b", "h", "s"), ("b8", "bf8", "bfloat8", "float8_e5m2", "e5m2", "11")),
    "i8": DataType("int8", "int32", ("i",), ("i8", "int8", "8")),
    "i": DataType("int32", "int32", (), ("i", "int32", "6")),
}

INPUTS = tuple(letter for letter, data_type in DATA_TYPES.items() if data_type.dest)
"""The letters of the types that A and B may have."""

ACTIVATIONS = ("none", "relu", "gelu", "silu")

GEMM_FIELDS = (
    Key("OperationType", "one of", "What is computed.", "GEMM", ("GEMM",)),
    Key(
        "DataType",
        "one of",
        "Precision of A and B: s (single), d (double); with sums in single precision h (half), b (bfloat16), f8 "
        "(float8_e4m3fn), b8 (float8_e5m2); i8 (int8, with sums in int32).",
        "s",
        INPUTS,
    ),
    Key(
        "DestDataType",
        "one of",
        "Precision of C, D and the bias: that of the operands; for h and b also s; for f8 and b8 b (the default), h or "
        "s; for i8 i (int32).",
        None,
        tuple(DATA_TYPES),
    ),
    Key("ComputeDataType", "one of", "Precision of the sum; only what follows from DataType.", None, ("s", "d", "i")),
    Key(
        "F32XdlMathOp",
        "one of",
        "x: products of single-precision operands may be made in TF32, which keeps 11 bits of each; s or 0: they may "
        "not.",
        0,
        (0, "s", "x"),
    ),
    Key("TransposeA", "truth value", "A is stored K x M, K contiguous, instead of M x K, M contiguous.", False),
    Key("TransposeB", "truth value", "B is stored N x K, N contiguous, instead of K x N, K contiguous.", True),
    Key("Batched", "truth value", "Many matrices of the same sizes; the sizes are then M, N, batch, K.", False),
    Key("StridedBatched", "truth value", "The matrices of a batch lie at a constant stride.", True, (True,)),
    Key(
        "Interleaved",
        "truth value",
        "The matrices of a batch lie inside one another: the batch is the fastest index, before rows and columns "
        "(tunesmith's own key, after portBLAS).",
        False,
    ),
    Key("UseBeta", "truth value", "beta C is added; without it, beta is 0 and C is not read.", True),
    Key(
        "UseBias",
        "truth value",
        "A bias is added before the activation: one number for each row of D, so along its contiguous dimension.",
        False,
    ),
    Key(
        "Activation",
        "one of",
        "What is applied to alpha A B plus the bias, before beta C is added: relu, gelu (exact, by the error function) "
        "or silu (tunesmith's own key).",
        "none",
        ACTIVATIONS,
    ),
    Key(
        "ScaleAB",
        "truth value",
        "A and B have a scale each, one float32 in the device's memory, that multiplies all their elements "
        "(tunesmith's own key; Tensile's UseScaleAB).",
        False,
    ),
)

SCALARS = (
    Key("Alpha", "number", "The alpha that is measured with (tunesmith's own key).", 1.0),
    Key("Beta", "number", "The beta that is measured with (tunesmith's own key); at 0, C is not read.", 0.0),
)

_SAME_PRECISION = "leave it out: the sums of these operands have one precision, which ComputeDataType may name"
HIGH_PRECISION = ("HighPrecisionAccumulate", "SilentHighPrecisionAccumulate")
"""Keys for sums in more than the operands' precision. Every type whose ComputeDataType is not its DataType has such
sums."""
_REAL = "leave it out: only real numbers are supported"
_PLAIN = "leave it out: matrices are dense, with unit stride in their first dimension"

UNSUPPORTED = {
    key.name: key
    for key in (
        *(Key(name, "truth value", _SAME_PRECISION, False) for name in HIGH_PRECISION),
        Key("Fp16AltImpl", "truth value", _SAME_PRECISION, False),
        Key("StochasticRounding", "truth value", _SAME_PRECISION, False),
        Key("ComplexConjugateA", "truth value", _REAL, False),
        Key("ComplexConjugateB", "truth value", _REAL, False),
        Key("UseInitialStridesAB", "truth value", _PLAIN, False),
        Key("UseInitialStridesCD", "truth value", _PLAIN, False),
        Key("TileAwareSelection", "truth value", "leave it out: the library logic selects by time", False),
    )
}


def data_type(name: str, value: Value, location: str) -> str:
    """The letter of a data type, from any word or number for the type, in upper or lower case. `name` is the field
    that has it: DataType, which takes the types that A and B may have, or another, which takes all."""
    word = "" if isinstance(value, bool) else str(value).lower()
    letters = INPUTS if name == "DataType" else tuple(DATA_TYPES)
    for letter in letters:
        if word in DATA_TYPES[letter].words:
            return letter
    remedy = f"give one of {', '.join(letters)}"
    raise UserError(location, f"{name}: {shortened(value)} is not supported", remedy)
