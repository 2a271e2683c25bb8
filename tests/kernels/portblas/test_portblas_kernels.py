"""The kernels with portBLAS's parameters compute what they should, on any sizes, and touch nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from opencl_runner import opencl_device, run, unoptimised, verify
from portblas_kernels import ALGORITHMS, OPENCL, SMALL, TRANSPOSES, ManyUnits, OnGpu, config, problem, type_for
from tunesmith.records import Configuration, Problem

pytestmark = pytest.mark.opencl

UNOPTIMISED, GPU_SOURCE = unoptimised(OPENCL), unoptimised(OnGpu())
DATA_TYPES = ("s", "d", "h")


def verified(family, made, asked, seed=0):
    """Verify, unless the family rejects it; says which."""
    target = opencl_device().target
    if list(family.rejections(made, asked.type, target)) or list(family.rejections_for(made, asked, target)):
        return False
    verify(family, made, asked, seed)
    return True


def covering():
    """Every pair of an algorithm, a type and a layout in a third of all; the thorough run adds the other triples."""
    for i, algorithm in enumerate(ALGORITHMS):
        for j, transposes in enumerate(TRANSPOSES):
            for k, data_type in enumerate(DATA_TYPES):
                marks = () if (i + j + k) % len(DATA_TYPES) == 0 else pytest.mark.thorough
                yield pytest.param(algorithm, data_type, transposes, marks=marks)


@pytest.mark.parametrize(("algorithm", "data_type", "transposes"), list(covering()))
def test_all_types_layouts_and_batches_are_right(algorithm, data_type, transposes):
    """One program, many problems: blocks at edges and inside, leading dimensions larger than needed, alpha, beta, a
    batch of one, fewer elements than a work-item computes."""
    made, type_ = config(algorithm, **SMALL), type_for(algorithm, data_type, transposes)
    assert verified(UNOPTIMISED, made, problem(type_, 37, 29, 11, 23, pad=3, alpha=-1.5))
    assert verified(UNOPTIMISED, made, problem(type_, 32, 24, 8, 16, alpha=1.0, beta=0.0))
    assert verified(UNOPTIMISED, made, problem(type_, 33, 1, 1, 17, beta=1.0))
    assert verified(UNOPTIMISED, made, problem(type_, 1, 1, 1, 1, beta=2.0))


def on_gpus(algorithm, data_type, transposes):
    made, type_ = config(algorithm, **SMALL), type_for(algorithm, data_type, transposes)
    assert verified(GPU_SOURCE, made, problem(type_, 37, 29, 11, 23, pad=3))
    assert verified(GPU_SOURCE, made, problem(type_, 32, 24, 8, 16, beta=0.0))


@pytest.mark.parametrize(
    ("algorithm", "data_type", "transposes"),
    [("local", "s", "tn"), ("non_local", "d", "nt"), ("interleaved", "s", "tt"), ("tall_skinny", "s", "nn")],
)
def test_the_source_for_gpus_is_right(algorithm, data_type, transposes):
    on_gpus(algorithm, data_type, transposes)


@pytest.mark.thorough
@pytest.mark.parametrize("transposes", TRANSPOSES)
@pytest.mark.parametrize("data_type", DATA_TYPES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_source_for_gpus_is_right_everywhere(algorithm, data_type, transposes):
    on_gpus(algorithm, data_type, transposes)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_terms_leave_beta_c(algorithm):
    asked = problem(type_for(algorithm), 9, 7, 3, 0, beta=0.5)
    c = np.random.default_rng(0).random(9 * 7 * 3, dtype=np.float32)
    nothing = np.zeros(0, np.float32)
    d = run(UNOPTIMISED, config(algorithm, **SMALL), asked, {"A": nothing, "B": nothing, "C": c})
    np.testing.assert_array_equal(d, np.float32(0.5) * c)


@pytest.mark.parametrize("algorithm", ["local", "naive", "tall_skinny"])
def test_a_type_without_beta_has_no_c(algorithm):
    assert verified(
        UNOPTIMISED, config(algorithm, **SMALL), problem(type_for(algorithm, use_beta=False), 37, 29, 2, 23)
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_defaults_are_right(algorithm):
    """As tuning runs and libraries compile them."""
    assert verified(OPENCL, config(algorithm), problem(type_for(algorithm), 131, 67, 5, 45))


@pytest.mark.parametrize("k", [515, 7, 64])
def test_a_split_of_k_is_right_and_repeats_bit_by_bit(k):
    """Parts of different lengths, for K = 7 a single one."""
    family, asked = unoptimised(ManyUnits()), problem(type_for("tall_skinny"), 13, 5, 2, k)
    made = config("tall_skinny", **SMALL)
    parts = family.plan(made, asked, opencl_device().target).steps[1].arguments[3].value
    assert parts == {515: 10, 7: 1, 64: 4}[k]
    first, second = (verify(family, made, asked, seed=3) for _ in range(2))
    assert first.tobytes() == second.tobytes()


VALUES = {
    "PortBlasAlgorithm": ALGORITHMS,
    "Vectorization": ["none", "partial", "full"],
    "VectorSize": [1, 2, 4, 8, 16],
    "CacheLine": [8, 16, 24, 32, 64],
    "WorkItem": [(1, 1), (2, 4), (4, 4), (3, 2), (4, 8), (8, 3)],
    "WorkGroup": [(4, 4, 1), (8, 4, 1), (2, 8, 1), (3, 5, 1), (1, 1, 1), (4, 8, 1)],
    "TopTile": [(1, 1), (2, 2), (3, 1), (1, 4)],
    "BatchTile": [(1, 1), (2, 4), (4, 2), (3, 2)],
    "DoubleBuffer": [False, True],
    "PadA": [False, True],
    "PadB": [False, True],
}


def rejected_or_right(number):
    """Draws until one is legal; then it must compile and be right on a random odd problem. The draws are seeded by
    number, so that a driver that caches programs compiles each only once."""
    draw = np.random.default_rng(number)

    def any_of(values):
        return values[draw.integers(len(values))]

    for _ in range(1000):
        values = {name: any_of(choices) for name, choices in VALUES.items()}
        type_ = type_for(values["PortBlasAlgorithm"], any_of("ssdh"), any_of(list(TRANSPOSES)))
        family = any_of([UNOPTIMISED, GPU_SOURCE])
        m, n, k, batch = (int(size) for size in draw.integers(1, 50, 4))
        scalars = Configuration({"alpha": 1.25, "beta": float(any_of([0.0, -0.5]))})
        made = config(values.pop("PortBlasAlgorithm"), **values)
        if verified(family, made, Problem(type_, (m, n, batch % 9 + 1, k), (), scalars)):
            return
    pytest.fail("a thousand draws without a legal configuration")


@pytest.mark.parametrize("number", range(8))
def test_a_configuration_is_rejected_or_right(number):
    rejected_or_right(number)


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(8, 200))
def test_many_configurations_are_rejected_or_right(number):
    rejected_or_right(number)
