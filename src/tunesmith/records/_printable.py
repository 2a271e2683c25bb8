"""Other people's text where it is shown: what a terminal, XML or C++ would obey is written as an escape."""

from __future__ import annotations

import unicodedata

LINES = "\n\t"
"""What a text of several lines keeps."""


def printable(text: str, keep: str = "") -> str:
    """The text with every character that is not seen as `\\x1b`, `\\n`, `\\u202e`, but for those in `keep`.

    Such are control characters, line separators, marks that turn the direction of writing, lone surrogates (bytes of a
    file's name that are no UTF-8), and what XML 1.0 has no place for (section 2.2). Files of data (JSON, YAML, CSV, the
    store) quote names instead, and keep them as they are.
    """
    if text.isprintable():
        return text
    return "".join(one if one in keep or _is_seen(one) else _escaped(one) for one in text)


def comment(text: str) -> str:
    """The text as the end of a C++ comment's line: a backslash there, or a trigraph for one, would swallow the next
    line."""
    shown = printable(text)
    for end in ("\\", "??/"):
        if shown.rstrip().endswith(end):
            return f"{shown} (end)"
    return shown


def _is_seen(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
