"""Our own store as a file of benchmarks: of its measurements of generators, what `random tune` writes as JSON.

They become the rows that the reader of google-benchmark's files makes of that JSON, so that both say the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tunesmith.problems import beginning_of
from tunesmith.records import LaunchShape, Target, UserError
from tunesmith.store import FILE_NAME, FULL, RACE, RECHECK, Entry, Store

from . import google_benchmark
from ._reading import Reading

OPERATION = "Random"

MAGIC = b"SQLite format 3\0"

ROUNDS = (RACE, FULL, RACE + RECHECK, FULL + RECHECK)
"""What a tuning goes by, the later before the earlier."""

Case = tuple[str, str, str, str, int]
"""Architecture, generator, distribution, type, and bytes of a call."""


def is_store(path: Path) -> bool:
    """Whether it is a database, or the folder of a run. Raises UserError where it cannot be read."""
    return path.is_dir() or beginning_of(path, "benchmark's JSON", len(MAGIC)) == MAGIC


def store_rows(path: Path) -> Reading:
    """The rows of a store, or of the one in a run's folder; UserError where there is none, or none of generators."""
    if path.is_dir():
        path = path / FILE_NAME
        if not path.is_file():
            remedy = "name the folder that `tunesmith random tune -o` wrote, or the files in this one"
            raise UserError(str(path.parent), f"no {FILE_NAME} in it", remedy)
    with Store.read(path) as store:
        measured, others = _split(store.entries())
    if not measured:
        what = f"holds no measurement of a generator{f', but {others} of other kernels' if others else ''}"
        raise UserError(str(path), what, "name the store of `tunesmith random tune`")
    kept, older = _latest(measured)
    by_target: dict[Target, list[google_benchmark.Entry]] = defaultdict(list)
    for target, made in kept:
        by_target[target].append(made)
    rows = Reading()
    for target, entries in by_target.items():
        document = google_benchmark.document(entries, google_benchmark.context(target, 0))
        rows += google_benchmark.rows(document, str(path), target.architecture)
    if not older:
        return rows
    what = f"{older} measurements with another device, driver, compiler or parameter than the last of their kind"
    return rows + Reading(complaints=(UserError(str(path), f"{what} are left out", "tune each in its own folder"),))


def _split(entries: Iterable[Entry]) -> tuple[list[Entry], int]:
    """Of each key the entry that counts, in the order of their commits; and how many entries are no generators'."""
    best: dict[str, Entry] = {}
    others = 0
    for entry in entries:
        if entry.problem.type.operation != OPERATION:
            others += 1
        elif entry.round in ROUNDS and not entry.measurement.raced:
            before = best.get(entry.key)
            if before is None or ROUNDS.index(entry.round) > ROUNDS.index(before.round):
                best.pop(entry.key, None)
                best[entry.key] = entry
    return list(best.values()), others


def _latest(measured: Iterable[Entry]) -> tuple[list[tuple[Target, google_benchmark.Entry]], int]:
    """One entry for each launch shape of a case, the last; without those that cannot be compared with the last of its
    case, which are counted."""
    settings: dict[Case, tuple[object, ...]] = {}
    cells: dict[tuple[Case, tuple[object, ...], LaunchShape], tuple[Target, google_benchmark.Entry]] = {}
    for entry in measured:
        config = entry.solution.configuration
        shape = LaunchShape(config.integer("BlockSize"), config.integer("GridSize"))
        made = google_benchmark.entry(entry.problem, shape, entry.measurement)
        case = entry.target.architecture, made.generator, made.distribution, made.value_type, made.bytes
        settings[case] = setting = _setting(entry)
        cells[case, setting, shape] = entry.target, made
    kept = [cell for (case, setting, _), cell in cells.items() if settings[case] == setting]
    return kept, len(cells) - len(kept)


def _setting(entry: Entry) -> tuple[object, ...]:
    """What must be alike for two speeds to be compared. The seed may differ: no speed depends on it."""
    problem, target = entry.problem, entry.target
    return (
        (target.api, target.name, target.driver, entry.toolchain, entry.solution.kernel),
        (problem.type.name, problem.sizes, problem.scalars.without(("seed",))),
    )
