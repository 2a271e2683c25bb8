"""Which kernels of a stream-K family are meant: by a tuning file, a data type or a problem type's name, and a tile."""

from __future__ import annotations

import functools
import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import tunesmith
from tunesmith.devices import APIS
from tunesmith.kernels import LANGUAGE, OPEN, Kernel, families, family_for
from tunesmith.models.stream_k.launch import FULL_TILES, GRID, SPLIT, configured, tile_of
from tunesmith.models.stream_k.predict import (
    SPLITS,
    CalibrationOrigin,
    MacroTile,
    Room,
    StreamKDecision,
    Subject,
    Work,
    data_type_of,
)
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import DATA_TYPES, gemm_type
from tunesmith.protocol import Benchmark, Fork, Phases
from tunesmith.records import Configuration, Problem, ProblemType, Solution, Target, UserError
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.tuning_file.file import read

WORDS = {
    word: letter for letter, known in DATA_TYPES.items() if known.dest for word in known.words if not word.isdigit()
}
"""What a data type may be called, and its letter."""

TF32 = "tf32"
"""Single precision whose products may be made in TF32."""

_LETTERS = tuple(dict.fromkeys(WORDS.values()))
_TILE_PARAMETERS = (
    ("WorkGroup", "ThreadTile", "LoopUnroll"),
    ("MacroTile", "DepthU", "NumWarps"),
    ("WarpGroups", "InstructionColumns", "RowsAlong"),
)
"""What makes a macro tile, and what has to go with it: of any family those of one line."""
_SCHEDULED = Configuration({"Schedule": "StreamK"})
"""Of a family whose programs are made for one schedule each."""
_PLAIN, _STREAMED = (Configuration({GRID: grid, FULL_TILES: 0, SPLIT: 1}) for grid in (0, 1))


@dataclass(frozen=True, slots=True)
class StreamKernel:
    """A family with a configuration for a problem type, on a device or on a part of it, its `room`; what a launch
    varies is left at nothing."""

    kernel: Kernel
    type: ProblemType
    configuration: Configuration
    tile: MacroTile
    target: Target
    room: Room

    @property
    def subject(self) -> Subject:
        """What a calibration of it is of."""
        return Subject.of(self.target, self.kernel.name, data_type_of(self.type), self.tile, self.room)

    @property
    def capped(self) -> bool:
        """Whether part of the device stands for all of it: then no launch may have more work-groups than `room`."""
        return self.room.multiprocessors < self.target.compute_units

    @property
    def parts(self) -> tuple[int, ...]:
        """The parts of split-K that a model may choose; none where the family has no such thing, or would launch more
        work-groups than it may."""
        return SPLITS if SPLIT in self.kernel.space(self.type) and not self.capped else ()

    def configured(self, decision: StreamKDecision) -> Configuration:
        """The configuration that launches it; capped, with no work-group more than its grid has."""
        return configured(self.configuration, decision.on_grid if self.capped else decision.parameters)

    def laid_out(self, kind: ProblemType) -> StreamKernel | None:
        """The same family and tile for another type, with the same configuration where that is legal; None where
        nothing is."""
        same = _legal(self.kernel, kind, self.configuration, self.target)
        others = _of_type(kind, TileFilter(self.tile.m, self.tile.n, self.tile.depth), self.target)
        alike = (one for one in others if (one.kernel.name, one.tile) == (self.kernel.name, self.tile))
        found = next(itertools.chain(same, alike), None)
        return found and replace(found, room=self.room)

    def problem(self, m: int, n: int, batch: int, k: int) -> Problem:
        """Raises UserError for a batch where the type has none."""
        sizes = {"M": m, "N": n, "Batch": batch, "K": k}
        if "Batch" not in self.type.indices and batch != 1:
            raise UserError("--size", f"{self.type.name} has no batch, {batch} was given", "name a type with one")
        return Problem(self.type, tuple(sizes[index] for index in self.type.indices))

    def problem_of(self, work: Work) -> Problem:
        """A problem of whole tiles that is such work."""
        return self.problem(work.down * self.tile.m, work.tiles // work.down * self.tile.n, 1, work.k)


@dataclass(frozen=True, slots=True)
class TileFilter:
    """A tile that is asked for; a `depth` of None takes any."""

    m: int
    n: int
    depth: int | None = None

    @staticmethod
    def of(text: str, location: str = "--tile") -> TileFilter:
        """From `128x128x64`, or `128x128` for any depth. Raises UserError for anything else."""
        found = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})(?:x([1-9][0-9]{0,5}))?", text.strip().lower())
        if not found:
            raise UserError(location, f"{text!r} is no tile", "write rows, columns and depth, such as 128x128x64")
        return TileFilter(int(found[1]), int(found[2]), int(found[3]) if found[3] else None)

    def takes(self, tile: MacroTile) -> bool:
        return (tile.m, tile.n) == (self.m, self.n) and self.depth in (None, tile.depth)

    def __str__(self) -> str:
        return f"{self.m}x{self.n}" + (f"x{self.depth}" if self.depth else "")


def room_of(target: Target, compute_units: int | None, occupancy: int) -> Room:
    """So many of the device's compute units, or all. Raises UserError for more than it has."""
    units = compute_units or target.compute_units
    if units > target.compute_units:
        what = f"{units} is more than the {target.compute_units} of {target.name}"
        raise UserError("--compute-units", what, "give fewer, or leave it out")
    return Room(units, occupancy)


def asked(
    what: str, tile: TileFilter | None, target: Target, kernel: str = "", room: Room | None = None
) -> list[StreamKernel]:
    """The kernels that `what` (a tuning file, a data type, a problem type's name) means on a device, or in a `room` of
    it, one for each tile.

    Of a tuning file, each tile that it forks; of a type, the family's usual tile. With `tile` and `kernel` (a family's
    name), those alone. Raises UserError where there is none.
    """
    is_file = Path(what).suffix in (".yaml", ".yml") or Path(what).is_file()
    kernels = _of_file(Path(what), target) if is_file else _of_type(type_named(what), tile, target)
    found: dict[tuple[str, ProblemType, MacroTile], StreamKernel] = {}
    for one in kernels:
        if (tile is None or tile.takes(one.tile)) and kernel in ("", one.kernel.name):
            found.setdefault((one.kernel.name, one.type, one.tile), replace(one, room=room or one.room))
        if not is_file and found:
            break
    if not found:
        named = (f" by {kernel}" if kernel else "") + (f" with a tile of {tile}" if tile else "")
        remedy = "give a tile that WorkGroup x ThreadTile make, or a tuning file that has it"
        if not tile:
            able = ", ".join(f"{one.name} ({one.language})" for one in _able())
            remedy = f"give a device that runs one of {able}, and a type or file of a GEMM"
        raise UserError(what, f"no kernel that splits tiles{named} is legal on {target.name}", remedy)
    return list(found.values())


def origin_of(kernel: StreamKernel, measure: RecordedMeasure) -> CalibrationOrigin:
    """Of a calibration that is made now."""
    return CalibrationOrigin(
        kernel.target.driver,
        measure.toolchain(kernel.configuration),
        kernel.type.name,
        kernel.configuration,
        tunesmith.__version__,
        time.strftime("%Y-%m-%d"),
    )


def in_layout(kind: ProblemType, transpose_a: bool, transpose_b: bool, batched: bool) -> ProblemType:
    """The type with other transposes, with or without a batch."""
    layout = {"TransposeA": transpose_a, "TransposeB": transpose_b, "Batched": batched, "Interleaved": False}
    return OPERATIONS[kind.operation].type_of(kind.fields | layout, str, Path())


def languages() -> tuple[str, ...]:
    """Those of the families that split tiles."""
    return tuple(dict.fromkeys(one.language for one in _able()))


def _able() -> list[Kernel]:
    return [one for one in families("GEMM", hidden=False) if GRID in one.space(gemm_type())]


def type_named(what: str) -> ProblemType:
    """The GEMM of a data type, or of a name such as Cijk_Ailk_Bljk_SB. Raises UserError for another word.

    TF32's has K contiguous in both operands, which is how tensor cores read it: elsewhere copies would be timed too.
    """
    if what.lower() in WORDS:
        return gemm_type(WORDS[what.lower()])
    if what.lower() == TF32:
        return gemm_type("s", tf32=True, transpose_a=True, transpose_b=False)
    found = next((one for one in _named_types() if one.name == what), None)
    if found is None:
        remedy = f"give a tuning file, one of {', '.join((*_LETTERS, TF32))}, or a name such as Cij_Aik_Bjk_SB"
        raise UserError(what, "is no tuning file, data type or problem type", remedy)
    return found


def _named_types() -> Iterator[ProblemType]:
    """All without an epilogue."""
    plain = [gemm_type(letter, use_beta=beta) for letter in _LETTERS for beta in (True, False)]
    tf32 = [gemm_type("s", tf32=True, use_beta=beta) for beta in (True, False)]
    for kind in (*plain, *tf32):
        for a, b, batched in itertools.product(*[(False, True)] * 3):
            yield in_layout(kind, a, b, batched)


def _of_type(kind: ProblemType, tile: TileFilter | None, target: Target) -> Iterator[StreamKernel]:
    """The families in the form that suits the device, first with their defaults, then with whatever makes the tile."""
    able = [one for one in families("GEMM", hidden=False) if _streams(one, kind, target)]
    for kernel in sorted(able, key=lambda one: one.form.get("LocalMemory", True) != (target.kind == "GPU")):
        space = kernel.space(kind, target)
        start = (space.defaults | _PLAIN | _SCHEDULED).only(one.name for one in space)
        yield from _legal(kernel, kind, start, target)
        for names in _TILE_PARAMETERS if tile else ():
            if all(name in space for name in names):
                for chosen in itertools.product(*(space[name].values for name in names)):
                    config = start | dict(zip(names, chosen, strict=True))
                    yield from _legal(kernel, kind, config, target)


def _of_file(path: Path, target: Target) -> Iterator[StreamKernel]:
    """Every combination of forked values, with the first legal one of what is tuned afterwards."""
    for phases in read(path, None, target.selector).groups:
        if phases.problem_type.operation != "GEMM":
            continue
        for fork in _combinations(phases, Fork):
            tuned = (phases.start | fork | rest | _PLAIN for rest in _combinations(phases, Benchmark))
            legal = (one for config in tuned for one in _meant(config, phases.problem_type, target))
            yield from itertools.islice(legal, 1)


def _combinations(phases: Phases, step: type[Fork | Benchmark]) -> Iterator[Configuration]:
    choices = [one.choices for one in phases.steps if isinstance(one, step)]
    for chosen in itertools.product(*choices):
        yield functools.reduce(Configuration.__or__, chosen, Configuration())


def _meant(config: Configuration, kind: ProblemType, target: Target) -> Iterator[StreamKernel]:
    """The kernel that a configuration of a file means, if it can split tiles there."""
    able = APIS[target.api].languages
    for language in able if config.get(LANGUAGE, OPEN) == OPEN else (config[LANGUAGE],):
        try:
            kernel = family_for("GEMM", config | {LANGUAGE: language})
        except LookupError:
            continue
        if _streams(kernel, kind, target):
            names = [parameter.name for parameter in kernel.space(kind, target)]
            yield from _legal(kernel, kind, (config | {LANGUAGE: language}).only(names), target)


def _streams(kernel: Kernel, kind: ProblemType, target: Target) -> bool:
    return kernel.language in APIS[target.api].languages and GRID in kernel.space(kind, target)


def _legal(kernel: Kernel, kind: ProblemType, config: Configuration, target: Target) -> Iterator[StreamKernel]:
    """The kernel, where it can run with a grid."""
    if not any(kernel.rejections(configured(config, _STREAMED), kind, target)):
        tile = tile_of(Solution(kind, kernel.name, config))
        yield StreamKernel(kernel, kind, config, tile, target, Room(target.compute_units))
