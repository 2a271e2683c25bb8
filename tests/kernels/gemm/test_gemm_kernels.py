"""The OpenCL GEMM kernels compute what they should, on sizes that divide nothing, and touch nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from opencl_runner import opencl_device, run, unoptimised, verify
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem

pytestmark = pytest.mark.opencl

OPTIMISED = KERNELS["TiledGemm"], KERNELS["RegisterGemm"], KERNELS["BlockedGemm"]
TILED, REGISTER, BLOCKED = FAMILIES = [unoptimised(family) for family in OPTIMISED]
SMALL_REGISTER = {"ThreadTile": (8, 3), "VectorWidth": 4, "LoopUnroll": 2}
SMALL_BLOCKS = {"MacroTile": (40, 12), "ThreadTile": (8, 3), "VectorWidth": 4, "LoopUnroll": 2, "DepthU": 16}
FEW_COLUMNS = {"Schedule": "FewColumns", "MacroTile": (40, 3), "ThreadTile": (4, 3), "VectorWidth": 4, "DepthU": 4}
SMALL_TILED = {"WorkGroup": (4, 8, 1), "ThreadTile": (4, 2)}


def verified(family, values, type_, sizes, leading=(), **scalars):
    """Verify, unless the family rejects it; says which."""
    config = family.space(type_).defaults | values
    problem = Problem(type_, sizes, leading, Configuration(scalars))
    target = opencl_device().target
    if list(family.rejections(config, type_, target)) or list(family.rejections_for(config, problem, target)):
        return False
    verify(family, config, problem)
    return True


PROGRAMS = {
    "tiled": (TILED, SMALL_TILED),
    "tiled-shift": (TILED, SMALL_TILED | {"EdgeType": "ShiftPtr", "VectorWidth": 2, "PrefetchGlobalRead": True}),
    "register": (REGISTER, SMALL_REGISTER),
    "register-shift": (REGISTER, SMALL_REGISTER | {"EdgeType": "ShiftPtr", "PackB": True}),
    "register-packed": (REGISTER, SMALL_REGISTER | {"PackA": True, "PackB": True}),
    "blocks": (BLOCKED, SMALL_BLOCKS),
    "few-columns": (BLOCKED, FEW_COLUMNS),
}


def covering():
    """Every pair of a program, a layout and a type in half of all; the thorough run adds the other triples."""
    for i, (name, made) in enumerate(PROGRAMS.items()):
        for j, transposes in enumerate([(False, False), (False, True), (True, True), (True, False)]):
            for k, data_type in enumerate("sd"):
                marks = () if (i + j + k) % 2 == 0 else pytest.mark.thorough
                layout = "".join("nt"[transposed] for transposed in transposes)
                yield pytest.param(*made, transposes, data_type, id=f"{name}-{layout}-{data_type}", marks=marks)


@pytest.mark.parametrize(("family", "values", "transposes", "data_type"), list(covering()))
def test_all_layouts_scalars_and_leading_dimensions_are_right(family, values, transposes, data_type):
    """One program, many problems: batch, alpha, beta, leading dimensions larger than needed, odd sizes, 1 x 1 x 1."""
    a, b = transposes
    if a and values.get("Schedule") == "FewColumns":
        pytest.skip("FewColumns reads A as it lies in memory")
    type_ = gemm_type(data_type, transpose_a=a, transpose_b=b, batched=True)
    padded = (43, 41, 40 if not a else 25, 33)
    assert verified(family, values, type_, (37, 29, 3, 23), padded, alpha=-1.5, beta=0.5)
    assert verified(family, values, type_, (37, 29, 1, 23), alpha=1.0, beta=0.0)
    assert verified(family, values, type_, (33, 1, 2, 17), beta=1.0) or values.get("EdgeType") == "ShiftPtr"
    assert verified(family, values, type_, (1, 1, 1, 1), beta=2.0) or values.get("EdgeType") == "ShiftPtr"


BOTH_SCHEDULES = [(BLOCKED, SMALL_BLOCKS), (BLOCKED, FEW_COLUMNS)]


@pytest.mark.parametrize(
    ("family", "values"), [(TILED, SMALL_TILED), (REGISTER, SMALL_REGISTER | {"PackA": True}), *BOTH_SCHEDULES]
)
def test_no_terms_leave_beta_c(family, values):
    problem = Problem(gemm_type(), (9, 7, 0), (9, 9, 9, 7), Configuration({"alpha": 2.0, "beta": 0.5}))
    c = np.random.default_rng(0).random(9 * 7, dtype=np.float32)
    nothing = np.zeros(0, np.float32)
    d = run(family, family.space(problem.type).defaults | values, problem, {"A": nothing, "B": nothing, "C": c})
    np.testing.assert_array_equal(d, np.float32(0.5) * c)


@pytest.mark.parametrize(("family", "values"), [(TILED, SMALL_TILED), (REGISTER, SMALL_REGISTER), *BOTH_SCHEDULES])
def test_a_type_without_beta_has_no_c(family, values):
    assert verified(family, values, gemm_type(use_beta=False), (37, 29, 23), alpha=-1.5)


@pytest.mark.parametrize("family", OPTIMISED, ids=lambda family: family.name)
def test_defaults_are_right(family):
    """As tuning runs and libraries compile them."""
    assert verified(family, {}, gemm_type(transpose_b=False), (131, 67, 45))


@pytest.mark.parametrize("parts", [2, 3, 7])
@pytest.mark.parametrize(
    ("family", "values"), [(TILED, SMALL_TILED), (REGISTER, SMALL_REGISTER | {"PackA": True, "PackB": True})]
)
def test_a_global_split_is_right_and_repeats_bit_by_bit(family, values, parts):
    """K = 37 in steps of 8 gives parts of different lengths, for 7 parts some without any work."""
    type_ = gemm_type(batched=True)
    config = family.space(type_).defaults | values | {"GlobalSplitU": parts}
    problem = Problem(type_, (21, 19, 2, 37), (), Configuration({"alpha": 1.5, "beta": -0.5}))
    first, second = (verify(family, config, problem, seed=3) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("slices", [2, 4])
def test_slices_of_a_work_group_add_up(slices):
    assert verified(TILED, {"WorkGroup": (4, 4, slices), "LoopUnroll": 4}, gemm_type(), (21, 19, 37), beta=0.5)


@pytest.mark.parametrize("mapping", [2, 3, 8])
def test_every_tile_is_visited_whatever_the_mapping(mapping):
    """7 tile columns in blocks of 2, 3 and 8."""
    assert verified(TILED, SMALL_TILED | {"WorkGroupMapping": mapping}, gemm_type(), (70, 101, 5))


VALUES = {
    "TiledGemm": {
        "WorkGroup": [(4, 4, 1), (8, 4, 1), (2, 8, 1), (4, 4, 2), (3, 5, 1)],
        "ThreadTile": [(1, 1), (2, 4), (4, 4), (3, 2), (4, 8)],
        "VectorWidth": [1, 2, 4],
        "LoopUnroll": [0, 2, 8, 16],
        "DepthU": [0, 8, 15, 16],
        "NumLoadsCoalescedA": [1, 2, 4],
        "NumLoadsCoalescedB": [1, 2, 4],
        "PrefetchGlobalRead": [False, True],
        "EdgeType": ["Branch", "ShiftPtr"],
        "GlobalSplitU": [1, 3],
        "StreamKGrid": [0, 0, 7],
        "WorkGroupMapping": [1, 3],
        "LdsPad": [0, 1, 4],
    },
    "RegisterGemm": {
        "WorkGroup": [(1, 1, 1), (1, 2, 1), (3, 1, 1), (2, 2, 2)],
        "ThreadTile": [(1, 1), (4, 4), (8, 3), (16, 2), (6, 5)],
        "VectorWidth": [1, 2, 4, 8],
        "LoopUnroll": [0, 1, 3],
        "DepthU": [0, 3],
        "EdgeType": ["Branch", "ShiftPtr"],
        "GlobalSplitU": [1, 3],
        "StreamKGrid": [0, 0, 7],
        "WorkGroupMapping": [1, 3],
        "PackA": [False, True],
        "PackB": [False, True],
    },
    "BlockedGemm": {
        "Schedule": ["CacheBlocks", "FewColumns"],
        "MacroTile": [(16, 4), (32, 12), (48, 3), (16, 1)],
        "ThreadTile": [(1, 1), (4, 4), (8, 3), (16, 2), (8, 1)],
        "VectorWidth": [1, 2, 4, 8],
        "LoopUnroll": [0, 1, 3],
        "DepthU": [3, 8, 16],
    },
}


@pytest.mark.parametrize(
    ("family", "number"),
    [
        *((family, 0) for family in OPTIMISED),
        *((family, number) for family in FAMILIES for number in range(1, 12)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_configuration_is_rejected_or_right(family, number):
    """Draws until one is legal; then it must compile and be right on a random odd problem. The draws are seeded by
    number, so that a driver that caches programs compiles each only once."""
    draw = np.random.default_rng(number)

    def any_of(values):
        return values[draw.integers(len(values))]

    for _ in range(1000):
        values = {name: any_of(choices) for name, choices in VALUES[family.name].items()}
        transpose_a, transpose_b, batched = (bool(any_of([False, True])) for _ in range(3))
        type_ = gemm_type(any_of("sd"), transpose_a=transpose_a, transpose_b=transpose_b, batched=batched)
        m, n, k, batch = (int(size) for size in draw.integers(1, 50, 4))
        sizes = (m, n, batch % 3 + 1, k) if batched else (m, n, k)
        if verified(family, values, type_, sizes, alpha=1.25, beta=float(any_of([0.0, -0.5]))):
            return
    pytest.fail("a thousand draws without a legal configuration")
