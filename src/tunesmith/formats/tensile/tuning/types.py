"""The fields of a ProblemType in our form, and the problem types that no kernel here computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.problems import OPERATIONS, Node, shortened
from tunesmith.problems.gemm import DATA_TYPES
from tunesmith.records import UserError, Value

from .ledger import NameLedger
from .listing import plain_or_text
from .names import (
    REJECTING_FIELDS,
    TYPE_FIELDS_WITHOUT_MEANING,
    TYPE_NUMBERS,
    TYPE_WORDS,
    UNAVAILABLE_OPERANDS,
    UNAVAILABLE_TYPES,
)
from .record import Fate

SECTION = "problem type"
DATA_TYPE_FIELDS = ("DataType", "DestDataType", "ComputeDataType", "DataTypeA", "DataTypeB", "F32XdlMathOp")
_OPERAND_FIELDS = ("DataType", "DataTypeA", "DataTypeB")
_HIGH_PRECISION = "HighPrecisionAccumulate"


@dataclass(frozen=True, slots=True)
class TypeRejection:
    """Why no kernel here computes a problem type: a constant reason, and the field and value that ask for it. A `weak`
    one is a rejection only in a file that has other signs of Tensile."""

    reason: str
    detail: str
    weak: bool = False


def type_name(node: Node) -> str:
    """A short name of a written problem type, such as `GEMM z NT, batched`."""
    fields = node.content if isinstance(node.content, dict) else {}
    plain = {name: plain_or_text(value) for name, value in fields.items()}
    words = [str(plain.get("OperationType", "GEMM")), str(plain.get("DataType", "s"))]
    if words[0] == "GEMM":
        transposes = (plain.get("TransposeA", False), plain.get("TransposeB", True))
        words.append("".join("T" if transposed in (True, 1) else "N" for transposed in transposes))
    return " ".join(words) + (", batched" if plain.get("Batched") in (True, 1) else "")


def translated_type(node: Node, scalars: Mapping[str, float], ledger: NameLedger) -> tuple[Node, TypeRejection | None]:
    """The problem type in our form, and the reason if no kernel computes the type.

    `scalars` are Alpha and Beta as the file's settings give them. Unknown fields and values stay as they stand.
    """
    fields = node.content if isinstance(node.content, dict) else {}
    rejection = _operation(fields) or _data_types(fields) or _strides(fields)
    if rejection is not None:
        ledger.is_foreign |= not rejection.weak
    kept: dict[str, Node] = {}
    for name, value in fields.items():
        written = plain_or_text(value)
        is_off = written in (False, 0, (), "null")
        if name == _HIGH_PRECISION and not is_off:
            becomes = "half, bfloat16 and float8 have sums in single precision, int8 in int32, others in their own"
            ledger.add(SECTION, name, Fate.HONOURED, becomes, node.at(name), (written,))
        elif name == "StridedBatched" and is_off:
            becomes = "True: the matrices of a batch lie at a constant stride"
            ledger.add(SECTION, name, Fate.TRANSLATED, becomes, node.at(name), (written,))
        elif name in TYPE_FIELDS_WITHOUT_MEANING and (rejection or is_off or name not in REJECTING_FIELDS):
            known_off = is_off and name in _OURS_WHEN_OFF
            becomes = TYPE_FIELDS_WITHOUT_MEANING[name]
            ledger.add(SECTION, name, Fate.DROPPED, becomes, node.at(name), (written,), weak=known_off)
        elif name == "ComputeDataType" and str(written).lower() == "h":
            ledger.add(
                SECTION, name, Fate.TRANSLATED, "s: half has sums in single precision", node.at(name), (written,)
            )
        else:
            kept[name] = value
    for name, number in scalars.items():
        if name not in kept and not (name == "Beta" and plain_or_text(fields.get("UseBeta", _TRUE)) in (False, 0)):
            kept[name] = Node(node.location, number)
    own = Node(node.location, kept, {name: node.at(name) for name in kept})
    return own, rejection or _unavailable(own)


_TRUE = Node("", True)
_OURS_WHEN_OFF = frozenset(
    (
        "SilentHighPrecisionAccumulate",
        "Fp16AltImpl",
        "StochasticRounding",
        "ComplexConjugateA",
        "ComplexConjugateB",
        "UseInitialStridesAB",
        "UseInitialStridesCD",
        "TileAwareSelection",
    )
)
"""Fields that a tuning file of our own may also have, when they are off."""


def _operation(fields: Mapping[str, Node]) -> TypeRejection | None:
    operation = plain_or_text(fields["OperationType"]) if "OperationType" in fields else "GEMM"
    if operation == "GEMM":
        return None
    reason = "tensor contraction" if operation == "TensorContraction" else "convolution"
    return TypeRejection(reason, f"OperationType: {operation}")


def _data_types(fields: Mapping[str, Node]) -> TypeRejection | None:
    for name in DATA_TYPE_FIELDS:
        if name in fields and not (name == "F32XdlMathOp" and plain_or_text(fields[name]) in ("x", 0, "s")):
            value = plain_or_text(fields[name])
            letter, shown = _letter(value), f"{name}: {shortened(value)}"
            if reason := UNAVAILABLE_TYPES.get(letter):
                return TypeRejection(reason, shown)
            if name in _OPERAND_FIELDS and (reason := UNAVAILABLE_OPERANDS.get(letter)):
                # In a file of our own, such a type is a mistake.
                return TypeRejection(reason, shown, weak=True)
    return None


def _strides(fields: Mapping[str, Node]) -> TypeRejection | None:
    for name, reason in REJECTING_FIELDS.items():
        if name in fields and (value := plain_or_text(fields[name])) not in (False, 0, (), "null"):
            return TypeRejection(reason, f"{name}: {shortened(value)}")
    return None


def _letter(value: Value) -> str:
    """The letter of a data type of Tensile's, from its word or number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return TYPE_NUMBERS.get(value, "")
    word = str(value).lower()
    return TYPE_WORDS.get(word, word)


def _unavailable(node: Node) -> TypeRejection | None:
    """The rejection of a combination of known data types that no kernel computes."""
    fields = {name: plain_or_text(value) for name, value in (node.content.items() if _is_map(node) else ())}  # type: ignore[union-attr]
    words = {word for each in DATA_TYPES.values() for word in each.words}
    letters = [fields[name] for name in DATA_TYPE_FIELDS[:3] if name in fields]
    if any(str(value).lower() not in words or isinstance(value, bool) for value in letters):
        return None
    types = {name: fields[name] for name in DATA_TYPE_FIELDS[:3] if name in fields}
    try:
        OPERATIONS["GEMM"].type_of(types, lambda name: name, Path())
    except UserError as error:
        shown = ", ".join(f"{name}: {shortened(value)}" for name, value in types.items())
        return TypeRejection("data types", f"{shown}: {error.errors[0].what}", weak=True)
    return None


def _is_map(node: Node) -> bool:
    return isinstance(node.content, dict)
