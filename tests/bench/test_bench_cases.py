"""Cases have the same inputs and references, whether they are made when they are needed or ahead."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from bench_jobs import OPERATION, problem
from tunesmith.bench import Batch, Race, run
from tunesmith.bench.run import PROBLEMS_AHEAD, BatchRun
from tunesmith.bench.verification import cases as _cases
from tunesmith.bench.verification.cases import Cases
from tunesmith.problems import storage_bytes
from tunesmith.problems.gemm import GemmOperation


@pytest.fixture
def makers(monkeypatch):
    """Names of the threads that made references, in order."""
    names, reference = [], GemmOperation.reference

    def noted(self, problem, inputs):
        names.append(threading.current_thread().name)
        return reference(self, problem, inputs)

    monkeypatch.setattr(GemmOperation, "reference", noted)
    return names


def test_what_was_begun_ahead_holds_the_same_numbers_and_is_made_once(makers):
    checks = OPERATION.checks(problem(20, 30, 40))
    usual, ahead = Cases(3), Cases(3)
    expected = [usual.get(check) for check in checks]
    ahead.ahead(checks)
    ahead.ahead(checks)
    got = [ahead.get(check) for check in checks]
    ahead.ahead(checks)
    for case, other in zip(expected, got, strict=True):
        assert all(np.array_equal(case.inputs[name], other.inputs[name], equal_nan=True) for name in case.inputs)
        assert np.array_equal(case.expected["D"].value, other.expected["D"].value)
    main = threading.current_thread().name
    assert [name == main for name in makers] == [True] * 2 + [False] * 2


def test_both_checks_of_a_problem_stay_however_little_memory_there_is(makers, monkeypatch):
    """Otherwise both cases would be made again for every candidate."""
    monkeypatch.setattr(_cases, "_KEPT_SHARE", 0.0)
    cases, checks = Cases(0), OPERATION.checks(problem(20, 30, 40))
    for check in (*checks, *checks):
        cases.get(check)
    assert len(makers) == 2
    cases.get(problem(16))
    assert cases.kept(checks[0]) is None


@pytest.mark.parametrize(("missing", "kept"), [(0, [False, True, True, True]), (1, [False, False, True, True])])
def test_cases_fill_at_most_a_quarter_of_the_memory_and_the_longest_unused_goes_first(missing, kept, monkeypatch):
    """The quarter has room for three cases, or for a byte less."""
    problems = [problem(16, beta=beta) for beta in (0.25, 0.5, 0.75, 1.0)]
    size = Cases(0).get(problems[0]).size
    memory = {"SC_PAGE_SIZE": 2, "SC_PHYS_PAGES": 2 * (3 * size - missing)}
    monkeypatch.setattr(_cases, "os", SimpleNamespace(sysconf=memory.get, cpu_count=lambda: 1))
    cases = Cases(0)
    for index in (1, 0, 1, 2, 3):
        cases.get(problems[index])
    assert [cases.kept(each) is not None for each in problems] == kept


def test_a_failure_in_making_ahead_is_raised_when_the_case_is_asked_for(monkeypatch):
    def fails(self, problem, random):
        raise MemoryError("no room")

    cases = Cases(0)
    monkeypatch.setattr(GemmOperation, "inputs", fails)
    cases.ahead([problem()])
    with pytest.raises(MemoryError, match="no room"):
        cases.get(problem())
    monkeypatch.undo()
    assert cases.get(problem()).expected


def test_what_nobody_asked_for_is_forgotten_when_others_are_begun(makers):
    cases = Cases(0)
    cases.ahead([problem(16)])
    cases.ahead([problem(24)])
    cases.get(problem(24))
    assert cases._pending == {}
    assert cases.kept(problem(16)) is None


def test_what_is_made_ahead_has_room_beside_what_is_kept(monkeypatch):
    """The quarter has room for the operands of two of three problems that are asked for."""
    problems = [problem(16, beta=beta) for beta in (0.25, 0.5, 0.75, 1.0)]
    cases = Cases(0)
    each = sum(map(storage_bytes, OPERATION.operands(problems[1])))
    memory = {"SC_PAGE_SIZE": 4, "SC_PHYS_PAGES": cases.get(problems[0]).size + 2 * each}
    monkeypatch.setattr(_cases, "os", SimpleNamespace(sysconf=memory.get))
    cases.ahead(problems[1:])
    assert list(cases._pending) == [ahead.to_json() for ahead in problems[1:3]]
    memory["SC_PHYS_PAGES"] = 1
    cases.ahead(problems[3:])
    assert list(cases._pending) == [problems[3].to_json()], "the first is made however little room there is"


def test_cases_of_problems_that_are_done_make_room_for_those_ahead(monkeypatch):
    problems = [problem(16, beta=beta) for beta in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)]
    cases = Cases(0)
    size = sum(cases.get(each).size for each in problems[:4])
    memory = {"SC_PAGE_SIZE": 4, "SC_PHYS_PAGES": size}
    monkeypatch.setattr(_cases, "os", SimpleNamespace(sysconf=memory.get))
    cases.ahead(problems[4:])
    assert list(cases._pending) == [ahead.to_json() for ahead in problems[4:]]
    assert cases.kept(problems[0]) is None
    assert all(cases.kept(each) for each in problems[2:4])


def test_what_was_begun_is_not_begun_again_nor_forgotten_when_part_of_it_is_asked_for_once_more(monkeypatch):
    made = []
    monkeypatch.setattr(Cases, "_make", lambda self, problem: made.append(problem))
    cases = Cases(0)
    for problems in ([problem(16), problem(24)], [problem(24)], [problem(24), problem(16)]):
        cases.ahead(problems)
    for pending in cases._pending.values():
        pending.result()
    assert sorted(each.sizes[0] for each in made) == [16, 24]
    assert len(cases._pending) == 2


def test_a_run_names_the_checks_of_the_next_three_problems_in_the_order_of_its_jobs(monkeypatch):
    monkeypatch.setattr(run, "JobDetails", lambda job, target, number: SimpleNamespace(job=job))
    current, *others = (problem(size) for size in (16, 24, 32, 40, 48))
    jobs = [SimpleNamespace(problem=each) for _ in range(2) for each in (current, *others)]
    shared = []
    tools = SimpleNamespace(share=shared.extend, target=None)
    batch = SimpleNamespace(races=[SimpleNamespace(jobs=jobs, rivals={})], ahead=(), racing=False)
    batch_run = BatchRun(tools, batch)
    expected = [check for each in others[:PROBLEMS_AHEAD] for check in OPERATION.checks(each)]
    assert list(batch_run._ahead(current)) == shared == expected
    assert len(others) > PROBLEMS_AHEAD
    assert batch_run._ahead(others[-1]) == ()


def test_a_run_also_names_the_checks_of_the_batch_that_comes_next(monkeypatch):
    monkeypatch.setattr(run, "JobDetails", lambda job, target, number: SimpleNamespace(job=job))
    here, following = problem(16), problem(24)
    jobs = (SimpleNamespace(problem=here),)
    tools = SimpleNamespace(share=lambda checks: None, target=None)
    batch_run = BatchRun(tools, Batch((Race(jobs),), ahead=(here, following)))
    assert batch_run._ahead(here) == OPERATION.checks(following)


def test_the_next_problems_cases_stay_if_they_are_kept(monkeypatch):
    """The quarter is full. The oldest case is asked for with one that is not made yet."""
    problems = [problem(16, beta=beta) for beta in (0.25, 0.5, 0.75, 1.0, 1.25)]
    cases = Cases(0)
    memory = {"SC_PAGE_SIZE": 4, "SC_PHYS_PAGES": sum(cases.get(each).size for each in problems[:4])}
    monkeypatch.setattr(_cases, "os", SimpleNamespace(sysconf=memory.get))
    cases.ahead([problems[0], problems[4]])
    assert list(cases._pending) == [problems[4].to_json()]
    assert [cases.kept(each) is not None for each in problems[:4]] == [True, False, True, True]


def test_no_case_is_dropped_for_one_that_is_not_begun(monkeypatch):
    """The quarter has room for four cases, and none for the large one."""
    problems = [problem(16, beta=beta) for beta in (0.25, 0.5, 0.75, 1.0, 1.25)]
    cases = Cases(0)
    memory = {"SC_PAGE_SIZE": 4, "SC_PHYS_PAGES": sum(cases.get(each).size for each in problems[:4])}
    monkeypatch.setattr(_cases, "os", SimpleNamespace(sysconf=memory.get))
    large = problem(200)
    assert sum(map(storage_bytes, OPERATION.operands(large))) > memory["SC_PHYS_PAGES"]
    cases.ahead([problems[4], large])
    assert list(cases._pending) == [problems[4].to_json()]
    assert [cases.kept(each) is not None for each in problems[:4]] == [False, True, True, True]


def test_a_run_names_the_checks_of_problems_that_were_overtaken_first(monkeypatch):
    """Those that are still compiled while a later one is measured."""
    monkeypatch.setattr(run, "JobDetails", lambda job, target, number: SimpleNamespace(job=job))
    first, overtaken, current, following = (problem(size) for size in (16, 24, 32, 40))
    jobs = [SimpleNamespace(problem=each) for each in (first, overtaken, current, following)]
    tools = SimpleNamespace(share=lambda checks: None, target=None)
    batch_run = BatchRun(tools, SimpleNamespace(races=[SimpleNamespace(jobs=jobs, rivals={})], ahead=(), racing=False))
    batch_run._building = [SimpleNamespace(job=jobs[1]), SimpleNamespace(job=jobs[3])]
    assert batch_run._ahead(current) == (*OPERATION.checks(overtaken), *OPERATION.checks(following))
