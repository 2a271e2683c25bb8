"""What a step of a tuning file leaves for people and programs: a table of times, and the record that `show` reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path

from tunesmith.logic import NOT_MEASURED, Cell, FinalTable, write_csv
from tunesmith.problems import OPERATIONS
from tunesmith.protocol import Cell as ConfigCell
from tunesmith.protocol import Fork, Phases, StepResult
from tunesmith.records import Configuration, Measurement, Outcome, Problem, Solution, value_text
from tunesmith.session.frame.measure import RecordedMeasure, failed
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.outputs import TABLES, Output
from tunesmith.store import StepRecord, Winner


def group_name(phases: Phases) -> str:
    """Tensile's name of a size group's files: `Cijk_Ailk_Bljk_SB_00`."""
    return f"{phases.problem_type.name}_{phases.group:02}"


def table_of(result: StepResult, measure: RecordedMeasure, problems: Collection[Problem] | None = None) -> FinalTable:
    """A step's configurations by its problems, or by some of them, with the reasons of cells that did not run."""
    oracle = measure.oracle
    configs = list(dict.fromkeys(config for trial in result.trials for config in trial.proposal.configurations))
    problems = _problems(result) if problems is None else problems
    known = measure.lookup(_legal(oracle, configs, problems))
    cells: dict[tuple[Problem, Solution], Cell] = {}
    for config in configs:
        for problem in problems:
            cells[problem, oracle.solution(config)] = _cell(oracle, config, problem, known)
    operation = OPERATIONS[oracle.problem_type.operation]
    return FinalTable(
        oracle.problem_type,
        tuple(problems),
        tuple(operation.work(problem) for problem in problems),
        tuple(dict.fromkeys(oracle.solution(config) for config in configs)),
        cells,
    )


def table_output(phases: Phases, result: StepResult, table: FinalTable) -> Output:
    """The step's CSV, with the details of each cell beside it."""
    return Output(Path(TABLES) / group_name(phases) / f"{result.name}.csv", partial(write_csv, table))


def step_record(
    phases: Phases, number: int, result: StepResult, measure: RecordedMeasure, seconds: float
) -> StepRecord:
    """What `tunesmith show` tells of a step."""
    decided = [trial for trial in result.trials if trial.decision]
    problems = _problems(result)
    tried = {config for trial in result.trials for config in trial.proposal.configurations}
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
        rejected=result.rejected + _cells_rejected(measure, tried, problems),
        failed=_failures(measure, tried, problems),
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
        dropped=tuple(f"{_values(one.lineage.fixed)}: {one.rejection}" for one in result.dropped),
        notes=result.notes,
        seconds=seconds,
    )


def _values(config: Configuration) -> str:
    return " ".join(f"{name}={value_text(value)}" for name, value in config.items()) or "the only lineage"


def _chosen(candidates: Iterable[tuple[Configuration, Configuration]], winner: Configuration) -> Configuration:
    return next(choice for config, choice in candidates if config == winner)


def _problems(result: StepResult) -> tuple[Problem, ...]:
    return () if isinstance(result.step, Fork) else result.step.problems


def _legal(
    oracle: ConfigurationOracle, configs: Iterable[Configuration], problems: Iterable[Problem]
) -> list[ConfigCell]:
    problems = tuple(problems)
    return [(config, p) for config in configs for p in problems if not oracle.rejections_for(config, p)]


def _failures(
    measure: RecordedMeasure, configs: Iterable[Configuration], problems: tuple[Problem, ...]
) -> Mapping[str, int]:
    known = measure.lookup(_legal(measure.oracle, configs, problems))
    return Counter(f"{m.outcome.value}: {m.reason}" for m in known.values() if failed(m))


def _cells_rejected(
    measure: RecordedMeasure, configs: Iterable[Configuration], problems: tuple[Problem, ...]
) -> Counter[str]:
    """Cells of legal candidates that are illegal all the same: at this size, or once compiled."""
    oracle, configs = measure.oracle, tuple(configs)
    refused = (oracle.rejections_for(config, problem) for config in configs for problem in problems)
    compiled = measure.lookup(_legal(oracle, configs, problems)).values()
    return Counter(reasons[0].reason for reasons in refused if reasons) + Counter(
        m.reason for m in compiled if m.outcome is Outcome.REJECTED
    )


def _cell(
    oracle: ConfigurationOracle, config: Configuration, problem: Problem, known: Mapping[ConfigCell, Measurement]
) -> Cell:
    if refused := oracle.rejections_for(config, problem):
        return Cell(Outcome.REJECTED, refused[0].reason, refused[0].detail)
    measurement = known.get((config, problem))
    return Cell.of(measurement) if measurement else Cell(Outcome.REJECTED, NOT_MEASURED)
