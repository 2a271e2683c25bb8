"""The keys of a random problem's type and of its scalars, as a tuning file may give them."""

from __future__ import annotations

from tunesmith.problems.keys import Key

from .generators import DTYPES, GENERATORS, WIDTHS

ORDERINGS = ("default", "legacy", "dynamic", "quasi")

FIELDS = (
    Key("OperationType", "one of", "What is computed.", "Random", ("Random",)),
    Key("Generator", "one of", "The generator.", "philox4_32_10", tuple(GENERATORS)),
    Key("Distribution", "one of", "The distribution.", "uniform", tuple(WIDTHS)),
    Key("ValueType", "one of", "The type of a value, as rocRAND's benchmarks call it.", "float", tuple(DTYPES)),
    Key(
        "Ordering",
        "one of",
        "default (or legacy): the sequence never changes, so that a generator of engines always has as many as its "
        "default launch has work-items; dynamic: as many as its launch has work-items, on which the sequence then "
        "depends. Counter-based generators give one sequence under each. quasi is that of the Sobol generators.",
        None,
        ORDERINGS,
    ),
)

SCALARS = (
    Key("Seed", "natural number", "The seed, below 2^64.", 0),
    Key("Offset", "natural number", "Random words (of 32 bits) or points of the sequence to leave out.", 0),
    Key("Mean", "number", "Of a normal distribution, or of the logarithm of a log-normal one.", 0.0),
    Key("StdDev", "positive number", "Its standard deviation.", 1.0),
    Key("Lambda", "positive number", "Mean of a Poisson distribution, below 2^31.", 10.0),
)
