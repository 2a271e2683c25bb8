"""The batteries of tests for random numbers that are installed, against philox; asked for by `-m thorough`.

Debian has `dieharder`. PractRand's `RNG_test` must be built from its source, and TestU01 is a library only.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from contextlib import suppress

import numpy as np
import pytest

from tunesmith.problems.random.streams import words

SEED, PIECE = 20240229, 1 << 20
DIEHARDER = {
    "birthdays": 0,
    "ranks 32x32": 2,
    "ranks 6x8": 3,
    "count the ones": 8,
    "runs": 15,
    "runs of bits": 101,
    "serial": 102,
    "permutations": 202,
    "Kolmogorov and Smirnov": 204,
    "bytes": 205,
    "monobit 2": 209,
}
BATTERIES = {
    "PractRand": (["RNG_test", "stdin32", "-tlmax", "1GB"], r"\bFAIL\b"),
    **{name: (["dieharder", "-g", "200", "-d", str(test)], "FAILED") for name, test in DIEHARDER.items()},
}
"""Commands that take words from their standard input, and how they complain: of a right generator once in a million."""


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("command", "complaint"), BATTERIES.values(), ids=BATTERIES)
def test_a_battery_has_nothing_against_philox(command, complaint):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as battery:
        assert battery.stdin
        assert battery.stdout
        with suppress(BrokenPipeError):
            for first in itertools.count(0, PIECE):
                taken = words("philox4_32_10", SEED, first, 1, np.arange(PIECE), 1)
                battery.stdin.write(taken.astype("<u4").tobytes())
        report = battery.stdout.read().decode()
    assert re.search("PASSED|no anomalies", report), report
    assert not re.search(complaint, report), report
