"""`tunesmith heuristics fit`: tuned products become a heuristic's file. Cut points that a person pinned in it stay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from tunesmith import __version__
from tunesmith.logic import write_atomically
from tunesmith.models.intensity.fit.comparison import MOST_BUCKETS, FitSettings
from tunesmith.models.intensity.fit.fitting import (
    PERCENTILE_METRIC,
    HeuristicFit,
    fit_cut_points,
    fit_percentiles,
    fit_tree,
)
from tunesmith.models.intensity.fit.heuristic import FitOrigin, MetricRule, pinned_values
from tunesmith.models.intensity.fit.heuristic_file import dump_heuristic, read_heuristic
from tunesmith.models.intensity.fit.heuristic_python import python_source
from tunesmith.models.intensity.fit.tree import DEEPEST
from tunesmith.models.intensity.metrics import METRICS
from tunesmith.records import UserError

from .sources import ReadSample, SourceTask, read_sample, study_intensities, works_per_group


class FitMethod(StrEnum):
    """How a heuristic is fitted: buckets in one of three ways, or a choice model (`fit_choice`)."""

    DP = "dp"
    TREE = "tree"
    PERCENTILE_R2 = "percentile-r2"
    CHOICE = "choice"


@dataclass(frozen=True)
class FitTask:
    """The sources, the method, and the file `out`. A `metric` or `buckets` of None is chosen by cross-validation.

    If `python` is given, the rule is also written there as a Python function.
    """

    source: SourceTask
    out: Path
    method: FitMethod = FitMethod.DP
    metric: str | None = None
    buckets: int | None = None
    python: Path | None = None
    seed: int = 0


@dataclass(frozen=True)
class WrittenFit:
    """A fit, the sample that it rests on, the written files, and the cut points that were pinned in the old file."""

    fit: HeuristicFit
    read: ReadSample
    written: tuple[Path, ...]
    pins: tuple[float, ...]


def fit_heuristic(task: FitTask) -> WrittenFit:
    """Fit, and write. Raises UserError for sources that cannot be read or fitted, and for an existing file `task.out`
    that is no heuristic, since it might be somebody's work."""
    _check(task)
    pinned_metric, pins = _pins(task)
    read = read_sample(task.source)
    origin = _origin(task, read)
    settings = _settings(task, pinned_metric, pins)
    names = ", ".join(map(str, task.source.sources))
    try:
        match task.method:
            case FitMethod.DP:
                fit = fit_cut_points(read.sample, settings, origin)
            case FitMethod.TREE:
                fit = fit_tree(read.sample, settings, origin)
            case FitMethod.PERCENTILE_R2:
                if not read.shapes:
                    raise ValueError("a table of times has no tiles for the lines")
                intensities, works = study_intensities(read.shapes), works_per_group(read.shapes)
                fit = fit_percentiles(read.sample, intensities, works, settings, origin)
            case FitMethod.CHOICE:
                raise ValueError("a choice model is no heuristic with buckets")
    except ValueError as error:
        remedy = "give more products, or another number of --buckets; remove a pin that does not fit"
        raise UserError(names, str(error), remedy) from error
    texts = {task.out: dump_heuristic(fit.heuristic)}
    if task.python:
        texts[task.python] = python_source(fit.heuristic)
    for path, text in texts.items():
        write_atomically(path, text)
    return WrittenFit(fit, read, tuple(texts), pins)


def _check(task: FitTask) -> None:
    """Raise UserError for options that the method does not use, and for a file that would overwrite another."""
    if task.method is not FitMethod.DP:
        for option, value in (("--metric", task.metric), ("--buckets", task.buckets)):
            if value is not None:
                what = f"means nothing to --method {task.method}, which decides by itself"
                raise UserError(option, what, f"leave it out, or use --method {FitMethod.DP}")
    if task.python and task.python.resolve() in {path.resolve() for path in (task.out, *task.source.sources)}:
        what = f"{task.python} is the heuristic's file or a source, too"
        raise UserError("--python", what, "give the function a file of its own")


def _pins(task: FitTask) -> tuple[str | None, tuple[float, ...]]:
    """The metric and the pinned cut points of the file that will be replaced."""
    if not task.out.exists():
        return None, ()
    rule = read_heuristic(task.out).rule
    pins = pinned_values(rule)
    if not pins or not isinstance(rule, MetricRule):
        return None, ()
    metric = PERCENTILE_METRIC if task.method is FitMethod.PERCENTILE_R2 else task.metric
    if task.method is FitMethod.TREE or metric not in (None, rule.metric):
        what = f"cut points along {rule.metric} are pinned in it"
        raise UserError(str(task.out), what, f"fit --metric {rule.metric}, or write another file with -o")
    return rule.metric, pins


def _settings(task: FitTask, pinned_metric: str | None, pins: tuple[float, ...]) -> FitSettings:
    metric = task.metric or pinned_metric
    if metric is not None and metric not in METRICS:
        raise UserError("--metric", f"cannot be {metric}", f"give one of {', '.join(METRICS)}")
    is_tree = task.method is FitMethod.TREE
    return FitSettings(
        metrics=(metric,) if metric else tuple(METRICS),
        fewest_buckets=task.buckets or 1,
        most_buckets=task.buckets or max(MOST_BUCKETS, len(pins) + 1),
        pins=pins,
        depths=tuple(range(1, DEEPEST + 1)) if is_tree else (),
        seed=task.seed,
    )


def _origin(task: FitTask, read: ReadSample) -> FitOrigin:
    return FitOrigin(
        sources=tuple(path.name for path in task.source.sources),
        selection=task.source.selection,
        device=read.device,
        data_type=read.data_type,
        products=len(read.sample.products),
        groups=len(set(read.sample.groups)),
        operand_bytes=read.operand_bytes,
        result_bytes=read.result_bytes,
        method=task.method.value,
        tunesmith=__version__,
        date=datetime.now(UTC).date().isoformat(),
    )
