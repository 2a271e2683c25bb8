"""What a choice model sees of a configuration's parts of K."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.kernels import KERNELS
from tunesmith.models.choice.features import PAIR_FEATURES, ProductNumbers, SolutionNumbers, pair_features
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem, Solution

TARGET = known_target("sm_90")
KIND = gemm_type("b", transpose_a=True, batched=False, use_beta=False)
SMALL = {"WarpGroups": 1, "InstructionColumns": 64, "StorePath": "Direct"}


def seen(m, n, k, *configurations):
    """The features of each configuration of the wgmma family, by name."""
    defaults = KERNELS["CudaWgmmaGemm"].space(KIND, TARGET).defaults | SMALL
    solutions = [Solution(KIND, "CudaWgmmaGemm", defaults | values) for values in configurations]
    product = ProductNumbers.of(Problem(KIND, (m, n, k)), TARGET)
    with np.errstate(all="raise"):
        rows = pair_features(product, SolutionNumbers.of(solutions, TARGET))
    assert np.isfinite(rows).all()
    return [dict(zip(PAIR_FEATURES, row, strict=True)) for row in rows]


def test_parts_of_a_cluster_are_work_groups_and_need_no_memory():
    whole, cluster, memory, both = seen(
        64,
        64,
        4096,
        {},
        {"ClusterShape": (1, 1, 4)},
        {"GlobalSplitU": 4},
        {"ClusterShape": (1, 1, 4), "GlobalSplitU": 4},
    )
    assert [values["log groups"] - whole["log groups"] for values in (cluster, memory, both)] == [2, 2, 4]
    assert [values["log iterations"] - whole["log iterations"] for values in (cluster, memory, both)] == [-2, -2, -4]
    assert cluster["sums"] == whole["sums"] < memory["sums"] == both["sums"]


@pytest.mark.parametrize(("n", "parts"), [(64, 8), (64 * 33, 4), (64 * 1000, 2)])
def test_as_many_parts_as_fill_the_device_are_two_to_eight(n, parts):
    whole, filling = seen(64, n, 4096, {}, {"ClusterShape": (1, 1, 0)})
    assert filling["log groups"] - whole["log groups"] == np.log2(parts)


def test_features_are_finite_if_every_solution_leaves_its_parts_open():
    seen(64, 64, 4096, {"ClusterShape": (1, 1, 0)}, {"ClusterShape": (1, 1, 0), "GlobalSplitU": 2})
