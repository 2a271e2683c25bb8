"""The programs that verify results on the device (`source/checks.h`): their compilation, and their launches as data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate

import numpy as np

from tunesmith.devices import Device, LaunchError, Program
from tunesmith.records import Argument, Launch, Module, Operand, OperandArgument, ScalarArgument
from tunesmith.toolchains import TOOLCHAINS, CompileError

from .case import Comparison
from .poison import Bytes, is_whole, itemsize
from .regions import WORD, Region, is_padded

LANGUAGES = {"CUDA": "CUDA", "OpenCL": "OpenCL"}
"""The language in which the programs are compiled, by device API. With any other API, the host verifies."""
ENTRIES = ("lay", "guards", "elements", "values", "exact", "changes", "learn", "learn_exact", "digest")

BLOCK = 256
_GROUPS_PER_UNIT = 8
"""Work-groups of BLOCK items that fill a GPU's multiprocessor."""
_MOST_GROUPS_ON_CPU = 255
"""PoCL compiles anew for a launch of 65,536 work-items or more."""

_EXPONENT_BITS = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11, "float8_e5m2": 5}
"""Types whose bits are an IEEE number's: sign, exponent, fraction."""

FLAGS, SUMS = "all flags", "all sums"
"""Names of the memory for the programs' results. No operand's name contains a space."""

Steps = tuple[tuple[int, int], ...]


@cache
def module(language: str, on_cpu: bool = False) -> Module:
    sources = (files(__package__).joinpath("source", name).read_text("utf-8") for name in ("dialect.h", "checks.h"))
    head = f"#define BLOCK_SIZE {BLOCK}\n" + "#define CONTIGUOUS\n" * on_cpu
    return Module(language, head + "\n".join(sources), ENTRIES)


@dataclass(frozen=True, slots=True)
class VerificationPrograms:
    """The programs, loaded on a device, and the number of work-groups to launch on it."""

    program: Program
    groups: int

    @staticmethod
    def on(device: Device) -> VerificationPrograms | None:
        """None if the device cannot run them: no such language, no compiler, no double precision."""
        target = device.target
        language = LANGUAGES.get(target.api)
        if language is None or not target.double_precision or TOOLCHAINS[language].unavailable():
            return None
        try:
            program = device.load(TOOLCHAINS[language].compile(module(language, target.shares_the_host), target))
        except (CompileError, LaunchError):
            return None
        groups = _GROUPS_PER_UNIT * target.compute_units
        return VerificationPrograms(program, min(groups, _MOST_GROUPS_ON_CPU) if target.shares_the_host else groups)

    def fill(self, region: Region, content: Bytes) -> Launch:
        """Write a pattern into the storage, and the guard pattern around it."""
        return self._launch("lay", OperandArgument(region.name), *_extent(region), _word(content), _word(region.around))

    def check_guards(self, region: Region, flag: int) -> Launch:
        """Raise the flag if the bytes around the storage changed."""
        result = (OperandArgument(FLAGS), _u32(flag))
        return self._launch("guards", OperandArgument(region.name), *_extent(region), _word(region.around), *result)

    def check_written(self, operand: Operand, region: Region, poison: Bytes, flag: int) -> Launch:
        """Raise the flag for an element that was not written, and the next flag for a written element between rows."""
        steps = nested_strides(operand)
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

    def compare(self, comparison: Comparison, region: Region, flag: int, slot: int) -> Launch:
        """Raise the flag if an element is wrong. For reals, leave sums of squares in two slots.

        The reference is in the memory that `positions_name`, `value_name` and `bound_name` name.
        """
        operand, count = comparison.operand, _u64(comparison.count)
        output, reference = _elements(operand, region), _reference(operand)
        result = OperandArgument(FLAGS), _u32(flag)
        if comparison.is_exact:
            return self._launch("exact", *output, count, *reference, *result)
        rest = (*reference, OperandArgument(bound_name(operand)), *result, OperandArgument(SUMS), _u32(slot))
        return self._launch("values", *output, *_kind(operand), count, *rest)

    def changes(self, comparison: Comparison, region: Region, before: str, flag: int, slot: int) -> Launch:
        """Raise the flag if a real is not finite. Leave the sum of the squares of those that differ from the memory
        named `before`, of all if there is none, and their number, in two slots."""
        operand, count = comparison.operand, _u64(comparison.count)
        result = OperandArgument(FLAGS), _u32(flag), OperandArgument(SUMS), _u32(slot)
        output = _elements(operand, region)
        old = OperandArgument(before or region.name), _u32(int(not before))
        return self._launch("changes", *output, *_kind(operand), count, *old, *result)

    def learn(self, comparison: Comparison, region: Region, tolerance: float, typical: float) -> Launch:
        """Write a dense output's elements into the memory of its reference. A real's bound is the tolerance times the
        sum of the real's magnitude and a typical magnitude."""
        operand, count = comparison.operand, _u64(comparison.count)
        output, reference = _elements(operand, region), _reference(operand)
        if comparison.is_exact:
            return self._launch("learn_exact", *output, count, *reference)
        scalars = ScalarArgument(tolerance, "float64"), ScalarArgument(typical, "float64")
        rest = (*reference, OperandArgument(bound_name(operand)), *scalars)
        return self._launch("learn", *output, *_kind(operand), count, *rest)

    def digest(self, name: str, length: int, slot: int) -> Launch:
        """Hash a whole buffer into `groups` words, at `slot` of the sums."""
        return self._launch("digest", OperandArgument(name), _u64(length // WORD), OperandArgument(SUMS), _u32(slot))

    def _launch(self, entry: str, *arguments: Argument) -> Launch:
        return Launch(0, entry, (self.groups, 1, 1), (BLOCK, 1, 1), arguments)


def positions_name(operand: Operand) -> str:
    """The name of the memory that holds the storage positions of the elements to compare."""
    return f"{operand.name} positions"


def value_name(operand: Operand) -> str:
    return f"{operand.name} value"


def bound_name(operand: Operand) -> str:
    return f"{operand.name} bound"


def is_supported(operand: Operand, comparison: Comparison | None) -> bool:
    """Whether the programs support an output's type and layout."""
    is_number = operand.dtype in _EXPONENT_BITS or is_whole(operand.dtype)
    is_compared_as_bits = comparison is None or comparison.is_exact
    is_laid_out = nested_strides(operand) is not None and (operand.role == "out" or not is_padded(operand))
    return is_laid_out and (is_number or is_compared_as_bits)


def nested_strides(operand: Operand) -> Steps | None:
    """Three (stride, extent) pairs, the largest stride first. Dividing a storage element's position by each stride in
    turn gives the element's indices. None if a padded operand needs more than three pairs, or its strides overlap."""
    pairs = zip(operand.strides, operand.shape, strict=True)
    steps = sorted(((stride, extent) for stride, extent in pairs if extent > 1), reverse=True)
    rising = steps[::-1]
    spans = accumulate(((extent - 1) * stride for stride, extent in rising), initial=0)
    is_nested = all(stride > span for (stride, _), span in zip(rising, spans, strict=False))
    if not is_nested or len(steps) > 3:
        return None if is_padded(operand) else ((1, 1),) * 3
    return (*steps, *((1, 1),) * (3 - len(steps)))


def _elements(operand: Operand, region: Region) -> tuple[Argument, ...]:
    """Where a program finds an operand's elements."""
    return OperandArgument(region.name), _u64(region.start), _u32(8 * itemsize(operand.dtype))


def _kind(operand: Operand) -> tuple[Argument, ...]:
    """What a program must know to read numbers from an operand's bits."""
    return _u32(_EXPONENT_BITS.get(operand.dtype, 0)), _u32(int(operand.dtype.startswith("int")))


def _reference(operand: Operand) -> tuple[Argument, ...]:
    return OperandArgument(positions_name(operand)), OperandArgument(value_name(operand))


def _extent(region: Region) -> tuple[Argument, ...]:
    return _u64(region.length // WORD), _u64(region.start), _u64(region.storage.stop)


def _word(pattern: Bytes) -> ScalarArgument:
    return _u64(int.from_bytes(np.resize(pattern, WORD).tobytes(), "little"))


def _u64(number: int) -> ScalarArgument:
    return ScalarArgument(number, "uint64")


def _u32(number: int) -> ScalarArgument:
    return ScalarArgument(number, "uint32")
