"""`tunesmith devices` as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from tunesmith.devices import Found

from . import _text
from ._table import table, titled


def devices(found: Sequence[Found]) -> RenderableType:
    """Usable devices with their limits, then what is not usable and why."""
    shown = table("selector", "name", "kind", "units", "work-group", "local", "memory", "cache", "fp64")
    for one in found:
        if one.usable and one.target:
            t = one.target
            sizes = (_text.size(b) for b in (t.local_memory_bytes, t.global_memory_bytes, t.last_level_cache_bytes))
            limits = (str(t.compute_units), str(t.max_work_group_size), *sizes, "yes" if t.double_precision else "no")
            shown.add_row(t.selector, t.name, t.kind, *limits)
    unusable = [f"{one.name}: {one.problem}; {one.remedy}" for one in found if not one.usable]
    return Group(titled("devices", shown), *(["", "not usable:"] if unusable else []), *unusable)
