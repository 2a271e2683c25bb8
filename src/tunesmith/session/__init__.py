"""The work of each command that runs for minutes: `frame` carries out any command's plan; each plan has a folder.

Names but `keep_server` are imported at their first use: a program starts its server before it imports the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tunesmith._collector import collector_paused
from tunesmith.bench import keep_server

if TYPE_CHECKING:
    from .frame import events
    from .frame.record import RunOutcome
    from .frame.reuse import Reuse
    from .tuning_file import (
        Forecast,
        Group,
        GroupForecast,
        SizeComparison,
        Summary,
        TuningPlan,
        compare_with_numpy,
        import_file,
        plan,
        summarise,
        tune,
    )

_TUNING_FILE = ("Forecast", "Group", "GroupForecast", "SizeComparison", "Summary", "TuningPlan")

_MODULE_OF_NAME = {
    "events": "frame.events",
    "RunOutcome": "frame.record",
    "Reuse": "frame.reuse",
    **dict.fromkeys((*_TUNING_FILE, "compare_with_numpy", "import_file", "plan", "summarise", "tune"), "tuning_file"),
}

__all__ = [
    "Forecast",
    "Group",
    "GroupForecast",
    "Reuse",
    "RunOutcome",
    "SizeComparison",
    "Summary",
    "TuningPlan",
    "compare_with_numpy",
    "events",
    "import_file",
    "keep_server",
    "plan",
    "summarise",
    "tune",
]


def __getattr__(name: str) -> Any:
    """The public name, imported at its first use."""
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with collector_paused():
        module = import_module(f"{__name__}.{_MODULE_OF_NAME[name]}")
    return module if name == "events" else getattr(module, name)
