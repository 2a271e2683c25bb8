"""Jinja templates of C++ headers."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from tunesmith.records import comment_text


def template(name: str) -> Template:
    """A template of `formats/templates`. Names that users choose go through the filter `comment_text`."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tunesmith.formats", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # C++, not HTML
    )
    environment.filters["comment"] = comment_text
    return environment
