"""What the core commands print as text for a terminal: a function for each command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType

from tunesmith.devices import FoundDevice
from tunesmith.logic import Choice, Logic, Rule, Sheet
from tunesmith.logic import Document as LogicDocument
from tunesmith.records import Problem
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.tuning_file import Forecast, GroupForecast, NumpyComparison, Summary, TuningPlan
from tunesmith.session.tuning_file.peer import is_wide
from tunesmith.store import Failure, StepRecord

from . import imported
from . import numbers as _numbers
from .run import closing
from .table import table, titled

MOST_COLUMNS = 8
"""Solutions of a final table that a terminal has room for; the CSV has all."""
MOST_PROBLEMS = 8
"""Problems that are named for each device; `--json` has all."""


def devices(found: Sequence[FoundDevice]) -> RenderableType:
    """Usable devices with their limits, then the unusable devices with the reason and a remedy."""
    shown = table("selector", "name", "kind", "units", "work-group", "local", "memory", "cache", "fp64")
    for device in found:
        if device.usable and device.target:
            target = device.target
            sizes = (
                _numbers.size(size)
                for size in (target.local_memory_bytes, target.global_memory_bytes, target.last_level_cache_bytes)
            )
            limits = (
                str(target.compute_units),
                str(target.max_work_group_size),
                *sizes,
                "yes" if target.double_precision else "no",
            )
            shown.add_row(target.selector, target.name, target.kind, *limits)
    unusable = [f"{device.name}: {device.problem}; {device.remedy}" for device in found if not device.usable]
    return Group(titled("devices", shown), *(["", "not usable:"] if unusable else []), *unusable)


def plan(forecast: Forecast) -> RenderableType:
    """The steps with their counts before and after rejections, the enqueues beside those of an exhaustive search, and
    the expected time."""
    parts: list[RenderableType] = list(imported.summary(forecast, forecast.imported)) if forecast.imported else []
    parts += forecast.notes
    for group in forecast.groups:
        counts = group.forecast
        about = "~" if any(step.is_estimated for step in counts.after) else ""
        parts += [
            titled(f"{group.name} on {forecast.target.name}", _forecast(group)),
            f"{counts.enqueues_before} enqueues, {about}{counts.enqueues_after} after rejections; exhaustive: "
            f"{counts.exhaustive}",
            f"order: {group.order}",
            *_refusals(group),
            *([f"no forecast of time: {group.not_timed}"] if group.not_timed and counts.is_possible else []),
            "",
        ]
    if forecast.seconds is not None:
        parts.append(f"expected: about {_numbers.duration(forecast.seconds)}, on a machine as busy as now")
    return Group(*parts)


def _refusals(group: GroupForecast) -> Iterator[str]:
    """Counts of illegal configurations by reason; with examples if no legal configuration is left."""
    forecast = group.forecast
    counted = ", ".join(f"{reason} ({count})" for reason, count in forecast.rejected.most_common())
    if counted:
        yield f"rejected: {counted}"
    if not forecast.is_possible:
        first = next(step.name for step in forecast.after if not step.survivors or step is forecast.after[-1])
        yield f"nothing legal is left in {first}, so that there is nothing to tune:"
        yield from (f"  {reason}: {detail}" for reason, detail in forecast.examples.items())


def _forecast(group: GroupForecast) -> RenderableType:
    counts = ("lineages", "choices", "candidates", "sizes", "enqueues", "legal", "survivors", "time")
    shown = table("step", *counts, right=counts)
    for before, after, seconds in zip(group.forecast.before, group.forecast.after, group.seconds, strict=True):
        numbers = (before.lineages, before.choices, before.candidates, before.sizes, before.enqueues)
        legal = f"{'~' if after.is_estimated else ''}{after.enqueues}" if before.enqueues else ""
        expected = _numbers.duration(seconds) if seconds else ""
        shown.add_row(before.name, *(str(number or "") for number in numbers), legal, str(before.survivors), expected)
    return shown


def outcome(done: RunOutcome[TuningPlan]) -> RenderableType:
    """The winners, the regret, the files, what the run cost, and what a person should look at."""
    tables = [path for path in done.written if path.suffix == ".csv"]
    logic = _logic(done.logic)
    reasons = ", ".join(f"{reason} ({count})" for reason, count in done.plan.left_out.most_common())
    ruled_out = [f"left out by constraints: {reasons}"] if reasons else []
    return Group(*logic, *(f"CSV: {path}" for path in tables), *ruled_out, *closing(done))


def _logic(found: Iterable[tuple[Path, Logic]]) -> Iterator[RenderableType]:
    """For each logic: the winner of each size with its rate and interval, then the regret and the logic's path."""
    for path, logic in found:
        document = logic.document
        rate = document.unit.rate
        shown = table("size", rate, "±", "n", "solution", right=(rate, "±", "n"))
        for row in document.rows:
            name, doubt = document.solutions[row.solution].name, _numbers.half_width(row.estimate)[1:]
            if row.ties:
                name += f" (as fast: {', '.join(document.solutions[tie].name for tie in row.ties)})"
            shown.add_row("x".join(map(str, row.where)), f"{row.rate:.4g}", doubt, str(row.estimate.count), name)
        yield titled(f"{document.problem_type.name} on {document.origin.device}", shown)
        yield from _by_kernel(document)
        if document.unfinished:
            yield f"unfinished: {document.unfinished}"
        yield from (str(document.regret or ""), f"logic: {path}", "")


def _by_kernel(document: LogicDocument) -> Iterator[str]:
    """If several kernel families won: at how many sizes each was chosen, and at how many more it tied."""
    family = [named.solution.kernel for named in document.solutions]
    chosen = Counter(family[row.solution] for row in document.rows)
    level = Counter(name for row in document.rows for name in {family[t] for t in row.ties} - {family[row.solution]})
    if len(chosen | level) > 1:
        counts = (f"{name} {chosen[name]} (as fast at {level[name]} more)" for name in chosen | level)
        yield f"chosen for {len(document.rows)} sizes: {', '.join(counts)}"


def summary(found: Summary) -> RenderableType:
    """The steps with their winners, the final tables, the logic, the failures with reasons, and the total cost."""
    start, end = found.run.start, found.run.end
    runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
    parts: list[RenderableType] = [
        f"{start.tuning_file} on {start.device}: {found.run.state.value}, {runs}",
        "",
        titled("steps", _steps(found.steps)),
        *(f"{step.name}: {note}" for step in found.steps for note in step.notes),
        *(f"{step.name}: dropped {dropped}" for step in found.steps for dropped in step.dropped),
        "",
    ]
    for path, sheet in found.finals:
        parts += [_final(path.parent.name, sheet), ""]
    parts += _logic(found.logic)
    if rejected := sum((Counter(step.rejected) for step in found.steps), Counter[str]()):
        counted = table("reason", "count", right=("count",), rows=rejected.most_common())
        parts += [titled("rejected, and so not measured", counted), ""]
    if found.failures:
        parts += [titled("failures", _failures(found.failures)), ""]
    if found.devices:
        shown = ((each.device, each.measured, _problems(each.problems)) for each in found.devices)
        parts += [titled("devices", table("device", "measured", "sizes", right=("measured",), rows=shown)), ""]
    last = f"; the last run took {_numbers.duration(end.seconds)}" if end else ""
    return Group(*parts, f"cost: {_numbers.cost(found.cost)}{last}")


def _problems(problems: Sequence[Problem]) -> str:
    more = len(problems) - MOST_PROBLEMS
    return ", ".join(map(str, problems[:MOST_PROBLEMS])) + (f" and {more} more; --json lists them" if more > 0 else "")


def _failures(failures: Sequence[Failure]) -> RenderableType:
    rows = ((failure.outcome.value, failure.reason, failure.count, failure.example) for failure in failures)
    return table("outcome", "reason", "count", "example", right=("count",), rows=rows)


def _steps(steps: Sequence[StepRecord]) -> RenderableType:
    counts = ("lineages", "candidates", "sizes", "rejected", "failed")
    shown = table("step", *counts, "winner", "lineage", right=counts)
    for step in steps:
        refused = (sum(step.rejected.values()), sum(step.failed.values()))
        cells = [str(number or "") for number in (step.lineages, step.candidates, step.problems, *refused)]
        varied = [winner for winner in step.winners if winner.chosen]
        for index, winner in enumerate(varied or [None]):
            chosen = _numbers.configuration(winner.chosen) + (" (tie)" if winner.tie else "") if winner else ""
            lineage = _numbers.configuration(winner.lineage.without(winner.chosen)) if winner else ""
            shown.add_row(*(([step.name, *cells]) if index == 0 else [""] * 6), chosen, lineage)
    return shown


def _final(name: str, sheet: Sheet) -> RenderableType:
    """The speeds of the solutions with the best sums of relative speed, numbered; their names are below the table."""
    rows = range(len(sheet.sizes))
    best = {row: max((sheet.rates.get((row, n), 0.0) for n in sheet.names), default=0.0) for row in rows}
    merit = {n: sum(sheet.rates.get((row, n), 0.0) / best[row] for row in rows if best[row]) for n in sheet.names}
    columns = sorted(sheet.names, key=lambda n: -merit[n])[:MOST_COLUMNS]
    title = f"{name}: {sheet.unit.rate} of the {len(columns)} best of {len(sheet.names)} solutions"
    shown = table("size", *(f"#{index}" for index in range(1, len(columns) + 1)))
    for row, sizes in enumerate(sheet.sizes):
        speeds = [sheet.rates.get((row, column)) for column in columns]
        cells = (f"{speed:.4g}{'*' if speed == best[row] else ''}" if speed is not None else "-" for speed in speeds)
        shown.add_row("x".join(map(str, sizes.values())), *cells)
    return titled(title, shown, *(f"#{index} {column}" for index, column in enumerate(columns, start=1)))


def choice(sizes: Sequence[int], chosen: Choice, unfinished: str = "") -> RenderableType:
    """The solution, the rule that chose it, its expected time, and what the tuning run had not decided yet."""
    expected = _numbers.time(chosen.expected_seconds) if chosen.expected_seconds is not None else "not known"
    expected += f", with a doubt of {100 * chosen.doubt:.1f} %" if chosen.doubt is not None else ""
    near = "x".join(map(str, chosen.neighbour))
    why = {
        Rule.EXACT: "exact: this size was measured",
        Rule.PREDICTED: f"predicted: by a choice model; the nearest measured size is {near}, at {chosen.distance:.2f}",
        Rule.NEAREST: f"nearest: {near} was measured, at a distance of {chosen.distance:.2f}",
        Rule.FALLBACK: "fallback: nothing measured near is legal here",
        Rule.HEURISTIC: "heuristic: no logic is for this type here, a policy chose without a measurement",
        Rule.SIBLING: f"sibling: by logic of a like device or data type, unmeasured here; near {near}",
        Rule.VENDOR: "vendor: no kernel is known to be faster here than the BLAS",
    }[chosen.rule]
    return Group(
        f"size      {'x'.join(map(str, sizes))} of {chosen.solution.type.name}",
        f"solution  {chosen.name}",
        f"rule      {why}",
        f"expected  {expected}",
        f"kernel    {chosen.solution.kernel}: {_numbers.configuration(chosen.solution.configuration)}",
        *([f"unfinished {unfinished}; the same tuning goes on"] if unfinished else []),
    )


def comparison(compared: NumpyComparison, folder: Path) -> RenderableType:
    """For each size: GFLOP/s with interval, NumPy's GFLOP/s, NumPy's time over ours with interval, and the winner.

    `?` marks a ratio whose interval is too wide to quote. Below the table: the BLAS that NumPy called, and what makes
    the ratios less certain.
    """
    columns = ("size", "GFLOP/s", "±", "NumPy", "NumPy's time / ours", "95 %", "winner")
    shown = table(*columns, right=columns[1:6])
    for row in compared.rows:
        ratio = row.ratio
        ours, peer = (f"{row.flops / time.seconds * 1e-9:.4g}" for time in (ratio.ours, ratio.peer))
        interval, doubt = f"{ratio.low:.2f} to {ratio.high:.2f}", _numbers.half_width(ratio.ours)[1:]
        marked_ratio = f"{'? ' * is_wide(ratio)}{ratio.ratio:.2f}"
        shown.add_row(str(row.problem), ours, doubt, peer, marked_ratio, interval, row.solution)
    files = sorted(folder.rglob("*_Final.csv")) if folder.is_dir() else []
    logic = sorted(folder.rglob("*.yaml")) if folder.is_dir() else [folder]
    return Group(
        titled("through the library, host time, against NumPy", shown),
        f"NumPy's BLAS: {compared.peer}",
        *(f"look at: {sentence}" for sentence in compared.look_at),
        "",
        *(f"CSV: {path}" for path in files),
        *(f"logic: {path}" for path in logic),
    )
