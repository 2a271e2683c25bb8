"""Numbers as people read them."""

from __future__ import annotations

from tunesmith.records import Configuration, Cost, Estimate, value_text


def duration(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`: hours are shown from one hour on."""
    whole = round(max(0.0, seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def time(seconds: float) -> str:
    """Three digits and a unit from ns to s: `1.23 ms`."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def rate(units_per_second: float, unit: str = "FLOP") -> str:
    """Three digits in GFLOP/s (or giga of another unit a second); from 1000 on in TFLOP/s."""
    giga = units_per_second / 1e9
    return f"{giga / 1e3:.3g} T{unit}/s" if giga >= 1000 else f"{giga:.3g} G{unit}/s"


def half_width(estimate: Estimate) -> str:
    """Half the 95 % interval, relative to the median: `±1.2 %`."""
    return f"±{50 * (estimate.high - estimate.low) / estimate.seconds:.1f} %"


def size(count: int) -> str:
    """Bytes in the largest whole binary unit: `48 KiB`."""
    units = ("B", "KiB", "MiB", "GiB")
    power = min(max(count.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{count / 1024**power:.4g} {units[power]}"


def configuration(config: Configuration) -> str:
    """`WorkGroup=16x16x1 ThreadTile=4x4`."""
    return " ".join(f"{name}={value_text(value)}" for name, value in config.items())


def cost(spent: Cost) -> str:
    """The wall time of compiling, verifying and timing."""
    parts = (("compiling", spent.compile), ("verifying", spent.verify), ("timing", spent.timing))
    return ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts)
