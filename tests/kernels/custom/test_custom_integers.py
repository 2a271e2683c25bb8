"""Outputs of whole numbers in a kernel of one's own: exact to the last bit, and no reference may blur them."""

from __future__ import annotations

import pytest

from tunesmith.problems.custom import CustomOperation
from tunesmith.records import Problem, UserError

DESCRIPTION = """
Name: counted
Source: counted.cl
Entry: counted
Sizes: [N]
Arguments:
  - {Name: output, DataType: DTYPE, Shape: [N], Role: out}
WorkGroup: [1]
Grid: {WorkItems: [N]}
Reference: counted.py:counted
Flops: N
"""


def expected(folder, dtype, value):
    """What a reference that returns `value` says of an output of three numbers."""
    (folder / "counted.yaml").write_text(DESCRIPTION.replace("DTYPE", dtype))
    (folder / "counted.cl").write_text("__kernel void counted(__global long *output) {}")
    (folder / "counted.py").write_text(
        f"import numpy as np\ndef counted(sizes, arrays):\n    return {{'output': {value}}}\n"
    )
    fields = {"OperationType": "Custom", "Kernel": "counted.yaml"}
    problem_type = CustomOperation().type_of(fields, lambda key: f"tuning.yaml:{key}", folder)
    return CustomOperation().reference(Problem(problem_type, (3,)), {})["output"]


@pytest.mark.parametrize(
    ("dtype", "value", "numbers"),
    [
        ("int64", "np.array([-2**63, 2**53 + 1, 2**63 - 1])", [-(2**63), 2**53 + 1, 2**63 - 1]),
        ("uint64", "np.array([0, 2**63 + 1, 2**64 - 1], np.uint64)", [0, 2**63 + 1, 2**64 - 1]),
        ("int32", "[1, 2, 3]", [1, 2, 3]),
        ("int8", "np.array([1.0, -128.0, 127.0])", [1, -128, 127]),
        ("uint8", "np.array([True, False, True])", [1, 0, 1]),
        ("int64", "(np.array([2**53 + 1, 0, 0]), np.ones(3))", [2**53 + 1, 0, 0]),
    ],
)
def test_they_are_expected_as_they_are_in_their_own_type(tmp_path, dtype, value, numbers):
    found = expected(tmp_path, dtype, value)
    assert found.value.dtype == dtype
    assert found.value.tolist() == numbers
    assert not found.bound.any()


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("int64", "np.array([0.5, 1, 2])", "that are not whole"),
        ("uint64", "np.array([1, 2, float(2**53 + 1)])", "from 2^53 on, where they are not exact: give uint64"),
        ("uint64", "np.array([-1, 0, 1])", "do not fit into uint64"),
        ("int8", "np.array([0, 0, 128])", "do not fit into int8"),
        ("int64", "np.array([2**63, 0, 0], np.uint64)", "do not fit into int64"),
    ],
)
def test_a_reference_that_cannot_mean_them_is_the_users_mistake(tmp_path, dtype, value, message):
    with pytest.raises(UserError, match=r"counted\.yaml:\d+: the reference counted gave") as caught:
        expected(tmp_path, dtype, value)
    assert message in str(caught.value)
