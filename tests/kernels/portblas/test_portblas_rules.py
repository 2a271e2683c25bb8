"""What the kernels with portBLAS's parameters refuse, by name, and when their families are meant at all."""

from __future__ import annotations

import inspect
from dataclasses import replace
from itertools import product

import pytest

from cuda_runner import H200
from portblas_kernels import ALGORITHMS, CPU, CUDA, GPU, OPENCL, TRANSPOSES, config, problem, type_for
from rejection_reasons import reasons_of
from tunesmith.kernels import KERNELS, families_of, family_for, tuning_space
from tunesmith.kernels.gemm import portblas
from tunesmith.problems.gemm import gemm_type
from tunesmith.protocol import read_tuning_file
from tunesmith.records import (
    CompiledFacts,
    Configuration,
)
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.tuning_file.file import derived_names

# --- what is legal ----------------------------------------------------------------------------------------------------

INTERLEAVED = type_for("interleaved")
WITHOUT_DOUBLES = replace(GPU, double_precision=False)
ILLEGAL = [
    (type_for("local"), GPU, config("none"), "algorithm"),
    (type_for("local", "d"), WITHOUT_DOUBLES, config(), "double precision"),
    (type_for("local"), GPU, config("interleaved"), "batch layout"),
    (INTERLEAVED, GPU, config("local"), "batch layout"),
    (type_for("local"), GPU, config(WorkGroup=(8, 8, 2)), "local split"),
    (type_for("local"), GPU, config(WorkGroup=(64, 32, 1)), "work-group size"),
    (INTERLEAVED, GPU, config("interleaved", BatchTile=(4, 8)), "work-group size"),
    (type_for("local"), GPU, config(WorkItem=(1, 1), WorkGroup=(2, 2, 1)), "vector size"),
    (type_for("local"), GPU, config(CacheLine=32, VectorSize=16), "vector size"),
    (type_for("non_local"), GPU, config("non_local", VectorSize=8), "vector size"),
    (INTERLEAVED, GPU, config("interleaved", BatchTile=(2, 2)), "vector size"),
    (type_for("local"), GPU, config(CacheLine=0), "depth"),
    (type_for("local", "d"), GPU, config(CacheLine=36), "depth"),
    (type_for("local"), GPU, config(WorkItem=(8, 8), CacheLine=128, DoubleBuffer=True), "local memory"),
    (type_for("local", "d"), GPU, config(WorkItem=(16, 8)), "registers"),
    (type_for("non_local"), CPU, config("non_local", WorkItem=(64, 64)), "unrolled code"),
]


@pytest.mark.parametrize(("type_", "target", "made", "reason"), ILLEGAL)
def test_an_illegal_configuration_says_why(type_, target, made, reason):
    rejections = list(OPENCL.rejections(made, type_, target))
    assert reason in [rejection.reason for rejection in rejections]
    assert all(rejection.detail for rejection in rejections)


def test_every_reason_is_provoked_by_a_test_here():
    source = inspect.getsource(inspect.getmodule(test_what_the_compiler_says_can_reject))
    assert [reason for reason in reasons_of(portblas) if f'"{reason}"' not in source] == []


def test_what_portblas_needs_and_these_kernels_do_not_is_legal():
    """Work-groups that are no whole cache lines, or no multiple of an item's rows; blocks that are not square."""
    for made in (config(WorkItem=(3, 5), WorkGroup=(6, 7, 1), Vectorization="none"), config(WorkGroup=(5, 3, 1))):
        assert not list(OPENCL.rejections(made, type_for("local"), GPU))
    wide = config("non_local", WorkItem=(4, 8), WorkGroup=(4, 16, 1))
    assert not list(OPENCL.rejections(wide, type_for("non_local"), GPU))
    rows = config("interleaved", WorkItem=(1, 1), WorkGroup=(32, 1, 1), BatchTile=(4, 2))
    assert not list(OPENCL.rejections(rows, INTERLEAVED, GPU))


@pytest.mark.parametrize(
    ("sizes", "made", "reason"),
    [
        ((200_000, 200_000, 1, 16), config(), "device memory"),
        ((4, 4, 65_536, 4), config(), "grid"),
        ((2**31 - 8, 1, 1, 1), config(), "index range"),
        ((2**16, 2**16, 1, 1), config("naive", WorkGroup=(1, 1, 1)), "grid"),
        ((64, 64, 1, 64), config(TopTile=(2**31, 1)), "grid"),
    ],
)
def test_a_problem_that_does_not_fit_says_why(sizes, made, reason):
    type_ = type_for("local")
    assert reason in [rejection.reason for rejection in OPENCL.rejections_for(made, problem(type_, *sizes), GPU)]


@pytest.mark.parametrize(
    ("sizes", "values", "is_legal"),
    [
        ((2**16, 2**15 - 1, 1, 1), {}, True),
        ((2**16, 2**15, 1, 1), {}, False),
        ((1, 1, 1, 1), {"TopTile": (1, 2**31 - 1)}, True),
        ((1, 1, 1, 1), {"TopTile": (2**31 - 1, 1)}, True),
        ((2, 3, 1, 1), {"TopTile": (1, 2**30 - 1)}, True),
        ((2, 3, 1, 1), {"TopTile": (1, 2**30)}, False),
        ((3, 2, 1, 1), {"TopTile": (2**30 - 1, 1)}, True),
        ((3, 2, 1, 1), {"TopTile": (2**30, 1)}, False),
    ],
)
def test_blocks_are_counted_in_32_bits_with_the_top_tiles_that_they_make(sizes, values, is_legal):
    """With one element of D a block: rows of blocks in a top tile's columns, and columns in its rows."""
    made, asked = config("naive", WorkGroup=(1, 1, 1), **values), problem(type_for("naive"), *sizes)
    assert ("grid" not in {rejection.reason for rejection in OPENCL.rejections_for(made, asked, GPU)}) is is_legal


def test_too_many_blocks_for_one_launch_are_told_with_both_limits():
    """They are numbered along x if there are more columns of blocks than a device counts along y."""
    made, asked = config("naive", WorkGroup=(1, 1, 1)), problem(type_for("naive"), 2**15, 2**16, 1, 1)
    details = [found.detail for found in OPENCL.rejections_for(made, asked, GPU) if found.reason == "grid"]
    assert details == [
        f"{2**31} work-groups, a launch has at most {2**31 - 1}",
        f"{2**15} x {2**16} blocks cannot be counted in 32 bits",
    ]


def test_blocks_whose_k_is_split_are_counted_too():
    """On a device with so many units that each block has several work-groups."""
    made = config("tall_skinny", WorkGroup=(1, 1, 1), WorkItem=(1, 1))
    asked, target = problem(type_for("tall_skinny"), 2**15, 2**16, 1, 4096), replace(GPU, compute_units=2**40)
    assert len(OPENCL.plan(made, asked, target).steps) == 2
    found = OPENCL.rejections_for(made, asked, target)
    assert f"{2**31} work-groups, a launch has at most {2**31 - 1}" in [rejection.detail for rejection in found]


def test_the_sums_of_a_split_k_are_added_by_256_work_items():
    """The device must allow them, and the compiled program of the sum; the other algorithms need only their own."""
    small = {"WorkGroup": (8, 8, 1)}

    def reasons(algorithm, allowed):
        target = replace(GPU, max_work_group_size=allowed)
        return [r.reason for r in OPENCL.rejections(config(algorithm, **small), type_for(algorithm), target)]

    assert reasons("tall_skinny", 256) == reasons("local", 64) == []
    assert reasons("tall_skinny", 255) == reasons("local", 63) == ["work-group size"]
    single = config("naive", WorkGroup=(1, 1, 1))
    assert not list(OPENCL.rejections(single, type_for("naive"), replace(GPU, max_work_group_size=1)))
    for entry, items in (("gemm", 64), ("reduce", 256)):
        for allowed, expected in ((items, []), (items - 1, ["work-group size"])):
            facts = [CompiledFacts(entry, max_work_group_size=allowed)]
            found = OPENCL.rejections_compiled(config("tall_skinny", **small), facts, GPU)
            assert [rejection.reason for rejection in found] == expected


@pytest.mark.parametrize(
    ("algorithm", "target", "values", "reasons"),
    [
        ("local", GPU, {"WorkItem": (15, 15)}, []),
        ("non_local", GPU, {"WorkItem": (24, 8), "VectorSize": 2}, ["registers"]),
        ("non_local", CPU, {"WorkItem": (52, 36), "VectorSize": 2}, []),
        ("local", CPU, {"WorkItem": (40, 49)}, ["unrolled code"]),
    ],
)
def test_a_work_item_has_255_registers_on_a_gpu_and_2048_numbers_elsewhere(algorithm, target, values, reasons):
    """Of the sums and operands of a step: 255 and 256, then 2,048 and 2,049."""
    found = OPENCL.rejections(config(algorithm, WorkGroup=(8, 8, 1), **values), type_for(algorithm), target)
    assert [rejection.reason for rejection in found] == reasons


@pytest.mark.parametrize(
    ("most", "more", "reason"),
    [
        ({"registers": 256}, {"registers": 257}, "registers"),
        ({"spill_bytes": 1024}, {"spill_bytes": 1025}, "spills"),
        ({"local_bytes": 48 * 1024}, {"local_bytes": 48 * 1024 + 1}, "local memory"),
    ],
)
def test_a_compiled_program_may_take_what_there_is(most, more, reason):
    """256 work-items share 65,536 registers."""
    for facts, expected in ((most, []), (more, [reason])):
        found = OPENCL.rejections_compiled(config(WorkGroup=(16, 16, 1)), [CompiledFacts("gemm", **facts)], GPU)
        assert [rejection.reason for rejection in found] == expected


def test_what_the_compiler_says_can_reject():
    facts = {
        "work-group size": CompiledFacts("gemm", max_work_group_size=128),
        "local memory": CompiledFacts("gemm", local_bytes=GPU.local_memory_bytes + 1),
        "registers": CompiledFacts("gemm", registers=255 + 2),
        "spills": CompiledFacts("gemm", registers=100, spill_bytes=5000),
    }
    for reason, fact in facts.items():
        assert [rejection.reason for rejection in OPENCL.rejections_compiled(config(), [fact], GPU)] == [reason]
    fine = CompiledFacts("gemm", registers=128, spill_bytes=0, local_bytes=8448, max_work_group_size=256)
    assert not list(OPENCL.rejections_compiled(config(), [fine, CompiledFacts("reduce", registers=32)], GPU))


def test_defaults_are_legal_everywhere_and_cuda_needs_a_cuda_device():
    for algorithm, transposes, data_type in product(ALGORITHMS, TRANSPOSES, "sdh"):
        type_ = type_for(algorithm, data_type, transposes)
        for family, target in ((OPENCL, GPU), (OPENCL, CPU), (CUDA, H200)):
            assert not list(family.rejections(config(algorithm, family), type_, target))
    assert "device API" in [rejection.reason for rejection in CUDA.rejections(config(), type_for("local"), GPU)]


OTHERS = ("TiledGemm", "RegisterGemm", "CudaSimtGemm", "TritonTmaGemm")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(("type_", "reason"), [(gemm_type("h"), "data type"), (INTERLEAVED, "batch layout")])
def test_families_without_half_precision_and_interleaved_batches_say_so(name, type_, reason):
    family = KERNELS[name]
    start = tuning_space(type_, H200, hidden=True).defaults | {"KernelLanguage": family.language} | family.form
    assert reason in [rejection.reason for rejection in family.rejections(start, type_, H200)]


# --- which family is meant --------------------------------------------------------------------------------------------


def test_the_families_are_meant_where_their_algorithm_is_named_and_only_there():
    start = tuning_space(type_for("local")).defaults
    assert start["PortBlasAlgorithm"] == "none"
    assert family_for("GEMM", start) is family_for("GEMM", Configuration()) is KERNELS["TiledGemm"]
    for algorithm in ALGORITHMS:
        named = start | {"PortBlasAlgorithm": algorithm}
        assert family_for("GEMM", named) is OPENCL
        assert family_for("GEMM", named | {"LocalMemory": False}) is OPENCL
        assert family_for("GEMM", named | {"KernelLanguage": "CUDA"}) is CUDA
        assert family_for("GEMM", Configuration({"PortBlasAlgorithm": algorithm})) is OPENCL
    with pytest.raises(LookupError, match="'PortBlasAlgorithm': 'local'"):
        family_for("GEMM", start | {"PortBlasAlgorithm": "local", "KernelLanguage": "Triton"})


def test_their_parameters_change_nothing_for_the_other_families():
    """Which parameters a tuning file starts from, but for those that only these families have, is as it was."""
    type_ = type_for("local")
    start = tuning_space(type_).defaults
    others = [family for family in families_of("GEMM", hidden=False) if not family.named_by]
    firsts: dict[str, object] = {}
    for family in others:
        for parameter in family.space(type_):
            firsts.setdefault(parameter.name, parameter.default)
    assert start.only(firsts) == Configuration(firsts)
    for family in others:
        theirs = {parameter.name for parameter in OPENCL.space(type_)}
        assert theirs & {parameter.name for parameter in family.space(type_)} <= {"KernelLanguage", "WorkGroup"}


def test_a_tuning_file_can_fork_over_algorithms(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("""
        BenchmarkProblems:
          - - {OperationType: GEMM, DataType: s, TransposeB: False, Batched: True}
            - ForkParameters:
                - PortBlasAlgorithm: [none, local, naive]
              BenchmarkForkParameters:
                - WorkItem: [[4, 4], [8, 8]]
    """)
    file = read_tuning_file(path, tuning_space, derived_names)
    (phases,) = file.groups
    judge = ConfigurationOracle(phases.problem_type, GPU)
    found = [judge.solution(phases.start | choice) for choice in phases.steps[0].choices]
    assert [solution.kernel for solution in found] == ["TiledGemm", "PortBlasGemm", "PortBlasGemm"]
    assert "WorkItem" in found[1].configuration
    assert "WorkItem" not in found[0].configuration
