"""`tunesmith heuristics design`: a list of products made by design, as a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.logic import write_atomically
from tunesmith.models.choice.design.design import designed
from tunesmith.problems.gemm.listed import ListedGemm, gemm_list_text, read_gemm_list


@dataclass(frozen=True)
class WrittenList:
    """The products of a list, and the file that has them."""

    rows: tuple[ListedGemm, ...]
    path: Path

    @property
    def families(self) -> Mapping[str, int]:
        """The number of products of each family."""
        return Counter(row.family for row in self.rows)


def write_design(out: Path, count: int, seed: int, without: tuple[Path, ...]) -> WrittenList:
    """Write `count` products to `out`, without the sizes of the lists `without`.

    Raises UserError for a list that cannot be read, and for an existing file `out` that is no list.
    """
    left_out = [row for path in without for row in read_gemm_list(path)]
    return written_list(designed(count, seed, left_out), out)


def written_list(rows: tuple[ListedGemm, ...], out: Path) -> WrittenList:
    """Write the products. Raises UserError for an existing file that is no list, since it might be somebody's work."""
    if out.exists():
        read_gemm_list(out)
    write_atomically(out, gemm_list_text(rows))
    return WrittenList(rows, out)
