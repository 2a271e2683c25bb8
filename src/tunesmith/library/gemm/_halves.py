"""Products on the host that are larger than a device's largest buffer: made in halves, and halves of halves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tunesmith.library.arrays._view import View

from ._call import Arguments, Call

CUT = {"batch": ("a", "b", "c", "out"), "rows": ("a", "c", "out"), "columns": ("b", "c", "bias", "out")}
"""Arguments that are cut along an axis of the result; the others serve both halves."""


@dataclass(frozen=True, slots=True)
class Halved:
    """Two calls, of the first and the second half of the result along an axis of it ("batch", "rows" or "columns").
    `extent` is how long it is."""

    axis: str
    extent: int

    def halves(self, given: Arguments) -> Iterator[Arguments]:
        """The arguments of both, which are views; `out` is given."""
        middle = self.extent // 2
        for half in (slice(0, middle), slice(middle, None)):
            parts = {name: _part(getattr(given, name), self.axis, half) for name in CUT[self.axis]}
            yield given._replace(**parts)


def halved(call: Call, most: int) -> Halved | None:
    """The cut of the matrix with the most elements, where these take more than `most` bytes; None where none does, or
    the only axis to be cut has a single element."""
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


def spread_out(call: Call, most: int) -> list[str]:
    """Matrices whose elements take no more than `most` bytes, but lie in more: halves of larger ones, cut across."""
    return [name for name, x in call.matrices.items() if _bytes(x) <= most < x.span]


def _bytes(x: View) -> int:
    """Of the elements, those of a matrix that serves a whole batch once."""
    return x.first().nbytes if x.strides[0] == 0 else x.nbytes


def _part(x: Any, axis: str, half: slice) -> Any:
    if x is None:
        return None
    if axis == "batch":
        return x[half] if x.ndim > 2 and len(x) > 1 else x
    return x[..., half, :] if axis == "rows" else x[..., half]
