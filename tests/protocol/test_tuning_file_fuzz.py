"""Reading a tuning file raises only tunesmith's own error, whatever the file contains."""

from __future__ import annotations

import math
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quick_yaml import dumped
from tunesmith.protocol import Benchmark, Final, Fork, Join
from tunesmith.records import UserError
from tuning_space import SPACE, read

WIKI = (Path(__file__).parents[2] / "examples" / "wiki.yaml").read_text()
FUZZ = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
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
VARYING = (
    "BenchmarkCommonParameters", "ForkParameters", "BenchmarkForkParameters", "BenchmarkJoinParameters",
)  # fmt: skip
RIGHT = {
    "DepthU": st.integers(0, 64),
    "VectorWidth": st.sampled_from([1, 2, 4]),
    "PrefetchGlobalRead": st.sampled_from([0, 1, False, True]),
    "EdgeType": st.sampled_from(["Branch", "ShiftPtr"]),
    "WorkGroup": st.lists(st.integers(1, 32), min_size=3, max_size=3),
    "ThreadTile": st.lists(st.integers(1, 8), min_size=2, max_size=2),
    "GlobalSplitU": st.integers(1, 8),
}
SPAN = st.integers(1, 90).flatmap(
    lambda n: st.sampled_from([[n], [n, n], [n, 2 * n], [n, 7, n + 30], [n, 5, 3, n + 40]])
)
SIZES = st.lists(
    st.tuples(SPAN, SPAN | st.just(0), SPAN | st.integers(0, 1)).map(lambda spans: {"Range": list(spans)})
    | st.lists(st.integers(1, 200), min_size=3, max_size=3).map(lambda sizes: {"Exact": sizes}),
    min_size=1,
    max_size=3,
)


@st.composite
def right_files(draw):
    """Correct files, with each parameter in one phase."""
    groups = []
    for _ in range(draw(st.integers(1, 2))):
        group = {}
        names = draw(st.permutations(sorted(RIGHT)))
        for phase in VARYING:
            dicts = [{"ProblemSizes": draw(SIZES)}] if draw(st.booleans()) else []
            for _ in range(draw(st.integers(0, 2))):
                chosen, names = names[: draw(st.integers(0, 2))], names[2:]
                dicts.append({name: draw(st.lists(RIGHT[name], min_size=1, max_size=4)) for name in chosen})
            group[phase] = dicts
        group["InitialSolutionParameters"] = [
            {name: [draw(RIGHT[name])]} for name in draw(st.permutations(list(RIGHT)))
        ]
        group["JoinParameters"] = draw(st.sampled_from([None, [], ["MacroTile"], ["MacroTile", "DepthU"]]))
        if draw(st.booleans()):
            group["BenchmarkFinalParameters"] = [{"ProblemSizes": draw(SIZES)}]
        groups.append(group)
    settings = {"StepObjective": draw(st.sampled_from(["max", "worst"])), "Noise": draw(st.floats(0.001, 1))}
    return {"GlobalParameters": settings, "BenchmarkProblems": [[{"DataType": draw(st.sampled_from("sd"))}, *groups]]}


@st.composite
def spoilt_files(draw):
    """A correct file in which one part is replaced by another value."""
    content = draw(right_files())
    for _ in range(draw(st.integers(1, 2))):
        inside = content
        while True:
            where = draw(st.sampled_from(list(inside) if isinstance(inside, dict) else range(len(inside))))
            deeper = inside[where]
            if not deeper or not isinstance(deeper, (list, dict)) or draw(st.integers(0, 3)) == 0:
                break
            inside = deeper
        if isinstance(inside, dict) and draw(st.booleans()):
            inside[draw(st.sampled_from(KEYS))] = draw(VALUES)
        else:
            inside[where] = draw(VALUES)
    return content


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fuzzed.yaml"


def check(path, text):
    """Reading gives a file with sane steps, or raises a UserError with a location, a problem and a remedy."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    try:
        sane(read(path, max_size=64))
    except UserError as error:
        parts = (error.location, error.what, error.remedy)
        if not all(parts):
            pytest.fail(f"says too little: {parts}")


def sane(tuning_file):
    for phases in tuning_file.groups:
        assert isinstance(phases.steps[-1], Final)
        assert list(phases.start) == [parameter.name for parameter in SPACE]
        for step in phases.steps:
            problems = getattr(step, "problems", None)
            assert problems is None or problems
            assert all(1 <= size <= 64 for problem in problems or () for size in problem.sizes)
            assert isinstance(step, Final) or len(getattr(step, "choices", (1, 2))) > 1


@FUZZ
@given(right_files())
def test_a_right_file_is_read_and_every_value_of_it_is_tried(path, content):
    path.write_text(dumped(content, sort_keys=False))
    tuning_file = read(path, max_size=64)
    for group, phases in zip(content["BenchmarkProblems"][0][1:], tuning_file.groups, strict=True):
        products = {phase: [math.prod(map(distinct, entry.values())) for entry in group[phase]] for phase in VARYING}
        fork = math.prod(products.pop("ForkParameters"))
        benchmarks = [len(step.choices) for step in phases.steps if isinstance(step, Benchmark)]
        assert benchmarks == [count for counts in products.values() for count in counts if count > 1]
        assert [len(step.choices) for step in phases.steps if isinstance(step, Fork)] == [fork] * (fork > 1)
        joined = fork > 1 and group["JoinParameters"] is not None
        assert sum(isinstance(step, Join) for step in phases.steps) == joined
    sane(tuning_file)


def distinct(values):
    """The number of alternatives in a list. 0 and False count as one, a ProblemSizes as none."""
    if isinstance(values[0], dict):
        return 1
    return len({str(int(value)) if isinstance(value, bool) else str(value) for value in values})


@FUZZ
@given(VALUES | st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_any_structure_is_read_or_refused(path, content):
    check(path, dumped(content, sort_keys=False))


@FUZZ
@given(spoilt_files())
def test_a_spoilt_file_is_read_or_refused(path, content):
    check(path, dumped(content, default_flow_style=None, sort_keys=False))


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
