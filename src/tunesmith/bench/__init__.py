"""How fast is it, and is it right: worker processes, verification, timing, statistics, racing, drift."""

from .bench import Bench
from .events import Dispatched, Event, JobMeasured, ModuleCompiled, WorkerLost
from .job import Batch, Job, Policy, Race
from .processes.compilers import Compilation
from .processes.process import Child, Spawner, keep_server
from .statistics import Drift, drift, median_interval, paired_log_ratio

__all__ = [
    "Batch",
    "Bench",
    "Child",
    "Compilation",
    "Dispatched",
    "Drift",
    "Event",
    "Job",
    "JobMeasured",
    "ModuleCompiled",
    "Policy",
    "Race",
    "Spawner",
    "WorkerLost",
    "drift",
    "keep_server",
    "median_interval",
    "paired_log_ratio",
]
