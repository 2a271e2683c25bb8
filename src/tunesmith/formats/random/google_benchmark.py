"""google-benchmark's JSON as rocRAND's tuning benchmark writes it: reading it, and writing it for rocRAND's script.

A row's name is `generator_distribution_type_tBLOCK_bGRID/manual_time`; the architecture is in the context, under
`hdp_gcn_arch_name`. Our files also have these counters: `bytes` of a call, `bytes_per_second_low` and `_high` (95 %
interval), `samples`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tunesmith.problems import OPERATIONS
from tunesmith.problems.random import DTYPES
from tunesmith.records import (
    Estimate,
    LaunchShape,
    Measurement,
    Problem,
    RandomRow,
    Rejection,
    Target,
    UserError,
    architecture_name,
)

from .reading import (
    AGGREGATE,
    DoubtError,
    Reading,
    architecture,
    gigabytes,
    interval,
    listed_rows,
    mapping,
    no_speed,
    number,
    whole,
)

ARCHITECTURE_KEY = "hdp_gcn_arch_name"
CAUTIONS_KEY = "tunesmith_cautions"
"""A key of our own in the context: sentences on what made the times less reliable."""

# The same match as in rocRAND's script: from the start of the name, with the shortest generator; any text may follow.
_NAME = re.compile(
    r"(?P<generator>\S+?)_(?P<distribution>uniform|normal|log_normal|poisson)"
    r"_(?P<value_type>(?:unsigned_)?(?:int|short|char|long_long|float|half|double))_t(?P<block>[0-9]{1,9})_b(?P<grid>[0-9]{1,9})"
)
# The options that google-benchmark appends to a name (its user guide); an aggregate's suffix follows them.
_OPTIONS = re.compile(
    r"(?:/(?:process_time|real_time|manual_time|(?:iterations|repeats|min_time|min_warmup_time|threads):[0-9.]+s?))*"
)


@dataclass(frozen=True, slots=True)
class BenchmarkEntry:
    """One configuration's measurement, to be written. `estimate` is None for a failure, which `error` explains.

    `bytes` counts the output of one call, `iterations` all timed calls.
    """

    generator: str
    distribution: str
    value_type: str
    shape: LaunchShape
    bytes: int
    iterations: int
    estimate: Estimate | None
    error: str = ""

    @property
    def name(self) -> str:
        shape = f"t{self.shape.block}_b{self.shape.grid}"
        return f"{self.generator}_{self.distribution}_{self.value_type}_{shape}/manual_time"


def entry(problem: Problem, shape: LaunchShape, measurement: Measurement) -> BenchmarkEntry:
    """The entry for a measurement. A time from which no finite speed follows counts as a failure."""
    fields, bytes_ = problem.type.fields, int(OPERATIONS[problem.type.operation].bytes(problem))
    failure = f"{measurement.outcome.value}: {measurement.reason} {measurement.detail}"
    estimate = measurement.estimate
    if estimate and not all(_has_speed(bytes_, time) for time in (estimate.seconds, estimate.low, estimate.high)):
        failure = f"no speed: {estimate.seconds} s, from {estimate.low} to {estimate.high}"
        estimate = None
    return BenchmarkEntry(
        fields.word("Generator"),
        fields.word("Distribution"),
        fields.word("ValueType"),
        shape,
        bytes_,
        len(measurement.samples),
        estimate,
        "" if estimate else failure,
    )


def _has_speed(count: int, seconds: float) -> bool:
    return seconds > 0 and math.isfinite(count / seconds)


def read_rows(document: Mapping[str, Any], file: str, known_architecture: str = "") -> Reading:
    """Every row of a parsed file whose name matches; aggregates and failures are put aside.

    Without `known_architecture`, the architecture comes from the context or from the file's name.
    """
    context = mapping(document.get("context"))
    arch = architecture_name(known_architecture) or architecture(context.get(ARCHITECTURE_KEY), file)
    cautions = tuple(caution for caution in context.get(CAUTIONS_KEY) or () if isinstance(caution, str))
    row = partial(_row, file=file, arch=arch, usual_bytes=whole(context.get("bytes")), cautions=cautions)
    found = listed_rows(document, "benchmarks", file, (arch, f"context.{ARCHITECTURE_KEY}"), row)
    remedy = "measure it again on a quiet machine"
    return found + Reading(
        complaints=tuple(DoubtError(file, f"when it was measured, {caution}", remedy) for caution in cautions)
    )


def _row(
    raw: dict[str, Any], location: str, file: str, arch: str, usual_bytes: int, cautions: tuple[str, ...]
) -> RandomRow | UserError:
    name = raw.get("name")
    parts = _NAME.match(name) if isinstance(name, str) else None
    if parts is None or not isinstance(name, str):
        remedy = "such rows are passed over; names are like philox4_32_10_uniform_float_t256_b1024/manual_time"
        return UserError(f"{file}: {name or location}", "is no name of a generator's benchmark", remedy)
    speed = gigabytes(number(raw.get("bytes_per_second")))
    low, high = (gigabytes(number(raw.get(f"bytes_per_second_{end}"))) for end in ("low", "high"))
    return RandomRow(
        generator=parts["generator"],
        distribution=parts["distribution"],
        value_type=parts["value_type"],
        shape=LaunchShape(int(parts["block"]), int(parts["grid"])),
        architecture=arch,
        gigabytes_per_second=speed,
        file=file,
        name=name,
        bytes=whole(raw.get("bytes")) or usual_bytes,
        interval=interval(low, speed, high),
        aside=_aside(raw, name[parts.end() :]),
        cautions=cautions,
    )


def _aside(raw: dict[str, Any], tail: str) -> Rejection | None:
    """Why the row is not a measurement; None if it is. Old versions mark an aggregate only by the end of its name."""
    options = _OPTIONS.match(tail)
    rest = tail[options.end() if options else 0 :]
    if raw.get("run_type") == "aggregate" or re.fullmatch(r"_[A-Za-z]\w*", rest):
        return Rejection(AGGREGATE, str(raw.get("aggregate_name") or rest.lstrip("_")))
    if raw.get("error_occurred") or raw.get("skipped"):
        return Rejection("failed", str(raw.get("error_message") or raw.get("skip_message") or "without a message"))
    if rest:
        return Rejection("foreign name", f"the name goes on with {rest!r}")
    return no_speed(raw.get("bytes_per_second"))


def context(target: Target, output_bytes: int, **more: object) -> dict[str, object]:
    """A context for `write`: what google-benchmark's context says of a device, under rocRAND's keys, then `more`.

    The device's values are texts, as google-benchmark's `AddCustomContext` writes them.
    """
    device = {
        "bytes": output_bytes,
        "hdp_name": target.name,
        ARCHITECTURE_KEY: target.architecture,
        "hdp_multi_processor_count": target.compute_units,
        "hdp_max_threads_per_block": target.max_work_group_size,
        "hdp_total_global_mem": target.global_memory_bytes,
        "hdp_l2_cache_size": target.last_level_cache_bytes,
    }
    texts = {key: str(value) for key, value in device.items()}
    return {"executable": "tunesmith", "library_build_type": "release", **texts, **more}


def cautions_context(cautions: Sequence[str]) -> dict[str, object]:
    """The entry of a context that holds cautions; empty without cautions."""
    return {CAUTIONS_KEY: list(cautions)} if cautions else {}


def write(entries: Sequence[BenchmarkEntry], context: Mapping[str, object]) -> str:
    """The text of a file that holds `document`."""
    return json.dumps(document(entries, context), indent=2, allow_nan=False) + "\n"


def document(entries: Sequence[BenchmarkEntry], context: Mapping[str, object]) -> dict[str, Any]:
    """A file's content: rows in the order of `entries`; a failed entry has `error_occurred` and no speed.

    Raises ValueError if `context` lacks `hdp_gcn_arch_name`.
    """
    if ARCHITECTURE_KEY not in context:
        raise ValueError(f"the context has no {ARCHITECTURE_KEY}")
    return {"context": dict(context), "benchmarks": list(_written(entries))}


def _written(entries: Iterable[BenchmarkEntry]) -> Iterator[dict[str, object]]:
    for index, entry in enumerate(entries):
        milliseconds = entry.estimate.seconds * 1e3 if entry.estimate else 0.0
        yield {
            "name": entry.name,
            "family_index": index,
            "per_family_instance_index": 0,
            "run_name": entry.name,
            "run_type": "iteration",
            "repetitions": 1,
            "repetition_index": 0,
            "threads": 1,
            **({} if entry.estimate else {"error_occurred": True, "error_message": entry.error}),
            "iterations": entry.iterations,
            "real_time": milliseconds,
            "cpu_time": milliseconds,
            "time_unit": "ms",
            **_counters(entry),
        }


def _counters(entry: BenchmarkEntry) -> dict[str, object]:
    if entry.estimate is None:
        return {"bytes": entry.bytes}
    rate = entry.bytes / entry.estimate.seconds
    return {
        "bytes_per_second": rate,
        "items_per_second": rate / np.dtype(DTYPES[entry.value_type]).itemsize,
        "bytes": entry.bytes,
        "bytes_per_second_low": entry.bytes / entry.estimate.high,
        "bytes_per_second_high": entry.bytes / entry.estimate.low,
        "samples": entry.estimate.count,
    }
