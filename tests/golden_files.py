"""Where recorded behaviour lies, and what of it is compared: all but what must vary from run to run."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tunesmith

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
CELLS_FILE = GOLDEN / "cells.json"
COMMANDS_FOLDER = GOLDEN / "commands"
EARLIER = GOLDEN / "run_917448c"
"""Folders of runs that this commit left: `tune`, `portblas`, `portblas_guided`."""
STEP_ENDS = EARLIER / "steps.json"
"""By step of `tune`, in order: the id of the last measurement that its store had when the step ended."""

VARIES = "varies"

VARYING_KEYS = (
    r"document\.seconds",
    r"document\.minutes",
    r"document\.cost_seconds\.\w+",
    r"document\.health\.\w+",
    r"document\.steps\[\]\.seconds",
    r"document\.groups\[\]\.steps\[\]\.seconds",
    r"document\.transpositions\[\]\.rows\[\]\.error",
)
"""Of documents: wall times, what was seen of the device, errors of sums that the host's libraries make."""

VARYING_TEXT = (
    r"(?<=^  date: ).*$",
    r"(?<=^  tunesmith: ).*$",
    r"(?<=^  made: ){tunesmith: .*}$",
    r"(?<=chosen by tunesmith )\S+$",
    r'(?<=^    "date": )".*"(?=,$)',
    r'(?<=^    "host_name": )".*"(?=,$)',
    r'(?<=^    "num_cpus": )\d+(?=,$)',
    r'(?<=^    "load_avg": )\[[^\]]*\]',
    r"(?<=relative error )[\d.e+-]+",
    r"(?<=Error: )[\d.e+-]+",
    r"(?<= is )-?[\d.]+, expected -?[\d.]+ within [\d.e+-]+",
)
"""Of files and documents: dates, our version, the host that wrote them, and how exact its libraries are."""

ONLY_DIGESTS, DIGESTS = (".cl",), "digests.txt"
"""Kinds of files that are long, recorded as SHA-256, and where these are."""

NOT_RECORDED = re.compile(r"(.*/)?(cache|calibration\.runs)/.*|.*\.sqlite(-wal|-shm)?")
"""Stores and what compilers keep."""

FITTED = {"stream_k_calibrate": 1e-3, "stream_k_sweep": 1e-3}
"""Commands that solve least squares, whose last digits depend on the libraries of the host: how much numbers of
theirs may differ, relative."""

ROUNDING = 1e-12
"""How much any number may: NumPy's last digit is not the same in all its versions. All else is the same to the byte."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def recorded(folder: Path) -> dict[str, str]:
    """Texts of a folder under `golden/`, by path."""
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def left(folder: Path) -> dict[str, str]:
    """What a run left: documents beside `out` and the files in it, by path, with what varies replaced."""
    paths = [*folder.glob("*.json"), *(path for path in folder.glob("out/**/*") if path.is_file())]
    named = {str(path.relative_to(folder)): path for path in sorted(paths)}
    kept = {name: path for name, path in named.items() if not NOT_RECORDED.fullmatch(name)}
    texts = {
        name: steady(name, path.read_text(), folder) for name, path in kept.items() if path.suffix not in ONLY_DIGESTS
    }
    digests = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n"
        for name, path in kept.items()
        if path.suffix in ONLY_DIGESTS
    ]
    return {**texts, **({DIGESTS: "".join(digests)} if digests else {})}


def differences(command: str, made: dict[str, str], known: dict[str, str]) -> Iterator[str]:
    """Where what was made is not what was recorded, a line each."""
    yield from (f"{name} is missing" for name in known if name not in made)
    yield from (f"{name} is new" for name in made if name not in known)
    for name in made.keys() & known.keys():
        lines, were = made[name].splitlines(), known[name].splitlines()
        tolerance = 0.0 if name == DIGESTS else FITTED.get(command, ROUNDING)
        if len(lines) != len(were):
            yield f"{name} has {len(lines)} lines, had {len(were)}"
        for number, (line, was) in enumerate(zip(lines, were, strict=False), start=1):
            if line != was and not _same_numbers(line, was, tolerance):
                yield f"{name}:{number}: {line.strip()} (was: {was.strip()})"


def _same_numbers(line: str, was: str, tolerance: float) -> bool:
    if _NUMBER.sub("#", line) != _NUMBER.sub("#", was):
        return False
    pairs = zip(_NUMBER.findall(line), _NUMBER.findall(was), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=tolerance) for a, b in pairs)


def steady(name: str, text: str, folder: Path) -> str:
    """The text of a file in a folder, or of a document beside `out`, with what varies replaced."""
    package = Path(tunesmith.__file__).parent
    for path, word in ((folder, "RUN"), (TESTS, "TESTS"), (package, "TUNESMITH")):
        text = text.replace(str(path), word)
    for pattern in VARYING_TEXT:
        text = re.sub(pattern, VARIES, text, flags=re.MULTILINE)
    return text if "/" in name else json.dumps(_steady_document(json.loads(text)), indent=1) + "\n"


def _steady_document(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _steady_document(item, f"{key}.{name}" if key else name) for name, item in value.items()}
    if isinstance(value, list):
        return [_steady_document(item, f"{key}[]") for item in value]
    varies = isinstance(value, float) and any(re.fullmatch(pattern, key) for pattern in VARYING_KEYS)
    return VARIES if varies else value
