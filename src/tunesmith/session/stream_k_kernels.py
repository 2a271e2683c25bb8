"""Which kernels of a stream-K family are meant: by a tuning file, a data type or a problem type's name, and a tile."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tunesmith.devices import APIS
from tunesmith.kernels import LANGUAGE, OPEN, Kernel, families, family_for
from tunesmith.models.stream_k import Choice, Decision, Tile, Work
from tunesmith.problems.gemm import gemm_type
from tunesmith.protocol import Benchmark, Fork, Phases
from tunesmith.records import Configuration, Problem, ProblemType, Target, UserError

from ._file import read

STREAMS = "StreamKGrid"
"""The parameter that a family has when it can split tiles by iterations."""

DATA_TYPES = {"s": "s", "single": "s", "float32": "s", "d": "d", "double": "d", "float64": "d", "h": "h", "half": "h"}

_TILE_PARAMETERS = ("WorkGroup", "ThreadTile", "LoopUnroll")
_PLAIN = Configuration({"StreamKGrid": 0, "StreamKFullTiles": 0, "GlobalSplitU": 1})


@dataclass(frozen=True, slots=True)
class StreamKernel:
    """A family with a configuration for a problem type; what a launch varies is left at nothing."""

    kernel: Kernel
    type: ProblemType
    configuration: Configuration
    tile: Tile

    @property
    def data_type(self) -> str:
        return self.type.fields.word("DataType")

    def configured(self, work: Work, choice: Choice) -> Configuration:
        """The configuration that launches a choice."""
        return self.configuration | Decision(work, choice, "").parameters

    def problem(self, m: int, n: int, batch: int, k: int) -> Problem:
        """Raises UserError for a batch where the type has none."""
        sizes = {"M": m, "N": n, "Batch": batch, "K": k}
        if "Batch" not in self.type.indices and batch != 1:
            raise UserError("--size", f"{self.type.name} has no batch, {batch} was given", "name a type with one")
        return Problem(self.type, tuple(sizes[index] for index in self.type.indices))

    def problem_of(self, work: Work) -> Problem:
        """A problem of whole tiles that is such work, as square as its number of tiles can be."""
        rows = max(side for side in range(1, int(work.tiles**0.5) + 1) if work.tiles % side == 0)
        return self.problem(rows * self.tile.m, work.tiles // rows * self.tile.n, 1, work.k)


@dataclass(frozen=True, slots=True)
class TileFilter:
    """A tile that is asked for; a `depth` of None takes any."""

    m: int
    n: int
    depth: int | None = None

    @staticmethod
    def of(text: str, place: str = "--tile") -> TileFilter:
        """From `128x128x64`, or `128x128` for any depth. Raises UserError for anything else."""
        found = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})(?:x([1-9][0-9]{0,5}))?", text.strip().lower())
        if not found:
            raise UserError(place, f"{text!r} is no tile", "write rows, columns and depth, such as 128x128x64")
        return TileFilter(int(found[1]), int(found[2]), int(found[3]) if found[3] else None)

    def takes(self, tile: Tile) -> bool:
        return (tile.m, tile.n) == (self.m, self.n) and self.depth in (None, tile.depth)

    def __str__(self) -> str:
        return f"{self.m}x{self.n}" + (f"x{self.depth}" if self.depth else "")


def asked(what: str, tile: TileFilter | None, target: Target) -> list[StreamKernel]:
    """The kernels that `what` (a tuning file, a data type, a problem type's name) means on a device, one for each tile.

    Of a tuning file, each tile that it forks; of a type, the family's usual tile. With `tile`, that one alone. Raises
    UserError where there is none.
    """
    path = Path(what)
    is_file = path.suffix in (".yaml", ".yml") or path.is_file()
    kernels = _of_file(path, target) if is_file else _of_type(what, tile, target)
    found: dict[tuple[str, ProblemType, Tile], StreamKernel] = {}
    for one in kernels:
        if tile is None or tile.takes(one.tile):
            found.setdefault((one.kernel.name, one.type, one.tile), one)
        if not is_file and found:
            break
    if not found:
        named = f" with a tile of {tile}" if tile else ""
        remedy = "give a tile that WorkGroup x ThreadTile make, or a tuning file that has it"
        if not tile:
            remedy = f"give a device that runs {' or '.join(languages())}, and a type or file of a GEMM"
        raise UserError(what, f"no kernel that splits tiles{named} is legal on {target.name}", remedy)
    return list(found.values())


def languages() -> tuple[str, ...]:
    """Those of the families that split tiles."""
    able = (one.language for one in families("GEMM", hidden=False) if STREAMS in one.space(gemm_type()))
    return tuple(dict.fromkeys(able))


def type_named(what: str) -> ProblemType:
    """The GEMM of a data type, or of a name such as Cijk_Ailk_Bljk_SB. Raises UserError for another word."""
    if what.lower() in DATA_TYPES:
        return gemm_type(DATA_TYPES[what.lower()])
    layouts = itertools.product(*[(False, True)] * 4)
    types = (
        gemm_type(letter, transpose_a=a, transpose_b=b, batched=batched, use_beta=beta)
        for a, b, batched, beta in layouts
        for letter in sorted(set(DATA_TYPES.values()))
    )
    found = next((one for one in types if one.name == what), None)
    if found is None:
        remedy = f"give a tuning file, one of {', '.join(DATA_TYPES)}, or a name such as Cij_Aik_Bjk_SB"
        raise UserError(what, "is no tuning file, data type or problem type", remedy)
    return found


def _of_type(what: str, tile: TileFilter | None, target: Target) -> Iterator[StreamKernel]:
    """The families in the form that suits the device, first with their defaults, then with whatever makes the tile."""
    kind = type_named(what)
    able = [one for one in families("GEMM", hidden=False) if _streams(one, kind, target)]
    for kernel in sorted(able, key=lambda one: one.form.get("LocalMemory", True) != (target.kind == "GPU")):
        space = kernel.space(kind, target)
        yield from _legal(kernel, kind, space.defaults | _PLAIN, target)
        values = [space[name].values for name in _TILE_PARAMETERS]
        for chosen in itertools.product(*values) if tile else ():
            config = space.defaults | _PLAIN | dict(zip(_TILE_PARAMETERS, chosen, strict=True))
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
    return kernel.language in APIS[target.api].languages and STREAMS in kernel.space(kind, target)


def _legal(kernel: Kernel, kind: ProblemType, config: Configuration, target: Target) -> Iterator[StreamKernel]:
    """The kernel, where it can run with a grid."""
    if any(kernel.rejections(config | {STREAMS: 1}, kind, target)):
        return
    derived = Configuration(kernel.derived(config))
    m, n = derived.integers("MacroTile")
    yield StreamKernel(kernel, kind, config, Tile(m, n, derived.integer("DepthU")))
