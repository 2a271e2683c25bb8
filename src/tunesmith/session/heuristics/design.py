"""`tunesmith heuristics design` and `learn`: lists of products to tune, as files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith.logic import write_atomically
from tunesmith.models.choice.design.design import BATCHED_NAMES, SINGLE_NAMES, designed
from tunesmith.models.choice.learning import products_to_learn
from tunesmith.models.choice.model_file import read_choice_model
from tunesmith.problems import MOST_GENERATED_BYTES, text_of
from tunesmith.problems.gemm.listed import ListedGemm, gemm_list_text, read_gemm_list
from tunesmith.records import UserError

from .settled import settled_file


@dataclass(frozen=True)
class WrittenList:
    """The products of a list, and its path. `file` is the tuning file that measures a model's solutions on them, if one
    was asked for."""

    rows: tuple[ListedGemm, ...]
    path: Path
    file: Path | None = None

    @property
    def families(self) -> Mapping[str, int]:
        """The number of products of each family."""
        return Counter(row.family for row in self.rows)


@dataclass(frozen=True, slots=True)
class WantedProducts:
    """`count` products of these families of the design, without the sizes of the lists `without`. Another `seed` gives
    others of the same kind."""

    count: int
    seed: int
    without: tuple[Path, ...] = ()
    families: tuple[str, ...] = ()

    @property
    def left_out(self) -> list[ListedGemm]:
        """Raises UserError for a list that cannot be read."""
        return [row for path in self.without for row in read_gemm_list(path)]

    def check_families(self) -> None:
        """Raises UserError for a family that the design does not have."""
        known = (*SINGLE_NAMES, *BATCHED_NAMES)
        for name in self.families:
            if name not in known:
                raise UserError("--family", f"{name} is no family of the design", f"there are {', '.join(known)}")


def write_design(out: Path, asked_for: WantedProducts, batched: bool = False) -> WrittenList:
    """Write products to `out`: of the families that are asked for; without any, of single matrices, or of batches.

    Raises UserError for a list that cannot be read, for an unknown family, for `batched` beside families, and for an
    existing file `out` that is no list.
    """
    asked_for.check_families()
    if batched and asked_for.families:
        raise UserError("--batched", "means nothing beside --family", "leave one of them out")
    families = asked_for.families or (BATCHED_NAMES if batched else SINGLE_NAMES)
    return written_list(designed(asked_for.count, asked_for.seed, asked_for.left_out, families), out)


def write_products_to_learn(model: Path, out: Path, asked_for: WantedProducts, file: Path | None = None) -> WrittenList:
    """Write the products that would teach the model in a file most; and to `file` a tuning file that measures the
    model's solutions on them.

    Raises UserError as `write_design`, for a file that is no choice model, for a model of other products than the
    design has, and if another text would have to be overwritten with the tuning file.
    """
    if file and file.resolve() == out.resolve():
        raise UserError(str(file), "cannot be both the list and the tuning file", "give --file another name")
    left_out, known = asked_for.left_out, read_choice_model(model)
    asked_for.check_families()
    rows = products_to_learn(known, asked_for.count, asked_for.seed, left_out, asked_for.families)
    if not rows:
        raise UserError(str(model), "the design has no product of its problem types", "fit a model to a design")
    if not file:
        return written_list(rows, out)
    text = settled_file(known, rows, os.path.relpath(out.resolve(), file.resolve().parent))
    if file.exists() and text_of(file, "YAML", MOST_GENERATED_BYTES, "give another name") != text:
        raise UserError(str(file), "is there, with another text", "give another name, or remove it")
    written = written_list(rows, out)
    write_atomically(file, text)
    return replace(written, file=file)


def written_list(rows: tuple[ListedGemm, ...], out: Path) -> WrittenList:
    """Write the products. Raises UserError for an existing file that is no list, since it might be somebody's work."""
    if out.exists():
        read_gemm_list(out)
    write_atomically(out, gemm_list_text(rows))
    return WrittenList(rows, out)
