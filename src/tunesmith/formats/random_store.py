"""Our own store as a file of benchmarks: of its measurements of generators, what `random tune` writes as JSON.

They become the rows that the reader of google-benchmark's files makes of that JSON, so that both say the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tunesmith.problems import OPERATIONS, beginning_of
from tunesmith.records import LaunchShape, Target, UserError
from tunesmith.store import FILE_NAME, FULL, RACE, RECHECK, Entry, Store

from . import google_benchmark
from ._reading import Reading

OPERATION = "Random"

MAGIC = b"SQLite format 3\0"

ROUNDS = (RACE, FULL, RACE + RECHECK, FULL + RECHECK)
"""What a tuning goes by, the later before the earlier."""

_REMEDY = "use the version of tunesmith that wrote it, or tune again"

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
        measured, others, unknown = _split(store.entries(), str(path))
    if not measured and unknown:
        return Reading(complaints=unknown)
    if not measured:
        what = f"holds no measurement of a generator{f', but {others} of other kernels' if others else ''}"
        raise UserError(str(path), what, "name the store of `tunesmith random tune`")
    kept, older = _latest(measured)
    by_target: dict[Target, list[google_benchmark.Entry]] = defaultdict(list)
    for target, made in kept:
        by_target[target].append(made)
    rows = Reading(complaints=unknown)
    for target, entries in by_target.items():
        document = google_benchmark.document(entries, google_benchmark.context(target, 0))
        rows += google_benchmark.rows(document, str(path), target.architecture)
    if not older:
        return rows
    what = f"{older} measurements with another device, driver, compiler or parameter than the last of their kind"
    return rows + Reading(complaints=(UserError(str(path), f"{what} are left out", "tune each in its own folder"),))


Read = tuple[Entry, LaunchShape, google_benchmark.Entry]
"""An entry with the launch shape that it is of, and as it is to be written."""


def _split(entries: Iterable[Entry], file: str) -> tuple[list[Read], int, tuple[UserError, ...]]:
    """Of each key the entry that counts, in the order of their commits; how many entries are no generators'; and which
    types of generators' problems cannot be read."""
    best: dict[str, Read] = {}
    others = 0
    unreadable: dict[str, UserError] = {}
    for entry in entries:
        if entry.problem.type.operation != OPERATION:
            others += 1
        elif entry.round in ROUNDS and not entry.measurement.raced:
            before = best.get(entry.key)
            if before is None or ROUNDS.index(entry.round) > ROUNDS.index(before[0].round):
                try:
                    read = (entry, *_written(entry))
                except UserError as error:
                    name = entry.problem.type.name
                    unreadable.setdefault(name, UserError(f"{file}: {name}", error.what, _REMEDY))
                    continue
                best.pop(entry.key, None)
                best[entry.key] = read
    return list(best.values()), others, tuple(unreadable.values())


def _written(entry: Entry) -> tuple[LaunchShape, google_benchmark.Entry]:
    """Raises UserError for what no version of ours can have measured, and for what a newer one has."""
    OPERATIONS[OPERATION].validate(entry.problem.type)
    config = entry.solution.configuration
    try:
        shape = LaunchShape(config.integer("BlockSize"), config.integer("GridSize"))
        return shape, google_benchmark.entry(entry.problem, shape, entry.measurement)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise UserError(entry.key, f"holds a measurement that cannot be read ({error})", _REMEDY) from error


def _latest(measured: Iterable[Read]) -> tuple[list[tuple[Target, google_benchmark.Entry]], int]:
    """One entry for each launch shape of a case, the last; without those that cannot be compared with the last of its
    case, which are counted."""
    settings: dict[Case, tuple[object, ...]] = {}
    cells: dict[tuple[Case, tuple[object, ...], LaunchShape], tuple[Target, google_benchmark.Entry]] = {}
    for entry, shape, made in measured:
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
