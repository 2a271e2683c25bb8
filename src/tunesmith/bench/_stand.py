"""The test stand inside a worker: verifies and times candidates on a device that it owns."""

from __future__ import annotations

import hashlib
import itertools
import math
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from tunesmith.devices import Device, LaunchError, Program
from tunesmith.problems import OPERATIONS, Array
from tunesmith.records import Binary, Cost, Measurement, Outcome, Plan, Problem, UserError

from ._arena import Arenas
from ._job import Policy
from ._messages import At, Candidate, Done, Interleave, Measure
from ._timing import Take, interleave, time_plan
from ._verify import Case, Wrong, verify
from .faults import reached
from .statistics import median_interval

_SHORTEST_SAMPLE = {"CPU": 20e-6, "GPU": 50e-6}
"""Seconds: some hundred times the resolution of the events of the two kinds."""
_MOST_EXECUTIONS = 256
_CASES_BYTES = 1 << 30
_PROGRAMS = 64


class Stand:
    """One device with what is kept from candidate to candidate: programs, references, operands."""

    def __init__(self, device: Device, policy: Policy, tell: Callable[[At], None]) -> None:
        self._device, self._policy, self._tell = device, policy, tell
        self._programs: OrderedDict[str, Program] = OrderedDict()
        self._cases = Cases(policy.seed)
        self._arenas = Arenas(device, policy.cold)

    def measure(self, request: Measure) -> Done:
        """Verify and time; whatever goes wrong is in the measurement."""
        watch = _Ledger()
        with watch.outcome(self._device):
            wrong = self._verified(request.candidate, 0, watch)
            if wrong:
                watch.found(Outcome.WRONG_RESULT, wrong.reason, wrong.detail)
            else:
                with watch.spending("timing"), self._taking(request.candidate) as take:
                    self._tell(At("timing"))
                    reached("timing")
                    watch.timed(time_plan(take, self._policy, request.race_above, time.perf_counter))
        return Done((watch.measurement(),), 0 if watch.poisoned else None)

    def interleave(self, request: Interleave) -> Done:
        """Time candidates of one problem in blocks; one that fails is left out and the others go on."""
        ledgers = [_Ledger() for _ in request.candidates]
        takes: dict[int, Take] = {}
        with _closing() as close:
            for index, (candidate, ledger) in enumerate(zip(request.candidates, ledgers, strict=True)):
                with ledger.outcome(self._device):
                    wrong = self._verified(candidate, index, ledger)
                    if wrong:
                        ledger.found(Outcome.WRONG_RESULT, wrong.reason, wrong.detail)
                        continue
                    takes[index] = close.enter(self._taking(candidate))
                if ledger.poisoned:
                    break
            ...
        raise NotImplementedError
