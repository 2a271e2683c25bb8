"""Our own store as a file of benchmarks: of its measurements of generators, what `random tune` writes as JSON.

They become the rows that the reader of google-benchmark's files makes of that JSON, so that both say the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tunesmith.problems import OPERATIONS, beginning_of
from tunesmith.records import LaunchShape, Measurement, Target, UserError
from tunesmith.store import FILE_NAME, FULL, RACE, RECHECK, Store, StoredRun, StoreEntry, in_rounds

from . import google_benchmark
from .reading import DoubtError, Reading

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
    by_target: dict[Target, list[google_benchmark.BenchmarkEntry]] = defaultdict(list)
    for target, made in kept:
        by_target[target].append(made)
    with Store.read(path) as store:
        told = {target: google_benchmark.told(cautions_of(store, target)) for target in by_target}
    rows = Reading(complaints=unknown)
    for target, entries in by_target.items():
        document = google_benchmark.document(entries, google_benchmark.context(target, 0, **told[target]))
        rows += google_benchmark.rows(document, str(path), target.architecture)
    if not older:
        return rows
    what = f"{older} measurements with another device, driver, compiler or parameter than the last of their kind"
    return rows + Reading(complaints=(DoubtError(str(path), f"{what} are left out", "tune each in its own folder"),))


def cautions_of(store: Store, target: Target) -> list[str]:
    """What made the times of a device's generators less to be trusted: notes of runs whose measurements still count."""
    newest: dict[str, StoreEntry] = {}
    for entry in store.entries():
        if entry.problem.type.operation == OPERATION and entry.round in ROUNDS and entry.target.name == target.name:
            newest[entry.key] = entry
    runs = [run for run in store.runs() if run.end and run.end.note and run.start.device == target.name]
    notes = (run.end.note for run in runs if run.end and any(_is_of(run, entry) for entry in newest.values()))
    return list(dict.fromkeys(line for note in notes for line in note.split("\n")))


def _is_of(run: StoredRun, entry: StoreEntry) -> bool:
    began, ended = run.started, run.ended or run.started
    return began <= entry.measurement.started <= ended


Read = tuple[StoreEntry, LaunchShape, google_benchmark.BenchmarkEntry]
"""An entry with the launch shape that it is of, and as it is to be written."""


def _split(entries: Iterable[StoreEntry], file: str) -> tuple[list[Read], int, tuple[UserError, ...]]:
    """Of each key the entry that counts, with all its rounds, in the order of their commits; how many entries are no
    generators'; and which types of generators' problems cannot be read."""
    best: dict[str, StoreEntry] = {}
    rounds: dict[str, dict[str, Measurement]] = defaultdict(dict)
    others = 0
    unreadable: dict[str, UserError] = {}
    for entry in entries:
        rounds[entry.key][entry.round] = entry.measurement
        if entry.problem.type.operation != OPERATION:
            others += 1
        elif entry.round in ROUNDS and not entry.measurement.raced:
            before = best.get(entry.key)
            if before is None or ROUNDS.index(entry.round) > ROUNDS.index(before.round):
                best.pop(entry.key, None)
                best[entry.key] = entry
    read: list[Read] = []
    for one in best.values():
        whole = replace(one, measurement=in_rounds(one.measurement, rounds[one.key]))
        try:
            read.append((whole, *_written(whole)))
        except UserError as error:
            name = one.problem.type.name
            unreadable.setdefault(name, UserError(f"{file}: {name}", error.what, _REMEDY))
    return read, others, tuple(unreadable.values())


def _written(entry: StoreEntry) -> tuple[LaunchShape, google_benchmark.BenchmarkEntry]:
    """Raises UserError for what no version of ours can have measured, and for what a newer one has."""
    OPERATIONS[OPERATION].validate(entry.problem.type)
    config = entry.solution.configuration
    try:
        shape = LaunchShape(config.integer("BlockSize"), config.integer("GridSize"))
        return shape, google_benchmark.entry(entry.problem, shape, entry.measurement)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise UserError(entry.key, f"holds a measurement that cannot be read ({error})", _REMEDY) from error


def _latest(measured: Iterable[Read]) -> tuple[list[tuple[Target, google_benchmark.BenchmarkEntry]], int]:
    """One entry for each launch shape of a case, the last; without those that cannot be compared with the last of its
    case, which are counted."""
    settings: dict[Case, tuple[object, ...]] = {}
    cells: dict[tuple[Case, tuple[object, ...], LaunchShape], tuple[Target, google_benchmark.BenchmarkEntry]] = {}
    for entry, shape, made in measured:
        case = entry.target.architecture, made.generator, made.distribution, made.value_type, made.bytes
        settings[case] = setting = _setting(entry)
        cells[case, setting, shape] = entry.target, made
    kept = [cell for (case, setting, _), cell in cells.items() if settings[case] == setting]
    return kept, len(cells) - len(kept)


def _setting(entry: StoreEntry) -> tuple[object, ...]:
    """What must be alike for two speeds to be compared. The seed may differ: no speed depends on it."""
    problem, target = entry.problem, entry.target
    return (
        (target.api, target.name, target.driver, entry.toolchain, entry.solution.kernel),
        (problem.type.name, problem.sizes, problem.scalars.without(("seed",))),
    )
