"""Parameter files of portBLAS's, small ones made up and where the real ones are, for several test files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tunesmith.formats.portblas.backend import TunedSize
from tunesmith.formats.portblas.lines import line, stem
from tunesmith.formats.portblas.parameter_files import Combination, ParameterFile, RuleSet, read

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data")) / "portblas"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="portBLAS's files are not there (TUNESMITH_DATA)")

LOCAL = {
    "cache_line_size": [64],
    "work_item_sizes": [[4, 4]],
    "work_group_sizes": [[8, 8]],
    "block_level_tiles": [[2, 2]],
    "double_buffer": [False],
    "no_bank_conflict_a": [False],
    "no_bank_conflict_b": [True],
    "vectorization_size": [1],
}
NON_LOCAL: dict[str, Any] = {
    "work_item_sizes": [[4, 4]],
    "work_group_sizes": [[8, 8]],
    "vectorization_size": [4],
}
INTERLEAVED = {**NON_LOCAL, "batch_level_tiles": [[4, 4]]}
TUNED = TunedSize(
    "s", False, False, False, 1024, 1024, 1024, 1,
    Combination("local", "full", 4, 64, (8, 8), (16, 8), (2, 2), (1, 1), True, False, True), 900.0,
)  # fmt: skip
TALL_SKINNY = {key: value for key, value in LOCAL.items() if key != "block_level_tiles"}


def written(folder: Path, document: object) -> Path:
    path = folder / "c.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def of(folder: Path, mode: RuleSet = RuleSet.OURS, **arrays: object) -> ParameterFile:
    return read(written(folder, arrays), mode)


def lines(config: ParameterFile) -> list[str]:
    return [line(combination, config.mode) for combination in config.combinations]


def names(config: ParameterFile) -> list[str]:
    return [f"{stem(combination, config.mode)}.cpp" for combination in config.combinations]
