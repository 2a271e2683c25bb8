"""Whatever stands in a tuning file, only tunesmith's own error comes out of reading it."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tunesmith.protocol import Final, TuningFile
from tunesmith.records import UserError
from tuning_space import SPACE, read

WIKI = (Path(__file__).parent.parent / "examples" / "wiki.yaml").read_text()
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

KEYS = [parameter.name for parameter in SPACE] + [
    "GlobalParameters", "BenchmarkProblems", "LibraryLogic", "LibraryClient", "ProblemType", "ProblemSizes", "Range",
    "Exact", "InitialSolutionParameters", "BenchmarkCommonParameters", "ForkParameters", "BenchmarkForkParameters",
    "JoinParameters", "BenchmarkJoinParameters", "BenchmarkFinalParameters", "Groups", "OperationType", "DataType",
    "Batched", "UseBeta", "Beta", "StepObjective", "Noise", "SplitU", "MacroTile", "Custom", "Kernel",
]  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 40) | st.integers() | st.floats() | st.sampled_from(KEYS)
    | st.text(string.printable, max_size=8) | st.dates()
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(KEYS) | SCALARS, inner, max_size=4),
    max_leaves=12,
)
SPANS = st.lists(st.integers(-2, 70), max_size=5) | st.integers(-1, 4) | SCALARS
SIZES = st.lists(st.fixed_dictionaries({"Range": st.lists(SPANS, max_size=5)}) | VALUES, max_size=3)
PARAMETERS = st.dictionaries(
    st.sampled_from(KEYS), st.lists(st.integers(0, 9) | VALUES, max_size=4) | VALUES, max_size=3
)
PHASE = st.lists(PARAMETERS | st.fixed_dictionaries({"ProblemSizes": SIZES}) | VALUES, max_size=3)
GROUPS = st.dictionaries(
    st.sampled_from([key for key in KEYS if key.endswith("Parameters")]), PHASE | VALUES, max_size=5
)
FIELDS = st.fixed_dictionaries({}, optional={"Batched": SCALARS, "DataType": st.just("s"), "Beta": SCALARS}) | VALUES
FILES = st.fixed_dictionaries(
    {"BenchmarkProblems": st.lists(st.tuples(FIELDS, GROUPS).map(list) | VALUES, max_size=2)},
    optional={"GlobalParameters": VALUES, "LibraryLogic": VALUES},
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fuzzed.yaml"


def check(path, text):
    """Reading ends in a file with sane steps, or in a UserError that says all three things."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    try:
        sane(read(path, max_size=64))
    except UserError as error:
        told = (error.place, error.what, error.remedy)
        if not all(told):
            pytest.fail(f"says too little: {told}")


def sane(made: TuningFile):
    for phases in made.groups:
        assert isinstance(phases.steps[-1], Final)
        assert list(phases.start) == [parameter.name for parameter in SPACE]
        for step in phases.steps:
            problems = getattr(step, "problems", None)
            assert problems is None or problems
            assert all(1 <= size <= 64 for problem in problems or () for size in problem.sizes)
            assert len(getattr(step, "choices", (1, 2))) > 1


@FUZZ
@given(VALUES | FILES)
def test_any_structure_is_read_or_refused(path, content):
    check(path, yaml.safe_dump(content, sort_keys=False))


@FUZZ
@given(FILES)
def test_any_file_with_the_right_outline_is_read_or_refused(path, content):
    check(path, yaml.safe_dump(content, default_flow_style=None, sort_keys=False))


@st.composite
def mutated(draw):
    """The wiki's example with lines lost, doubled, moved or replaced, and characters struck."""
    lines = WIKI.splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at, other = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["lose", "double", "swap", "indent", "strike", "insert", "number"])):
            case "lose":
                lines[at] = ""
            case "double":
                lines.insert(at, lines[other])
            case "swap":
                lines[at], lines[other] = lines[other], lines[at]
            case "indent":
                lines[at] = " " * draw(st.integers(0, 12)) + lines[at].lstrip()
            case "strike":
                column = draw(st.integers(0, max(len(lines[at]) - 1, 0)))
                lines[at] = lines[at][:column] + lines[at][column + 1 :]
            case "insert":
                column = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:column] + draw(st.text(max_size=3)) + lines[at][column:]
            case "number":
                digit = draw(st.sampled_from(string.digits))
                lines[at] = lines[at].replace(digit, str(draw(st.integers(-5, 5000))))
    return "\n".join(lines)


@FUZZ
@given(mutated())
def test_a_damaged_example_is_read_or_refused(path, text):
    check(path, text)


@FUZZ
@given(st.binary(max_size=200) | st.text("[]{}:,-&*!|>'\"%@?#<ax1 \n\t", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(path, raw):
    check(path, raw)
