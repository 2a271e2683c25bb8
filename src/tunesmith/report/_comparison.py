"""`tunesmith compare` as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType

from tunesmith.session.tune import Comparison

from . import _text
from ._table import table, titled


def comparison(rows: Sequence[Comparison], folder: Path) -> RenderableType:
    """Per size: the winner, GFLOP/s with interval, NumPy's, and NumPy's time over ours with its interval."""
    columns = ("size", "GFLOP/s", "±", "NumPy", "NumPy's time / ours", "95 %", "winner")
    shown = table(*columns, right=columns[1:6])
    for one in rows:
        ratio = one.ratio
        speeds = (f"{one.flops / time.seconds * 1e-9:.4g}" for time in (ratio.ours, ratio.peer))
        ours, peer = speeds
        interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
        doubt = _text.half_width(ratio.ours)[1:]
        shown.add_row(str(one.problem), ours, doubt, peer, f"{ratio.ratio:.2f}", interval, one.solution)
    files = [str(path) for path in sorted(folder.rglob("*_Final.csv"))] if folder.is_dir() else []
    logic = [str(path) for path in sorted(folder.rglob("*.yaml"))] if folder.is_dir() else [str(folder)]
    return Group(
        titled("through the library, host time, against NumPy", shown),
        "",
        *(f"CSV: {path}" for path in files),
        *(f"logic: {path}" for path in logic),
    )
