"""The progress of a run as a person sees it: a live picture on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from tunesmith.bench import WorkerLost
from tunesmith.devices.fake import fake_target
from tunesmith.problems.gemm import gemm_type
from tunesmith.protocol import Benchmark, Phase, StepResult
from tunesmith.records import Configuration, Estimate, Measurement, Outcome, Problem, Solution
from tunesmith.report import CountReport, ProgressReport
from tunesmith.report.progress import PATIENCE
from tunesmith.session.frame import events

KIND = gemm_type()
PROBLEM = Problem(KIND, (64, 64, 64))
SOLUTION = Solution(KIND, "FakeGemm", Configuration({"WorkGroup": (16, 16, 1), "ThreadTile": (4, 4)}))
STEP = StepResult("01_CM_VectorWidth", Benchmark(Phase.COMMON, (), (PROBLEM,)), (), ())


class ShownProgress:
    """A progress report whose clock the test moves, and the text that the report wrote."""

    def __init__(self, terminal=False, quiet=False):
        self.now, self._file = 0.0, io.StringIO()
        console = Console(file=self._file, force_terminal=terminal, width=200, markup=False, emoji=False)
        self.report = ProgressReport(console, quiet, lambda: self.now)

    @property
    def text(self):
        return self._file.getvalue()

    def begin(self):
        self.report(events.RunBegan(fake_target(), 3))
        self.report(events.GroupBegan(KIND, 0))
        self.report(events.BatchBegan("01_CM_VectorWidth", 1000, 0))

    def measure(self, outcome=Outcome.OK, reason="", rate=1.5e12):
        time = Estimate(1e-3, 0.99e-3, 1.01e-3, 7)
        measurement = Measurement(outcome, reason, "[/detail]", estimate=time if outcome is Outcome.OK else None)
        self.report(events.CellMeasured(SOLUTION, PROBLEM, measurement, rate if measurement.ok else None))


def test_without_a_terminal_there_is_a_line_every_twenty_seconds_and_one_a_step():
    shown = ShownProgress()
    with shown.report:
        shown.begin()
        for _ in range(590):
            shown.now += 0.1
            shown.measure()
        shown.report(events.StepEnded(STEP, 60.0))
    device, *between, step = shown.text.splitlines()
    assert device == "tuning on fake GPU (fake, 8 compute units)"
    assert step == "01_CM_VectorWidth: 0 -> 0 lineages, 1:00"
    assert len(between) == 2, "59 seconds, then the step's own line"
    assert "\x1b" not in shown.text


def test_the_line_tells_the_best_so_far_counts_rate_and_time_left():
    shown = ShownProgress()
    shown.begin()
    for _ in range(500):
        shown.now += 0.05
        shown.measure()
    shown.measure(Outcome.TIMEOUT, "timeout")
    (line,) = shown.text.splitlines()[1:]
    assert re.match(
        r"  4\d\d/1000   best so far 1\.5 TFLOP/s ±1\.0 % WorkGroup 16x16x1 ThreadTile 4x4   ran 4\d\d", line
    )
    assert "20/s" in line
    assert re.search(r"0:\d\d left$", line)


def test_what_was_found_in_the_store_counts_as_done_but_not_into_the_rate():
    shown = ShownProgress()
    shown.begin()
    shown.report(events.BatchBegan("02_BF_LoopUnroll", 100, 90))
    shown.now += 30
    shown.measure()
    (line,) = shown.text.splitlines()[1:]
    assert line.startswith("  91/100 ")
    assert line.endswith("0.033/s   4:30 left"), "nine are left, each takes thirty seconds"


def test_trouble_is_said_once_and_counted_from_then_on():
    shown = ShownProgress()
    shown.begin()
    for pid in range(50):
        shown.report(WorkerLost(pid, "SIGSEGV", "timing", f"key {pid}"))
        shown.measure(Outcome.CRASH, "SIGSEGV")
        shown.measure(Outcome.WRONG_RESULT, "wrong value")
    shown.now += 21
    shown.measure()
    _, lost, wrong, line = shown.text.splitlines()
    assert lost == "a process was lost while timing (SIGSEGV); a fresh one goes on"
    assert wrong == "wrong result: wrong value, first at 64x64x64: [/detail]"
    assert "crash 50" in line
    assert "wrong result 50" in line


def test_drift_is_said_only_with_an_alarm():
    shown = ShownProgress()
    shown.begin()
    shown.report(events.DriftMeasured(1.01, False))
    shown.report(events.DriftMeasured(1.2, True))
    assert shown.text.splitlines()[1:] == ["the anchor drifted by +20.0 %, more than noise: the machine changed"]


def test_quiet_says_nothing():
    shown = ShownProgress(quiet=True)
    with shown.report:
        shown.begin()
        shown.now += 100
        shown.measure(Outcome.WRONG_RESULT, "wrong value")
        shown.report(events.Message("DataType s is assumed"))
        shown.report(events.StepEnded(STEP, 60.0))
    assert shown.text == ""


@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_shows_a_live_picture_unless_quiet(quiet):
    shown = ShownProgress(terminal=True, quiet=quiet)
    with shown.report:
        shown.begin()
        shown.measure()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.text)
    if quiet:
        assert plain == ""
    else:
        assert "Cij_Aik_Bjk_SB on fake GPU   step 1/3   01_CM_VectorWidth" in plain
        assert "best so far 1.5 TFLOP/s" in plain
        assert "1/1000" in plain


def test_progress_has_rate_and_time_left():
    text, now = io.StringIO(), [0.0]
    with CountReport(Console(file=text, width=200), "asking", clock=lambda: now[0]) as report:
        for number in range(1, 41):
            now[0] += 0.9
            report(number, 40)
    assert text.getvalue().splitlines() == ["asking, 1.1 a second: 23/40, 0:15 left"]
    silent = io.StringIO()
    with CountReport(Console(file=silent, width=200), "asking", quiet=True, clock=lambda: now[0]) as report:
        now[0] += 30
        report(1, 2)
    assert not silent.getvalue()


def test_a_bar_appears_after_some_patience():
    text, now = io.StringIO(), [0.0]
    console = Console(file=text, width=200, force_terminal=True)
    with CountReport(console, "asking", clock=lambda: now[0]) as report:
        now[0] = PATIENCE - 0.1
        report(1, 40)
        assert not text.getvalue()
        now[0] = PATIENCE
        report(20, 40)
        assert "asking, 10.0 a second" in text.getvalue()
