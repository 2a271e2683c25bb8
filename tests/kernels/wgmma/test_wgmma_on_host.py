"""The wgmma family's program run by the host, which stands in for a Hopper GPU (`hopper_on_host`): right or wrong."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cuda_runner import H200
from hopper_on_host import host_programs, result_on_host, verify_on_host
from tunesmith.problems.gemm import GemmOperation
from wgmma_cases import CASES, FAMILY, QUICK, cases

SHARED = next(case for case in CASES if case.name == "bfloat16, shared by five")
UNEVEN = next(case for case in CASES if case.name == "bfloat16, K in thirds, uneven slices")
BESIDE = next(case for case in CASES if case.name == "half, two by four side by side")


@pytest.fixture(scope="module")
def program_of(request, tmp_path_factory):
    """The program of a case for the host, of those that the selected tests name."""
    items = [item for item in request.session.items if item.fspath == request.fspath and hasattr(item, "callspec")]
    selected = {item.callspec.params["case"].name for item in items if "case" in item.callspec.params} | {SHARED.name}
    chosen = [case for case in CASES if case.name in selected]
    modules = [FAMILY.modules(case.config, case.problem_type)[0] for case in chosen]
    programs = host_programs(modules, tmp_path_factory.mktemp("wgmma"))
    named = {case.name: program for case, program in zip(chosen, programs, strict=True)}
    return lambda case: named[case.name]


@pytest.mark.parametrize("case", cases(QUICK))
def test_the_program_is_right(case, program_of):
    """One work-group (or cluster) after the other, so that it also never waits for one that comes later."""
    assert not list(FAMILY.rejections(case.config, case.problem_type, H200))
    assert not list(FAMILY.rejections_for(case.config, case.problem, H200))
    verify_on_host(FAMILY, case.config, case.problem, program_of(case), case.together)


def test_sums_do_not_depend_on_who_comes_first(program_of):
    """A shared tile is added up in the order of K, whoever was there first."""
    program = program_of(SHARED)
    inputs = GemmOperation().inputs(SHARED.problem, np.random.default_rng(5))
    one_by_one, all_at_once = (
        result_on_host(FAMILY, SHARED.config, SHARED.problem, program, inputs, together) for together in (1, 5)
    )
    assert (one_by_one.view(np.uint16) == all_at_once.view(np.uint16)).all()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("case", "right", "wrong"),
    [
        (SHARED, "wait_for_products<1>();", "wait_for_products<2>();"),
        (SHARED, "wait_until_read<1>();", "wait_until_read<2>();"),
        (SHARED, "show_to_copies();", ""),
        (SHARED, "share = own.share + 1;", "share = own.share + 2;"),
        (SHARED, "lower_flag(flag_of(shared, share, group));", ""),
        (SHARED, "piece ^ (line * 2 * PART >> 7", "piece ^ (line * 2 * PART >> 6"),
        (SHARED, "PRODUCT_BYTES : PRODUCT_BYTES / ELEMENT_BYTES", "PRODUCT_BYTES / 2 : PRODUCT_BYTES / ELEMENT_BYTES"),
        (UNEVEN, "show_to_copies();", ""),
        (UNEVEN, "wait_for_cluster(barrier, 0);", ""),
        (UNEVEN, "out + thread * block", "out"),
        (UNEVEN, "to.columns = min(columns, first_column + 8 * eights_of(slices, rank));", ""),
        (UNEVEN, "first_column += 8 * rank * slices.eights;", ""),
        (UNEVEN, "step = now.begin + part;", "step = now.begin;"),
        (SHARED, "    wait_for_launch_before();\n", ""),
        (BESIDE, "if (SHARERS > 1 && is_first) wait_for_peers(stages);", ""),
        (BESIDE, "make_barrier(empty + 8 * i, WARP_GROUPS * PEERS)", "make_barrier(empty + 8 * i, WARP_GROUPS)"),
        (BESIDE, "return number + (number >= row) + column * CLUSTER_ROWS;", "return number + column * CLUSTER_ROWS;"),
        (BESIDE, "ranks << row_in_cluster(rank)", "ranks"),
        (BESIDE, "int row = part * ((ALONG_K ? SIDE : DEPTH) / PARTS);", "int row = 0;"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_nearest_wrong_programs_are_wrong_here_too(case, right, wrong, tmp_path):
    """What stands in for the GPU would be worth nothing if it forgave what a GPU does not."""
    config = case.config | {"Stages": 2}
    module, _ = FAMILY.modules(config, case.problem_type)
    assert right in module.text
    broken = dataclasses.replace(module, text=module.text.replace(right, wrong))
    (program,) = host_programs([broken], tmp_path)
    operation = GemmOperation()
    inputs = operation.inputs(case.problem, np.random.default_rng(5))
    expected = operation.reference(case.problem, inputs)["D"]
    try:
        out = result_on_host(FAMILY, config, case.problem, program, inputs, case.together)
    except AssertionError:
        return
    m, n = case.sizes[:2]
    got = out[: case.problem.leading[0] * n].reshape(n, -1)[:, :m].T[..., None].astype(np.float64)
    assert not (np.abs(got - expected.value) <= expected.bound).all()
