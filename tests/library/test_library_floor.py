"""The floor under products on a CPU: when the BLAS is the choice, with costs that are made up."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from opencl_runner import opencl_device
from tunesmith.devices import LaunchError
from tunesmith.devices.opencl.device import _Prepared
from tunesmith.kernels import KERNELS
from tunesmith.library.gemm import _host_costs
from tunesmith.library.gemm._floor import DOUBT_OF_CALLS, DOUBT_OF_DISTANCE, Floor
from tunesmith.library.launch._host_launch import LAUNCHES
from tunesmith.library.launch._launcher import Launcher
from tunesmith.logic import Choice, Document, Logic, NamedSolution, Origin, Rule, SizeRow
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate, Problem, Solution
from tunesmith.toolchains import blas as blas_module

NN = gemm_type("s", transpose_b=False)
TARGET = replace(known_target("sm_90"), api="OpenCL", kind="CPU", name="a CPU", architecture="cpu")
MEASURED = (256, 256, 256)


class MadeUp:
    """Costs that are made up, and the problems for which the time of the BLAS and of a kernel was asked. A kernel takes
    as long as the tests' logic says, unless `kernel` is given."""

    def __init__(self, launch, blas, kernel=1e-3):
        self._launch, self._blas, self._kernel = launch, blas, kernel
        self.asked: list[Problem] = []
        self.launched: list[Problem] = []

    def launch(self):
        return self._launch

    def blas(self, problem):
        self.asked.append(problem)
        return self._blas

    def kernel(self, problem, choice):
        self.launched.append(problem)
        return self._kernel


def solution(kind=NN, family="RegisterGemm"):
    return Solution(kind, family, KERNELS[family].space(kind, TARGET).defaults)


def logic(*rows, target=TARGET):
    """A logic whose first solution is a kernel and whose second is the BLAS."""
    named = NamedSolution("own", solution()), NamedSolution("blas", solution(family="VendorBlas"))
    origin = Origin.of(target, "its own", "0.1.0", "2026-11-20T12:00:00Z")
    return Logic(Document(origin, NN, named, rows or (row(),), 0))


def row(sizes=MEASURED, own=1e-3, blas=None, wins=0, high=1.0):
    seconds = [own, blas]
    others = {index: time for index, time in enumerate(seconds) if index != wins and time is not None}
    winner = seconds[wins]
    return SizeRow(sizes, (), wins, Estimate(winner, winner, high * winner, 7), 1.0, others)


def chosen(made, costs, *sizes, scalars=None):
    problem = Problem(NN, sizes, (), Configuration(scalars or {"alpha": 1.0, "beta": 0.0}))
    return Floor(TARGET, {NN: made}, costs).choice(problem, made.choose(sizes))


@pytest.mark.parametrize(("launch", "blas", "is_blas"), [(0, 1.1e-3, False), (2e-4, 1.1e-3, True), (0, 0.9e-3, True)])
def test_a_kernel_is_launched_if_it_is_faster_with_the_cost_of_its_launch(launch, blas, is_blas):
    """The kernel takes 1.0 ms on the device."""
    choice = chosen(logic(), MadeUp(launch, blas), *MEASURED)
    assert (choice is not None) is is_blas
    if choice:
        assert (choice.rule, choice.solution.kernel, choice.expected_seconds) == (Rule.VENDOR, "VendorBlas", blas)


@pytest.mark.parametrize(("high", "is_blas"), [(1.09, False), (1.11, True)])
@pytest.mark.parametrize(("sizes", "distance"), [(MEASURED, 0), ((128, 256, 256), 1)])
def test_a_kernel_must_be_faster_at_the_upper_end_of_its_interval(high, is_blas, sizes, distance):
    """In the logic, the BLAS takes 1.1 times as long as the doubt of the distance makes the kernel take."""
    blas = 1.1e-3 * math.exp(DOUBT_OF_DISTANCE * distance)
    made = logic(row(high=high, blas=blas), row((16, 16, 16), own=1e-6))
    assert (chosen(made, MadeUp(0, 99.0), *sizes) is not None) is is_blas


@pytest.mark.parametrize(("kernel", "is_blas"), [(1.09e-3, False), (1.11e-3, True)])
@pytest.mark.parametrize(("sizes", "distance"), [(MEASURED, 0), ((128, 256, 256), 1)])
def test_a_kernel_that_is_timed_here_must_be_faster_with_all_doubts(kernel, is_blas, sizes, distance):
    """Whatever the logic says of it: 1.0 ms here, on a day when all took longer or shorter."""
    made = logic(row(), row((16, 16, 16), own=1e-6))
    launch, halves = 1e-4, 2**distance
    blas = 1.1e-3 * math.exp(DOUBT_OF_CALLS + DOUBT_OF_DISTANCE * distance) + launch * halves
    costs = MadeUp(launch, blas, kernel)
    assert (chosen(made, costs, *sizes) is not None) is is_blas
    assert [problem.sizes for problem in costs.launched] == [MEASURED]


def test_a_kernel_is_never_chosen_untimed_where_the_logic_has_no_time_of_the_blas():
    """At the measured size the launch makes it slower than the BLAS, at eight times the work it does not."""
    made = logic(row(high=1.5))
    for size in (256, 512):
        costs = MadeUp(1e-3, 1.7e-3, kernel=99.0)
        assert chosen(made, costs, size, size, size) is not None
        assert len(costs.launched) == (size == 512)


@pytest.mark.parametrize(("blas", "is_timed"), [(0.7e-3, False), (0.8e-3, True)])
def test_a_kernel_that_was_much_slower_when_it_was_tuned_is_not_timed(blas, is_timed):
    """It took 1.0 ms on the day of its tuning, and takes 0.5 ms today."""
    costs = MadeUp(0, blas, kernel=0.5e-3)
    assert (chosen(logic(), costs, *MEASURED) is None) is is_timed
    assert len(costs.launched) == is_timed


def test_a_kernel_that_cannot_be_launched_here_is_no_rival():
    assert chosen(logic(), MadeUp(0, 99.0, kernel=math.inf), *MEASURED) is not None


def test_both_times_are_scaled_to_a_size_that_was_not_measured_and_the_cost_of_a_launch_is_not():
    """At an eighth of the work the kernel takes 0.125 ms, in doubt 0.186 ms, and the BLAS 0.25 ms; a launch decides."""
    made = logic(row(), row((16, 16, 16), own=1e-6))
    for launch, is_blas in ((0.06e-3, False), (0.08e-3, True)):
        choice = chosen(made, MadeUp(launch, 2e-3), 128, 128, 128)
        assert (choice is not None) is is_blas
    assert choice is not None
    assert choice.expected_seconds == pytest.approx(0.25e-3)
    assert choice.neighbour == MEASURED


@pytest.mark.parametrize("size", [128, 512])
def test_the_further_a_size_from_the_measured_one_the_larger_the_gain_must_be(size):
    """A kernel that is a little faster at one size may be slower at twice the size, where it misses the caches."""
    made = logic(row(), row((16, 16, 16), own=1e-6))
    for doublings, gain, is_blas in ((0, 1.04, True), (0, 1.06, False), (1, 1.4, True), (1, 1.5, False)):
        at = MEASURED if doublings == 0 else (size, size, size)
        assert (chosen(made, MadeUp(0, gain * 1e-3), *at) is not None) is is_blas


def test_the_time_that_the_logic_has_of_the_blas_goes_before_a_measurement_here():
    """Both were measured on one day, so that a small gain is known, and nothing is timed here."""
    for blas, is_blas in ((1.09e-3, True), (1.11e-3, False)):
        costs = MadeUp(1e-4, 99.0)
        assert (chosen(logic(row(blas=blas)), costs, *MEASURED) is not None) is is_blas
        assert costs.asked == costs.launched == []


def test_what_the_logic_itself_gives_to_the_blas_keeps_its_rule():
    assert chosen(logic(row(blas=0.5e-3, wins=1)), MadeUp(0, 99.0), *MEASURED) is None


@pytest.mark.parametrize(
    ("sizes", "is_known"), [((512, 128, 256), True), ((513, 256, 256), False), ((256, 127, 256), False)]
)
def test_sizes_far_from_all_that_was_measured_go_to_the_blas(sizes, is_known):
    costs = MadeUp(0, 99.0)
    choice = chosen(logic(), costs, *sizes)
    assert (choice is None) is is_known
    assert len(costs.asked) == is_known
    if choice:
        assert (choice.rule, choice.expected_seconds) == (Rule.VENDOR, None)


def test_times_of_another_device_are_not_known_here():
    elsewhere = logic(target=replace(TARGET, name="another CPU"))
    assert chosen(elsewhere, MadeUp(0, 99.0), *MEASURED) is not None
    assert chosen(logic(), MadeUp(0, 99.0), *MEASURED) is None


def test_the_blas_is_timed_once_for_each_measured_size_and_kind_of_call():
    costs, made = MadeUp(0, 99.0), logic(row(), row((2048, 64, 64)))
    floor = Floor(TARGET, {NN: made}, costs)
    calls = [(MEASURED, 0.0), ((250, 250, 250), 0.0), ((2000, 64, 60), 0.0), (MEASURED, 0.5), ((255, 256, 256), 2.0)]
    for sizes, beta in calls:
        problem = Problem(NN, sizes, (), Configuration({"alpha": 1.0, "beta": beta}))
        floor.choice(problem, made.choose(sizes))
    assert costs.launched == costs.asked, "in turn"
    assert [(problem.sizes, problem.scalars["beta"] != 0) for problem in costs.asked] == [
        (MEASURED, False),
        ((2048, 64, 64), False),
        (MEASURED, True),
    ]


def test_without_a_logic_the_blas_computes_what_it_can():
    floor = Floor(TARGET, {}, MadeUp(0, 99.0))
    for letter, is_blas in (("s", True), ("d", True), ("h", False), ("b", False), ("i8", False)):
        kind = gemm_type(letter, transpose_b=False)
        assert (floor.choice(Problem(kind, (64, 64, 64)), None) is not None) is is_blas, letter
    for kind in (
        gemm_type("s", bias=True),
        gemm_type("s", activation="relu"),
        gemm_type("s", batched=True, interleaved=True),
    ):
        assert floor.choice(Problem(kind, (64,) * len(kind.indices)), None) is None

    fake = Floor(replace(TARGET, api="fake"), {}, MadeUp(0, 99.0))

    assert fake.choice(Problem(NN, (64, 64, 64)), None) is None


def test_a_huge_product_is_timed_at_a_part_of_it(monkeypatch):
    timed: list[Problem] = []
    monkeypatch.setattr(_host_costs, "_seconds", lambda problem: timed.append(problem) or 0.5)
    costs = _host_costs.HostCosts(None)  # type: ignore[arg-type]
    assert costs.blas(Problem(NN, (1024, 1024, 1024))) == 0.5
    assert costs.blas(Problem(NN, (8192, 1024, 1024))) == 4.0
    assert costs.blas(Problem(NN, (3, 2**31, 1))) == pytest.approx(0.5 * 2**31 / 2**28, rel=1e-6)
    assert [problem.sizes for problem in timed] == [(1024,) * 3, (1024,) * 3, (3, 2**28, 1)]


def test_a_device_that_launches_nothing_is_no_rival():
    class Broken:
        @property
        def launch_seconds(self):
            raise LaunchError("launch refused", "out of everything")

    assert _host_costs.HostCosts(Broken()).launch() == float("inf")  # type: ignore[arg-type]


def test_the_time_of_a_kernel_is_the_least_of_its_calls_without_that_of_a_launch(monkeypatch):
    """Its first call, at which a driver may compile, does not count. The BLAS's threads rest before."""
    clock, waited = [0.0], []

    class Launches:
        repeated_launch_seconds = 0.002

        def ready_of(self, choice, problem):
            return SimpleNamespace(bound=SimpleNamespace(again={"addresses": "bound"}))

        def run_in_place(self, ready, addresses, memory, stand_ins):
            assert waited == [_host_costs.LONGEST_REST]
            clock[0] += 0.006 if clock[0] else 9.0

    monkeypatch.setattr(_host_costs, "wait_until_threads_rest", waited.append)
    monkeypatch.setattr(_host_costs.time, "perf_counter", lambda: clock[0])
    choice = Choice(solution(), "own", Rule.EXACT)
    seconds = _host_costs.HostCosts(Launches()).kernel(Problem(NN, (8, 8, 8)), choice)  # type: ignore[arg-type]
    assert seconds == pytest.approx(0.004)


@pytest.mark.parametrize(("busy", "looks"), [(0, 1), (3, 4), (1000, 10)])
def test_busy_threads_are_waited_for_until_they_rest_and_at_most_as_long_as_asked(monkeypatch, busy, looks):
    """So many times between two looks, a thread runs for half of the time."""
    clock = {"now": 0.0, "used": 0.0, "looks": 0}

    def sleep(seconds):
        clock["now"] += seconds
        clock["used"] += seconds / 2 if clock["looks"] < busy else 0.0
        clock["looks"] += 1

    monkeypatch.setattr(blas_module.time, "sleep", sleep)
    monkeypatch.setattr(blas_module.time, "perf_counter", lambda: clock["now"])
    monkeypatch.setattr(blas_module.time, "process_time", lambda: clock["used"])
    blas_module.wait_until_threads_rest(9.5 * blas_module.LOOK_SECONDS)
    monkeypatch.undo()
    assert clock["looks"] == looks


def test_a_thread_that_computes_is_seen():
    """The process's own clock counts other threads, or waiting would end at once."""
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)])
    before = time.process_time()
    busy.start()
    while time.process_time() < before + 0.01:
        time.sleep(0.001)
    stop.set()
    busy.join()


@pytest.mark.opencl
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_time_of_a_kernel_is_that_of_calls_on_arrays_of_the_host(beta, monkeypatch):
    """Less the launch, which 17 million multiply-adds outweigh."""
    launcher, own = Launcher(opencl_device(), {}, {}), solution()
    assert launcher.repeated_launch_seconds > 0
    launched = []
    enqueue = _Prepared.enqueue
    monkeypatch.setattr(_Prepared, "enqueue", lambda self: launched.append(len(self.commands)) or enqueue(self))
    problem = Problem(NN, (256, 256, 256), (), Configuration({"alpha": 1.0, "beta": beta}))
    choice = Choice(own, "own", Rule.EXACT)
    assert 0 < _host_costs.HostCosts(launcher).kernel(problem, choice) < math.inf
    assert set(launched) == {1}
    assert 1 < len(launched) <= _host_costs.CALLS + 1
    illegal = replace(own, configuration=own.configuration | {"LocalMemory": True})
    assert _host_costs.HostCosts(launcher).kernel(problem, replace(choice, solution=illegal)) == math.inf
    launcher.close()


@pytest.mark.opencl
def test_the_cost_of_a_launch_is_measured_once_on_the_device(monkeypatch):
    """A launch of nothing is what is timed, and the value is kept."""
    launched: list[int] = []
    enqueue = _Prepared.enqueue

    def counted(self):
        launched.append(len(self.commands))
        enqueue(self)

    monkeypatch.setattr(_Prepared, "enqueue", counted)
    launcher = Launcher(opencl_device(), {}, {})
    costs = _host_costs.HostCosts(launcher)
    assert costs.launch() == costs.launch() > 0
    assert launched == [1] * (LAUNCHES + 1)
    launcher.close()


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_time_of_the_blas_is_that_of_its_own_call(monkeypatch, beta):
    """The least of the calls after the first, on the problem's own layout, with C only if it is read."""
    calls: list[tuple[tuple[int, ...], tuple[int, ...], bool]] = []

    def by_numpy(arguments, scalars, request, blank):
        calls.append((arguments.a.shape, arguments.b.strides, arguments.c is not None))
        clock[0] += {1: 9.0, 3: 0.002}.get(len(calls), 0.004)

    clock = [0.0]
    monkeypatch.setattr(_host_costs, "by_numpy", by_numpy)
    monkeypatch.setattr(_host_costs.time, "perf_counter", lambda: clock[0])
    scalars = Configuration({"alpha": 1.0, "beta": beta})
    seconds = _host_costs.HostCosts(None).blas(Problem(gemm_type("s"), (30, 20, 10), (), scalars))  # type: ignore[arg-type]
    assert seconds == pytest.approx(0.002)
    # Row-major: a is 20 x 10, b 10 x 30; the type reads its A (our b) as it lies and transposes its B (our a).
    assert calls == [((20, 10), (120, 4), beta != 0)] * (1 + _host_costs.CALLS)
