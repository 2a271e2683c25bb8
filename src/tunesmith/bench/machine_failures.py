"""What the machine did, and no candidate: a full disk, a kill, memory that is short. Such a failure is no result."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tunesmith.records import Measurement, Outcome, UserError

MACHINE_FAILED = "the machine failed"
"""Reason where an operation of the system's was refused: no room, no permission, no such tool."""

COMPILER_KILLED, COMPILER_WAITED, WAITED = "compiler killed", "compiler kept waiting", "kept waiting"
"""Reasons of a compiler that was ended from outside, and of processes that got too little of a processor's time."""

ROOM = 16 << 20
"""Bytes that a folder must take for a failure not to be the disk's doing: far more than a compiler puts there."""

WAITING_SHARE = 0.75
"""Of its time. A process that could have run, and waited longer than this for a processor, shows nothing of the
candidate."""

_KILLS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXCPU", "SIGXFSZ", "SIGPWR")
"""No program does these to itself by mistake; the first is what the system sends when memory runs out."""

_FROM_OUTSIDE: Mapping[Outcome, frozenset[str]] = {
    Outcome.COMPILE_ERROR: frozenset(
        {
            *(MACHINE_FAILED, COMPILER_KILLED, "out of memory", "no device", "no compiler", "time file write failed"),
            "compiler crashed",  # of earlier versions, which did not look for what the machine did
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
"""Reasons for which no candidate is to blame, by outcome."""

_ERRNOS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.EFBIG),
    *(errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE),
)
_SAYINGS = (
    *map(os.strerror, _ERRNOS),
    *("std::bad_alloc", "MemoryError", "LLVM ERROR: out of memory", "Cannot find ptxas", "libnvrtc-builtins"),
    *("failed with error code -9", "failed with error code -15"),
)
"""What compilers and drivers print when the system refuses them something."""


def killed(cause: str) -> bool:
    """Whether a process that ended like this (a signal's name, an exit status) was ended from outside."""
    return cause in _KILLS


def blame(measurement: Measurement) -> str:
    """Why the machine, and not the candidate, is to blame for a failure; empty where it is the candidate's own.

    It goes by what is in the record, so that it holds for those that an earlier version stored.
    """
    outcome, reason, detail = measurement.outcome, measurement.reason, measurement.detail
    if reason in _FROM_OUTSIDE.get(outcome, ()):
        return reason
    if outcome in (Outcome.COMPILE_ERROR, Outcome.LAUNCH_ERROR, Outcome.CRASH):
        if saying := next((saying for saying in _SAYINGS if saying in detail), ""):
            return f"{reason}: {saying}"
        if (outcome, reason) == (Outcome.COMPILE_ERROR, "build failed") and "error" not in detail.lower():
            return f"{reason}, and the compiler does not say why"  # PoCL on a full disk
    return ""


def look_for_room(folders: Iterable[Path]) -> None:
    """Raise the UserError that ends a run whose processes can put nothing into one of these folders.

    Everything that is compiled would fail there, whatever it is.
    """
    for folder in folders:
        there = next((location for location in (folder, *folder.absolute().parents) if location.is_dir()), None)
        try:
            with tempfile.TemporaryFile(dir=there) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, ROOM)
        except OSError as error:
            if error.errno not in _ERRNOS:
                continue
            what = f"compilers cannot write there ({error.strerror}), so nothing can be measured"
            remedy = f"see that {ROOM >> 20} MiB can be written there, and run the same command again: it goes on"
            raise UserError(str(there), what, remedy) from None


def waits(process: int) -> dict[str, float]:
    """Seconds that each thread of a process was ready and waited for a processor so far; nothing where the system does
    not tell."""
    found = {}
    with suppress(OSError, ValueError, IndexError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            # Linux, Documentation/scheduler/sched-stats: ns on a processor, ns waiting for one, turns.
            found[thread.name] = float((thread / "schedstat").read_text().split()[1]) * 1e-9
    return found


def kept_waiting(process: int, before: Mapping[str, float], seconds: float) -> bool:
    """Whether it is not the process's own doing that it gave no answer for so many seconds: it is stopped, or a thread
    of it waited for a processor most of the time. `before` is what `waits` gave when the time began."""
    with suppress(OSError, IndexError):
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in ("T", "t"):
            return True
    longest = max((wait - before.get(thread, 0.0) for thread, wait in waits(process).items()), default=0.0)
    return longest > WAITING_SHARE * seconds
