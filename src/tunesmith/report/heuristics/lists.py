"""What `tunesmith heuristics design` and `learn` print: how many products of which family a list has."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tunesmith.session.heuristics.design import WrittenList

from ..run import Document
from ..table import table


def written(listed: WrittenList) -> RenderableType:
    """A line for each family, then the file."""
    shown = table("family", "products", right=("products",))
    for family, count in listed.families.items():
        shown.add_row(family, str(count))
    file = [f"wrote a tuning file for them to {listed.file}"] if listed.file else []
    return Group(shown, "", f"wrote {len(listed.rows)} products to {listed.path}", *file)


def written_document(listed: WrittenList) -> Document:
    """For `--json`."""
    return {"families": dict(listed.families), "products": len(listed.rows), "written": str(listed.path)}


def learned_document(listed: WrittenList) -> Document:
    """For `--json`, of `learn`."""
    return written_document(listed) | {"file": str(listed.file) if listed.file else None}
