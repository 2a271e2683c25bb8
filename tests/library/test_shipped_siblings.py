"""Which device and type is served by which file of the package, if it was made for another device or type."""

from __future__ import annotations

import gzip
import itertools
import warnings
from dataclasses import replace

import pytest

import tunesmith
from packaged_logic import (
    BETWEEN,
    FILES,
    H100,
    H200,
    HALVES,
    MADE_ON,
    MEASURED,
    OPERANDS,
    TYPES,
    beside,
    gpu,
    named,
    without_settings,
)
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.library.launch._predicted import PredictedChoices
from tunesmith.logic import Rule, read_shipped, shipped
from tunesmith.logic.shipped import write_shipped
from tunesmith.problems.gemm import gemm_type_named
from tunesmith.records import Problem

without_a_setting = pytest.fixture(autouse=True)(without_settings)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_a_sibling_is_never_told_that_its_time_is_known(kind):
    """A device for which there is no file gets the choices of the first file that has the type; at a size that was not
    measured, the vendor's library may be preferred."""
    other = replace(H200, name="NVIDIA GH200 480GB")
    first = next(path for path, head in shipped.shipped_for(other)[0].items() if kind in head.types)
    with tunesmith.load(device=gpu(other)) as library, tunesmith.load(device=gpu(MADE_ON[named(first)])) as own:
        size = library.measured_sizes(gemm_type_named(kind))[0]
        for sizes in (size, beside(size)):
            choice, where_made = (lib.select(*sizes, problem_type=kind) for lib in (library, own))
            assert choice.rule is Rule.SIBLING
            assert choice.expected_seconds is choice.doubt is None
            assert choice.solution == where_made.solution or (sizes != size and choice.solution.kernel == VENDOR)


def test_a_siblings_file_is_not_read_where_ones_own_has_all_of_its_types(tmp_path, monkeypatch):
    """A damaged rest of the sibling's file would be told."""
    for path in FILES:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    head = gzip.decompress((tmp_path / f"{HALVES}{shipped.SUFFIX}").read_bytes()).split(b"\n")[0]
    (tmp_path / f"{HALVES}{shipped.SUFFIX}").write_bytes(gzip.compress(head + b"\nno JSON\n"))
    monkeypatch.setattr("tunesmith.logic.shipped.FOLDER", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tunesmith.load(device=gpu(H200)) as library:
            assert library.select(*MEASURED, problem_type="Cij_Aki_Bkj_B").rule in {Rule.EXACT, Rule.PREDICTED}
    with pytest.warns(UserWarning, match=HALVES), tunesmith.load(device=gpu(H100)) as library:
        library.select(*MEASURED, problem_type="Cij_Aki_Bkj_B")


def names_of(library):
    """The names of the files, by type, whose logic a library has loaded."""
    launcher = library._any_launcher_on("")
    return {kind.name: logic.document.origin.device for kind, logic in launcher.logics.items()}, launcher


def test_a_sibling_of_ones_own_comes_before_a_siblings_of_the_type():
    """float16 goes by the device's own file for bfloat16, not by another device's file for float16."""
    with tunesmith.load(device=gpu(H100)) as library:
        devices, launcher = names_of(library)
        for operands in OPERANDS:
            assert devices[f"Cij_{operands}_B"] == H100.name
            assert f"Cij_{operands}_H" not in devices
            half = gemm_type_named(f"Cij_{operands}_H")
            assert launcher.stand_ins[half] == gemm_type_named(f"Cij_{operands}_B")
        assert devices["Cij_Aki_Bkj_S_MX"] == H200.name


@pytest.mark.parametrize("target", [H200, replace(H200, name="NVIDIA GH200 480GB")], ids=lambda target: target.name)
def test_the_types_own_file_is_used_where_a_type_that_is_as_fast_has_no_better_one(target):
    with tunesmith.load(device=gpu(target)) as library:
        devices, launcher = names_of(library)
        for operands in OPERANDS:
            assert devices[f"Cij_{operands}_H"] == H200.name
        batches = {gemm_type_named(name) for name in TYPES if name.startswith("Cijk_")}
        assert set(launcher.stand_ins.values()) == batches, "only batches have no file in float16"
        choice = library.select(*BETWEEN, problem_type="Cij_Aki_Bkj_H")
        assert choice.rule is (Rule.PREDICTED if target is H200 else Rule.SIBLING)


def test_a_damaged_file_of_ones_own_does_not_hide_a_siblings(tmp_path, monkeypatch):
    for path in FILES:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    damaged = tmp_path / f"{HALVES}{shipped.SUFFIX}"
    head = gzip.decompress(damaged.read_bytes()).split(b"\n")[0]
    damaged.write_bytes(gzip.compress(head + b"\nno JSON\n"))
    monkeypatch.setattr("tunesmith.logic.shipped.FOLDER", tmp_path)
    with tunesmith.load(device=gpu(H100)) as library:
        with pytest.warns(UserWarning, match=HALVES):
            devices, _ = names_of(library)
        for operands, letter in itertools.product(OPERANDS, "BH"):
            assert devices[f"Cij_{operands}_{letter}"] == H200.name


def test_a_smaller_sibling_gets_what_is_legal_there():
    """An H100 PCIe has 114 multiprocessors, so no grid of 132 work-groups that wait for each other: such a choice is
    launched with another grid."""
    small = replace(H100, name="NVIDIA H100 PCIe", compute_units=114)
    with tunesmith.load(device=gpu(small)) as library:
        launcher = library._any_launcher_on("")
        for kind in library.problem_types:
            for sizes in library.measured_sizes(kind):
                choice = library.select(*sizes, problem_type=kind)
                assert choice.rule is Rule.SIBLING
                problem = Problem(kind, sizes)
                solutions = launcher._stream_k.solutions(choice, problem)
                launched = next(solution for solution in solutions if not launcher._refusal(solution, problem))
                kernel = KERNELS[launched.kernel]
                assert kernel is KERNELS[choice.solution.kernel]
                assert not list(kernel.rejections(launched.configuration, kind, small))
                assert not list(kernel.rejections_for(launched.configuration, problem, small))


@pytest.mark.parametrize(
    ("target", "name", "stands_in"),
    [
        (H100, "Cij_Aki_Bkj_B", False),
        (H100, "Cij_Aki_Bkj_H", True),
        (H100, "Cij_Aki_Bkj_S_MX", True),
        (H200, "Cij_Aki_Bkj_H", False),
    ],
)
def test_a_choice_that_nobody_measured_is_asked_for_as_one(monkeypatch, target, name, stands_in):
    """It is then made with more caution, by the plan for the problem itself."""
    asked, candidates = [], PredictedChoices.candidates
    monkeypatch.setattr(
        PredictedChoices, "candidates", lambda self, *about: asked.append(about[2:]) or candidates(self, *about)
    )
    with tunesmith.load(device=gpu(target)) as library:
        library.select(*BETWEEN, problem_type=name)
    assert set(asked) == {(Problem(gemm_type_named(name), BETWEEN),) if stands_in else ()}


def test_of_a_siblings_file_only_the_types_that_nothing_of_ones_own_serves_are_used(tmp_path, monkeypatch):
    halves, tf32 = (read_shipped(path) for path in FILES if named(path) in ("nvidia-h200-fp16", "nvidia-h200-tf32"))
    documents = [logic.document for logic in (*halves.logics, *tf32.logics)]
    head = replace(halves.head, name="mixed", types=(*halves.head.types, *tf32.head.types))
    write_shipped(tmp_path / f"mixed{shipped.SUFFIX}", head, documents, None)
    own = next(path for path in FILES if named(path) == HALVES)
    (tmp_path / own.name).write_bytes(own.read_bytes())
    monkeypatch.setattr("tunesmith.logic.shipped.FOLDER", tmp_path)
    with tunesmith.load(device=gpu(H100)) as library:
        devices, _ = names_of(library)
        assert {name for name, device in devices.items() if device == H200.name} == set(tf32.head.types)
