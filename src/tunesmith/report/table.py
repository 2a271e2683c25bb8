"""How every printed table looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tunesmith.records import printable


class _PlainTable(Table):
    """A table whose cells hold no control characters: each cell stays on one line, with the width that it shows."""

    def add_row(self, *cells: RenderableType | None, **more: Any) -> None:
        super().add_row(*(printable(cell) if isinstance(cell, str) else cell for cell in cells), **more)


def table(*columns: str, right: Sequence[str] = (), rows: Iterable[Iterable[object]] = ()) -> Table:
    """A table, to which rows may be added; the columns in `right` are aligned to the right."""
    shown = _PlainTable(header_style="", box=None, pad_edge=False)
    for column in columns:
        shown.add_column(printable(column), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(str, row))
    return shown


def titled(title: str, *parts: RenderableType) -> Group:
    """Parts under a title. A rich table's own title would be wrapped at the table's width."""
    return Group(Text(printable(title), style="bold"), *parts)
