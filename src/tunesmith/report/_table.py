"""The house's look of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def table(*columns: str, right: Sequence[str] = (), rows: Iterable[Iterable[object]] = ()) -> Table:
    """A table, to which rows may be added; the columns in `right` are numbers."""
    made = Table(header_style="", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*map(str, row))
    return made


def titled(title: str, *parts: RenderableType) -> Group:
    """Parts under a title: not the table's own, which would be wrapped at the table's width."""
    return Group(Text(title, style="bold"), *parts)
