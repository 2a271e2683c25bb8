"""Jinja templates of drawings (SVG)."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from tunesmith.records import printable


def template(name: str) -> Template:
    """A template of `report/templates`. It escapes its values, since names of devices and kernels may hold anything."""
    return _environment().get_template(name)


def _printable(value: object) -> object:
    """The value without control characters, which XML does not allow even if escaped.

    Markup, such as a macro's output, stays as it is.
    """
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("tunesmith.report", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        finalize=_printable,
    )
