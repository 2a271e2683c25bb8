"""The logic that ships with tunesmith, for one device. What reads it is imported when a device is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tunesmith.logic import Logic
from tunesmith.problems.gemm import equally_fast
from tunesmith.records import ProblemType, Target, UserError

LoadedLogic = tuple[Path, Logic]


def shipped_logics(target: Target, warn: Callable[[str], object]) -> list[LoadedLogic]:
    """A logic for each problem type: one made on this kind of device, else one made on another device of the same
    architecture; else what a logic of a type that is as fast says (`equally_fast`). A damaged file is left out, with a
    warning. The tests check the configurations in the files."""
    from tunesmith.logic import read_shipped, shipped_for

    files, damaged = shipped_for(target)
    found: dict[ProblemType, LoadedLogic] = {}
    for file in files:
        try:
            logics = read_shipped(file).logics
        except UserError as reason:
            damaged.append(reason)
            continue
        for logic in logics:
            found.setdefault(logic.document.problem_type, (file, logic))
    for kind, (file, logic) in list(found.items()):
        if (other := equally_fast(kind)) and other not in found:
            found[other] = file, logic.for_type(other)
    for error in damaged:
        warn(f"{error}; the logic in it is left out")
    return list(found.values())


def is_of_sibling(loaded: LoadedLogic, target: Target) -> bool:
    """Whether it is shipped logic of another device, or of another type. What it says was not measured on this device,
    or not for this type."""
    from tunesmith.logic import is_shipped, read_head

    file, logic = loaded
    if not is_shipped(file):
        return False
    return not logic.document.origin.is_of(target) or logic.document.problem_type.name not in read_head(file).types
