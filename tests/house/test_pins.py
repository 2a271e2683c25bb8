"""What stores, caches and logic of before know solutions by: it stays, unless a migration says otherwise.

The recorded values are from commit 917448c; `golden/make.py` records them anew, on purpose only.
"""

from __future__ import annotations

import json
from dataclasses import fields, make_dataclass, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_cells import CELLS
from golden_files import CELLS_FILE
from tunesmith.bench import Policy
from tunesmith.kernels import KERNELS
from tunesmith.kernels.vendor.blas import PARAMETERS
from tunesmith.records import (
    Configuration,
    Launch,
    LibraryCall,
    LocalArgument,
    OperandArgument,
    Plan,
    ScalarArgument,
    TensorMapArgument,
    WorkspaceArgument,
    Write,
    Zero,
)
from tunesmith.records import _program as program

RECORDED = json.loads(CELLS_FILE.read_text())


@pytest.mark.parametrize("family", list(KERNELS))
def test_three_cells_of_each_family_keep_their_keys(family):
    """Problem, configuration, modules, identity, plan and key: all that a measurement or a binary is found by."""
    cells = CELLS[family]
    assert len(cells) == 3
    assert [cell.refused for cell in cells] == [[]] * 3, "they can run"
    assert [cell.known_by() for cell in cells] == RECORDED[family]


def test_pinned_cells_differ():
    """Each has a key of its own, so that none stands for another; described kernels' have none recorded."""
    keys = [cell["key"] for family in RECORDED.values() for cell in family if "key" in cell]
    assert len(set(keys)) == len(keys) == 3 * (len(list(KERNELS)) - 3)


def test_a_policy_is_part_of_a_key_as_it_was():
    assert Policy().key() == (
        '{"cold": true, "confirm_blocks": 15, "maximum_samples": 200, "minimum_samples": 7, "noise": 0.01, '
        '"sampling_seconds": 1.0, "seed": 0, "warm_up_seconds": 0.2}'
    )


# --- the text of a plan ---------------------------------------------------------------------------------------------

RENAMED: dict[str, str] = {}
"""Records by the name that they have now, and the name that keys have."""

WITHOUT = {"Write": {"data"}, "Plan": {"zeroed"}, "Launch": {"cluster", "early"}}
"""Fields that are no part of the text: a digest stands for the data, `zeroed` follows where it is not 0, and `cluster`
and `early` where they are not 1 and not False."""

numbers = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans())
words = st.text(max_size=6)
naturals = st.integers(0, 2**40)
three = st.tuples(naturals, naturals, naturals)
extents = st.lists(naturals, max_size=5).map(tuple)
arguments = st.one_of(
    st.builds(OperandArgument, words),
    st.builds(WorkspaceArgument, naturals),
    st.builds(ScalarArgument, numbers, words),
    st.builds(TensorMapArgument, words, words, extents, extents, extents, naturals, naturals),
    st.builds(LocalArgument, naturals),
)
values = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), words)
parameters = st.dictionaries(st.sampled_from(("m", "alpha", "dest", "tf32")), values).map(Configuration)
calls = st.builds(LibraryCall, naturals, st.just("gemm"), parameters)
steps = st.one_of(
    st.builds(Zero, words, naturals, naturals),
    st.builds(Write, naturals, st.binary(max_size=8)),
    st.builds(
        Launch, naturals, words, three, three, st.lists(arguments, max_size=3).map(tuple), naturals, st.integers(1, 3)
    ),
    calls,
)
plans = st.builds(
    Plan,
    st.lists(steps, max_size=3).map(tuple),
    naturals,
    st.lists(steps, max_size=2).map(tuple),
    st.sampled_from((0, 4096)),
)


@given(plans)
def test_a_plans_text_is_what_python_wrote_for_it(plan):
    """Keys were made of `repr`, which names classes and fields; whatever they are called now, the text stays."""
    was = repr(replace(plan, steps=tuple(map(_as_before, plan.steps)), setup=tuple(map(_as_before, plan.setup))))
    for now, name in RENAMED.items():
        was = was.replace(f"{now}(", f"{name}(")
    assert plan.text() == was + (f" zeroed {plan.zeroed}" if plan.zeroed else "")


class LaunchBefore:
    """A launch as it was written when it had no clusters and could not start early, and behind it whether it has."""

    def __init__(self, launch):
        without, _, _ = repr(launch).rpartition(", cluster=")
        cluster = f" cluster {launch.cluster}" if launch.cluster > 1 else ""
        self._text = f"{without})" + cluster + " early" * launch.early

    def __repr__(self):
        return self._text


def _as_before(step):
    """A call of the vendor's library as the record of all its parameters that it was."""
    if isinstance(step, Launch):
        return LaunchBefore(step)
    if not isinstance(step, LibraryCall):
        return step
    record = make_dataclass(f"{step.function.capitalize()}Call", ["module", *step.parameters])
    return record(step.module, *step.parameters.values())


def test_a_plan_with_every_kind_of_step_and_argument_keeps_its_digest():
    arguments = (
        OperandArgument("A"),
        WorkspaceArgument(256),
        ScalarArgument(7, "int32"),
        ScalarArgument(-0.5, "float32"),
        TensorMapArgument("A", "float16", (4, 64), (64, 1), (1, 64), 3),
        TensorMapArgument("", "float32", (8,), (1,), (8,), 0, 512),
        LocalArgument(1024),
    )
    sizes = dict(zip(PARAMETERS[3:15], range(1, 13), strict=True))
    parameters = {"dtype": "float32", "transpose_a": True, "transpose_b": False, **sizes, "alpha": 1.5, "beta": 0.0}
    parameters |= {"dest": "float32", "tf32": False, "bias": True, "activation": "none", "scaled": False}
    call = LibraryCall(0, "gemm", Configuration(parameters | {"workspace_bytes": 0}))
    launch = Launch(1, "gemm", (3, 2, 1), (64, 1, 1), arguments, 49152)
    plan = Plan((Zero("D", 4, 8), Launch(0, "copy", (1, 1, 1), (1, 1, 1), arguments[:1]), launch, call), 4096)
    assert plan.digest() == "9c2e73058cd162e2b2ec5d4dc234a3ab634fba1cbe9e9c9a4d46dfe1ad5e3be4"
    kept = Plan((launch,), 8192, (Zero("", 0, 64), Write(64, b"table")), 128)
    assert kept.digest() == "bb238abc126fbe67b3ecfb8a27b7210a3d577b2d57007ba6c376dcfe2a6b067c"
    assert Plan(()).digest() == "efb4d0baa02b07df7910d415e796e9e4d3bdcd6bc9b4d41ba8fe4a8e51915999"


def test_every_field_of_a_step_is_in_the_text_or_left_out_on_purpose():
    """A new field changes no key by itself: it must be decided whether, and from what value on, it is written."""
    records = [*get_args(program.Argument), *get_args(program.Step), Plan]
    records.remove(LibraryCall)  # its parameters are written whatever they are
    for record in records:
        name = RENAMED.get(record.__name__, record.__name__)
        _, *written = program._WRITTEN[record].split()
        assert {field.name for field in fields(record)} - set(written) == WITHOUT.get(name, set())


def test_what_has_no_text_of_its_own_is_no_part_of_a_plan():
    with pytest.raises(TypeError, match="a plan holds numbers"):
        Plan((Launch(0, "gemm", (1, 1, 1), (1, 1, 1), (object(),)),)).digest()
