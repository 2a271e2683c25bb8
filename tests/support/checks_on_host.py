"""The programs that verify results on a device (`source/checks.h`), in NumPy on the fake device's memory. So the host's
part of that verification is tested without a device, and without a compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from bench_jobs import GPU
from tunesmith.bench.verification.device_programs import FLAGS, VerificationPrograms
from tunesmith.bench.verification.verify import Verifier
from tunesmith.devices import Prepared, Program
from tunesmith.devices.fake import FakeDevice, FakeMemory
from tunesmith.records import Launch, OperandArgument, Plan, Target, Zero

Memory = Mapping[str, FakeMemory]
Words = np.ndarray

PROGRAM = "checks in NumPy"
GROUPS = 3
"""Few work-groups, and no power of two."""


class CheckingDevice(FakeDevice):
    """A fake device that knows the verification programs. The fake device `host` carries out everything else. Counts
    the bytes that are read back."""

    def __init__(self, target: Target = GPU) -> None:
        super().__init__(target)
        self.host: FakeDevice = self
        self.read_bytes = 0

    def read(self, buffer: FakeMemory, size: int, offset: int = 0) -> np.ndarray:
        self.read_bytes += size
        return super().read(buffer, size, offset)

    def prepare(self, plan: Plan, programs: Sequence[Program], operands: Memory, workspace: Any) -> Prepared:
        def enqueue() -> None:
            if PROGRAM in programs:
                check(plan, operands)
            else:
                self.host.prepare(plan, programs, operands, workspace).enqueue()
                self.host.synchronize()

        return SimpleNamespace(enqueue=enqueue)


def checking_verifier(target: Target = GPU) -> tuple[CheckingDevice, Verifier]:
    device = CheckingDevice(target)
    verifier = Verifier(device)
    vars(verifier)["_device_programs"] = VerificationPrograms(PROGRAM, GROUPS)
    return device, verifier


def check(plan: Plan, operands: Memory) -> None:
    raised = [flag for step in plan.steps if isinstance(step, Launch) for flag in _flags(step)]
    assert len(set(raised)) == len(raised), "each reason has a flag of its own"
    assert set(raised) <= set(range(operands[FLAGS].size // 4))
    for step in plan.steps:
        if isinstance(step, Zero):
            operands[step.operand].bytes[step.offset : step.offset + step.size] = 0
            continue
        assert isinstance(step, Launch)
        assert (step.module, step.grid[1:], step.work_group[1:]) == (0, (1, 1), (1, 1))
        arguments = [
            operands[argument.name].bytes if isinstance(argument, OperandArgument) else argument.value
            for argument in step.arguments
        ]
        ENTRIES[step.entry](step.grid[0], step.work_group[0], *arguments)


def _flags(launch: Launch) -> list[int]:
    """The flags that a launch may raise. Their memory comes before the first of them."""
    arguments = list(launch.arguments)
    if OperandArgument(FLAGS) not in arguments:
        return []
    flag = int(arguments[arguments.index(OperandArgument(FLAGS)) + 1].value)
    return [flag, flag + 1] if launch.entry == "elements" else [flag]


def _lay(groups: int, block: int, memory: Words, words: int, begin: int, end: int, inside: int, around: int) -> None:
    memory.view(np.uint64)[:words] = around
    memory[begin:end] = _repeated(inside, end - begin)


def _guards(
    groups: int, block: int, memory: Words, words: int, begin: int, end: int, around: int, flags: Words, flag: int
) -> None:
    behind = end // 8 * 8
    _raise(flags, flag, memory[:begin].view(np.uint64) != around)
    _raise(flags, flag, memory[end : 8 * words] != _repeated(around, 8 * words - behind)[end - behind :])


def _elements(
    groups: int, block: int, memory: Words, begin: int, count: int, bits: int, poison: int, padded: int, *rest: Any
) -> None:
    *numbers, flags, flag = rest
    held = _storage(memory, begin, bits)[:count] == _repeated(poison, 8).view(f"u{bits // 8}")[0]
    belongs, position = np.ones(count, bool), np.arange(count)
    if padded:
        for stride, extent in zip(numbers[::2], numbers[1::2], strict=True):
            belongs &= position // stride < extent
            position %= stride
        belongs &= position == 0
    _raise(flags, flag, held & belongs)
    _raise(flags, flag + 1, ~held & ~belongs)


def _values(
    groups: int, block: int, memory: Words, begin: int, bits: int, exponent: int, signed: int, count: int, *rest: Any
) -> None:
    positions, value, bound, flags, flag, sums, slot = rest
    written = _numbers(memory, begin, bits, exponent, signed)[positions.view(np.uint64)[:count]]
    expected = value.view(np.float64)[:count]
    with np.errstate(all="ignore"):
        difference = written - expected
        _raise(flags, flag, ~(np.abs(difference) <= bound.view(np.float64)[:count]))
        for index, terms in enumerate((difference**2, expected**2)):
            first = (slot + index) * groups
            sums.view(np.float64)[first : first + groups] = _by_group(terms, groups, block)


def _exact(groups: int, block: int, memory: Words, begin: int, bits: int, count: int, *rest: Any) -> None:
    positions, value, flags, flag = rest
    words = _storage(memory, begin, bits)[positions.view(np.uint64)[:count]]
    _raise(flags, flag, words != value.view(np.uint64)[:count])


def _changes(
    groups: int, block: int, memory: Words, begin: int, bits: int, exponent: int, signed: int, count: int, *rest: Any
) -> None:
    old, every, flags, flag, sums, slot = rest
    now = _numbers(memory, begin, bits, exponent, signed)[:count]
    changed = (now != _numbers(old, begin, bits, exponent, signed)[:count]) | bool(every)
    _raise(flags, flag, ~np.isfinite(now))
    for index, terms in enumerate((np.where(changed, now**2, 0), changed.astype(np.float64))):
        first = (slot + index) * groups
        sums.view(np.float64)[first : first + groups] = _by_group(terms, groups, block)


def _learn(
    groups: int, block: int, memory: Words, begin: int, bits: int, exponent: int, signed: int, count: int, *rest: Any
) -> None:
    positions, value, bound, tolerance, typical = rest
    now = _numbers(memory, begin, bits, exponent, signed)[:count]
    positions.view(np.uint64)[:count] = np.arange(count)
    value.view(np.float64)[:count] = now
    bound.view(np.float64)[:count] = tolerance * (np.abs(now) + typical)


def _learn_exact(groups: int, block: int, memory: Words, begin: int, bits: int, count: int, *rest: Any) -> None:
    positions, value = rest
    positions.view(np.uint64)[:count] = np.arange(count)
    value.view(np.uint64)[:count] = _storage(memory, begin, bits)[:count]


def _digest(groups: int, block: int, memory: Words, words: int, sums: Words, slot: int) -> None:
    index = np.arange(1, words + 1, dtype=np.uint64)
    x = memory.view(np.uint64)[:words] ^ index * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    sums.view(np.uint64)[slot * groups : (slot + 1) * groups] = _by_group(x, groups, block)


ENTRIES: dict[str, Callable[..., None]] = {
    "lay": _lay,
    "guards": _guards,
    "elements": _elements,
    "values": _values,
    "exact": _exact,
    "changes": _changes,
    "learn": _learn,
    "learn_exact": _learn_exact,
    "digest": _digest,
}


def _repeated(word: int, size: int) -> Words:
    return np.full(-(-size // 8), word, np.uint64).view(np.uint8)[:size]


def _storage(memory: Words, begin: int, bits: int) -> Words:
    whole = memory[begin:]
    return whole[: whole.size // 8 * 8].view(f"u{bits // 8}")


def _numbers(memory: Words, begin: int, bits: int, exponent: int, signed: int) -> np.ndarray:
    """All elements from `begin` on, in float64."""
    types = {(16, 5): "f2", (16, 8): ml_dtypes.bfloat16, (32, 8): "f4", (64, 11): "f8", (8, 5): ml_dtypes.float8_e5m2}
    dtype = types[bits, exponent] if exponent else f"{'i' if signed else 'u'}{bits // 8}"
    with np.errstate(all="ignore"):
        return _storage(memory, begin, bits).view(dtype).astype(np.float64)


def _raise(flags: Words, flag: int, reasons: Words) -> None:
    if reasons.any():
        flags.view(np.uint32)[flag] = 1


def _by_group(terms: Words, groups: int, block: int) -> Words:
    """Each work-group's sum, where work-item number i takes every term whose number is i modulo all work-items."""
    rows = np.zeros((-(-terms.size // (groups * block)), groups, block), terms.dtype)
    rows.reshape(-1)[: terms.size] = terms
    return rows.sum(axis=(0, 2))
