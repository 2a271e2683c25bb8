"""`tunesmith heuristics judge`: how close policies come to the best known time, on products they were not fitted on.

A matrix's choices are measured if its device is here (`_devices`, by `Target.same_device`), and looked up if not.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from tunesmith.bench import Policy
from tunesmith.devices import choose
from tunesmith.logic import write_atomically
from tunesmith.models.choice.model import ChoiceModel
from tunesmith.models.choice.model_file import read_choice_model
from tunesmith.models.intensity.scoring import GUESS_COUNTS, TimeMatrix
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Estimate, Problem, Solution, Target, UserError
from tunesmith.session.frame import events
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .choosers import Chooser, Guesses, chosen_by_taught, chosen_held_out
from .entrants import Entrant, entrants, fitted_here
from .finalists import BEST_KNOWN, Finalists, finalists, is_measurable
from .matrices import JudgedSubject, MatrixTask, read_matrices, spread_of
from .targets import target_if_here
from .verdicts import AllGuesses, Contestant, Judgement, PolicyVerdict, judged, label

NO_DEVICE = "none"
"""The word for `--device` with which nothing is measured."""
POLICY = Policy(sampling_seconds=0.2, warm_up_seconds=0.02, confirm_blocks=15)
"""Every configuration of a product is timed in so many blocks, which alternate with the blocks of all others."""
TABLE, WRITTEN_EACH = "judged.csv", 10
"""The file that is written, and the number of products between two writings."""


@dataclass(frozen=True)
class JudgeTask:
    """Matrices, and the entrants judged on them: the named `policies` (all if none is named) and the heuristics in
    files, each on every one of `kernels` (if none is named, on the first family that can compute a product).

    With `choices`, also what chooses among the measured solutions (`choosers`), the vendor's library among these. It
    learns from the matrices `taught`, or without any from the products of other families. `models` are files of choice
    models, which are judged as they are instead of models fitted to `taught`.
    """

    matrices: MatrixTask
    policies: tuple[str, ...] = ()
    heuristics: tuple[Path, ...] = ()
    kernels: tuple[str, ...] = ()
    choices: bool = False
    taught: tuple[Path, ...] = ()
    models: tuple[Path, ...] = ()


def judge_heuristics(
    task: JudgeTask,
    folder: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    store: str | None = None,
    wait: bool = False,
    policy: Policy = POLICY,
    observe: events.Observer = events.nobody,
) -> RunOutcome[JudgePlan]:
    """Judge; if the matrices' device is here, measure the choices into `folder`. The same call resumes a stopped run.
    With `device` "none", all choices are looked up.

    Raises UserError for a task that makes no sense, KeyboardInterrupt after everything is written.
    """
    plan = JudgePlan(task, device, policy, lambda sentence: observe(events.Message(sentence)))
    return carry_out(plan, folder, budget_minutes=budget_minutes, reuse=reuse, store=store, wait=wait, observe=observe)


@dataclass(frozen=True, slots=True)
class SampledCell:
    """The time of a solution with its samples: sample i of every solution of a problem is from the same round of
    blocks."""

    solution: Solution
    estimate: Estimate
    samples: tuple[float, ...]


class JudgePlan(RunPlan):
    """Judges one matrix after the other. `judgements` has the finished matrices, and of the matrix being measured the
    products measured so far."""

    def __init__(self, task: JudgeTask, device: str | None, policy: Policy, say: Callable[[str], None]) -> None:
        self.policy, self._task = policy, task
        self.entrants = entrants(task.policies, task.heuristics, task.kernels)
        say(f"reading {', '.join(map(str, task.matrices.sources))}")
        read = read_matrices(replace(task.matrices, with_vendor=task.choices))
        self.subjects = read.subjects
        of_taught = MatrixTask(task.taught, with_vendor=True, plans=task.matrices.plans)
        self._taught = read_matrices(of_taught).subjects if task.taught else ()
        self._models = tuple(map(read_choice_model, task.models))
        self.notes = [*read.notes, *fitted_here(self.entrants, task.matrices.sources)]
        self._devices = _devices(self.subjects, device)
        self.measures = any(self._devices)
        self.target: Target = next(filter(None, self._devices), self.subjects[0].target)
        self._judgements: dict[int, Judgement] = {}
        self._done, self._all = 0, 0

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        return tuple(self._judgements.values())

    @property
    def unfinished(self) -> str:
        return f"{self._done} of {self._all} products are measured" if self._done < self._all else ""

    def carry_out(self, run: Run) -> None:
        measured = [subject for subject, device in zip(self.subjects, self._devices, strict=True) if device]
        self._all = sum(len(subject.matrix.problems) for subject in measured)
        for index, (subject, device) in enumerate(zip(self.subjects, self._devices, strict=True)):
            run.say(f"{subject}: deciding {len(subject.matrix.problems)} products by {len(self.entrants)} policies")
            of_all: list[tuple[Contestant, Sequence[Guesses]]] = [*self._chosen(subject).items()]
            guesses = dict([*of_all, *((entrant, _guesses(entrant, subject)) for entrant in self.entrants)])
            if device is None:
                judgement = judged(subject, subject.matrix, subject.noise, guesses, is_measured=False)
                self._judgements[index] = judgement
                run.decided()
                continue
            self._measure(run, index, subject, guesses)

    def _chosen(self, subject: JudgedSubject) -> Mapping[Chooser, Sequence[Guesses]]:
        """The guesses of what chooses among a matrix's solutions, if the task asks for them."""
        if not self._task.choices:
            return {}
        count = max(GUESS_COUNTS)
        try:
            if not self._taught:
                return chosen_held_out(subject, count)
            taught = next((taught for taught in self._taught if str(taught) == str(subject)), None)
            if taught is None:
                raise ValueError(f"--taught has no matrix of {subject}")
            return chosen_by_taught(subject, taught, count, self._model_of(subject))
        except ValueError as error:
            remedy = "give --sizes, a list whose families can be held out, or --taught with broader matrices"
            raise UserError("--choices", str(error), remedy) from error

    def _model_of(self, subject: JudgedSubject) -> ChoiceModel | None:
        """The task's model of a matrix's device and data type; None if the task has no models."""
        if not self._models:
            return None
        for model in self._models:
            if model.target.same_device(subject.target) and model.data_type == subject.data_type:
                return model
        raise ValueError(f"--model has none of {subject}")

    def outputs(self, run: Run) -> Iterator[Output]:
        if self.measures and self._judgements:
            yield Output(Path(TABLE), partial(write_atomically, text=as_csv(self.judgements)))

    def remarks(self) -> Iterator[str]:
        yield from self.notes

    def _measure(self, run: Run, index: int, subject: JudgedSubject, guesses: AllGuesses) -> None:
        """Measure a matrix product by product: the choices of all entrants and the best known, interleaved."""
        found = [_finalists(run, subject, row, guesses) for row in range(len(subject.matrix.problems))]
        self.notes += _unmeasurable(subject, found)
        solutions_of = [finalists.solutions for finalists in found]
        cells: dict[int, list[SampledCell]] = {}
        try:
            with run.batch(f"{subject}: {len(solutions_of)} products", sum(map(len, solutions_of))):
                for row, solutions in enumerate(solutions_of):
                    cells[row] = _measured(run, subject.matrix.problems[row], solutions)
                    self._done += 1
                    if len(cells) % WRITTEN_EACH == 0:
                        self._judgements[index] = _judgement(subject, cells, guesses)
                        run.decided()
        finally:
            if cells:
                self._judgements[index] = _judgement(subject, cells, guesses)


def _devices(subjects: Sequence[JudgedSubject], device: str | None) -> list[Target | None]:
    """For each matrix, the device on which its choices are measured; None if they are looked up.

    A matrix is measured on the device that it is of (`Target.same_device`). Raises UserError if the named device is of
    no matrix.
    """
    if device == NO_DEVICE:
        return [None for _ in subjects]
    if device is None:
        return [target_if_here(subject.target) for subject in subjects]
    chosen = choose(device)
    if not any(subject.target.same_device(chosen) for subject in subjects):
        names = ", ".join(dict.fromkeys(subject.target.name for subject in subjects))
        what = f"{chosen.name} is not the device of a matrix, which is {names}"
        raise UserError("--device", what, f"leave it out, or give --device {NO_DEVICE} to measure nothing")
    return [chosen if subject.target.same_device(chosen) else None for subject in subjects]


def _guesses(entrant: Entrant, subject: JudgedSubject) -> list[Guesses]:
    count = max(GUESS_COUNTS) if entrant.ranks else 1
    return [entrant.ranked(problem, subject.target, count) for problem in subject.matrix.problems]


def _finalists(run: Run, subject: JudgedSubject, row: int, guesses: AllGuesses) -> Finalists:
    problem = subject.matrix.problems[row]
    measure = run.measure(problem.type)
    guessed = [solution for ranked in guesses.values() for solution in ranked[row]]
    return finalists(subject, row, guessed, lambda solution: is_measurable(solution, problem, measure))


def _unmeasurable(subject: JudgedSubject, finalists: Sequence[Finalists]) -> Iterator[str]:
    """A warning if some of the best known solutions cannot be measured here."""
    counts = [product.unmeasurable for product in finalists if product.unmeasurable]
    if counts:
        yield (
            f"{subject}: {sum(counts)} times a configuration among the {BEST_KNOWN} fastest of a product cannot be "
            "measured here, since its kernel or parameters are not known or not legal. On "
            f"{len(counts)} of {len(finalists)} products the best known may be too slow, and the efficiencies too high"
        )


def _measured(run: Run, problem: Problem, solutions: Sequence[Solution]) -> list[SampledCell]:
    """The interleaved times of the solutions that ran."""
    measure = run.measure(problem.type)
    by_config = {solution.configuration: solution for solution in solutions}
    table = measure.confirm(list(by_config), [problem])
    run.anchor.visit_if_due(measure, table.cells)
    return [SampledCell(by_config[cell[0]], time, table.paired[cell]) for cell, time in table.cells.items()]


def _judgement(subject: JudgedSubject, cells: dict[int, list[SampledCell]], guesses: AllGuesses) -> Judgement:
    """The judgement on the products measured so far, without those on which nothing ran."""
    rows = [row for row, times in cells.items() if times]
    solutions = tuple(dict.fromkeys(cell.solution for row in rows for cell in cells[row]))
    columns = {solution: column for column, solution in enumerate(solutions)}
    halves = [np.full((len(rows), len(solutions)), np.nan) for _ in range(2)]
    for position, row in enumerate(rows):
        for cell in cells[row]:
            for first, half in enumerate(halves):
                half[position, columns[cell.solution]] = statistics.median(cell.samples[first::2])
    matrix = TimeMatrix(
        tuple(subject.matrix.problems[row] for row in rows),
        tuple(subject.matrix.families[row] for row in rows),
        solutions,
        np.sqrt(halves[0] * halves[1]),
        (halves[0], halves[1]),
    )
    guesses_of_rows = {entrant: [ranked[row] for row in rows] for entrant, ranked in guesses.items()}
    noise = spread_of([cell.estimate] for row in rows for cell in cells[row])
    return judged(subject, matrix, noise, guesses_of_rows, is_measured=True)


COLUMNS = (
    *("device", "data_type", "problem_type", "family", "m", "n", "k", "batch", "bucket", "policy"),
    *("efficiency", "seconds", "best_seconds", "measured", "kernel", "configuration"),
)


def as_csv(judgements: Sequence[Judgement]) -> str:
    """A line for each choice that has a time. `measured` is 0 if the time is that of the choice's neighbour."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for judgement in judgements:
        writer.writerows(row for verdict in judgement.verdicts for row in _rows(judgement, verdict))
    return text.getvalue()


def _rows(judgement: Judgement, verdict: PolicyVerdict) -> Iterator[list[object]]:
    matrix, target = judgement.matrix, judgement.subject.target
    entrant, score = verdict.entrant, verdict.score
    if score is None:
        return
    for row, pick, efficiency in zip(score.rows, score.picks, score.efficiencies, strict=True):
        problem, chosen = matrix.problems[row], judgement.guesses[entrant][row][0]
        yield [
            *(target.name, judgement.subject.data_type, problem.type.name, matrix.families[row]),
            *(*_sizes(problem), judgement.buckets[row], label(entrant)),
            *(f"{efficiency:.6g}", f"{matrix.seconds[row, pick.column]:.6g}", f"{matrix.best[row]:.6g}"),
            *(int(pick.is_measured), chosen.kernel, json.dumps(json.loads(chosen.configuration.to_json()))),
        ]


def _sizes(problem: Problem) -> tuple[int, int, int, int]:
    gemm = Gemm.of(problem)
    return gemm.m, gemm.n, gemm.k, gemm.batch
