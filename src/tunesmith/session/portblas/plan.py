"""The plan of tuning GEMM with portBLAS's parameters: each transposition by itself, its logic, and a C++ header."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import tunesmith
from tunesmith.formats.portblas.backend import Size, header, is_taken
from tunesmith.formats.portblas.results import combination_of
from tunesmith.kernels import VENDOR
from tunesmith.logic import Document, FinalTable, write_atomically
from tunesmith.problems.gemm import Gemm, is_interleaved
from tunesmith.records import Target, architecture_name
from tunesmith.session.frame import events
from tunesmith.session.frame.earlier import readable, rows_of
from tunesmith.session.frame.logic import logic_output, stored_table
from tunesmith.session.frame.measure import OutOfBudgetError
from tunesmith.session.frame.outputs import LOGIC, Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .rows import Tuned
from .task import PortBlasTask
from .transposition import Transposition

HEADER = "portblas_backend.hpp"
RESULTS = "results"


def tune_portblas(
    task: PortBlasTask,
    folder: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    observe: events.Observer = events.nobody,
) -> RunOutcome[PortBlasPlan]:
    """Measure, choose, and write logic and header; everything goes into `folder`, and the same call goes on with a
    stopped run. `reuse` says what of an earlier run counts.

    Raises UserError for a task that means nothing, KeyboardInterrupt after everything was put away.
    """
    task.check()
    plan = PortBlasPlan(task, task.target(device))
    return carry_out(plan, folder, budget_minutes=budget_minutes, reuse=reuse, observe=observe)


class PortBlasPlan(RunPlan):
    """`tuned` has every transposition, also those that a spent budget left out, as far as anything is known of them."""

    def __init__(self, task: PortBlasTask, target: Target) -> None:
        self.task, self.target, self.policy = task, target, task.policy
        self.config, candidates = task.candidates(target)
        self.file, self._listed = self.config.path, tuple(candidates)
        self.tuned: list[Tuned] = []
        self._settled = 0

    def carry_out(self, run: Run) -> None:
        for note in self.config.notes:
            run.say(note)
        spent: OutOfBudgetError | None = None
        for name in self.task.names:
            transposition = Transposition(name, self.task, self._listed, run)
            try:
                if spent is None:
                    transposition.measure()
                    self._settled += 1
            except OutOfBudgetError as error:
                spent = error
            finally:
                self.tuned.append(transposition.tuned())
            run.decided()
        if spent:
            raise spent

    @property
    def unfinished(self) -> str:
        count = len(self.task.names)
        return f"{self._settled} of {count} transpositions are decided" if self._settled < count else ""

    def outputs(self, run: Run) -> Iterator[Output]:
        """Logic of every type that is decided, with all sizes that the folder knows; what the original prints; and the
        header, from all logic of this device in the folder.

        The system BLAS is in a logic only if the task lets it win.
        """
        left_out = () if self.task.vendor else (VENDOR,)
        for one in self.tuned:
            if one.winner:
                kind = one.problem.type
                name = f"{self.target.api}_{architecture_name(self.target.architecture)}_{kind.name}.yaml"
                decided = (one.winner.solution, *(tie.solution for tie in one.ties()))
                yield logic_output(run, name, kind, {one.problem: decided}, left_out=left_out)
        for one in self.tuned:
            text = f"{one.listing(self.target.name)}\n"
            path = Path(RESULTS) / f"{one.problem.type.name}_{one.problem}.txt"
            yield Output(path, partial(write_atomically, text=text))
        every = readable(run.outcome.folder / LOGIC, run.complain)
        here = [document for document in every if document.origin.is_of(self.target)]
        tables = [stored_table(run, document.problem_type, left_out) for document in here]
        if sizes := [size for document, table in zip(here, tables, strict=True) for size in _sizes(document, table)]:
            text = header(sizes, self.target.name, tunesmith.__version__)
            yield Output(Path(HEADER), partial(write_atomically, text=text))

    def remarks(self) -> Iterator[str]:
        for one in self.tuned[: self._settled]:
            if one.winner is None:
                yield f"{one.name}: nothing ran"


def _sizes(document: Document, table: FinalTable) -> Iterator[Size]:
    """For each size its winner, or the fastest of portBLAS's kernels where another family won, or a combination that
    portBLAS's kernel does not take for this element."""
    kind, chosen = document.problem_type, rows_of(document)
    data_type = kind.fields.word("DataType")
    ours = [
        solution
        for solution in table.solutions
        if (combination := combination_of(solution.configuration)) and is_taken(combination, data_type)
    ]
    for problem, flops in table:
        times = {solution: time for solution in ours if (time := table.time(problem, solution))}
        if (problem.sizes, ()) not in chosen or not times:
            continue
        solution, *_ = chosen[problem.sizes, ()]
        best = solution if solution in times else min(times, key=lambda s: times[s].seconds)
        combination, gemm = combination_of(best.configuration), Gemm.of(problem)
        assert combination is not None
        yield Size(
            data_type=data_type,
            transpose_a=gemm.transpose_a,
            transpose_b=gemm.transpose_b,
            interleaved=is_interleaved(kind),
            m=gemm.m,
            n=gemm.n,
            k=gemm.k,
            batch=gemm.batch,
            combination=combination,
            gflops=flops / times[best].seconds / 1e9,
        )
