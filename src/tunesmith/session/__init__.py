"""The work of each command that runs for minutes: `frame` carries out any command's plan; each plan has a folder."""

from tunesmith.bench import keep_server

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
