"""Failures that the machine caused, not the candidate: a full disk, a kill, short memory. They are no results."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tunesmith.records import Measurement, Outcome, UserError

MACHINE_FAILED = "the machine failed"
"""Reason of a failed system call: no room, no permission, no such tool."""

COMPILER_KILLED, COMPILER_WAITED, WAITED = "compiler killed", "compiler kept waiting", "kept waiting"
"""Reasons: a compiler was killed from outside; a compiler or a worker got too little processor time."""

ROOM = 16 << 20
"""If this many bytes can be written to a folder, the disk did not cause the failure. Compilers write far less."""

WAITING_SHARE = 0.75
"""Share of the timeout. If a process was ready to run but waited longer than this for a processor, its timeout says
nothing about the candidate."""

_KILLS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXCPU", "SIGXFSZ", "SIGPWR")
"""Signals that no program sends itself by mistake. The system sends the first when memory runs out."""

_FROM_OUTSIDE: Mapping[Outcome, frozenset[str]] = {
    Outcome.COMPILE_ERROR: frozenset(
        {
            *(MACHINE_FAILED, COMPILER_KILLED, "out of memory", "no device", "no compiler", "time file write failed"),
            "compiler crashed",  # written by earlier versions, which did not look for the machine's failures
        }
    ),
    Outcome.LAUNCH_ERROR: frozenset(
        {
            *(MACHINE_FAILED, "out of memory", "no library", "not run"),
            *("device unavailable", "devices unavailable", "system not ready", "operating system"),
            *("ecc uncorrectable", "nvlink uncorrectable", "device not licensed", "mps connection failed"),
            *("mps server not ready", "mps max clients reached", "mps max connections reached"),
        }
    ),
    Outcome.TIMEOUT: frozenset({COMPILER_WAITED, WAITED}),
    Outcome.CRASH: frozenset(_KILLS),
}
"""Reasons that are never the candidate's fault, by outcome."""

_ERRNOS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.EFBIG),
    *(errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE),
)
_SYSTEM_MESSAGES = (
    *map(os.strerror, _ERRNOS),
    *("std::bad_alloc", "MemoryError", "LLVM ERROR: out of memory", "Cannot find ptxas", "libnvrtc-builtins"),
    *("failed with error code -9", "failed with error code -15"),
)
"""Texts that compilers and drivers print when the system refuses a request."""


def ended_from_outside(cause: str) -> bool:
    """Whether a process that ended with this cause (a signal's name or an exit status) was killed from outside."""
    return cause in _KILLS


def machine_failure(measurement: Measurement) -> str:
    """Why the machine is to blame for a failure; empty if the candidate is to blame.

    Only the record decides, so the answer also holds for measurements that an earlier version stored.
    """
    outcome, reason, detail = measurement.outcome, measurement.reason, measurement.detail
    if reason in _FROM_OUTSIDE.get(outcome, ()):
        return reason
    if outcome in (Outcome.COMPILE_ERROR, Outcome.LAUNCH_ERROR, Outcome.CRASH):
        if message := next((message for message in _SYSTEM_MESSAGES if message in detail), ""):
            return f"{reason}: {message}"
        if (outcome, reason) == (Outcome.COMPILE_ERROR, "build failed") and "error" not in detail.lower():
            return f"{reason}, and the compiler does not say why"  # PoCL on a full disk
    return ""


def check_room(folders: Iterable[Path]) -> None:
    """Raise the UserError that ends a run if its processes cannot write to one of these folders.

    Every compilation would fail there.
    """
    for folder in folders:
        existing = next((location for location in (folder, *folder.absolute().parents) if location.is_dir()), None)
        try:
            with tempfile.TemporaryFile(dir=existing) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, ROOM)
        except OSError as error:
            if error.errno not in _ERRNOS:
                continue
            what = f"compilers cannot write there ({error.strerror}), so nothing can be measured"
            remedy = f"see that {ROOM >> 20} MiB can be written there, and run the same command again: it goes on"
            raise UserError(str(existing), what, remedy) from None


def waiting_seconds(process: int) -> dict[str, float]:
    """Seconds that each thread of a process has waited for a processor so far, while it was ready to run; empty if the
    system does not tell."""
    seconds = {}
    with suppress(OSError, ValueError, IndexError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            # Linux, Documentation/scheduler/sched-stats: ns on a processor, ns waiting for a processor, time slices.
            seconds[thread.name] = float((thread / "schedstat").read_text().split()[1]) * 1e-9
    return seconds


def kept_waiting(process: int, before: Mapping[str, float], seconds: float) -> bool:
    """Whether others are to blame that a process gave no answer for `seconds`: it is stopped, or one of its threads
    waited for a processor most of the time. `before` is what `waiting_seconds` returned when the time began."""
    with suppress(OSError, IndexError):
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t"):
            return True
    longest = max((wait - before.get(thread, 0.0) for thread, wait in waiting_seconds(process).items()), default=0.0)
    return longest > WAITING_SHARE * seconds
