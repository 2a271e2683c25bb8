"""Editing switches over `target_arch` in C++ text: new values go in, everything else stays."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunesmith.records import LaunchShape, UserError, comment_text

Shapes = Mapping[str, LaunchShape]
"""Launch shapes by architecture."""

SWITCHES = {"get_threads": "block", "get_blocks": "grid"}
"""The functions that switch, and the part of a launch shape that each returns."""

DOUBT = "// doubtful: "

_CASE = re.compile(r"case\s+(?:\w+::)*target_arch::(\w+)\s*:\s*(?:return\s+(\w+)\s*;)?")
_DEFAULT = re.compile(r"^[ \t]*default\s*:", re.MULTILINE)


def merged(text: str, shapes: Shapes, location: str) -> str:
    """The text with these architectures' returns replaced, or inserted before the switch's default.

    Raises UserError if a function, its switch or the default is missing, or if an architecture shares its return with
    the next case, which only a person can have written.
    """
    for function, part in SWITCHES.items():
        plain = without_comments(text)
        span = _span(plain, function)
        if span is None:
            remedy = "move the header away, and it is written anew"
            raise UserError(location, f"{function} has no switch over target_arch with a default", remedy)
        text = _with(text, plain, span, {name: getattr(shape, part) for name, shape in shapes.items()}, location)
    return text


def doubted(text: str, doubts: Mapping[str, str]) -> str:
    """The text with each doubt as a comment behind its architecture's returns; an empty doubt removes the comment."""

    def line(match: re.Match[str]) -> str:
        name = match[2]
        if name not in doubts:
            return match[0]
        return f"{match[1]}{f' {DOUBT}{comment_text(doubts[name])}' if doubts[name] else ''}"

    returns = r"^([ \t]*case\s+(?:\w+::)*target_arch::(\w+)\s*:\s*return\s+\w+\s*;)"
    return re.sub(rf"{returns}(?:[ \t]*{re.escape(DOUBT)}[^\n]*)?", line, text, flags=re.MULTILINE)


def _with(text: str, plain: str, span: tuple[int, int], values: Mapping[str, int], location: str) -> str:
    start, default = span
    pieces, position, done = [], start, set()
    for match in _CASE.finditer(plain, start, default):
        name = match[1]
        if name not in values:
            continue
        if match[2] is None:
            raise UserError(
                location, f"{name} shares its return with another architecture", "give it a return of its own"
            )
        pieces += [text[position : match.start(2)], str(values[name])]
        position = match.end(2)
        done.add(name)
    indent = " " * (len(plain[default:]) - len(plain[default:].lstrip()))
    added = "".join(
        f"{indent}case target_arch::{name}: return {value};\n" for name, value in values.items() if name not in done
    )
    return text[:start] + "".join(pieces) + text[position:default] + added + text[default:]


def _span(plain: str, function: str) -> tuple[int, int] | None:
    """Where the function's name and the line of its switch's default begin; None without such a switch."""
    for called in re.finditer(rf"\b{function}\s*\(", plain):
        switch = re.compile(r"\bswitch\s*\(").search(plain, called.end())
        default = _DEFAULT.search(plain, switch.end()) if switch else None
        between = plain[called.end() : default.start()] if default else ""
        if default and not any(re.search(rf"\b{other}\s*\(", between) for other in SWITCHES):
            return called.start(), default.start()
    return None


def without_comments(text: str) -> str:
    """The text with comments replaced by spaces, so that all positions stay."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.DOTALL)
