"""`tunesmith select` as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from tunesmith.logic import Choice, Rule

from . import _text


def choice(sizes: Sequence[int], chosen: Choice) -> RenderableType:
    """The solution, which rule chose it, and how long it should take."""
    expected = _text.time(chosen.expected_seconds) if chosen.expected_seconds is not None else "not known"
    near = "x".join(map(str, chosen.neighbour))
    why = {
        Rule.EXACT: "exact: this size was measured",
        Rule.NEAREST: f"nearest: {near} was measured, at a distance of {chosen.distance:.2f}",
        Rule.FALLBACK: "fallback: nothing measured near is legal here",
    }[chosen.rule]
    return Group(
        f"size      {'x'.join(map(str, sizes))} of {chosen.solution.type.name}",
        f"solution  {chosen.name}",
        f"rule      {why}",
        f"expected  {expected}",
        f"kernel    {chosen.solution.kernel}: {_text.configuration(chosen.solution.configuration)}",
    )
