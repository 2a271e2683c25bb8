"""`tunesmith.tune` from a program: kernels on a device, functions of the program, mistakes, and going on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tunesmith
from opencl_runner import opencl_device
from tunesmith import In, InOut, Out, UserError
from tunesmith.autotuning.kernel import DescriptionText, reference_key
from tunesmith.autotuning.tuning import described_kernel, register
from tunesmith.problems.custom import caller
from tunesmith.problems.custom.description import describe
from tunesmith.problems.custom.reference import call_reference
from tunesmith.problems.yaml import parse_yaml

pytestmark = pytest.mark.opencl

QUICK = {"MinimumSamples": 2, "MaximumSamples": 4, "WarmUpSeconds": 0.01, "ConfirmBlocks": 2}

SCALE = """
__kernel void scale(__global const float *x, __global float *y, float factor, int count) {
    const int i = get_global_id(0);
    if (i < count) y[i] = BREAK == 2 && i == 0 ? 0 : x[i] * factor;
#if BREAK == 1
    this does not compile
#endif
}
"""


@pytest.fixture(scope="module", autouse=True)
def device():
    return opencl_device()


DESCRIBED = {
    "arguments": {"x": In("float32", "Count"), "y": Out("float32", "Count"), "factor": 2.5, "count": "Count"},
    "sizes": {"Count": 1000},
    "parameters": {"GROUP": [16, 64], "BREAK": [0]},
    "work_group": "GROUP",
    "work_items": lambda p: p.Count,
    "reference": lambda x, factor: x * factor,
    "tolerance": 1,
}


def scaled(folder, **changes):
    return tunesmith.tune(SCALE, folder, settings=QUICK, quiet=True, **{"device": "OpenCL", **DESCRIBED, **changes})


def small(GROUP, BREAK):  # noqa: N803
    return GROUP == 16 or BREAK != 1


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    return scaled(
        tmp_path_factory.mktemp("scaled"),
        sizes=[{"Count": 1000}, {"Count": 500}],
        parameters={"GROUP": [16, 64], "BREAK": [0, 1, 2]},
        constraints=small,
    )


def test_winners_are_right_and_what_failed_is_told(tuned):
    assert tuned.winners.keys() == {(1000,), (500,)}
    assert all(winner["BREAK"] == 0 and winner["GROUP"] in (16, 64) for winner in tuned.winners.values())
    assert tuned.winner == tuned.winners[1000,]
    failed = {(row["GROUP"], row["BREAK"], row["outcome"]) for row in tuned.failed}
    assert failed == {(16, 1, "compile error"), (16, 2, "wrong result"), (64, 2, "wrong result")}
    rows = [(row["Count"], row["GROUP"], row["BREAK"]) for row in tuned.table]
    assert sorted(rows) == [(500, 16, 0), (500, 64, 0), (1000, 16, 0), (1000, 64, 0)]
    assert [row["winner"] for row in tuned.table].count(True) == 2
    assert all(row["low"] <= row["seconds"] <= row["high"] for row in tuned.table)
    winning = next(row for row in tuned.table if row["winner"] and row["Count"] == 500)
    assert tuned.seconds(500) == winning["seconds"]
    with pytest.raises(KeyError):
        tuned.seconds(7)


def test_a_launch_takes_arrays_of_any_size(tuned):
    for count in (500, 33):
        x = np.arange(count, dtype=np.float32)
        assert (tuned.launch(x=x) == x * np.float32(2.5)).all()
    out = np.empty(33, np.float32)
    assert tuned.launch(x=x, y=out) is out
    with pytest.raises(ValueError, match="y has shape"):
        tuned.launch(x=x, y=np.empty(34, np.float32))


def test_the_result_is_shown_as_text_and_in_a_notebook(tuned):
    assert "scale on " in repr(tuned)
    assert "1000: " in repr(tuned)
    assert tuned._repr_html_().count("<tr>") == 1 + 4


def test_a_saved_folder_serves_elsewhere_and_its_tuning_file_says_the_same(tuned, tmp_path):
    saved = tuned.save(tmp_path / "saved")
    x = np.ones(500, np.float32)
    with tunesmith.load(saved) as library:
        assert (library.launch("scale", x=x) == 2.5).all()
    assert (saved / "scale.yaml").read_text() == tuned.as_tuning_file()
    description = saved / "scale.kernel.yaml"
    text = description.read_text()
    key = text.partition("caller:")[2].split()[0]
    description.write_text(text.replace(key, "0" * len(key)))
    with pytest.raises(UserError, match=r"scale\.kernel\.yaml:\d+: the reference was a function of the Python program"):
        tunesmith.tune(saved / "scale.yaml", tmp_path / "again", device="OpenCL", quiet=True)


def test_a_new_value_is_measured_alone_and_the_same_call_measures_nothing(tuned):
    changes = {"sizes": {"Count": 500}, "constraints": small, "parameters": {"GROUP": [32, 16, 64], "BREAK": [0]}}
    more = scaled(tuned.folder, **changes)
    assert {row["GROUP"] for row in more.table} == {16, 32, 64}
    assert more.outcome.ledger.reused >= 2
    assert not scaled(tuned.folder, **changes).outcome.ledger.measured


def test_another_reference_verifies_again(tuned):
    changes = {"sizes": {"Count": 500}, "constraints": small, "parameters": {"GROUP": [16], "BREAK": [0]}}
    with pytest.raises(UserError, match=r"no configuration ran right: wrong result: .*y\[0\] is .* \(1\); look at the"):
        scaled(tuned.folder, **changes, reference=lambda x, factor: x * factor + 1)
    again = scaled(tuned.folder, **changes)
    assert (again.winner, again.outcome.ledger.measured) == ({"GROUP": 16, "BREAK": 0}, 0), "what was measured stays"


def test_contents_of_arrays_are_what_the_kernel_gets_and_changes(tmp_path):
    gather = """
    __kernel void gather(__global const float *table, __global const int *where, __global float *out) {
        out[get_global_id(0)] += table[where[get_global_id(0)]] * SCALE;
    }"""
    table, where = np.arange(5, dtype=np.float32), np.array([4, 0, 3, 1, 1, 2, 4, 0], np.int32)
    tuned = tunesmith.tune(
        gather,
        tmp_path,
        arguments={"table": table, "where": where, "out": InOut("float32", 8)},
        parameters={"SCALE": [1]},
        constraints="8 // (Elements - 1) > 0",  # has no value at 1 element
        work_group=4,
        work_items=8,
        reference=lambda table, where, out: out + table[where],
        tolerance=1,
        settings=QUICK,
        quiet=True,
        device="OpenCL",
    )
    out = np.ones(8, np.float32)
    assert tuned.launch(table=table, where=where, out=out) is out
    assert (out == table[where] + 1).all()


def test_arrays_may_hold_bfloat16(tmp_path):
    copied = "kernel void copied(global ushort *x, global ushort *y) { y[get_global_id(0)] = x[get_global_id(0)]; }"
    x = np.arange(64).astype("bfloat16")
    tuned = tunesmith.tune(
        copied,
        tmp_path,
        arguments={"x": x, "y": Out("bfloat16", 64)},
        parameters={"GROUP": [4, 8]},
        work_group="GROUP",
        work_items=64,
        reference=lambda x: x,
        settings=QUICK,
        quiet=True,
        device="OpenCL",
    )
    assert tuned.outcome.look_at == []
    assert (tuned.launch(x=x) == x).all()


def reference_of(function):
    """What the bench calls for the reference of a program."""
    kernel = described_kernel(SCALE, "program.py:1", **{**DESCRIBED, "reference": function})
    text = DescriptionText(kernel)
    register(kernel)
    description = describe(Path("scale.yaml"), parse_yaml(text.text, "scale.yaml"), lambda part, name, location: SCALE)
    return call_reference(description, {"Count": 3}, {"x": np.ones(3)}, {"y": (3,)})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: 1 / 0, "the reference raised ZeroDivisionError"),
        (lambda x: x[1:], r"the reference gave y the shape \(2,\), it is \(3,\)"),
        (lambda x: "a", "gave no array of numbers for y"),
        (lambda x: {"z": x}, "gave z, the outputs are y"),
        (lambda z: z, "the reference has a parameter z; it may take sizes, arrays, factor, Count, x"),
    ],
)
def test_a_reference_may_be_wrong(function, message):
    with pytest.raises(UserError, match=message):
        reference_of(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, factor: factor * x,
        lambda sizes, arrays: {"y": 2.5 * arrays["x"] * (sizes["Count"] == 3)},
        lambda x, Count, more=1: (2.5 * x, np.full(Count, 2.5)),  # noqa: N803
    ],
)
def test_a_reference_takes_what_it_names(function):
    value, magnitude = reference_of(function)["y"]
    assert value.tolist() == magnitude.tolist() == [2.5] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reference": lambda x: 1 / 0}, "the reference raised ZeroDivisionError"),
        ({"constraints": lambda p: 1 // (p.GROUP - 16) > 0}, "has no value with GROUP = 16"),
        ({"work_group": lambda p: p.GROUP / 3}, "must give a positive whole number"),
    ],
)
def test_a_mistake_in_a_function_is_told_at_its_line(tmp_path, changes, message):
    (function,) = changes.values()
    with pytest.raises(UserError, match=message) as raised:
        scaled(tmp_path, **changes)
    assert raised.value.location == f"{__file__}:{function.__code__.co_firstlineno}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"constraints": lambda p: p.GROUP > 64}, r"no configuration is legal \(GROUP > 64"),
        ({"device": "OpenCL:9:9"}, "OpenCL:9:9"),
    ],
)
def test_a_call_that_cannot_run_is_told_at_its_line(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        scaled(tmp_path, **changes)


def test_a_reference_that_does_not_end_is_left():
    def forever(x):
        while True:
            pass

    kernel = described_kernel(SCALE, "here", **{**DESCRIBED, "reference": forever, "callable_seconds": 0.2})
    register(kernel)
    with pytest.raises(UserError, match=r"the reference did not end within 0\.2 s") as raised:
        caller.registered_reference(reference_key(forever))({}, {"x": 1})
    assert raised.value.location == f"{__file__}:{forever.__code__.co_firstlineno}"


def test_an_interpreter_needs_no_main_guard_and_no_file(tmp_path):
    """What is typed into it has no file. The mistake shows that the call has reached the search for devices."""
    program = f"""
import tunesmith
from tunesmith import In, Out
arguments = {{"x": In("float32", "Count"), "y": Out("float32", "Count"), "factor": 2.5, "count": "Count"}}
try:
    tunesmith.tune({SCALE!r}, "out", arguments=arguments, sizes={{"Count": 8}}, device="OpenCL:9:9",
                   parameters={{"GROUP": [8], "BREAK": [0]}}, work_group=lambda p: p.GROUP, work_items="Count",
                   reference=lambda x: x)
except tunesmith.UserError as error:
    print(error)

"""
    command = [sys.executable, "-i", "-q"]
    done = subprocess.run(command, input=program, capture_output=True, text=True, cwd=tmp_path)
    assert "OpenCL:9:9" in done.stdout, done.stderr
    assert (tmp_path / "out" / "source" / "scale.cl").read_text() == SCALE
