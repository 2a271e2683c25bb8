"""The device's own programs for verification (`source/checks.h`): their compilation, and their launches as data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from tunesmith.devices import Device, LaunchError, Program
from tunesmith.problems import Expected
from tunesmith.records import Argument, Launch, Module, Operand, OperandArgument, ScalarArgument
from tunesmith.toolchains import TOOLCHAINS, CompileError

from .poison import Bytes, itemsize
from .regions import WORD, Region, is_padded

LANGUAGES = {"CUDA": "CUDA", "OpenCL": "OpenCL"}
"""What the programs are compiled as, by device API. Of any other, the host looks at the bytes."""
ENTRIES = ("lay", "guards", "elements", "values", "exact", "digest")

BLOCK = 256
_GROUPS_PER_UNIT = 8
"""Work-groups of BLOCK items that fill a GPU's multiprocessor."""
_MOST_GROUPS_ON_CPU = 255
"""PoCL compiles anew for a launch of 65,536 work-items or more."""

_EXPONENT_BITS = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11, "float8_e5m2": 5}
"""Types whose bits are an IEEE number's: sign, exponent, fraction."""

FLAGS, SUMS = "all flags", "all sums"
"""Names of the memory that launches answer in. No operand's name has a space."""

Steps = tuple[tuple[int, int], ...]


@cache
def module(language: str) -> Module:
    sources = (files(__package__).joinpath("source", name).read_text("utf-8") for name in ("dialect.h", "checks.h"))
    return Module(language, f"#define BLOCK_SIZE {BLOCK}\n" + "\n".join(sources), ENTRIES)


@dataclass(frozen=True, slots=True)
class Checks:
    """The programs, loaded on a device, and the number of work-groups that serves it."""

    program: Program
    groups: int

    @staticmethod
    def on(device: Device) -> Checks | None:
        """None where they cannot be had: no such language, no compiler, no double precision."""
        target = device.target
        language = LANGUAGES.get(target.api)
        if language is None or not target.double_precision or TOOLCHAINS[language].unavailable():
            return None
        try:
            program = device.load(TOOLCHAINS[language].compile(module(language), target))
        except (CompileError, LaunchError):
            return None
        groups = _GROUPS_PER_UNIT * target.compute_units
        return Checks(program, min(groups, _MOST_GROUPS_ON_CPU) if target.shares_the_host else groups)

    def lay(self, region: Region, content: Bytes) -> Launch:
        """A pattern into the storage, and around it what belongs there."""
        return self._launch("lay", OperandArgument(region.name), *_extent(region), _word(content), _word(region.around))

    def guards(self, region: Region, flag: int) -> Launch:
        answer = (OperandArgument(FLAGS), _u32(flag))
        return self._launch("guards", OperandArgument(region.name), *_extent(region), _word(region.around), *answer)

    def elements(self, operand: Operand, region: Region, poison: Bytes, flag: int) -> Launch:
        """The flag is for an element that was not written, the next for one between rows that was."""
        steps = falling_steps(operand)
        assert steps is not None
        return self._launch(
            "elements",
            OperandArgument(region.name),
            _u64(region.start),
            _u64(operand.storage_elements),
            _u32(8 * itemsize(operand.dtype)),
            _word(poison),
            _u32(int(is_padded(operand))),
            *(_u64(number) for step in steps for number in step),
            OperandArgument(FLAGS),
            _u32(flag),
        )

    def compare(self, operand: Operand, region: Region, expected: Expected, flag: int, slot: int) -> Launch:
        """With the reference, in the memory that `places` and the like name. Of reals, sums are left in two slots."""
        size, count = 8 * itemsize(operand.dtype), _u64(expected.value.size)
        where = (OperandArgument(region.name), _u64(region.start), _u32(size))
        wanted = OperandArgument(places(operand)), OperandArgument(value(operand))
        answer = OperandArgument(FLAGS), _u32(flag)
        if expected.value.dtype.kind in "iu":
            return self._launch("exact", *where, count, *wanted, *answer)
        kind = (_u32(_EXPONENT_BITS.get(operand.dtype, 0)), _u32(int(operand.dtype.startswith("int"))))
        rest = (*wanted, OperandArgument(bound(operand)), *answer, OperandArgument(SUMS), _u32(slot))
        return self._launch("values", *where, *kind, count, *rest)

    def digest(self, name: str, length: int, slot: int) -> Launch:
        """Of a whole buffer: `groups` words at `slot` of the sums."""
        return self._launch("digest", OperandArgument(name), _u64(length // WORD), OperandArgument(SUMS), _u32(slot))

    def _launch(self, entry: str, *arguments: Argument) -> Launch:
        return Launch(0, entry, (self.groups, 1, 1), (BLOCK, 1, 1), arguments)


def places(operand: Operand) -> str:
    """The name of the memory that holds which elements are compared."""
    return f"{operand.name} places"


def value(operand: Operand) -> str:
    return f"{operand.name} value"


def bound(operand: Operand) -> str:
    return f"{operand.name} bound"


def readable(operand: Operand, expected: Expected | None) -> bool:
    """Whether the programs understand an output: its type, its layout."""
    is_number = operand.dtype in _EXPONENT_BITS or operand.dtype.startswith(("int", "uint"))
    is_compared_as_bits = expected is None or expected.value.dtype.kind in "iu"
    is_laid_out = falling_steps(operand) is not None and (operand.role == "out" or not is_padded(operand))
    return is_laid_out and (is_number or is_compared_as_bits)


def falling_steps(operand: Operand) -> Steps | None:
    """Three strides, the largest first, with the extents that go with them, by which a storage element's indices follow
    from its number, one division after the other; None where they do not."""
    steps = sorted(((s, e) for s, e in zip(operand.strides, operand.shape, strict=True) if e > 1), reverse=True)
    spans = [sum((extent - 1) * stride for stride, extent in steps[index:]) for index in range(len(steps) + 1)]
    nested = all(stride > spans[index + 1] for index, (stride, _) in enumerate(steps))
    if not nested or len(steps) > 3:
        return None if is_padded(operand) else ((1, 1),) * 3
    return (*steps, *((1, 1),) * (3 - len(steps)))


def _extent(region: Region) -> tuple[Argument, ...]:
    return _u64(region.length // WORD), _u64(region.start), _u64(region.storage.stop)


def _word(pattern: Bytes) -> ScalarArgument:
    return _u64(int.from_bytes(np.resize(pattern, WORD).tobytes(), "little"))


def _u64(number: int) -> ScalarArgument:
    return ScalarArgument(number, "uint64")


def _u32(number: int) -> ScalarArgument:
    return ScalarArgument(number, "uint32")
