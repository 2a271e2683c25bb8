"""The plan of tuning GEMM with portBLAS's parameters: each transposition by itself, then logic and a C++ header.

Winners are decided in `transposition.Transposition`, by `protocol.choose`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import tunesmith
from tunesmith.formats.portblas.backend import TunedSize, compiles_for, header
from tunesmith.formats.portblas.results import combination_of
from tunesmith.kernels import VENDOR
from tunesmith.logic import Document, FinalTable, write_atomically
from tunesmith.problems.gemm import Gemm, is_interleaved
from tunesmith.records import Target, architecture_name
from tunesmith.session.frame import events
from tunesmith.session.frame.ahead import screen_ahead
from tunesmith.session.frame.earlier import readable, rows_of
from tunesmith.session.frame.ledger import OutOfBudgetError
from tunesmith.session.frame.logic import logic_output, stored_table
from tunesmith.session.frame.many_devices import BenchFactory
from tunesmith.session.frame.outputs import LOGIC, Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .rows import TunedTransposition
from .task import PortBlasTask
from .transposition import Transposition

HEADER = "portblas_backend.hpp"
RESULTS = "results"


def tune_portblas(
    task: PortBlasTask,
    folder: Path,
    *,
    device: str | Target | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    store: str | None = None,
    wait: bool = False,
    observe: events.Observer = events.nobody,
    benches: BenchFactory | None = None,
) -> RunOutcome[PortBlasPlan]:
    """Measure, choose, and write logic and header into `folder`. The same call resumes a stopped run; `reuse` says
    which earlier measurements are used again.

    Raises UserError for a task that makes no sense, KeyboardInterrupt after everything is written.
    """
    task.check()
    plan = PortBlasPlan(task, task.target(device))
    return carry_out(
        plan,
        folder,
        budget_minutes=budget_minutes,
        reuse=reuse,
        store=store,
        wait=wait,
        observe=observe,
        benches=benches,
    )


class PortBlasPlan(RunPlan):
    """`tuned` has the results of every transposition so far, also of those that a spent budget left out."""

    may_share = True

    def __init__(self, task: PortBlasTask, target: Target) -> None:
        self.task, self.target, self.policy = task, target, task.policy
        self.config, candidates = task.candidates(target)
        self.file, self._listed = self.config.path, tuple(candidates)
        self.tuned: list[TunedTransposition] = []
        self._decided = 0

    def carry_out(self, run: Run) -> None:
        for note in self.config.notes:
            run.say(note)
        spent: OutOfBudgetError | None = None
        if run.device_count > 1:
            begun = [Transposition(name, self.task, self._listed, run) for name in self.task.names]
            screen_ahead([screening for transposition in begun for screening in transposition.screenings()])
        for name in self.task.names:
            transposition = Transposition(name, self.task, self._listed, run)
            try:
                if spent is None:
                    transposition.measure()
                    self._decided += 1
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
        return f"{self._decided} of {count} transpositions are decided" if self._decided < count else ""

    def outputs(self, run: Run) -> Iterator[Output]:
        """The logic of every decided type, with all sizes that the folder's logic has; the lists that the original
        prints; and the header, from all logic of this device in the folder.

        The system BLAS is in a logic only if the task lets it win.
        """
        left_out = () if self.task.vendor else (VENDOR,)
        for tuned in self.tuned:
            if tuned.winner:
                kind = tuned.problem.type
                name = f"{self.target.api}_{architecture_name(self.target.architecture)}_{kind.name}.yaml"
                decided = (tuned.winner.solution, *(tie.solution for tie in tuned.ties()))
                yield logic_output(run, name, kind, {tuned.problem: decided}, left_out=left_out)
        for tuned in self.tuned:
            text = f"{tuned.listing(self.target.name)}\n"
            path = Path(RESULTS) / f"{tuned.problem.type.name}_{tuned.problem}.txt"
            yield Output(path, partial(write_atomically, text=text))
        logics = readable(run.outcome.folder / LOGIC, run.complain)
        own = [document for document in logics if document.origin.is_of(self.target)]
        tables = [stored_table(run, document.problem_type, left_out) for document in own]
        if sizes := [size for document, table in zip(own, tables, strict=True) for size in _sizes(document, table)]:
            text = header(sizes, self.target.name, tunesmith.__version__)
            yield Output(Path(HEADER), partial(write_atomically, text=text))

    def remarks(self) -> Iterator[str]:
        for tuned in self.tuned[: self._decided]:
            if tuned.winner is None:
                yield f"{tuned.name}: nothing ran"


def _sizes(document: Document, table: FinalTable) -> Iterator[TunedSize]:
    """For each size, its winner. If portBLAS cannot take the winner (another family, or a combination that its kernel
    does not take for this data type), the fastest combination that it can take."""
    kind, chosen = document.problem_type, rows_of(document)
    data_type = kind.fields.word("DataType")
    ours = [
        solution
        for solution in table.solutions
        if (combination := combination_of(solution.configuration)) and compiles_for(combination, data_type)
    ]
    for problem, flops in table:
        times = {solution: time for solution in ours if (time := table.time(problem, solution))}
        if (problem.sizes, ()) not in chosen or not times:
            continue
        solution, *_ = chosen[problem.sizes, ()]
        best = solution if solution in times else min(times, key=lambda s: times[s].seconds)
        combination, gemm = combination_of(best.configuration), Gemm.of(problem)
        assert combination is not None
        yield TunedSize(
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
