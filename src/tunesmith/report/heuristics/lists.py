"""What `tunesmith heuristics design` and `learn` print: how many products of which family a list has."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tunesmith.session.heuristics.design import WrittenList
from tunesmith.session.heuristics.plans import WrittenPlans

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


def planned(written: WrittenPlans) -> RenderableType:
    """How many plans a file has."""
    silent = f"; the library says nothing of {written.silent} others" if written.silent else ""
    timed = sum(product.seconds is not None for product in written.products)
    times = f" and its times of {timed}" if timed else ""
    stopped = f"stopped by {written.stopped} with {written.left} products left; " if written.stopped else ""
    return f"{stopped}wrote the library's plans for {len(written.products)} products{times} to {written.path}{silent}"


def planned_document(written: WrittenPlans) -> Document:
    """For `--json`, of `plans`."""
    timed = sum(product.seconds is not None for product in written.products)
    return {
        "products": len(written.products),
        "timed": timed,
        "silent": written.silent,
        "left": written.left,
        "stopped": written.stopped or None,
        "written": str(written.path),
    }
