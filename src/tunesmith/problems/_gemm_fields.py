"""The fields of a GEMM's ProblemType: Tensile's names and defaults, and what of them is supported."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import UserError, Value

from ._keys import Key, shown


@dataclass(frozen=True, slots=True)
class DataType:
    """A precision: NumPy's name for it, that of its sums, and the words (and Tensile's number) that a file may call it
    by."""

    dtype: str
    sums: str
    words: tuple[str, ...]


DATA_TYPES = {
    "s": DataType("float32", "float32", ("s", "single", "float", "float32", "f32", "0")),
    "d": DataType("float64", "float64", ("d", "double", "float64", "f64", "1")),
    "h": DataType("float16", "float32", ("h", "half", "float16", "f16", "4")),
}

_LETTERS = tuple(DATA_TYPES)

GEMM_FIELDS = (
    Key("OperationType", "one of", "What is computed.", "GEMM", ("GEMM",)),
    Key(
        "DataType",
        "one of",
        "Precision of A, B, C, D and of the sum: s (single), d (double), or h (half, with sums in single precision).",
        "s",
        _LETTERS,
    ),
    Key("DestDataType", "one of", "Precision of D; only the same as DataType.", None, _LETTERS),
    Key("ComputeDataType", "one of", "Precision of the sum; only the same as DataType.", None, _LETTERS),
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
)

SCALARS = (
    Key("Alpha", "number", "The alpha that is measured with (tunesmith's own key).", 1.0),
    Key("Beta", "number", "The beta that is measured with (tunesmith's own key); at 0, C is not read.", 0.0),
)

_SAME_PRECISION = "leave it out: every sum is in the precision of its operands"
_REAL = "leave it out: only real numbers are supported"
_PLAIN = "leave it out: matrices are dense, with unit stride in their first dimension"

UNSUPPORTED = {
    key.name: key
    for key in (
        Key("HighPrecisionAccumulate", "truth value", _SAME_PRECISION, False),
        Key("SilentHighPrecisionAccumulate", "truth value", _SAME_PRECISION, False),
        Key("F32XdlMathOp", "truth value", _SAME_PRECISION, 0),
        Key("Fp16AltImpl", "truth value", _SAME_PRECISION, False),
        Key("StochasticRounding", "truth value", _SAME_PRECISION, False),
        Key("ComplexConjugateA", "truth value", _REAL, False),
        Key("ComplexConjugateB", "truth value", _REAL, False),
        Key("UseInitialStridesAB", "truth value", _PLAIN, False),
        Key("UseInitialStridesCD", "truth value", _PLAIN, False),
        Key("TileAwareSelection", "truth value", "leave it out: the library logic selects by time", False),
    )
}


def data_type(name: str, value: Value, place: str) -> str:
    """ "s", "d" or "h" from any word or number for it, in either case."""
    word = "" if isinstance(value, bool) else str(value).lower()
    for letter, known in DATA_TYPES.items():
        if word in known.words:
            return letter
    remedy = "give s (single), d (double) or h (half precision)"
    raise UserError(place, f"{name}: {shown(value)} is not supported", remedy)
