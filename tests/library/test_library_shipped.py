"""The logic in the package: what is in it, and which device is served by it."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tunesmith
from packaged_logic import (
    BETWEEN,
    FILES,
    H100,
    H200,
    HALVES,
    MADE_ON,
    OPERANDS,
    TYPES,
    beside,
    gpu,
    named,
    without_settings,
)
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library._configurations import mistake_in
from tunesmith.library._default_library import shared_library
from tunesmith.library.arrays._libraries import view_of_numpy
from tunesmith.library.gemm._approach import approach_to
from tunesmith.library.gemm._checked_call import Arguments, Scalars, checked
from tunesmith.library.gemm._request import LETTERS
from tunesmith.logic import Rule, read_shipped, read_shipped_model, shipped, write_logic
from tunesmith.models.choice.model_file import model_of
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.problems.gemm import equally_fast, gemm_type_named
from tunesmith.records import UserError
from tunesmith.toolchains import TOOLCHAINS

MOST_BYTES = 3_000_000
HALF_TYPES = {f"Cij_{operands}_H" for operands in OPERANDS}
"""Those of float16, which an H100 has no logic for: its own file for bfloat16 serves them."""

without_a_setting = pytest.fixture(autouse=True)(without_settings)


def of(name):
    return next(read_shipped(path) for path in FILES if named(path) == name)


def solutions_in(path):
    """All solutions of a file: of its logics, and those that its model knows."""
    found = read_shipped(path)
    model = model_of(read_shipped_model(path), str(path))
    kinds = [logic.document.problem_type for logic in found.logics]
    of_logics = [named.solution for logic in found.logics for named in logic.document.solutions]
    return model.target, dict.fromkeys([*of_logics, *(s for kind in kinds for s in model.solutions_of(kind))])


def test_the_package_stays_small():
    assert FILES
    assert sum(path.stat().st_size for path in FILES) <= MOST_BYTES
    assert {path.name for path in shipped.FOLDER.iterdir()} == {path.name for path in FILES}


def test_the_page_names_every_file():
    page = (Path(__file__).parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \| NVIDIA", page, flags=re.MULTILINE)) == {named(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_file_says_how_it_was_made(path):
    head = read_shipped(path).head
    assert head.name == named(path)
    assert all([head.device, head.driver, head.toolchain, head.date, head.lists, head.commands])
    logics = read_shipped(path).logics
    assert {logic.document.problem_type.name for logic in logics} == set(head.types)
    assert {logic.document.origin.device for logic in logics} == {head.device}


@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_solution_is_of_this_version_and_legal_on_its_device(path):
    target, solutions = solutions_in(path)
    assert read_shipped(path).head.is_of(target)
    for solution in solutions:
        assert mistake_in(solution) is None
        kernel = KERNELS[solution.kernel]
        assert list(kernel.rejections(solution.configuration, solution.type, target)) == []


def compiled(solutions, target):
    """The modules of these solutions, and reasons against their programs."""
    modules, reasons = {}, []
    for solution in solutions:
        kernel = KERNELS[solution.kernel]
        if TOOLCHAINS[kernel.language].unavailable():
            pytest.skip(TOOLCHAINS[kernel.language].unavailable())
        facts = []
        for module in kernel.modules(solution.configuration, solution.type):
            if module not in modules:
                modules[module] = TOOLCHAINS[module.language].compile(module, target)
            facts += modules[module].facts
        reasons += kernel.rejections_compiled(solution.configuration, facts, target)
    return modules, reasons


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_solution_of_each_family_compiles_for_its_device(path):
    target, solutions = solutions_in(path)
    of_families = {solution.kernel: solution for solution in solutions if solution.kernel != VENDOR}
    modules, reasons = compiled(of_families.values(), target)
    assert len(modules) >= len(of_families) > 1
    assert reasons == []


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_solution_compiles_for_its_device(path):
    target, solutions = solutions_in(path)
    _, reasons = compiled([solution for solution in solutions if solution.kernel != VENDOR], target)
    assert reasons == []


@pytest.mark.parametrize("name", MADE_ON)
def test_on_its_device_it_is_used_as_a_logic_of_ones_own(name):
    with tunesmith.load(device=gpu(MADE_ON[name])) as library:
        assert {kind.name for kind in library.problem_types} == TYPES - (HALF_TYPES if MADE_ON[name] is H100 else set())
        for kind in map(gemm_type_named, of(name).head.types):
            size = library.measured_sizes(kind)[0]
            assert library.select(*size, problem_type=kind).rule is Rule.EXACT
            predicted = library.select(*beside(size), problem_type=kind)
            assert predicted.rule is Rule.PREDICTED
            assert predicted.expected_seconds > 0
            assert predicted.doubt > 0


def test_without_its_model_the_nearest_sizes_decide(tmp_path, monkeypatch):
    found = of(HALVES)
    documents = [logic.document for logic in found.logics]
    shipped.write_shipped(tmp_path / f"{HALVES}{shipped.SUFFIX}", found.head, documents, None)
    monkeypatch.setattr("tunesmith.logic.shipped.FOLDER", tmp_path)
    with tunesmith.load(device=gpu(H100)) as library:
        assert library.select(4096, 24, 4096, problem_type="Cij_Aki_Bkj_B").rule is Rule.NEAREST


def test_float16_is_chosen_for_as_bfloat16_is_and_not_told_that_its_time_is_known():
    with tunesmith.load(device=gpu(H100)) as library:
        for operands in OPERANDS:
            measured = gemm_type_named(f"Cij_{operands}_B")
            for size in (library.measured_sizes(measured)[0], (4104, 136, 1000), (1, 4096, 777), BETWEEN):
                choice, like = (library.select(*size, problem_type=f"Cij_{operands}_{letter}") for letter in "HB")
                assert choice.rule is Rule.SIBLING
                assert choice.expected_seconds is choice.doubt is None
                assert choice.solution == replace(like.solution, type=gemm_type_named(f"Cij_{operands}_H"))
                assert "_B_" not in choice.name
        assert {kind.name for kind in library.problem_types} == TYPES - HALF_TYPES
    with tunesmith.load(device=gpu(H100), strict=True) as library, pytest.raises((UserError, ValueError)):
        library.select(*BETWEEN, problem_type="Cij_Aki_Bkj_H")


def type_for(library, dtype, shape, activation=None, beta=0.0, **more):
    """The type that a product of these arrays is made by, with the part that it computes. `shape` is M, N and K."""
    m, n, k = shape[-3:]
    arrays = {"a": np.zeros((*shape[:-3], m, k), dtype), "b": np.zeros((*shape[:-3], n, k), dtype).swapaxes(-1, -2)}
    views = {name: view_of_numpy(array) for name, array in (arrays | more).items()}
    call = checked(Arguments(**views), Scalars(activation, 1.0, beta, ""))
    match, _, to_copy = approach_to(library._any_launcher_on(""), call)
    assert to_copy == []
    return match


@pytest.mark.parametrize("target", [H100, H200], ids=lambda target: target.name)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_batch_has_a_type_of_its_own_or_one_that_is_as_fast(dtype, target):
    """In float16, an H200 has a file for single matrices and none for batches."""
    letter = LETTERS[dtype].upper()
    with tunesmith.load(device=gpu(target)) as library:
        batch = type_for(library, dtype, (8, 64, 128, 64))
        assert batch.type == gemm_type_named(f"Cijk_Alik_Bljk_{letter}")
        assert not batch.one_by_one
        assert type_for(library, dtype, (8, 1, 128, 64)).swapped, "a vector's result is read in rows"
        assert type_for(library, dtype, (1, 64, 128, 64)).type == gemm_type_named(f"Cij_Aki_Bkj_{letter}")


@pytest.mark.parametrize("target", [H100, H200], ids=lambda target: target.name)
def test_a_strict_library_takes_no_stand_in(target):
    with tunesmith.load(device=gpu(target), strict=True) as library:
        assert not type_for(library, "bfloat16", (8, 64, 128, 64)).one_by_one
    if target is H200:  # An H100 has no type for float16 at all.
        with tunesmith.load(device=gpu(target), strict=True) as library:
            assert type_for(library, "float16", (8, 64, 128, 64)).one_by_one


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_one_call_of_the_vendors_comes_before_its_product_with_steps_after_it(dtype):
    """The package's logic has no epilogue. Where it chooses the vendor's library, that does all in one call."""
    letter, vector, matrix = LETTERS[dtype].upper(), np.zeros(4096, dtype), np.zeros((512, 4096), dtype)
    with tunesmith.load(device=gpu(H100)) as library:
        asked = (512, 4096, 4096)
        assert library.select(4096, 512, 4096, problem_type=f"Cij_Aki_Bkj_{letter}").solution.kernel == VENDOR
        assert type_for(library, dtype, asked).type == gemm_type_named(f"Cij_Aki_Bkj_{letter}")
        for name, more in {
            "B_Bias": {"bias": vector},
            "B": {"c": matrix, "beta": 1.0},
            "_Relu": {"activation": "relu"},
        }.items():
            found = type_for(library, dtype, asked, **more)
            assert found.type == gemm_type_named(f"Cij_Aki_Bkj_{letter}{name}")


def test_every_solution_for_bfloat16_is_legal_for_float16():
    (path,) = (path for path in FILES if named(path) == HALVES)
    target, solutions = solutions_in(path)
    families = {}
    for solution in solutions:
        of_half = replace(solution, type=equally_fast(solution.type))
        assert mistake_in(of_half) is None
        assert list(KERNELS[of_half.kernel].rejections(of_half.configuration, of_half.type, target)) == []
        families[of_half.kernel] = of_half
    _, reasons = compiled([solution for solution in families.values() if solution.kernel != VENDOR], target)
    assert reasons == []


def test_another_architecture_gets_the_vendors_blas():
    ampere = replace(known_target("sm_80"), selector="CUDA:0")
    with tunesmith.load(device=gpu(ampere)) as library:
        assert library.select(4096, 24, 4096, problem_type="Cij_Aki_Bkj_B").rule is Rule.VENDOR
    with tunesmith.load(device=gpu(ampere), strict=True) as library, pytest.raises((UserError, ValueError)):
        library.select(4096, 24, 4096, problem_type="Cij_Aki_Bkj_B")


def test_other_data_types_get_the_vendors_blas():
    with tunesmith.load(device=gpu(H100)) as library:
        assert library.select(512, 512, 512, problem_type="Cij_Aki_Bkj_HB").rule is Rule.VENDOR


def write_own(folder, name="Cij_Aki_Bkj_B"):
    """A folder with a logic of one type, which has a single solution and size."""
    document = next(
        logic.document for logic in of("nvidia-h100-bf16").logics if logic.document.problem_type.name == "Cij_Aki_Bkj_B"
    )
    entry = next(entry for entry in document.solutions if entry.solution.kernel == VENDOR)
    kind = gemm_type_named(name)
    entry = replace(entry, solution=replace(entry.solution, type=kind))
    row = replace(document.rows[0], sizes=(48, 48, 48), solution=0, others={}, ties=())
    mine = replace(document, problem_type=kind, solutions=(entry,), rows=(row,), fallback=0, regret=None)
    write_logic(mine, folder / "own" / "logic.yaml")
    return folder / "own"


@pytest.fixture
def own_folder(tmp_path):
    return write_own(tmp_path)


@pytest.mark.filterwarnings("ignore:the logic was made with driver")
@pytest.mark.parametrize("name", ["Cij_Aki_Bkj_HB", "Cij_Aki_Bkj_BB"])
def test_ones_own_type_with_beta_comes_before_the_packages_without(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TUNESMITH_LOGIC", str(write_own(tmp_path, name)))
    dtype = {"H": "float16", "B": "bfloat16"}[name[-2]]
    with tunesmith.load(device=gpu(H100)) as library:
        for shape in ((48, 48, 48), (4096, 4096, 4096)):
            assert type_for(library, dtype, shape).type.name == name


@pytest.mark.filterwarnings("ignore:the logic was made with driver")
def test_ones_own_float16_goes_by_its_own_measurements(tmp_path, monkeypatch):
    monkeypatch.setenv("TUNESMITH_LOGIC", str(write_own(tmp_path, "Cij_Aki_Bkj_H")))
    with tunesmith.load(device=gpu(H100)) as library:
        assert library.select(*BETWEEN, problem_type="Cij_Aki_Bkj_H").rule is Rule.NEAREST
        assert library.select(*BETWEEN, problem_type="Cij_Aik_Bkj_H").rule is Rule.SIBLING


@pytest.mark.filterwarnings("ignore:the logic was made with driver")
def test_no_operand_is_copied_on_a_gpu_for_ones_own_layout_where_the_packages_needs_no_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("TUNESMITH_LOGIC", str(write_own(tmp_path, "Cij_Aki_Bkj_H")))
    arrays = {name: view_of_numpy(np.zeros((4096, 4096), np.float16)) for name in "ab"}
    on_gpu = Arguments(**{name: replace(view, on_host=False) for name, view in arrays.items()})
    with tunesmith.load(device=gpu(H100)) as library:
        match, _, _ = approach_to(library._any_launcher_on(""), checked(on_gpu, Scalars(None, 1.0, 0.0, "")))
    assert match.copied_bytes == 0
    assert match.type.name == "Cij_Aik_Bkj_H"


@pytest.mark.filterwarnings("ignore:the logic was made with driver")
def test_ones_own_logic_comes_before_the_package(own_folder, monkeypatch):
    monkeypatch.setenv("TUNESMITH_LOGIC", str(own_folder))
    with tunesmith.load(device=gpu(H100)) as library:
        mine = gemm_type_named("Cij_Aki_Bkj_B")
        assert [len(library.measured_sizes(kind)) == 1 for kind in library.problem_types] == [
            kind == mine for kind in library.problem_types
        ]
        assert {kind.name for kind in library.problem_types} == TYPES - HALF_TYPES
        assert library.select(4096, 24, 4096, problem_type=mine).solution.kernel == VENDOR
        assert library.select(4096, 24, 4096, problem_type="Cij_Aik_Bkj_B").rule is Rule.PREDICTED


@pytest.mark.filterwarnings("ignore:the logic was made with driver")
def test_a_named_folder_is_all_that_is_loaded(own_folder):
    with tunesmith.load(own_folder, device=gpu(H100)) as library:
        assert [kind.name for kind in library.problem_types] == ["Cij_Aki_Bkj_B"]
        assert library.select(4096, 24, 4096, problem_type="Cij_Aik_Bkj_B").rule is Rule.VENDOR


def test_a_setting_that_names_nothing_is_a_mistake(tmp_path, monkeypatch):
    monkeypatch.setenv("TUNESMITH_LOGIC", str(tmp_path))
    with pytest.raises(UserError, match="holds no library logic"):
        tunesmith.load()


def test_a_damaged_file_costs_a_warning(tmp_path, monkeypatch):
    for path in FILES:
        shutil.copy(path, tmp_path / path.name)
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-40])
    monkeypatch.setattr("tunesmith.logic.shipped.FOLDER", tmp_path)
    with tunesmith.load(device=gpu(H100)) as library:
        with pytest.warns(UserWarning, match=r"json\.gz: is damaged \(.*\); install tunesmith again; the "):
            choice = library.select(4096, 24, 4096, problem_type="Cij_Aki_Bkj_B")
        assert choice.rule is Rule.VENDOR


def test_matmul_without_a_library_uses_the_same_logic(own_folder, monkeypatch):
    monkeypatch.setenv("TUNESMITH_LOGIC", str(own_folder))
    assert shared_library() is shared_library()
    with shared_library() as library:
        assert library._ships
        assert [logic.document.problem_type.name for _, logic in library._logics] == ["Cij_Aki_Bkj_B"]
