"""Products on the host that are larger than a device's largest buffer: computed in halves, and halves of halves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tunesmith.library.arrays._view import View

from ._checked_call import Arguments, CheckedCall

CUT = {"batch": ("a", "b", "c", "out"), "rows": ("a", "c", "out"), "columns": ("b", "c", "bias", "out")}
"""The arguments that are cut when the result is cut along an axis. The other arguments serve both halves."""


@dataclass(frozen=True, slots=True)
class Halved:
    """Two calls, for the first and the second half of the result along an axis ("batch", "rows" or "columns") of length
    `extent`."""

    axis: str
    extent: int

    def halves(self, arguments: Arguments) -> Iterator[Arguments]:
        """The arguments of the two calls, as views. `arguments` must have an `out`."""
        middle = self.extent // 2
        for half in (slice(0, middle), slice(middle, None)):
            parts = {name: _part(getattr(arguments, name), self.axis, half) for name in CUT[self.axis]}
            yield arguments._replace(**parts)


def halved(call: CheckedCall, most: int) -> Halved | None:
    """The cut of the largest matrix if its elements take more than `most` bytes. None if they do not, or if the axis to
    cut has a single element."""
    sizes = {name: _bytes(x) for name, x in call.matrices.items()}
    name = max(sizes, key=sizes.__getitem__)
    if sizes[name] <= most:
        return None
    x, (rows, columns, batch, _) = call.matrices[name], call.sizes
    if batch > 1 and x.strides[0] != 0:
        return Halved("batch", batch)
    along_rows = name == "a" or (name != "b" and x.strides[1] >= x.strides[2])
    extent = rows if along_rows else columns
    return Halved("rows" if along_rows else "columns", extent) if extent > 1 else None


def spread_out(call: CheckedCall, most: int) -> list[str]:
    """Matrices whose elements take at most `most` bytes but span more: halves of larger matrices, cut across."""
    return [name for name, x in call.matrices.items() if _bytes(x) <= most < x.span]


def _bytes(x: View) -> int:
    """Bytes of the elements. A matrix that serves a whole batch counts once."""
    return x.first().nbytes if x.strides[0] == 0 else x.nbytes


def _part(x: Any, axis: str, half: slice) -> Any:
    if x is None:
        return None
    if axis == "batch":
        return x[half] if x.ndim > 2 and len(x) > 1 else x
    return x[..., half, :] if axis == "rows" else x[..., half]
