"""Where recorded behaviour lies, and what of it is compared: all but what must vary from run to run."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tunesmith
from tunesmith.store import FILE_NAME

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden"
CELLS_FILE = GOLDEN / "cells.json"
COMMANDS_FOLDER = GOLDEN / "commands"
EARLIER = GOLDEN / "run_917448c"
"""Folders of runs that this commit left: `tune`, `portblas`, `portblas_guided`. Their stores are SQL."""
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

NOT_RECORDED = re.compile(r"(.*/)?(cache|calibration\.runs)/.*|.*\.sqlite(-wal|-shm)?|(.*/)?tuning\.lock")
"""Stores, locks, and what compilers keep."""

FITTED = {"stream_k_calibrate": 1e-3, "stream_k_sweep": 1e-3}
"""Commands that solve least squares, whose last digits depend on the libraries of the host: how much numbers of
theirs may differ, relative."""

ROUNDING = 1e-12
"""How much any number may: NumPy's last digit is not the same in all its versions. All else is the same to the byte."""

FILES = "files.txt"
"""What a run wrote beside its documents: names of its files have capitals, which the project's have not."""

_HEADING = re.compile(r"^===([=-]) (.*)\n", flags=re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def recorded(folder: Path) -> dict[str, str]:
    """Texts of a folder under `golden/`, by path: documents as they lie there, the other files from `files.txt`."""
    documents = {path.name: path.read_text() for path in sorted(folder.glob("*.json"))}
    return {**documents, **unpacked(folder / FILES)}


def record(folder: Path, texts: Mapping[str, str]) -> None:
    """Make `folder` anew, so that `recorded` gives the texts back."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    documents = {name: text for name, text in texts.items() if _is_document(name)}
    for name, text in documents.items():
        (folder / name).write_text(text)
    pack(folder / FILES, {name: text for name, text in texts.items() if name not in documents})


def pack(path: Path, texts: Mapping[str, str]) -> None:
    """Files as one text, each behind a line with its path, which says where no newline ends it; nothing of nothing."""
    assert not any(map(_HEADING.search, texts.values()))
    ends = {name: ("====", "") if text.endswith("\n") else ("===-", "\n") for name, text in texts.items()}
    if texts:
        path.write_bytes("".join(f"{ends[name][0]} {name}\n{texts[name]}{ends[name][1]}" for name in texts).encode())


def unpacked(path: Path) -> dict[str, str]:
    """The inverse of `pack`."""
    _, *parts = _HEADING.split(path.read_bytes().decode()) if path.exists() else [""]
    files = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {name: text.removesuffix("\n") if mark == "-" else text for mark, name, text in files}


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


def dump_store(store: Path, to: Path) -> None:
    """A store as the text of the statements that make it, with what marks it as one of ours."""
    connection = sqlite3.connect(store)
    marks = [(name, *connection.execute(f"PRAGMA {name}").fetchone()) for name in ("application_id", "user_version")]
    lines = [*(f"PRAGMA {name} = {value};" for name, value in marks), *connection.iterdump()]
    connection.close()
    to.write_text("\n".join(lines) + "\n")


def restore(earlier: Path, folder: Path) -> Path:
    """An earlier run's folder as it was left: its store, and the files beside it."""
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / FILE_NAME)
    connection.executescript((earlier / "store.sql").read_text())
    connection.close()
    for name, text in unpacked(earlier / FILES).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


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
    if not _is_document(name):
        return text
    return json.dumps(_steady_document(json.loads(text)), indent=1) + "\n"


def _is_document(name: str) -> bool:
    return "/" not in name and name.endswith(".json")


def _steady_document(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _steady_document(item, f"{key}.{name}" if key else name) for name, item in value.items()}
    if isinstance(value, list):
        return [_steady_document(item, f"{key}[]") for item in value]
    varies = isinstance(value, float) and any(re.fullmatch(pattern, key) for pattern in VARYING_KEYS)
    return VARIES if varies else value
