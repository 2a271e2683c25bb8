"""The kernels of stream-K families that a word names: a tuning file, a data type or a problem type's name."""

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
from tunesmith.kernels import LANGUAGE, OPEN, Kernel, families_of, family_for
from tunesmith.models.stream_k.decision_models import (
    SPLITS,
    CalibrationOrigin,
    DeviceCapacity,
    MacroTile,
    StreamKDecision,
    Subject,
    TiledProduct,
    data_type_of,
)
from tunesmith.models.stream_k.launch_decisions import FULL_TILES, GRID, SPLIT, tile_of, with_decision
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import DATA_TYPES, gemm_type
from tunesmith.protocol import Benchmark, Fork, Phases
from tunesmith.records import Configuration, Problem, ProblemType, Solution, Target, UserError
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.tuning_file.file import read

WORDS = {
    word: letter for letter, known in DATA_TYPES.items() if known.dest for word in known.words if not word.isdigit()
}
"""The names of data types, with their letters."""

TF32 = "tf32"
"""The word for single precision with products in TF32."""

_LETTERS = tuple(dict.fromkeys(WORDS.values()))
_TILE_PARAMETERS = (
    ("WorkGroup", "ThreadTile", "LoopUnroll"),
    ("MacroTile", "DepthU", "NumWarps"),
    ("WarpGroups", "InstructionColumns", "RowsAlong"),
)
"""The parameters that make a macro tile; each family has the parameters of one line."""
_SCHEDULED = Configuration({"Schedule": "StreamK"})
"""The setting of a family that compiles a program for each schedule."""
_PLAIN, _STREAMED = (Configuration({GRID: grid, FULL_TILES: 0, SPLIT: 1}) for grid in (0, 1))


@dataclass(frozen=True, slots=True)
class StreamKernel:
    """A family with a configuration for a problem type, on a device or on a part of it (`room`). The parameters that
    each launch decides have their neutral values in the configuration."""

    kernel: Kernel
    type: ProblemType
    configuration: Configuration
    tile: MacroTile
    target: Target
    room: DeviceCapacity

    @property
    def subject(self) -> Subject:
        """The subject of the kernel's calibration."""
        return Subject.of(self.target, self.kernel.name, data_type_of(self.type), self.tile, self.room)

    @property
    def capped(self) -> bool:
        """Whether `room` is only a part of the device; then no launch may have more work-groups than `room`."""
        return self.room.multiprocessors < self.target.compute_units

    @property
    def parts(self) -> tuple[int, ...]:
        """The numbers of split-K parts that a model may choose; none if the family has no split-K, and none if the
        kernel is `capped`, since split-K would launch too many work-groups."""
        return SPLITS if SPLIT in self.kernel.space(self.type) and not self.capped else ()

    def configured(self, decision: StreamKDecision) -> Configuration:
        """The configuration that launches a decision; if the kernel is `capped`, on exactly the decision's grid."""
        return with_decision(self.configuration, decision.on_grid if self.capped else decision.parameters)

    def laid_out(self, kind: ProblemType) -> StreamKernel | None:
        """The kernel of the same family and tile for another type, if possible with the same configuration; None if
        none is legal."""
        same = _legal(self.kernel, kind, self.configuration, self.target)
        others = _of_type(kind, TileFilter(self.tile.m, self.tile.n, self.tile.depth), self.target)
        alike = (other for other in others if (other.kernel.name, other.tile) == (self.kernel.name, self.tile))
        found = next(itertools.chain(same, alike), None)
        return found and replace(found, room=self.room)

    def problem(self, m: int, n: int, batch: int, k: int) -> Problem:
        """The problem of these sizes. Raises UserError for a batch if the type has none."""
        sizes = {"M": m, "N": n, "Batch": batch, "K": k}
        if "Batch" not in self.type.indices and batch != 1:
            raise UserError("--size", f"{self.type.name} has no batch, {batch} was given", "name a type with one")
        return Problem(self.type, tuple(sizes[index] for index in self.type.indices))

    def problem_of(self, work: TiledProduct) -> Problem:
        """A problem of whole tiles with this work."""
        return self.problem(work.down * self.tile.m, work.tiles // work.down * self.tile.n, 1, work.k)


@dataclass(frozen=True, slots=True)
class TileFilter:
    """A requested tile; a `depth` of None matches any depth."""

    m: int
    n: int
    depth: int | None = None

    @staticmethod
    def of(text: str, location: str = "--tile") -> TileFilter:
        """The filter for `128x128x64`, or `128x128` for any depth. Raises UserError for any other text."""
        found = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})(?:x([1-9][0-9]{0,5}))?", text.strip().lower())
        if not found:
            raise UserError(location, f"{text!r} is no tile", "write rows, columns and depth, such as 128x128x64")
        return TileFilter(int(found[1]), int(found[2]), int(found[3]) if found[3] else None)

    def takes(self, tile: MacroTile) -> bool:
        return (tile.m, tile.n) == (self.m, self.n) and self.depth in (None, tile.depth)

    def __str__(self) -> str:
        return f"{self.m}x{self.n}" + (f"x{self.depth}" if self.depth else "")


def room_of(target: Target, compute_units: int | None, occupancy: int) -> DeviceCapacity:
    """The room of so many of the device's compute units, or all. Raises UserError for more than the device has."""
    units = compute_units or target.compute_units
    if units > target.compute_units:
        what = f"{units} is more than the {target.compute_units} of {target.name}"
        raise UserError("--compute-units", what, "give fewer, or leave it out")
    return DeviceCapacity(units, occupancy)


def kernels_named(
    what: str, tile: TileFilter | None, target: Target, kernel: str = "", room: DeviceCapacity | None = None
) -> list[StreamKernel]:
    """The kernels that `what` (a tuning file, a data type, a problem type's name) names on a device, or in a `room` of
    it, one for each tile.

    A tuning file names each tile that it forks; a type names the family's usual tile. `tile` and `kernel` (a family's
    name) keep only those that match. Raises UserError if there is none.
    """
    is_file = Path(what).suffix in (".yaml", ".yml") or Path(what).is_file()
    candidates = _of_file(Path(what), target) if is_file else _of_type(type_named(what), tile, target)
    matching: dict[tuple[str, ProblemType, MacroTile], StreamKernel] = {}
    for candidate in candidates:
        family = candidate.kernel.name
        if (tile is None or tile.takes(candidate.tile)) and kernel in ("", family):
            matching.setdefault(
                (family, candidate.type, candidate.tile), replace(candidate, room=room or candidate.room)
            )
        if not is_file and matching:
            break
    if not matching:
        conditions = (f" by {kernel}" if kernel else "") + (f" with a tile of {tile}" if tile else "")
        remedy = "give a tile that WorkGroup x ThreadTile make, or a tuning file that has it"
        if not tile:
            offered = ", ".join(f"{family.name} ({family.language})" for family in _stream_k_families())
            remedy = f"give a device that runs one of {offered}, and a type or file of a GEMM"
        raise UserError(what, f"no kernel that splits tiles{conditions} is legal on {target.name}", remedy)
    return list(matching.values())


def origin_of(kernel: StreamKernel, measure: RecordedMeasure) -> CalibrationOrigin:
    """The origin of a calibration that is made now."""
    return CalibrationOrigin(
        kernel.target.driver,
        measure.toolchain(kernel.configuration),
        kernel.type.name,
        kernel.configuration,
        tunesmith.__version__,
        time.strftime("%Y-%m-%d"),
    )


def in_layout(kind: ProblemType, transpose_a: bool, transpose_b: bool, batched: bool) -> ProblemType:
    """The type with these transposes, with or without a batch."""
    layout = {"TransposeA": transpose_a, "TransposeB": transpose_b, "Batched": batched, "Interleaved": False}
    return OPERATIONS[kind.operation].type_of(kind.fields | layout, str, Path())


def languages() -> tuple[str, ...]:
    """The languages of the families that split tiles."""
    return tuple(dict.fromkeys(family.language for family in _stream_k_families()))


def _stream_k_families() -> list[Kernel]:
    return [family for family in families_of("GEMM", hidden=False) if GRID in family.space(gemm_type())]


def type_named(what: str) -> ProblemType:
    """The GEMM type of a data type, or of a name such as Cijk_Ailk_Bljk_SB. Raises UserError for another word.

    For TF32, K is contiguous in both operands, as tensor cores read them: other layouts would time copies too.
    """
    if what.lower() in WORDS:
        return gemm_type(WORDS[what.lower()])
    if what.lower() == TF32:
        return gemm_type("s", tf32=True, transpose_a=True, transpose_b=False)
    found = next((kind for kind in _named_types() if kind.name == what), None)
    if found is None:
        remedy = f"give a tuning file, one of {', '.join((*_LETTERS, TF32))}, or a name such as Cij_Aik_Bjk_SB"
        raise UserError(what, "is no tuning file, data type or problem type", remedy)
    return found


def _named_types() -> Iterator[ProblemType]:
    """All GEMM types without an epilogue."""
    plain = [gemm_type(letter, use_beta=beta) for letter in _LETTERS for beta in (True, False)]
    tf32 = [gemm_type("s", tf32=True, use_beta=beta) for beta in (True, False)]
    for kind in (*plain, *tf32):
        for transpose_a, transpose_b, batched in itertools.product(*[(False, True)] * 3):
            yield in_layout(kind, transpose_a, transpose_b, batched)


def _of_type(kind: ProblemType, tile: TileFilter | None, target: Target) -> Iterator[StreamKernel]:
    """Legal kernels for a type: first each family's defaults, then with a `tile` all combinations of its tile
    parameters.

    Families whose form suits the device (local memory on GPUs) come first.
    """
    able = [family for family in families_of("GEMM", hidden=False) if _streams(family, kind, target)]
    for kernel in sorted(able, key=lambda family: family.form.get("LocalMemory", True) != (target.kind == "GPU")):
        space = kernel.space(kind, target)
        start = (space.defaults | _PLAIN | _SCHEDULED).only(parameter.name for parameter in space)
        yield from _legal(kernel, kind, start, target)
        for names in _TILE_PARAMETERS if tile else ():
            if all(name in space for name in names):
                for values in itertools.product(*(space[name].values for name in names)):
                    config = start | dict(zip(names, values, strict=True))
                    yield from _legal(kernel, kind, config, target)


def _of_file(path: Path, target: Target) -> Iterator[StreamKernel]:
    """A kernel for every combination of forked values, with the first legal combination of the other parameters."""
    for phases in read(path, None, target.selector).groups:
        if phases.problem_type.operation != "GEMM":
            continue
        for fork in _combinations(phases, Fork):
            tuned = (phases.start | fork | rest | _PLAIN for rest in _combinations(phases, Benchmark))
            legal = (kernel for config in tuned for kernel in _configured(config, phases.problem_type, target))
            yield from itertools.islice(legal, 1)


def _combinations(phases: Phases, step: type[Fork | Benchmark]) -> Iterator[Configuration]:
    """Every combination of the choices of all steps of a kind."""
    choices = [candidate.choices for candidate in phases.steps if isinstance(candidate, step)]
    for combination in itertools.product(*choices):
        yield functools.reduce(Configuration.__or__, combination, Configuration())


def _configured(config: Configuration, kind: ProblemType, target: Target) -> Iterator[StreamKernel]:
    """The kernels that a configuration of a file names, in each language that it allows, if they can split tiles."""
    runnable = APIS[target.api].languages
    for language in runnable if config.get(LANGUAGE, OPEN) == OPEN else (config[LANGUAGE],):
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
    """The kernel of a configuration, if it is legal with a stream-K grid."""
    if not any(kernel.rejections(with_decision(config, _STREAMED), kind, target)):
        tile = tile_of(Solution(kind, kernel.name, config))
        yield StreamKernel(kernel, kind, config, tile, target, DeviceCapacity(target.compute_units))
