"""The logic that ships with tunesmith, for one device. What reads it is imported when a device is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tunesmith.logic import Logic
from tunesmith.problems.gemm import equally_fast, gemm_type_named
from tunesmith.records import ProblemType, Target, UserError

LoadedLogic = tuple[Path, Logic]


def shipped_logics(target: Target, warn: Callable[[str], object]) -> dict[ProblemType, LoadedLogic]:
    """A logic for each problem type: one made on this kind of device, else one made on another device of the same
    architecture, unless a type that is as fast has one of this kind of device. A damaged file is left out, with a
    warning if it is needed. The tests check the configurations in the files."""
    from tunesmith.logic import read_shipped, shipped_for

    files, damaged = shipped_for(target)
    found: dict[ProblemType, LoadedLogic] = {}
    as_fast: set[ProblemType] = set()
    for file, head in files.items():
        is_own = head.is_of(target)
        served = set(found) if is_own else found.keys() | as_fast
        if {kind.name for kind in served}.issuperset(head.types):
            continue
        try:
            logics = read_shipped(file).logics
        except UserError as reason:
            damaged.append(reason)
            continue
        kinds = map(gemm_type_named, head.types)
        of_types = {kind: (file, logic) for kind, logic in zip(kinds, logics, strict=True) if kind}
        found |= {kind: loaded for kind, loaded in of_types.items() if kind not in served}
        if is_own:
            as_fast.update(filter(None, map(equally_fast, found)))
    for error in damaged:
        warn(f"{error}; the logic in it is left out")
    return found


def of_siblings(logics: Mapping[ProblemType, LoadedLogic], target: Target) -> set[ProblemType]:
    """The types whose logic is shipped and of another device. What it says was not measured on this device."""
    from tunesmith.logic import is_shipped, read_head

    files = dict.fromkeys(file for file, _ in logics.values() if is_shipped(file))
    others = {file for file in files if not read_head(file).is_of(target)}
    return {kind for kind, (file, _) in logics.items() if file in others}


def packaged_types(logics: Mapping[ProblemType, LoadedLogic]) -> set[ProblemType]:
    """The types whose logic is the package's."""
    from tunesmith.logic import is_shipped

    return {kind for kind, (file, _) in logics.items() if is_shipped(file)}


def stand_ins(logics: Mapping[ProblemType, LoadedLogic]) -> dict[ProblemType, ProblemType]:
    """Types without a logic, each with a type of the package's logic that is as fast (`equally_fast`)."""
    others = {equally_fast(kind): kind for kind in packaged_types(logics)}
    return {other: kind for other, kind in others.items() if other is not None and other not in logics}
