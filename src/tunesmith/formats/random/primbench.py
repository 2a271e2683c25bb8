"""primbench's JSON, which rocRAND's tuning has written since 2026: a list `specializations` with `meta.cfg`.

Source: primbench's documentation of its output (ROCm/rocm-libraries, shared/primbench) and what rocRAND's script reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tunesmith.records import LaunchShape, RandomRow, UserError, student_quantile

from .reading import (
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

BATCH_WINDOW = 10
"""Batches over which primbench takes the coefficient of variation, unless the settings say otherwise."""


def rows(document: Mapping[str, Any], file: str) -> Reading:
    """A row for each specialization that names an engine, a distribution, a type and a launch shape."""
    context = mapping(document.get("context"))
    arch = architecture(mapping(mapping(context.get("general")).get("gpu")).get("arch"), file)
    window = whole(mapping(context.get("settings")).get("batch_window_size")) or BATCH_WINDOW
    row = partial(_row, file=file, arch=arch, window=window)
    return listed_rows(document, "specializations", file, (arch, "context.general.gpu.arch"), row, _doubt)


def _doubt(raw: dict[str, Any]) -> str:
    return f"the noise did not settle ({raw.get('noise_percent')} %)" if raw.get("noise_timeout") is True else ""


def _row(raw: dict[str, Any], location: str, file: str, arch: str, window: int) -> RandomRow | UserError:
    meta, name = mapping(raw.get("meta")), str(raw.get("name") or location)
    words = [meta.get(key) for key in ("engine", "distribution", "type")]
    shape = LaunchShape(*(whole(mapping(meta.get("cfg")).get(key)) for key in ("threads", "blocks")))
    if not all(isinstance(word, str) and word for word in words) or not shape.threads:
        remedy = "give meta.engine, meta.distribution, meta.type, meta.cfg.threads and meta.cfg.blocks"
        return DoubtError(f"{file}: {name}", "does not say what was measured", remedy)
    engine, distribution, value_type = map(str, words)
    # rocRAND's script counts a missing speed as 0 in its means.
    speed = gigabytes(number(raw.get("bytes_per_second", 0.0)))
    return RandomRow(
        generator=engine,
        distribution=distribution,
        value_type=value_type,
        shape=shape,
        architecture=arch,
        gigabytes_per_second=speed,
        file=file,
        name=name,
        bytes=whole(number(raw.get("items")) * number(raw.get("bytes_per_item"))),
        interval=_interval(speed, number(raw.get("noise_percent")), window),
        aside=no_speed(raw.get("bytes_per_second")),
        by_primbench=True,
    )


def _interval(speed: float, noise_percent: float, window: int) -> tuple[float, float] | None:
    """Student's 95 % interval of the mean speed over `window` batches with this coefficient of variation."""
    if not noise_percent >= 0 or window < 2:
        return None
    reach = student_quantile(window - 1, 0.975) * noise_percent / 100 / window**0.5
    return interval(speed * (1 - reach), speed, speed * (1 + reach)) if 0 <= reach < 1 else None
