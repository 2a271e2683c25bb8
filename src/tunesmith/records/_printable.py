"""Makes foreign text safe to show: characters that a terminal, XML or C++ would interpret are written as escapes."""

from __future__ import annotations

import unicodedata

LINE_CHARACTERS = "\n\t"
"""The characters to keep in a text of several lines."""


def printable(text: str, keep: str = "") -> str:
    """The text with every invisible character as an escape such as `\\x1b`, `\\n`, `\\u202e`, except those in `keep`.

    Invisible are control characters, line separators, marks that change the direction of writing, lone surrogates
    (bytes of a file's name that are not UTF-8), and the characters that XML 1.0 forbids (section 2.2). Data files
    (JSON, YAML, CSV, the store) quote names instead, and keep them unchanged.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character in keep or _is_visible(character) else _escaped(character) for character in text
    )


def comment_text(text: str) -> str:
    """The text as the end of a C++ comment's line. A backslash at the end, or its trigraph, would make the next line
    part of the comment; then ` (end)` is added."""
    shown = printable(text)
    for end in ("\\", "??/"):
        if shown.rstrip().endswith(end):
            return f"{shown} (end)"
    return shown


def _is_visible(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
