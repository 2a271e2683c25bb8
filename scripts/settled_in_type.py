"""Makes a tuning file that measures the package's bfloat16 solutions in another data type or on batches, without steps.

    python scripts/settled_in_type.py TYPE LIST.csv -o tune.yaml

TYPE is b, h, tf32 or f8, and LIST.csv a list of GEMMs, which the file names. The solutions are those that the choice
model of `nvidia-h200-bf16` knows of each layout, and those of the package's own file for TYPE, if there is one. Batches
get these and SMALL_TILES. Parameters that count elements along K are changed, so that they count as many bytes. What a
kernel does not have in the type is left out; what is not legal on the device, the run leaves out.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tunesmith.library._configurations import mistake_in
from tunesmith.logic import read_shipped_model, shipped_file, write_atomically
from tunesmith.models.choice.model import ChoiceModel
from tunesmith.models.choice.model_file import model_of
from tunesmith.problems.gemm import TF32, gemm_type_named, torch_type
from tunesmith.problems.gemm.listed import read_gemm_list
from tunesmith.records import Configuration, ProblemType, Solution, Value
from tunesmith.session.heuristics.settled import settled_file

KNOWN_FILE, KNOWN_ELEMENT_BYTES = "nvidia-h200-bf16", 2
OF_ELEMENTS = "DepthU", "GlobalReadVectorWidth"
MOST_STORED_BYTES = 16
SMALL_TILES = tuple(
    (tile, depth, width, warps)
    for tile, depth, warps in (
        ((16, 16), 16, 1),
        ((16, 16), 64, 1),
        ((16, 32), 32, 1),
        ((32, 16), 32, 1),
        ((32, 32), 16, 1),
        ((32, 32), 64, 2),
        ((32, 64), 32, 2),
        ((64, 32), 32, 2),
        ((64, 64), 16, 4),
    )
    for width in (1, 8)
)
"""Tiles, depths, elements of a load and warps of TritonGemm for batches of small matrices. A single matrix of such a
size leaves a GPU empty, whatever its tile is."""


@dataclass(frozen=True)
class Translation:
    """A data type: the package's file for it, the type's letter, the bytes of an operand's and a result's element, and
    values that its kernels need, by kernel and parameter."""

    file: str
    letter: str
    operand_bytes: int
    result_bytes: int
    needed: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    def type_like(self, kind: ProblemType, batched: bool = False) -> ProblemType:
        """The type of the same layout."""
        transposes = kind.fields.flag("TransposeA"), kind.fields.flag("TransposeB")
        return torch_type(self.letter, transpose_a=transposes[0], transpose_b=transposes[1], batched=batched)

    def solution_like(self, solution: Solution, batched: bool = False) -> Solution:
        values = dict(solution.configuration)
        for name in OF_ELEMENTS:
            # One element at a time is what an operand without alignment needs, in any type.
            if isinstance(number := values.get(name), int) and number != 1:
                values[name] = max(1, number * KNOWN_ELEMENT_BYTES // self.operand_bytes)
        if isinstance(number := values.get("StoreVectorWidth"), int):
            values["StoreVectorWidth"] = min(number, MOST_STORED_BYTES // self.result_bytes)
        values |= {name: value for name, value in self.needed.get(solution.kernel, {}).items() if name in values}
        return Solution(self.type_like(solution.type, batched), solution.kernel, Configuration(values))


TYPES = {
    "b": Translation("nvidia-h200-bf16-batched", "b", 2, 2),
    "h": Translation("nvidia-h200-fp16", "h", 2, 2),
    # float32 results are not stored by the copy engine.
    "tf32": Translation(
        "nvidia-h200-tf32",
        TF32,
        4,
        4,
        {"CudaWgmmaGemm": {"StorePath": "Direct"}, "TritonGemm": {"InputPrecision": "tf32"}},
    ),
    "f8": Translation("nvidia-h200-fp8", "f8", 1, 2, {"CudaWgmmaGemm": {"PromoteEvery": 1}}),
}


def model_named(name: str) -> ChoiceModel | None:
    """The model of a file of the package; None without such a file."""
    path = shipped_file(name)
    return model_of(read_shipped_model(path), name) if path else None


def solutions_in(model: ChoiceModel) -> list[Solution]:
    return [solution for kind in map(gemm_type_named, model.types) if kind for solution in model.solutions_of(kind)]


def single(solutions: Iterable[Solution]) -> list[Solution]:
    """The solutions of types without a batch."""
    return [solution for solution in solutions if not solution.type.fields.flag("Batched")]


def small_tiles(solutions: Sequence[Solution]) -> list[Solution]:
    """SMALL_TILES for each type of some solutions, otherwise as the first plain one of these."""
    first = next(filter(is_plain, solutions))
    names = "MacroTile", "DepthU", "GlobalReadVectorWidth", "NumWarps"
    changes = [dict(zip(names, values, strict=True)) for values in SMALL_TILES]
    kinds = dict.fromkeys(solution.type for solution in solutions)
    return [Solution(kind, first.kernel, first.configuration | change) for kind in kinds for change in changes]


def is_plain(solution: Solution) -> bool:
    """Whether it is a kernel of Triton that loads by its work-items, a tile each."""
    kernel, values = solution.kernel, solution.configuration
    return kernel == "TritonGemm" and values["Schedule"] == "DataParallel" and values["LoadPath"] == "Pointer"


def model_in(word: str) -> ChoiceModel:
    """The model of KNOWN_FILE with types and solutions of the data type `word`, whose expectations mean nothing."""
    known = model_named(KNOWN_FILE)
    if known is None:
        raise SystemExit(f"{KNOWN_FILE} is no file of the package")
    translation = TYPES[word]
    own = model_named(translation.file)
    settled = single(solutions_in(known))
    found = [
        *(translation.solution_like(solution) for solution in settled),
        *(translation.solution_like(solution, batched=True) for solution in (*settled, *small_tiles(settled))),
        *(solutions_in(own) if own else []),
    ]
    by_type: dict[str, dict[Solution, None]] = {}
    for solution in found:
        if mistake_in(solution) is None:
            by_type.setdefault(solution.type.name, {})[solution] = None
    every = list(dict.fromkeys((s.kernel, s.configuration) for solutions in by_type.values() for s in solutions))
    numbers = {solution: number for number, solution in enumerate(every)}
    types = {name: tuple(numbers[s.kernel, s.configuration] for s in found) for name, found in by_type.items()}
    return replace(known, types=types, solutions=tuple(every))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("list", type=Path, metavar="LIST.csv")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    sizes = os.path.relpath(options.list.resolve(), options.out.resolve().parent)
    write_atomically(options.out, settled_file(model_in(options.type), read_gemm_list(options.list), sizes))


if __name__ == "__main__":
    main()
