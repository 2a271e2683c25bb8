"""Progress of a run: a live display on a terminal, and a line every 20 seconds or so elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from tunesmith.bench import ModuleCompiled, WorkerLost
from tunesmith.records import LINE_CHARACTERS, Estimate, Outcome, Solution, printable, value_text
from tunesmith.session.frame import events

from . import numbers

QUIET_SECONDS = 20.0
"""Time between two lines if the output is not a terminal."""

MOST_DEVICES = 16
"""Devices that have a line of their own in the live display."""

PATIENCE = 2.0
"""Seconds of work before a bar of counts appears."""


@dataclass
class _State:
    """What the display shows; changed by events only."""

    title: str = ""
    step: str = ""
    steps_done: int = 0
    steps: int = 0
    cells: int = 0
    done: int = 0
    fresh: int = 0
    batch_began: float = 0.0
    best: tuple[float, str, Solution, Estimate] | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    compiling: int = 0
    drift: float | None = None
    devices: tuple[events.DeviceState, ...] = ()

    def remaining(self, now: float) -> float | None:
        """Seconds left in this batch, from the rate since its first new cell."""
        if not self.fresh or self.done >= self.cells:
            return None
        return (now - self.batch_began) / self.fresh * (self.cells - self.done)

    def rate(self, now: float) -> float:
        """New cells a second in this batch."""
        return self.fresh / max(now - self.batch_began, 1e-9)


class _Display:
    """Base of the displays, a context manager: a bar for a terminal, and the time of the last line elsewhere."""

    def __init__(self, console: Console, quiet: bool, clock: Callable[[], float], *more: ProgressColumn) -> None:
        self._console, self._quiet, self._clock = console, quiet, clock
        columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn())
        self._bar = Progress(*columns, *more, console=console, transient=True)
        self._task = self._bar.add_task("", total=None)
        self._began = self._last_line = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar.live.is_started:
            self._bar.stop()

    def _show(self, line: str) -> None:
        """After PATIENCE: the bar on a terminal, elsewhere the line at times."""
        if self._quiet or self._clock() - self._began < PATIENCE:
            return
        if self._console.is_terminal:
            self._bar.start()
        elif self._line_is_due():
            self._console.print(line, highlight=False)
            self._last_line = self._clock()

    def _line_is_due(self) -> bool:
        """Whether the output is not a terminal and the last line is old enough for another one."""
        return not self._console.is_terminal and self._clock() - self._last_line > QUIET_SECONDS


class ProgressReport(_Display):
    """Observes a run and shows its progress; a context manager. Messages stay above the live display."""

    def __init__(self, console: Console, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, quiet, clock)
        self._state = _State()
        self._live = Live(get_renderable=self._picture, console=console, refresh_per_second=4, transient=True)
        self._sentences_said: set[str] = set()

    def __enter__(self) -> Self:
        if self._shows_live:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._shows_live:
            self._live.stop()

    @property
    def _shows_live(self) -> bool:
        return self._console.is_terminal and not self._quiet

    def __call__(self, event: events.Event) -> None:
        """Take one event of the run."""
        state = self._state
        match event:
            case events.RunBegan(target=target, steps=steps):
                state.steps, state.title = steps, target.name
                self._say(f"tuning on {target.name} ({target.api}, {target.compute_units} compute units)")
            case events.GroupBegan(problem_type=problem_type):
                state.title = f"{problem_type.name} on {state.title.split(' on ')[-1]}"
            case events.BatchBegan(purpose=purpose, cells=cells, reused=reused):
                state.step, state.cells, state.done, state.fresh = purpose, cells, reused, 0
                state.batch_began = self._clock()
            case events.CellMeasured():
                self._measured(event)
            case events.StepEnded(result=result, seconds=seconds):
                state.steps_done += 1
                state.rejected.update(result.rejected)
                self._say(_step_line(state, event, seconds))
            case events.DriftMeasured(ratio=ratio, alarm=alarm):
                state.drift = ratio - 1
                if alarm:
                    self._say(f"the anchor drifted by {100 * (ratio - 1):+.1f} %, more than noise: the machine changed")
            case events.DevicesShown(devices=devices):
                state.devices = devices
            case events.Message(text=text):
                self._say(text)
            case ModuleCompiled(waiting=waiting):
                state.compiling = waiting
            case WorkerLost(cause=cause, stage=stage):
                self._say_once(f"a process was lost while {stage} ({cause}); a fresh one goes on")
        self._line_now_and_then()

    def _measured(self, event: events.CellMeasured) -> None:
        state, measurement = self._state, event.measurement
        state.done += 1
        state.fresh += 1
        state.outcomes[measurement.outcome.value] += 1
        if event.rate and measurement.estimate and (state.best is None or event.rate > state.best[0]):
            state.best = (event.rate, event.unit, event.solution, measurement.estimate)
        if measurement.outcome is Outcome.WRONG_RESULT:
            self._say_once(f"wrong result: {measurement.reason}", f", first at {event.problem}: {measurement.detail}")

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(printable(text, LINE_CHARACTERS), highlight=False)
            self._last_line = self._clock()

    def _say_once(self, sentence: str, example: str = "") -> None:
        """Print a sentence the first time only. Such events may come a thousand times; the counts show the others."""
        if sentence not in self._sentences_said:
            self._sentences_said.add(sentence)
            self._say(sentence + example)

    def _line_now_and_then(self) -> None:
        if self._line_is_due():
            facts = _facts(self._state, self._clock())
            self._say("  " + "   ".join([f"{self._state.done}/{self._state.cells}", *facts]))

    def _picture(self) -> Table:
        state, now = self._state, self._clock()
        step = min(state.steps_done + 1, state.steps)
        self._bar.update(
            self._task,
            description=printable(f"{state.title}   step {step}/{state.steps}   {state.step}"),
            total=state.cells or None,
            completed=state.done,
        )
        picture = Table.grid()
        picture.add_row(self._bar)
        picture.add_row(printable("   ".join(_facts(state, now))))
        for device in state.devices[:MOST_DEVICES]:
            busy = f"busy {100 * device.busy:3.0f} %   {device.rate:5.2g}/s   {device.problem}"
            picture.add_row(printable(f"  {device.device}   {busy}"))
        return picture


class CountReport(_Display):
    """Shows how many of equal pieces of work are done; a context manager."""

    def __init__(
        self, console: Console, title: str, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(console, quiet, clock, TimeRemainingColumn())
        self._title = title

    def __call__(self, done: int, of: int) -> None:
        seconds = self._clock() - self._began
        facts = f"{self._title}, {done / max(seconds, 1e-9):.1f} a second"
        self._bar.update(self._task, completed=done, total=of, description=facts)
        self._show(f"{facts}: {done}/{of}, {numbers.duration(seconds / done * (of - done))} left")


class CompilingReport(_Display):
    """Observes a compilation; a context manager. After `PATIENCE`: a bar on a terminal, elsewhere a line at times."""

    def __init__(self, console: Console, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, quiet, clock, TimeRemainingColumn())
        self._modules = self._done = self._failed = 0
        self._title = ""

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.CompilingBegan(target=target, compiler=compiler, modules=modules):
                self._title, self._modules = printable(f"{compiler} for {target.architecture}"), modules
                self._bar.update(self._task, total=modules, description=self._title)
            case ModuleCompiled(reason=reason):
                self._done += 1
                self._failed += bool(reason)
                self._update()

    def _update(self) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.update(self._task, completed=self._done, description=self._title + failed)
        self._show(f"{self._title}: {self._done}/{self._modules}{failed}")


def _facts(state: _State, now: float) -> list[str]:
    """The second line of the display: best so far, counts, rate and time left."""
    facts = []
    if state.best:
        rate, unit, solution, estimate = state.best
        facts.append(
            f"best so far {numbers.rate(rate, unit)} {numbers.half_width(estimate)} {_tile(solution)}".rstrip()
        )
    facts.append("ran " + str(state.outcomes["ok"]))
    if state.rejected:
        reasons = ", ".join(f"{reason} {count}" for reason, count in state.rejected.most_common(2))
        facts.append(f"rejected {state.rejected.total()} ({reasons})")
    facts += [f"{name} {count}" for name, count in state.outcomes.items() if name != "ok"]
    if state.compiling:
        facts.append(f"compiling {state.compiling}")
    if state.drift is not None:
        facts.append(f"anchor drift {100 * abs(state.drift):.1f} %")
    if state.fresh:
        facts.append(f"{state.rate(now):.2g}/s")
    if state.devices:
        busy = [100 * device.busy for device in state.devices]
        facts.append(f"{len(busy)} devices busy {min(busy):.0f} to {max(busy):.0f} %")
    if (left := state.remaining(now)) is not None:
        facts.append(f"{numbers.duration(left)} left")
    return facts


def _tile(solution: Solution) -> str:
    shown = solution.configuration.only(["WorkGroup", "ThreadTile", "WorkItem", "BlockSize", "GridSize"])
    return " ".join(f"{name} {value_text(value)}" for name, value in shown.items())


def _step_line(state: _State, event: events.StepEnded, seconds: float) -> str:
    result = event.result
    parts = [
        f"{event.type_name} {result.name}: {len(result.before)} -> {len(result.after)} lineages".lstrip(),
        f"{result.candidates} candidates" if result.trials else "",
        f"rejected {result.rejected.total()}" if result.rejected else "",
        f"dropped {len(result.dropped)}" if result.dropped else "",
        f"{numbers.duration(seconds)}" if seconds >= 1 else "",
    ]
    lines = [", ".join(part for part in parts if part)]
    lines += [f"  {note}" for note in result.notes]
    for first, count in result.dropped_by_reason:
        more = f"{count} lineages, the first " if count > 1 else ""
        lines.append(f"  dropped {more}{numbers.configuration(first.lineage.fixed)}: {first.rejection}")
    return "\n".join(lines)
