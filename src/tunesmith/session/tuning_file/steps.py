"""The results of one step of a tuning file: its table of times (CSV), and its record for `tunesmith show`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tunesmith.bench import median_interval
from tunesmith.logic import FinalTable, TableCell, details_of, read_csv, sizes_of, write_csv
from tunesmith.problems import OPERATIONS
from tunesmith.protocol import Cell as ConfigCell
from tunesmith.protocol import Dropped, Fork, Phases, Step, StepResult
from tunesmith.records import Configuration, Outcome, Problem, UserError, value_text
from tunesmith.session.frame.earlier import keep_aside
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.frame.outputs import TABLES, Output
from tunesmith.session.frame.reuse import failed
from tunesmith.session.frame.run import Run
from tunesmith.store import StepRecord, Winner


def group_name(phases: Phases) -> str:
    """Tensile's name of a size group's files: `Cijk_Ailk_Bljk_SB_00`."""
    return f"{phases.problem_type.name}_{phases.group:02}"


def table_of(result: StepResult, measure: RecordedMeasure, problems: Collection[Problem] | None = None) -> FinalTable:
    """The table of a step's configurations by its problems, or by some of them; a cell that did not run has a reason.

    Finalists have the times of their interleaved measurement, since first times are from different moments.
    """
    oracle = measure.oracle
    configs = _configurations(result)
    problems = problems_of(result.step) if problems is None else problems
    cells = _cells(measure, configs, problems)
    for cell, samples in result.table.paired.items():
        if cell in cells and samples:
            cells[cell] = replace(cells[cell], estimate=median_interval(samples))
    operation = OPERATIONS[oracle.problem_type.operation]
    return FinalTable(
        oracle.problem_type,
        tuple(problems),
        tuple(operation.work(problem) for problem in problems),
        tuple(dict.fromkeys(oracle.solution(config) for config in configs)),
        {(problem, oracle.solution(config)): cell for (config, problem), cell in cells.items()},
        {p: tuple(map(oracle.solution, (choice.winner, *choice.ties))) for p, choice in result.decisions.items()},
    )


def table_output(run: Run, phases: Phases, result: StepResult, table: FinalTable) -> Output:
    """The step's CSV, and the file with the details of each cell. An existing table of other sizes (from another file
    or other options) is kept under another name."""
    path = Path(TABLES) / group_name(phases) / f"{result.name}.csv"
    return Output(path, partial(_write, run, problems_of(result.step), table))


def _write(run: Run, problems: Collection[Problem], table: FinalTable, path: Path) -> None:
    if others := _other_sizes(path, problems):
        details = details_of(path)
        asides = [keep_aside(file).name for file in (path, details) if file.exists()]
        run.say(f"{path} {others}, which this run does not have; it is kept as {' and '.join(asides)}")
    write_csv(table, path, run.outcome.target)


def _other_sizes(path: Path, problems: Collection[Problem]) -> str:
    """Why an existing table cannot be overwritten: it has other sizes than the step. Empty if it can."""
    if not path.exists():
        return ""
    try:
        rows = [set(row.items()) for row in read_csv(path).sizes]
    except UserError as error:
        return f"is no table ({error.what})"
    own = [sizes_of(problem) for problem in problems]
    count = sum(all(row != set(sizes.items()) for sizes in own) for row in rows)
    return f"has {count} other sizes" if count else ""


def step_record(
    phases: Phases, number: int, result: StepResult, measure: RecordedMeasure, seconds: float
) -> StepRecord:
    """The record of a step that `tunesmith show` prints."""
    decided = [trial for trial in result.trials if trial.decision]
    problems = problems_of(result.step)
    cells = _cells(measure, _configurations(result), problems).values()
    return StepRecord(
        problem_type=phases.problem_type.name,
        group=phases.group,
        number=number,
        phase=result.phase.value,
        name=result.name,
        lineages=len(result.before),
        survivors=len(result.after),
        candidates=result.candidates,
        problems=len(problems) if result.trials else 0,
        rejected=result.rejected + Counter(cell.reason for cell in cells if cell.outcome is Outcome.REJECTED),
        failed=Counter(f"{cell.outcome.value}: {cell.reason}" for cell in cells if failed(cell.outcome)),
        winners=tuple(
            Winner(
                trial.proposal.lineage.fixed,
                _chosen(trial.proposal.candidates, trial.decision.winner),
                bool(trial.decision.ties),
            )
            for trial in decided
            if trial.decision
        ),
        ties=sum(bool(trial.decision and trial.decision.ties) for trial in decided),
        dropped=tuple(_dropped(first, count) for first, count in result.dropped_by_reason),
        notes=result.notes,
        seconds=seconds,
    )


def _dropped(first: Dropped, count: int) -> str:
    more = f"{count} lineages, the first " if count > 1 else ""
    return f"{more}{_values(first.lineage.fixed)}: {first.rejection}"


def _values(config: Configuration) -> str:
    return " ".join(f"{name}={value_text(value)}" for name, value in config.items()) or "the only lineage"


def _chosen(candidates: Iterable[tuple[Configuration, Configuration]], winner: Configuration) -> Configuration:
    return next(choice for config, choice in candidates if config == winner)


def problems_of(step: Step) -> tuple[Problem, ...]:
    """The problems of a step; a fork has none, since it measures nothing."""
    return () if isinstance(step, Fork) else step.problems


def _configurations(result: StepResult) -> list[Configuration]:
    """The configurations that the step tried, each once."""
    return list(dict.fromkeys(config for trial in result.trials for config in trial.proposal.configurations))


def _cells(
    measure: RecordedMeasure, configs: Sequence[Configuration], problems: Collection[Problem]
) -> dict[ConfigCell, TableCell]:
    """The outcome of each configuration on each problem: rejected, or the stored measurement."""
    cells = [(config, problem) for config in configs for problem in problems]
    rejections = {cell: refused[0] for cell in cells if (refused := measure.oracle.rejections_for(*cell))}
    known = measure.lookup([cell for cell in cells if cell not in rejections])
    rejected = {cell: TableCell(Outcome.REJECTED, first.reason, first.detail) for cell, first in rejections.items()}
    return rejected | {cell: TableCell.of(measurement) for cell, measurement in known.items()}
