"""Records cross processes unchanged, with every field, whether two of them compare equal by it or not."""

from __future__ import annotations

import pickle
from dataclasses import fields

import pytest

from tunesmith.records import (
    Binary,
    CompiledFacts,
    Configuration,
    Cost,
    Estimate,
    Launch,
    Measurement,
    OperandArgument,
    Outcome,
    Plan,
    Problem,
    ProblemType,
    ScalarArgument,
    Write,
)

GEMM = ProblemType("GEMM", "a name", ("M", "K"), Configuration({"DataType": "s", "Batched": True}))
FACTS = CompiledFacts("gemm", 32, 0, None, 1024)
LAUNCH = Launch(0, "gemm", (1, 2, 3), (8, 8, 1), (OperandArgument("D"), ScalarArgument(-0.0, "float64")), 64)
RECORDS = [
    Measurement(
        Outcome.OK, "a reason", "a detail", (1.0, 2.0), Estimate(1.5, 1.0, 2.0, 2), True, (FACTS,), Cost(1.0, 2.0, 3.0),
        4.0, "a host", "a device",
    ),
    Plan((LAUNCH, Write(8, b"a table")), 256, (LAUNCH,), 128),
    Problem(GEMM, (3, 4), (5, 6), Configuration({"alpha": -0.0})),
    Binary("a digest", "CUDA", b"code", (FACTS,), Configuration({"warps": 4})),
]  # fmt: skip


def values(record):
    """Every field with its type and text, which tell -0.0 from 0.0 and True from 1."""
    return [
        (field.name, type(getattr(record, field.name)), repr(getattr(record, field.name))) for field in fields(record)
    ]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_crosses_processes_unchanged(record):
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        crossed = pickle.loads(pickle.dumps(record, protocol))
        assert type(crossed) is type(record)
        assert crossed == record
        assert values(crossed) == values(record)
        assert hash(crossed) == hash(record)
