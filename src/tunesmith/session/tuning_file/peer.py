"""A tuned logic compared with another library on the host (for a GEMM, NumPy's BLAS), on the sizes it was tuned for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tunesmith.devices import environment
from tunesmith.devices.host_load import HostLoad
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, UserError
from tunesmith.session.frame.outputs import CACHE
from tunesmith.toolchains.blas import LoadedBlas, numpy_blas

from .compare import PeerRatio, compare

if TYPE_CHECKING:
    from tunesmith.library import LaunchRecord, Library

MOST_SETS = 64
"""The most sets of arrays: enough to exceed a cache with small arrays, without filling memory."""

WIDE = 1.5
"""An interval is too wide if its upper end is more than this many times its lower end: it then does not tell a gain of
a fifth from a loss of a fifth (1.2 / 0.8)."""
BUSY_SHARE, BUSY_LEAST = 0.1, 0.2
"""The load of other processes that is tolerated, as a share of the processors and in processors; the larger counts.
Both sides use all processors, so they lack those that others use."""
CHOSEN_BY = {
    "OpenBLAS": ("OPENBLAS_CORETYPE",),
    "MKL": ("MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE"),
    "BLIS": ("BLIS_ARCH_TYPE",),
}
"""Environment variables by which a BLAS chooses its kernels instead of by the processor."""


@dataclass(frozen=True, slots=True)
class SizeComparison:
    """One size: the solution that the library launched, and the peer's time over ours (host time of public calls)."""

    problem: Problem
    flops: float
    solution: str
    rule: str
    ratio: PeerRatio


@dataclass(frozen=True, slots=True)
class NumpyComparison:
    """All sizes compared with NumPy; `peer` is NumPy's BLAS, `look_at` has reasons to trust a figure less."""

    rows: tuple[SizeComparison, ...]
    peer: LoadedBlas
    look_at: tuple[str, ...]


def against_numpy(folder: Path) -> NumpyComparison:
    """`compare_with_numpy` on every size, with the settings and the load that must be known to read the ratios."""
    load = HostLoad()
    rows = tuple(compare_with_numpy(folder))
    peer = numpy_blas()
    look_at = (*settings_of(peer, os.environ, len(load.processors)), *conditions_of(rows, load))
    return NumpyComparison(rows, peer, look_at)


def settings_of(peer: LoadedBlas, variables: Mapping[str, str], processors: int) -> Iterator[str]:
    """Sentences on settings that keep the peer from being as fast as it can be."""
    for name in CHOSEN_BY.get(peer.name, ()):
        if value := variables.get(name):
            kernel = f", {peer.kernel}," if peer.kernel else ""
            yield (
                f"{name}={value} is set: {peer.name} does not choose its kernel{kernel} for this processor, and NumPy"
                " may be slower than it is without; unset it and compare again"
            )
    if peer.threads is not None and peer.threads < processors:
        yield (
            f"{peer.name} has {peer.threads} thread{'s' * (peer.threads > 1)} on {processors} processors; unset the"
            " variables that limit it (OMP_NUM_THREADS and its like) and compare again"
        )


def conditions_of(rows: Sequence[SizeComparison], load: HostLoad) -> Iterator[str]:
    """Sentences on a load that disturbed the comparison, and on ratios that are too uncertain."""
    processors = len(load.processors)
    others = load.others()
    if others is not None and others > max(BUSY_SHARE * processors, BUSY_LEAST):
        yield (
            f"the machine was busy with other work: {others:.1f} of {processors} processors; compare again when it is"
            " quiet"
        )
    for row in rows:
        if is_wide(row.ratio):
            yield (
                f"{row.problem}: the ratio may be anything from {row.ratio.low:.2f} to {row.ratio.high:.2f}, so it says"
                " little; compare again"
            )


def is_wide(ratio: PeerRatio) -> bool:
    """Whether the interval is too wide for the ratio to be quoted."""
    return ratio.high > WIDE * ratio.low


def compare_with_numpy(folder: Path) -> Iterator[SizeComparison]:
    """Compare on every size of every logic in a folder that NumPy can compute too. Raises UserError if there is none.

    Both sides get the same arrays. Several sets of arrays are used in turn, so that the last-level cache is equally
    cold for both sides.
    """
    from tunesmith.library import load  # imported here, since the other commands on a tuning file need no library

    # As in the bench: threads are pinned, and its compiled programs are found again.
    os.environ.update(environment(folder / CACHE if folder.is_dir() else folder.parent / CACHE))
    launched: list[LaunchRecord] = []
    compared = False
    with load(folder, launched=launched.append) as library:
        for kind in library.problem_types:
            scalars = OPERATIONS[kind.operation].scalars_of(kind.fields, str)
            for sizes in library.measured_sizes(kind):
                for comparison in _compared(library, Problem(kind, sizes, (), scalars), launched):
                    compared = True
                    yield comparison
    if not compared:
        raise UserError(str(folder), "no logic in it that NumPy computes", "give a folder that a GEMM was tuned into")


def _compared(library: Library, problem: Problem, launched: list[LaunchRecord]) -> Iterator[SizeComparison]:
    """The comparison on one problem; none if the peer cannot compute it."""
    from tunesmith.library.call_adapters import call_adapter_of, storage_for  # as in `compare_with_numpy`

    adapter, random = call_adapter_of(problem.type), np.random.default_rng(0)
    first = storage_for(problem, random)
    if adapter.peer(problem, first) is None:
        return
    count = math.ceil(2 * library.target.last_level_cache_bytes / sum(array.nbytes for array in first.values()))
    sets = [first, *(storage_for(problem, random) for _ in range(min(max(count, 2), MOST_SETS) - 1))]
    peers = [call for storage in sets if (call := adapter.peer(problem, storage))]
    ratio = compare([adapter.call(library, problem, storage) for storage in sets], peers)
    flops = OPERATIONS[problem.type.operation].flops(problem)
    yield SizeComparison(problem, flops, launched[-1].choice.name, launched[-1].choice.rule.value, ratio)
