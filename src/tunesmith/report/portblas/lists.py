"""`tunesmith portblas generate` and `configs` as text and as JSON objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from tunesmith.session.portblas.generate import Generated
from tunesmith.session.portblas.sets import ListedSet

from ..run import Document, fields
from ..table import table, titled

MOST_EQUALS = 20
"""Equal candidates that text shows; the list and JSON have them all."""


def generated(made: Generated) -> RenderableType:
    """Counts by array, rejections by reason with an example, equal candidates, notes, and what changed."""
    config = made.config
    raw = sum(count.raw for count in config.counts.values())
    title = f"{config.path}, mode {config.mode}: {len(made.candidates)} combinations of {raw}"
    parts: list[RenderableType] = [titled(title, _arrays(made))]
    if config.rejected:
        parts += ["", _rejected(made)]
    parts += sentences(made)
    changes = made.changes
    done = {"written": changes.written, "unchanged": changes.unchanged, "removed": changes.removed}
    if any(done.values()):
        parts.append("files: " + ", ".join(f"{len(paths)} {word}" for word, paths in done.items()))
    return Group(*parts)


def sentences(made: Generated) -> Iterator[str]:
    """What a person has to know whatever is printed: equal candidates, notes, and that there is nothing."""
    equal = [one for one in made.candidates if one.equal_to]
    if equal:
        yield f"{len(made.candidates)} combinations are {made.programs} programs:"
        yield from (f"  {one.stem} is the same as {one.equal_to}" for one in equal[:MOST_EQUALS])
        if len(equal) > MOST_EQUALS:
            yield f"  and {len(equal) - MOST_EQUALS} more; --json lists them"
    yield from (f"note: {note}" for note in made.config.notes)
    if not made.candidates:
        yield f"look at: {made.config.path} makes no combination"


def generated_document(made: Generated) -> Document:
    """All of it with stable keys (docs/json.md)."""
    config, changes = made.config, made.changes
    return {
        "config": str(config.path),
        "mode": config.mode.value,
        "about": config.about,
        "arrays": _counts(made),
        "programs": made.programs,
        "candidates": [
            {"line": one.line, "stem": one.stem, "equal_to": one.equal_to or None} for one in made.candidates
        ],
        "rejected": [
            {
                "place": one.location,
                "configuration": dict(one.combination.configuration()),
                **fields(one.rejection, "reason", "detail"),
            }
            for one in config.rejected
        ],
        "files": list(made.listed),
        "written": [str(path) for path in changes.written],
        "unchanged": [str(path) for path in changes.unchanged],
        "removed": [str(path) for path in changes.removed],
        "notes": list(config.notes),
    }


def sets(found: Sequence[ListedSet]) -> RenderableType:
    """A row a set, then what is wrong with those that cannot be read."""
    shown = table("set", "combinations", "arrays", "for", "file", right=("combinations",))
    for one in found:
        config = one.config
        arrays = ", ".join(f"{name} {count.unique}" for name, count in config.counts.items()) if config else "-"
        count = str(len(config.combinations)) if config else "-"
        shown.add_row(one.set.name, count, arrays, config.about if config else "", str(one.set.path))
    return Group(shown, *(f"look at: {sentence}" for sentence in look_at(found)))


def sets_document(found: Sequence[ListedSet]) -> Document:
    return {"sets": [_set(one) for one in found], "look_at": look_at(found)}


def look_at(found: Sequence[ListedSet]) -> list[str]:
    """Sentences: what a person should look at."""
    return [sentence for one in found for sentence in ([one.problem] if one.config is None else one.config.notes)]


def _set(one: ListedSet) -> Document:
    config = one.config
    return {
        "name": one.set.name,
        "path": str(one.set.path),
        "shipped": one.set.shipped,
        "about": config.about if config else "",
        "combinations": len(config.combinations) if config else None,
        "arrays": {name: count.unique for name, count in config.counts.items()} if config else {},
        "problem": one.problem,
    }


def _counts(made: Generated) -> Document:
    return {
        name: {"asked": count.raw, "valid": count.valid, "unique": count.unique}
        for name, count in made.config.counts.items()
    }


def _arrays(made: Generated) -> RenderableType:
    numbers = ("asked for", "valid", "unique")
    rows = ((name, count.raw, count.valid, count.unique) for name, count in made.config.counts.items())
    return table("array", *numbers, right=numbers, rows=rows)


def _rejected(made: Generated) -> RenderableType:
    rejections = [one.rejection for one in made.config.rejected]
    example = {one.reason: one.detail for one in reversed(rejections)}
    counts = Counter(one.reason for one in rejections).most_common()
    rows = ((reason, count, example[reason]) for reason, count in counts)
    return table("not valid", "count", "such as", right=("count",), rows=rows)
