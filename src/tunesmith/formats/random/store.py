"""Our own store as a source of benchmark rows: its measurements of generators.

The rows are made by the reader of google-benchmark's files, from the JSON that `random tune` would write, so that the
store and that JSON give the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tunesmith.problems import OPERATIONS, beginning_of
from tunesmith.records import LaunchShape, Measurement, Target, UserError
from tunesmith.store import (
    FULL,
    RACE,
    RECHECK,
    FolderStore,
    Store,
    StoredRun,
    StoreEntry,
    StoreLocation,
    combined_rounds,
)

from . import google_benchmark
from .reading import DoubtError, Reading

OPERATION = "Random"

MAGIC = b"SQLite format 3\0"

ROUNDS = (RACE, FULL, RACE + RECHECK, FULL + RECHECK)
"""Rounds from which a tuning decides. A later round in this tuple supersedes an earlier one."""

_REMEDY = "use the version of tunesmith that wrote it, or tune again"

Case = tuple[str, str, str, str, int]
"""Architecture, generator, distribution, value type, and bytes of a call."""


def is_store(path: Path) -> bool:
    """Whether a path is an SQLite database or a folder. Raises UserError if it cannot be read."""
    return path.is_dir() or beginning_of(path, "benchmark's JSON", len(MAGIC)) == MAGIC


def store_rows(path: Path) -> Reading:
    """The rows of a store, or of the store in a run's folder.

    Raises UserError if there is no store, or if the store has no measurement of a generator.
    """
    remedy = "name the folder that `tunesmith random tune -o` wrote, or the files in this one"
    kept = FolderStore.here(path, remedy) if path.is_dir() else FolderStore(StoreLocation(path))
    file = str(kept.location)
    with Store.read(kept) as store:
        measured, others, unknown = _split(store.entries(), file)
    if not measured and unknown:
        return Reading(complaints=unknown)
    if not measured:
        what = f"holds no measurement of a generator{f', but {others} of other kernels' if others else ''}"
        raise UserError(file, what, "name the store of `tunesmith random tune`")
    newest, older = _latest(measured)
    by_target: dict[Target, list[google_benchmark.BenchmarkEntry]] = defaultdict(list)
    for target, benchmark_entry in newest:
        by_target[target].append(benchmark_entry)
    with Store.read(kept) as store:
        caution_entries = {
            target: google_benchmark.cautions_context(cautions_of(store, target)) for target in by_target
        }
    rows = Reading(complaints=unknown)
    for target, entries in by_target.items():
        document = google_benchmark.document(entries, google_benchmark.context(target, 0, **caution_entries[target]))
        rows += google_benchmark.read_rows(document, file, target.architecture)
    if not older:
        return rows
    what = f"{older} measurements with another device, driver, compiler or parameter than the last of their kind"
    return rows + Reading(complaints=(DoubtError(file, f"{what} are left out", "tune each in its own folder"),))


def cautions_of(store: Store, target: Target) -> list[str]:
    """Cautions about a device's times of generators: the notes of those runs whose measurements still count."""
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
"""An entry of the store, its launch shape, and the entry of a benchmark file that says the same."""


def _split(entries: Iterable[StoreEntry], file: str) -> tuple[list[Read], int, tuple[UserError, ...]]:
    """The generators' entries, the number of other entries, and an error for each problem type that cannot be read.

    For each key there is one entry, of the last round in `ROUNDS`, with the samples of all rounds, in commit order.
    """
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
    for entry in best.values():
        whole = replace(entry, measurement=combined_rounds(entry.measurement, rounds[entry.key]))
        try:
            read.append((whole, *_written(whole)))
        except UserError as error:
            name = entry.problem.type.name
            unreadable.setdefault(name, UserError(f"{file}: {name}", error.what, _REMEDY))
    return read, others, tuple(unreadable.values())


def _written(entry: StoreEntry) -> tuple[LaunchShape, google_benchmark.BenchmarkEntry]:
    """The launch shape and the benchmark entry of a store's entry.

    Raises UserError for an entry that this version cannot read: a newer version wrote it, or it is corrupt.
    """
    OPERATIONS[OPERATION].validate(entry.problem.type)
    config = entry.solution.configuration
    try:
        shape = LaunchShape(config.integer("BlockSize"), config.integer("GridSize"))
        return shape, google_benchmark.entry(entry.problem, shape, entry.measurement)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise UserError(entry.key, f"holds a measurement that cannot be read ({error})", _REMEDY) from error


def _latest(measured: Iterable[Read]) -> tuple[list[tuple[Target, google_benchmark.BenchmarkEntry]], int]:
    """The last entry for each launch shape of a case, and the number of entries that were left out.

    Left out are entries that cannot be compared with the last entry of their case.
    """
    settings: dict[Case, tuple[object, ...]] = {}
    cells: dict[tuple[Case, tuple[object, ...], LaunchShape], tuple[Target, google_benchmark.BenchmarkEntry]] = {}
    for entry, shape, written in measured:
        case = entry.target.architecture, written.generator, written.distribution, written.value_type, written.bytes
        settings[case] = setting = _setting(entry)
        cells[case, setting, shape] = entry.target, written
    kept = [cell for (case, setting, _), cell in cells.items() if settings[case] == setting]
    return kept, len(cells) - len(kept)


def _setting(entry: StoreEntry) -> tuple[object, ...]:
    """What two comparable speeds have in common. The seed is not in it, since no speed depends on the seed."""
    problem, target = entry.problem, entry.target
    return (
        (target.api, target.name, target.driver, entry.toolchain, entry.solution.kernel),
        (problem.type.name, problem.sizes, problem.scalars.without(("seed",))),
    )
