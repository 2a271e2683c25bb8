"""What `tunesmith portblas generate` and `configs` print, as text and as JSON objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from tunesmith.session.portblas.generate import GeneratedFiles
from tunesmith.session.portblas.sets import ListedSet

from ..run import Document, fields
from ..table import table, titled

MOST_EQUALS = 20
"""Equal candidates that the text shows; the list and the JSON have all."""


def generated(result: GeneratedFiles) -> RenderableType:
    """Counts by array, rejections by reason with an example, equal candidates, notes, and counts of changed files."""
    config = result.config
    raw = sum(count.raw for count in config.counts.values())
    title = f"{config.path}, mode {config.mode}: {len(result.candidates)} combinations of {raw}"
    parts: list[RenderableType] = [titled(title, _arrays(result))]
    if config.rejected:
        parts += ["", _rejected(result)]
    parts += sentences(result)
    changes = result.changes
    done = {"written": changes.written, "unchanged": changes.unchanged, "removed": changes.removed}
    if any(done.values()):
        parts.append("files: " + ", ".join(f"{len(paths)} {word}" for word, paths in done.items()))
    return Group(*parts)


def sentences(result: GeneratedFiles) -> Iterator[str]:
    """What a person has to know in every output format: equal candidates, notes, and whether the list is empty."""
    equal = [candidate for candidate in result.candidates if candidate.equal_to]
    if equal:
        yield f"{len(result.candidates)} combinations are {result.programs} programs:"
        yield from (f"  {candidate.stem} is the same as {candidate.equal_to}" for candidate in equal[:MOST_EQUALS])
        if len(equal) > MOST_EQUALS:
            yield f"  and {len(equal) - MOST_EQUALS} more; --json lists them"
    yield from (f"note: {note}" for note in result.config.notes)
    if not result.candidates:
        yield f"look at: {result.config.path} makes no combination"


def generated_document(result: GeneratedFiles) -> Document:
    """The list for `--json`, with stable keys (docs/json.md)."""
    config, changes = result.config, result.changes
    return {
        "config": str(config.path),
        "mode": config.mode.value,
        "about": config.about,
        "arrays": _counts(result),
        "programs": result.programs,
        "candidates": [
            {"line": candidate.line, "stem": candidate.stem, "equal_to": candidate.equal_to or None}
            for candidate in result.candidates
        ],
        "rejected": [
            {
                "place": candidate.location,
                "configuration": dict(candidate.combination.configuration()),
                **fields(candidate.rejection, "reason", "detail"),
            }
            for candidate in config.rejected
        ],
        "files": list(result.listed),
        "written": [str(path) for path in changes.written],
        "unchanged": [str(path) for path in changes.unchanged],
        "removed": [str(path) for path in changes.removed],
        "notes": list(config.notes),
    }


def sets(found: Sequence[ListedSet]) -> RenderableType:
    """A row for each set, then notes on the sets and what is wrong with the unreadable ones."""
    shown = table("set", "combinations", "arrays", "for", "file", right=("combinations",))
    for entry in found:
        config = entry.config
        arrays = ", ".join(f"{name} {count.unique}" for name, count in config.counts.items()) if config else "-"
        count = str(len(config.combinations)) if config else "-"
        shown.add_row(entry.set.name, count, arrays, config.about if config else "", str(entry.set.path))
    return Group(shown, *(f"look at: {sentence}" for sentence in look_at(found)))


def sets_document(found: Sequence[ListedSet]) -> Document:
    return {"sets": [_set(entry) for entry in found], "look_at": look_at(found)}


def look_at(found: Sequence[ListedSet]) -> list[str]:
    """Sentences on what a person should look at."""
    return [
        sentence for entry in found for sentence in ([entry.problem] if entry.config is None else entry.config.notes)
    ]


def _set(entry: ListedSet) -> Document:
    config = entry.config
    return {
        "name": entry.set.name,
        "path": str(entry.set.path),
        "shipped": entry.set.shipped,
        "about": config.about if config else "",
        "combinations": len(config.combinations) if config else None,
        "arrays": {name: count.unique for name, count in config.counts.items()} if config else {},
        "problem": entry.problem,
    }


def _counts(result: GeneratedFiles) -> Document:
    return {
        name: {"asked": count.raw, "valid": count.valid, "unique": count.unique}
        for name, count in result.config.counts.items()
    }


def _arrays(result: GeneratedFiles) -> RenderableType:
    numbers = ("asked for", "valid", "unique")
    rows = ((name, count.raw, count.valid, count.unique) for name, count in result.config.counts.items())
    return table("array", *numbers, right=numbers, rows=rows)


def _rejected(result: GeneratedFiles) -> RenderableType:
    rejections = [rejected.rejection for rejected in result.config.rejected]
    example = {rejection.reason: rejection.detail for rejection in reversed(rejections)}
    counts = Counter(rejection.reason for rejection in rejections).most_common()
    rows = ((reason, count, example[reason]) for reason, count in counts)
    return table("not valid", "count", "such as", right=("count",), rows=rows)
