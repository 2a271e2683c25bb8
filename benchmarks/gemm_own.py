"""Logics with only our own kernels, without the vendor's: from a tuning run's measurements, or from its whole space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gemm_ratios import VENDOR_KERNEL
from incremental_vs_exhaustive import everything
from tunesmith.bench import Bench
from tunesmith.logic import Document, Logic, NamedSolution, SizeRow, logic_files
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.protocol import Final, Phases
from tunesmith.records import Estimate, Outcome, Problem, Solution, UserError, solution_names
from tunesmith.session.frame import events
from tunesmith.session.frame.measure import Ledger, RecordedMeasure
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.outputs import CACHE
from tunesmith.session.tuning_file.file import policy_of, ready
from tunesmith.store import FILE_NAME, Store, StoreEntry

EXPLORED = "exhaustive"
"""The subfolder of a run for the store of its whole space, so that the run's own store stays unchanged."""

Best = Mapping[Problem, tuple[Solution, Estimate]]


def best_own(entries: Iterable[StoreEntry]) -> Best:
    """For each problem the fastest of our own solutions; solutions whose sampling was stopped early do not count."""
    best: dict[Problem, tuple[Solution, Estimate]] = {}
    for entry in entries:
        time = entry.measurement.estimate
        if entry.solution.kernel == VENDOR_KERNEL or entry.measurement.raced or time is None:
            continue
        if entry.problem not in best or time.seconds < best[entry.problem][1].seconds:
            best[entry.problem] = entry.solution, time
    return best


def without_vendor(document: Document, best: Best) -> Document | None:
    """The logic as it would be without the vendor's library; None if our kernels ran at none of its sizes."""
    of_type = {(problem.sizes, problem.leading): problem for problem in best if problem.type == document.problem_type}
    rows_with_best = [
        (row, of_type[row.sizes, row.leading]) for row in document.rows if (row.sizes, row.leading) in of_type
    ]
    kept = [(row, problem, best[problem]) for row, problem in rows_with_best]
    if not kept:
        return None
    solutions = list(dict.fromkeys(solution for _, _, (solution, _) in kept))
    flops = OPERATIONS["GEMM"].flops
    rows = tuple(
        SizeRow(row.sizes, row.leading, solutions.index(solution), time, 1e-9 * flops(problem) / time.seconds)
        for row, problem, (solution, time) in kept
    )
    named = tuple(
        NamedSolution(name, solution) for name, solution in zip(solution_names(solutions), solutions, strict=True)
    )
    fallback = Counter(row.solution for row in rows).most_common(1)[0][0]
    return replace(document, solutions=named, rows=rows, fallback=fallback, regret=None)


def own_logics(folder: Path, stores: Sequence[Path]) -> list[tuple[Path, Logic]]:
    """The logics of a run's folder as they would be with only our own kernels, by the measurements in these stores."""
    best = best_own(entry for path in stores for entry in _ran(path))
    documents = ((path, without_vendor(Logic.load(path).document, best)) for path in logic_files(folder))
    return [(path, Logic(document)) for path, document in documents if document]


def store_of(folder: Path) -> Path:
    """The path of a run's store. Raises UserError if the folder has none."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise UserError(str(folder), f"there is no {FILE_NAME}", "give the output folder of `tunesmith tune`")
    return path


def explore(folder: Path, problems: Sequence[ListedGemm], observe: events.Observer = events.nobody) -> Path:
    """Race every legal configuration of the run's tuning file on these problems, and return the path of their store.

    Measurements that the store already has are not repeated.
    """
    with Store.read(store_of(folder)) as store:
        start = store.runs()[-1].start
    found = ready(Path(start.tuning_file), None, start.selector)
    file, target = found.file, found.target
    path = folder / EXPLORED / FILE_NAME
    policy = policy_of(file)
    with Store.open(path) as store, Bench(target, policy, folder / CACHE, observe) as bench:
        for phases in file.groups:
            judge = ConfigurationOracle(phases.problem_type, target)
            sizes = list(_listed(phases, problems))
            measure = RecordedMeasure(judge, bench, store, policy, Ledger(), observe)
            legal = (config for config in everything(phases) if not judge.rejections(config))
            own = {judge.identity(config): config for config in legal if judge.family(config).name != VENDOR_KERNEL}
            if sizes and own:
                measure.screen([list(own.values())], sizes, racing=True)
    return path


def _listed(phases: Phases, problems: Sequence[ListedGemm]) -> Iterator[Problem]:
    """The problems of a list that the size group measures in its final step."""
    final = next(step for step in phases.steps if isinstance(step, Final))
    listed_sizes = {problem.sizes(phases.problem_type) for problem in problems if problem.fits(phases.problem_type)}
    yield from (problem for problem in final.problems if problem.sizes in listed_sizes and not problem.leading)


def _ran(path: Path) -> Iterator[StoreEntry]:
    with Store.read(path) as store:
        yield from store.entries(outcomes=(Outcome.OK,))
