"""What a vendor's library says of a call before it makes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LibraryPlan:
    """How a library would compute a product: in `parts` of K, in so many `waves` of work-groups, with a `workspace` of
    so many bytes. The other numbers are the library's own names for what it has: equal numbers mean the same."""

    algorithm: int
    tile: int
    parts: int
    reduction: int
    option: int
    stages: int
    cluster: int
    workspace: int
    waves: float
