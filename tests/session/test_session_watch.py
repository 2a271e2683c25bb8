"""After a logic is written it is loaded again and its launches are watched; whatever is wrong with it is said."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

import gpu_fakes
from library_fakes import ORIGIN, logic, solution
from tunesmith import session
from tunesmith.bench import Spawner
from tunesmith.devices import APIS
from tunesmith.library import Library
from tunesmith.library import logic_check_process as watcher
from tunesmith.library.logic_check_process import mistakes_in
from tunesmith.logic import Document, Logic, NamedSolution, SizeRow, write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate
from tunesmith.session.frame import logic as frame_logic
from tunesmith.session.frame.logic_check import check_logic, started_checker
from tuning_runs import fake_file

TYPES = [
    gemm_type(precision, transpose_a=a, transpose_b=b, batched=batched, use_beta=beta)
    for (precision, a, b, batched, beta) in itertools.product("sd", *[[False, True]] * 4)
]
NN = gemm_type()


def written(document, folder):
    path = folder / "logic.yaml"
    write_logic(document, path)
    return path


def broken(fault, folder):
    """A logic of three sizes and two solutions; the one that won the middle size has this fault."""
    made = logic(NN, [{}, {"FakeFault": fault}], {(16, 16, 16): 0, (20, 20, 20): 1, (24, 24, 24): 0})
    return written(made.document, folder)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_a_sound_logic_has_nothing_said_about_it_whatever_its_type(kind, tmp_path):
    sizes = (17, 9, 3, 5) if kind.fields.flag("Batched") else (17, 9, 5)
    assert list(mistakes_in(written(logic(kind, rows={sizes: 0}).document, tmp_path))) == []


@pytest.mark.parametrize(
    "kind",
    [
        gemm_type("i8"),
        gemm_type("b", bias=True, use_beta=False),
        gemm_type("s", bias=True, activation="silu"),
        gemm_type("f8", scaled=True),
        gemm_type("s", tf32=True),
    ],
    ids=lambda kind: kind.name,
)
def test_nothing_is_said_of_types_of_a_gpu_either(kind, tmp_path, monkeypatch):
    """Integers, epilogues, and what only torch tensors ask for."""

    def load(path, device, launched, floor):
        assert not floor, "the check is of the logic's own solutions"
        assert device is None, "the library finds the logic's device"
        return Library([(path, Logic.load(path))], device=gpu_fakes.HostGpu(), launched=launched)

    monkeypatch.setattr(watcher, "load", load)
    assert list(mistakes_in(written(gpu_fakes.logic(kind).document, tmp_path))) == []


def test_the_logic_of_a_part_of_a_cpu_is_launched_on_the_whole(tmp_path, monkeypatch):
    """No device has the name of a part, so the library would choose by a policy instead."""
    asked = []

    def load(path, device, **options):
        asked.append(device)
        return watched(path, device=device, **options)

    watched, (found, *_) = watcher.load, APIS["fake"].find()
    monkeypatch.setattr(watcher, "load", load)
    made = logic(NN, rows={(17, 9, 5): 0}).document
    part = replace(made.origin, device=found.target.part("1 of 2 cores").name)
    assert list(mistakes_in(written(replace(made, origin=part), tmp_path))) == []
    assert asked == [found.target.selector]


@pytest.mark.parametrize("apart", [20, 40])
@pytest.mark.parametrize("kind", TYPES[:8], ids=lambda kind: kind.name)
def test_a_size_with_leading_dimensions_is_launched_too(kind, apart, tmp_path):
    """Beyond some distance between rows the library copies them, and launches with natural ones."""
    sizes = (17, 9, 3, 5) if kind.fields.flag("Batched") else (17, 9, 5)
    row = SizeRow(sizes, (apart,) * 4, 1, Estimate(1e-3, 1e-3, 1e-3, 7), math.prod(sizes) * 2e-6)
    named = (NamedSolution("S0", solution(kind)), NamedSolution("S1", solution(kind, VectorWidth=2)))
    assert list(mistakes_in(written(Document(ORIGIN, kind, named, (row,), 0), tmp_path))) == []


def test_a_solution_that_the_library_passes_over_is_told(tmp_path):
    made = logic(NN, [{}, {"WorkGroup": (64, 32, 1)}], {(16, 16, 16): 0, (20, 20, 20): 1})
    assert list(mistakes_in(written(made.document, tmp_path))) == [
        "logic.yaml: at 20x20x20 the library launches S0 for 20x20x20, the logic says S1"
    ]


@pytest.mark.parametrize("fault", ["wrong value", "unwritten element", "skip the last K"])
def test_a_wrong_result_is_told_with_its_solution(fault, tmp_path):
    assert list(mistakes_in(broken(fault, tmp_path))) == [
        "logic.yaml: at 20x20x20 the library's launch of S1 gives a wrong result"
    ]


def test_a_launch_that_fails_is_told(tmp_path):
    (sentence,) = mistakes_in(broken("launch error", tmp_path))
    assert "invalid launch" in sentence


def test_a_crash_and_a_hang_do_not_take_the_run_with_them(tmp_path):
    with Spawner({}) as spawner:
        (crashed,) = check_logic([broken("segfault", tmp_path)], spawner)
        assert crashed.startswith("launching what the logic names ended with SIGSEGV")
        assert check_logic([broken("hang", tmp_path)], spawner, seconds=3.0) == [
            "launching what the logic names gave no result for 3 s"
        ]
        assert check_logic([broken("none", tmp_path)], spawner) == []


def test_several_processes_share_the_solutions_of_each_file(tmp_path):
    """What one process finds is told, although another crashes: it has the second file's first solution."""
    wrong = broken("wrong value", tmp_path / "wrong")
    crashing = written(logic(NN, [{"FakeFault": "segfault"}], {(16, 16, 16): 0}).document, tmp_path / "crashing")
    for files, found in (([wrong], []), ([wrong, crashing], ["launching what the logic names ended with SIGSEGV"])):
        with Spawner({}) as spawner:
            sentences = check_logic(files, spawner, checkers=[started_checker(spawner) for _ in range(2)])
        mistake = "logic.yaml: at 20x20x20 the library's launch of S1 gives a wrong result"
        assert mistake in sentences
        assert [sentence.partition(":")[0] for sentence in sentences if sentence != mistake] == found


TUNING = """
GlobalParameters: {CompileProcesses: 1, WarmUpSeconds: 0.01, SamplingSeconds: 0.02}
BenchmarkProblems:
  - - DataType: s
    - ForkParameters:
        - KernelLanguage: [fake]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [20, 20, 20]
"""


def test_a_run_tells_when_the_logic_that_it_wrote_is_wrong(tmp_path, monkeypatch):
    """As if the way from the winner to the launch had lost a parameter."""

    def spoilt(document, path):
        named = document.solutions[0]
        config = Configuration({**named.solution.configuration, "FakeFault": "wrong value"})
        return write_logic(
            replace(document, solutions=(replace(named, solution=replace(named.solution, configuration=config)),)), path
        )

    monkeypatch.setattr(frame_logic, "write_logic", spoilt)
    done = session.tune(fake_file(tmp_path, TUNING), tmp_path / "run", device="fake:GPU:8")
    (sentence,) = done.look_at
    assert "at 20x20x20" in sentence
    assert "gives a wrong result" in sentence
    unchecked = session.tune(
        fake_file(tmp_path, TUNING), tmp_path / "unchecked", device="fake:GPU:8", checks_logic=False
    )
    assert unchecked.look_at == []
