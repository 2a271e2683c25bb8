"""What a program says to `tunesmith.tune` becomes a description and a tuning file; mistakes are told at its lines."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

import blur_kernel
from tunesmith.autotuning import In, InOut, KernelLaunch, LocalMemory, Out, Scalar, Scratch
from tunesmith.autotuning.kernel import DescriptionText, source_of
from tunesmith.autotuning.tuning import described_kernel, tuning_text
from tunesmith.problems.custom import caller
from tunesmith.problems.custom.description import describe
from tunesmith.problems.yaml import parse_yaml
from tunesmith.records import UserError

SCALE = "__kernel void scale(__global float *x, float f) { x[get_global_id(0)] *= f; }  // SIDE"


def reference(x, f):
    return x * f


def kernel(text=SCALE, **changes):
    described = {
        "arguments": {"x": InOut("float32", "Count"), "f": 2.0},
        "sizes": {"Count": 1024},
        "parameters": {"SIDE": [32, 64]},
        "work_group": "SIDE",
        "work_items": "Count",
        "reference": reference,
    }
    return described_kernel(text, "program.py:7", **{**described, **changes})


def described_fields(**changes):
    return yaml.safe_load(DescriptionText(kernel(**changes)).text)


def test_the_description_says_what_the_program_said():
    fields = described_fields(
        constraints=[lambda p: p.SIDE <= 64, "SIDE > 1"], tolerance=1, flops="Count", options=["-w"]
    )
    key = fields.pop("Reference")
    assert key.startswith(caller.PREFIX)
    assert fields == {
        "Name": "scale",
        "Source": {"OpenCL": "scale.cl"},
        "Sizes": ["Count"],
        "Parameters": {"SIDE": {"Values": "any"}},
        "Constraints": [
            {"Require": "SIDE <= 64", "Reason": "SIDE <= 64"},
            {"Require": "SIDE > 1", "Reason": "SIDE > 1"},
        ],
        "Arguments": [
            {"Name": "x", "DataType": "float32", "Shape": ["Count"], "Role": "inout"},
            {"Name": "f", "DataType": "float32", "Value": "2.0"},
        ],
        "Entry": "scale",
        "WorkGroup": ["SIDE"],
        "Grid": {"WorkItems": ["Count"]},
        "Tolerance": "1",
        "Flops": "Count",
        "Options": ["-w"],
    }


def test_whatever_is_written_is_read_by_the_reader_of_descriptions(tmp_path):
    text = DescriptionText(
        kernel(
            blur_kernel.SOURCE,
            arguments={
                "input": In("float32", "Rows", "Columns", range=(0, "Rows")),
                "between": Scratch("float32", lambda p: p.Rows * p.Columns + p.GROUP),
                "output": Out(np.float32, "Rows", "Columns"),
                "columns": "Columns",
                "count": Scalar("int64", lambda Rows, Columns: Rows * Columns),  # noqa: N803
                "local": LocalMemory("4 * GROUP"),
            },
            sizes=[{"Rows": 5, "Columns": 7}, {"Rows": 50, "Columns": 7}],
            parameters={"GROUP": [32, 64]},
            launches=[
                KernelLaunch(
                    "rows", ["input", "between", "columns", "count"], "GROUP", work_items=lambda p: p.Rows * p.Columns
                ),
                KernelLaunch(
                    "columns", ["between", "output", "columns", "count", "local"], ["GROUP", 1], grid=["Rows", 2]
                ),
            ],
            reference=lambda input: input,  # noqa: A006
            name="blur",
        )
    ).text
    description = describe(
        tmp_path / "blur.yaml", parse_yaml(text, "blur.yaml"), lambda part, name, location: blur_kernel.SOURCE
    )
    assert [launch.entry for launch in description.launches] == ["rows", "columns"]
    assert [extent.text for extent in description.launches[1].grid] == ["Rows", "2"]
    assert [extent.text for extent in description.launches[0].grid] == ["Rows * Columns"]
    assert description.scratch[0].shape[0].text == "Rows * Columns + GROUP"
    assert description.tolerance.text == "30 + 4 * max(Rows, Columns, 1) ** 0.5"


@pytest.mark.parametrize(
    ("text", "language", "entries"),
    [
        ("kernel void a(global int *x) {}", "OpenCL", ["a"]),
        ("__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))\nvoid b (__global int *x) {}", "OpenCL", ["b"]),
        ('extern "C" __global__ void __launch_bounds__(BX * (BY)) c(int *x) {}', "CUDA", ["c"]),
        ("/* kernel void no() */ kernel void d(int x) {} // kernel void no(\nkernel void e() {}", "OpenCL", ["d", "e"]),
        ("template <int N> __global__ void f(float* x) {}", "CUDA", ["f"]),
    ],
)  # fmt: skip
def test_language_and_kernels_are_seen_in_the_text(text, language, entries):
    source = source_of(text + "\n", "", "program.py:7")
    assert (source.language, source.entries) == (language, entries)


def test_a_file_says_its_language_by_its_suffix(tmp_path):
    (tmp_path / "one.cu").write_text("void f() {}")
    assert source_of(tmp_path / "one.cu", "", "here").language == "CUDA"
    assert source_of(str(tmp_path / "one.cu"), "", "here").text == "void f() {}"


def test_arguments_may_be_arrays_and_plain_numbers():
    x, y = np.ones((3, 5), np.int16), np.empty((3, 5), np.float64)
    fields = described_fields(
        arguments={"x": x, "y": Out(y), "f": np.float64(0.5), "n": 1 << 40, "k": 7, "b": np.uint8(9)},
        sizes=None,
        work_items=15,
    )
    values = [tuple(argument.values()) for argument in fields["Arguments"]]
    assert [value[:2] for value in values] == [
        ("x", "int16"), ("y", "float64"), ("f", "float64"), ("n", "int64"), ("k", "int32"), ("b", "uint8"),
    ]  # fmt: skip
    assert [argument.get("Value") for argument in fields["Arguments"][2:]] == ["0.5", str(1 << 40), "7", "9"]
    assert fields["Arguments"][0]["Shape"] == ["3", "5"]
    assert "Contents" in fields["Arguments"][0]
    assert "Contents" not in fields["Arguments"][1]
    assert fields["Sizes"] == ["Elements"]


def test_contents_and_references_are_known_by_what_they_hold():
    def scaled_by(factor):
        return lambda x: x * factor

    def key(array, factor):
        fields = described_fields(arguments={"x": InOut(array), "f": 2.0}, sizes=None, reference=scaled_by(factor))
        return fields["Arguments"][0]["Contents"], fields["Reference"]

    array = np.arange(8, dtype=np.float32)
    assert key(array, 2) == key(array.copy(), 2)
    assert key(array + 1, 2)[0] != key(array, 2)[0]
    assert key(array, 3)[1] != key(array, 2)[1]
    assert key(array, array)[1] != key(array, array + 1)[1]


def test_the_tuning_file_has_the_steps_that_were_asked_for():
    described = kernel(
        sizes=[{"Count": 64}, {"Count": 128}],
        parameters={"SIDE": [1, 2], "A": [3, 4], "B": [5, 6], "C": [7, 8]},
        work_group="SIDE + A + B + C",
    )
    once = tuning_text(described, [], [], {})
    assert "Common" not in once
    assert once.count("Exact: [64]") == 1
    steps = tuning_text(described, ["SIDE", ["A", "B"]], [], {"Noise": 0.05})
    assert json.dumps({"Noise": 0.05}) in steps
    assert steps.index("BenchmarkCommonParameters") < steps.index("- SIDE: [1, 2]") < steps.index("- A: [3, 4]")
    assert "- A: [3, 4]\n          B: [5, 6]" in steps
    assert steps.index("BenchmarkFinal") < steps.index("- C: [7, 8]")
    forked = tuning_text(described, ["A"], ["SIDE"], {})
    assert (
        forked.index("ForkParameters:\n        - SIDE") < forked.index("BenchmarkForkParameters") < forked.index("- A:")
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"SIDE": 3}}, "the parameter SIDE has no list of values"),
        ({"parameters": {"SIDE": []}}, "the parameter SIDE has no values"),
        ({"parameters": {"SIDE": [1], "WIDTH": [1, 2]}}, "WIDTH is used neither by the source nor by the launch"),
        ({"work_items": None}, "the launch of scale has no grid"),
        ({"sizes": None}, "tune has no sizes"),
        ({"sizes": []}, "sizes is empty"),
        ({"sizes": [{"Count": 1}, {"Size": 1}]}, "one size has Size, another Count"),
        ({"arguments": {"x": [1, 2]}}, "the argument x .*is a list"),
        ({"reference": 3}, "the reference is a int"),
        ({"text": "int f() { return 1; }\n"}, "the kernel's language is not clear"),
        ({"text": "kernel void a() {} kernel void b() {}\n"}, "the source has the kernels a, b; name the one"),
        ({"text": "missing.cl"}, "missing.cl cannot be read"),
        ({"language": "Fortran"}, "the kernel's language is Fortran"),
    ],
)
def test_a_mistake_names_the_line_of_the_call(changes, message):
    with pytest.raises(UserError, match=rf"program\.py:7: .*{message}"):
        DescriptionText(kernel(**changes))


def test_an_unknown_step_is_refused():
    with pytest.raises(
        UserError, match=r"program\.py:7: there is no parameter WIDTH to settle or fork; name some of SIDE"
    ):
        tuning_text(kernel(), ["WIDTH"], [], {})


def test_lines_of_the_description_know_the_functions_that_made_them():
    def small(p):
        return p.SIDE <= 64

    text = DescriptionText(kernel(constraints=small))
    number = next(number for number, line in enumerate(text.text.splitlines(), 1) if "SIDE <= 64" in line)
    assert text.location_at(number) == f"{__file__}:{small.__code__.co_firstlineno}"
    assert text.location_at(1) == text.location_at(10**6) == "program.py:7"
