"""A kernel without a reference: its solutions are compared with the first of them that runs."""

from __future__ import annotations

import pytest

from tunesmith import session
from tunesmith.records import Outcome

pytestmark = pytest.mark.opencl

KERNEL = """
__kernel void scale(__global float *y, __global const float *x, int n) {
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) {
    float right = x[i] * 2.5f;
    y[i] = MODE == 1 && i == 77 ? right + 1 : MODE == 2 ? right / (i == 5 ? 0.0f : 1.0f) : right;
  }
}
"""
DESCRIPTION = """
Name: scale
Source: {OpenCL: scale.cl}
Sizes: [N]
Parameters:
  MODE: {Values: any}
  GROUP: {Values: any}
Arguments:
  - {Name: y, DataType: float32, Shape: [N], Role: inout}
  - {Name: x, DataType: float32, Shape: [N], Role: in}
  - {Name: n, DataType: int32, Value: N}
Entry: scale
WorkGroup: [GROUP]
Grid: {WorkItems: [N]}
Reference: first
Tolerance: 1
Flops: N
"""
TUNING = """
GlobalParameters: {{Noise: 0.2, ConfirmBlocks: 6, MaximumSamples: 8, SamplingSeconds: 0.02, WarmUpSeconds: 0.01}}
BenchmarkProblems:
  - - {{OperationType: Custom, Kernel: scale.kernel.yaml}}
    - ForkParameters:
        - Groups:
            - [{members}]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [1000]
"""
INFINITE, RIGHT, WRONG, OTHER = (
    "{MODE: 2, GROUP: 8}",
    "{MODE: 0, GROUP: 8}",
    "{MODE: 1, GROUP: 8}",
    "{MODE: 0, GROUP: 16}",
)


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    """A function that tunes these configurations, and returns how many it measured and the outcome of each."""
    (tmp_path / "scale.cl").write_text(KERNEL)
    (tmp_path / "scale.kernel.yaml").write_text(DESCRIPTION)

    def tune(*members):
        (tmp_path / "scale.yaml").write_text(TUNING.format(members=", ".join(members)))
        outcome = session.tune(tmp_path / "scale.yaml", tmp_path / "out", device="OpenCL", order="file")
        table = outcome.plan.groups[0].table
        cells = [table.cell(table.problems[0], solution) for solution in table.solutions]
        return outcome.ledger.measured, [(cell.outcome, cell.reason) for cell in cells]

    return tune


def test_the_first_that_runs_right_by_itself_is_what_the_others_are_compared_with(tuned):
    _, outcomes = tuned(INFINITE, RIGHT, WRONG, OTHER)
    assert outcomes == [
        (Outcome.WRONG_RESULT, "not finite"),
        (Outcome.OK, ""),
        (Outcome.WRONG_RESULT, "wrong value"),
        (Outcome.OK, ""),
    ]


def test_a_wrong_one_that_comes_first_makes_the_others_wrong(tuned):
    _, outcomes = tuned(WRONG, RIGHT, OTHER)
    assert [outcome for outcome, _ in outcomes] == [Outcome.OK, Outcome.WRONG_RESULT, Outcome.WRONG_RESULT]


def test_a_later_run_compares_with_the_first_of_the_earlier_one(tuned):
    tuned(RIGHT, OTHER)
    measured, outcomes = tuned(RIGHT, OTHER, WRONG)
    assert [outcome for outcome, _ in outcomes] == [Outcome.OK, Outcome.OK, Outcome.WRONG_RESULT]
    assert measured >= 1
