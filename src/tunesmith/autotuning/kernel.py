"""A kernel as a program describes it, written as the YAML description that a tuning file would name.

Each line of the description knows the line of the user's program that it comes from, so that a mistake that is found in
the description is told where the user made it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunesmith.problems.custom import FLOATS, LIMITS, caller
from tunesmith.records import UserError, Value
from tunesmith.spaces.expressions import Expression

from .arguments import Argument, DenseArray, Formula, Formulas, KernelLaunch, LocalMemory, Parameters, Scalar
from .callables import fingerprint, location_of
from .jit_text import JitText, is_jit_function
from .tracing import Names, expressions_of

SUFFIXES = {"OpenCL": ".cl", "CUDA": ".cu", "Triton": ".py"}

_KERNEL = re.compile(r"(?:\b__kernel\b|\bkernel\b|\b__global__\b)[^;{}()]*?\b(\w+)\s*\(")
_JIT = re.compile(r"^@(?:triton\.)?jit\b[^\n]*\ndef (\w+)", re.MULTILINE)
_DECORATION = re.compile(r"__(?:attribute__|launch_bounds__)\s*(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))")


@dataclass(frozen=True)
class KernelSource:
    """The text in one language, the location of the text, and the kernels in it. `jit` is where a Triton function's
    lines are from."""

    language: str
    text: str
    location: str
    jit: JitText | None = None

    @property
    def entries(self) -> list[str]:
        """The names of the kernels; of the function itself if the source is one function."""
        return [self.jit.name] if self.jit else entries_of(self.language, self.text)


def source_of(kernel: Any, language: str, location: str) -> KernelSource:
    """The source of a text, a file, or a Triton function. Raises UserError if the file cannot be read, the language is
    unclear, or the function needs what no text can say."""
    if is_jit_function(kernel):
        jit = JitText(kernel)
        return KernelSource("Triton", jit.text, location_of(kernel.fn), jit)
    if not isinstance(kernel, str | Path):
        what = f"the kernel is a {type(kernel).__name__}"
        raise UserError(location, what, "give its text, its file, or a function with @triton.jit and nothing above it")
    text, origin = str(kernel), location
    if isinstance(kernel, Path) or ("\n" not in text and Path(text).suffix in (*SUFFIXES.values(), ".c")):
        try:
            text, origin = Path(kernel).read_text(encoding="utf-8"), str(kernel)
        except (OSError, ValueError) as error:
            raise UserError(
                location, f"{kernel} cannot be read: {error}", "give a kernel's text, or its file"
            ) from None
    languages = {suffix: name for name, suffix in SUFFIXES.items()}
    if not language:
        language = languages.get(Path(origin).suffix, "") or ("CUDA" if "__global__" in text else "")
    if not language and re.search(r"\b(?:__)?kernel\b", text):
        language = "OpenCL"
    if language not in SUFFIXES:
        what = f"the kernel's language is {language or 'not clear'}"
        raise UserError(location, what, f"give language= one of {', '.join(SUFFIXES)}")
    return KernelSource(language, text, origin)


def entries_of(language: str, text: str) -> list[str]:
    """The names of the kernels in a text."""
    if language == "Triton":
        return _JIT.findall(text)
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    return list(dict.fromkeys(_KERNEL.findall(_DECORATION.sub(" ", plain))))


@dataclass(frozen=True)
class KernelDescription:
    """What `tunesmith.tune` was told about a kernel. `location` is the line of the call."""

    name: str
    sources: Sequence[KernelSource]
    arguments: Mapping[str, Argument]
    sizes: Sequence[Mapping[str, int]]
    parameters: Parameters
    launches: Sequence[KernelLaunch]
    constraints: Sequence[Formula]
    reference: Callable[..., Any]
    tolerance: Formula | None
    flops: Formula | None
    bytes: Formula | None
    options: Sequence[str]
    divisible_by_16: Sequence[str]
    location: str
    callable_seconds: float

    @property
    def size_names(self) -> tuple[str, ...]:
        return tuple(self.sizes[0])

    @property
    def names(self) -> Names:
        values = {name: list(dict.fromkeys(size[name] for size in self.sizes)) for name in self.size_names}
        return Names(self.parameters, values, LIMITS)


@dataclass
class DescriptionText:
    """The lines of the YAML description, each with its location in the user's program."""

    kernel: KernelDescription
    lines: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        kernel, here = self.kernel, self.kernel.location
        self._add(f"Name: {kernel.name}", here)
        files = {source.language: self.file_of(source) for source in kernel.sources}
        self._add(f"Source: {json.dumps(files)}", here)
        self._add(f"Sizes: {json.dumps(kernel.size_names)}", here)
        if kernel.parameters:
            self._add("Parameters:", here)
        for name in kernel.parameters:
            # The tuning file lists the values, so that a new value makes no new kernel.
            self._add(f"  {name}: {{Values: any}}", here)
        if kernel.constraints:
            self._add("Constraints:", here)
        for constraint in kernel.constraints:
            (text,), location = self._formulas(constraint, "a constraint", is_condition=True)
            self._add(f"  - {{Require: {text}, Reason: {json.dumps(_reason(constraint, text))}}}", location)
        self._add("Arguments:", here)
        for name, argument in kernel.arguments.items():
            self._argument(name, argument)
        self._launches()
        self._add(f"Reference: {caller.PREFIX}{reference_key(kernel.reference)}", location_of(kernel.reference))
        if tolerance := self._tolerance():
            self._amount("Tolerance", tolerance)
        self._amount("Flops", kernel.flops if kernel.flops is not None else 0)
        if kernel.bytes is not None:
            self._amount("Bytes", kernel.bytes)
        if kernel.options:
            self._add(f"Options: {json.dumps(list(kernel.options))}", here)
        if kernel.divisible_by_16:
            self._add(f"DivisibleBy16: {json.dumps(list(kernel.divisible_by_16))}", here)
        self._refuse_unused()

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line, _ in self.lines)

    def location_at(self, number: int) -> str:
        """The location in the user's program of line `number` of the description, counted from 1."""
        return self.lines[number - 1][1] if 1 <= number <= len(self.lines) else self.kernel.location

    def file_of(self, source: KernelSource) -> str:
        """The name of a source's file beside the description."""
        return self.kernel.name + SUFFIXES[source.language]

    def _add(self, line: str, location: str) -> None:
        self.lines.append((line, location))

    def _refuse_unused(self) -> None:
        """Raises UserError for a parameter that neither a source nor anything else of the description names. A source
        in Triton is looked at more closely, by the reader of the description."""
        if any(source.language == "Triton" for source in self.kernel.sources):
            return
        lines = [line for line, _ in self.lines if not line.startswith("  ") or ": {Values:" not in line]
        texts = [*lines, *(source.text for source in self.kernel.sources)]
        for name in self.kernel.parameters:
            if not any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts):
                what = f"the parameter {name} is used neither by the source nor by the launch"
                raise UserError(self.kernel.location, what, "spell it as the source does, or leave it out")

    def _amount(self, key: str, formula: Formula) -> None:
        (text,), location = self._formulas(formula, key)
        self._add(f"{key}: {text}", location)

    def _tolerance(self) -> Formula | None:
        """The tolerance; without one, 30 roundings and four times the square root of the largest size: a kernel's own
        arithmetic, and a sum along the longest size whose errors are as often up as down."""
        kernel = self.kernel
        outputs = (array for array in kernel.arguments.values() if isinstance(array, DenseArray))
        if kernel.tolerance is not None:
            return kernel.tolerance
        if any(array.role in ("out", "inout") and array.dtype in FLOATS for array in outputs):
            return f"30 + 4 * max({', '.join(kernel.size_names)}, 1) ** 0.5"
        return None

    def _argument(self, name: str, argument: Argument) -> None:
        here = self.kernel.location
        if isinstance(argument, LocalMemory):
            (size,), location = self._formulas(argument.bytes, f"the bytes of {name}")
            self._add(f"  - {{Name: {name}, LocalBytes: {size}}}", location)
        elif isinstance(argument, Scalar):
            (value,), location = self._formulas(argument.value, f"the value of {name}")
            self._add(f"  - {{Name: {name}, DataType: {argument.dtype}, Value: {value}}}", location)
        else:
            shape = ", ".join(self._formulas(extent, f"the shape of {name}")[0][0] for extent in argument.shape)
            line = f"  - {{Name: {name}, DataType: {argument.dtype}, Shape: [{shape}], Role: {argument.role}"
            if argument.range is not None:
                low, high = (self._formulas(bound, f"the range of {name}")[0][0] for bound in argument.range)
                line += f", Range: [{low}, {high}]"
            elif argument.contents is not None and argument.role in ("in", "inout"):
                line += f", Contents: {contents_key(argument)}"
            self._add(line + "}", here)

    def _launches(self) -> None:
        kernel = self.kernel
        if len(kernel.launches) == 1 and not kernel.launches[0].arguments:
            self._launch(kernel.launches[0], "", "")
            return
        self._add("Launches:", kernel.location)
        for launch in kernel.launches:
            self._launch(launch, "  - ", "    ")

    def _launch(self, launch: KernelLaunch, first: str, indent: str) -> None:
        here = self.kernel.location
        self._add(f"{first}Entry: {launch.entry}", here)
        if launch.arguments:
            self._add(f"{indent}Arguments: {json.dumps(list(launch.arguments))}", here)
        if launch.work_group is not None:
            extents, location = self._formulas(launch.work_group, "the work-group", extents=3)
            self._add(f"{indent}WorkGroup: [{', '.join(extents)}]", location)
        unit, formulas = ("WorkGroups", launch.grid) if launch.grid is not None else ("WorkItems", launch.work_items)
        if formulas is None:
            what = f"the launch of {launch.entry} has no grid"
            raise UserError(here, what, 'give grid="ceil_div(Rows, GROUP)" (work-groups) or work_items="Rows"')
        extents, location = self._formulas(formulas, "the grid", extents=3)
        self._add(f"{indent}Grid: {{{unit}: [{', '.join(extents)}]}}", location)
        if launch.local_memory is not None:
            (text,), location = self._formulas(launch.local_memory, "the local memory")
            self._add(f"{indent}LocalMemory: {text}", location)

    def _formulas(
        self, formulas: Formulas, role: str, extents: int = 1, is_condition: bool = False
    ) -> tuple[tuple[str, ...], str]:
        """The expressions, quoted for YAML, and their location in the user's program."""
        kernel = self.kernel
        if callable(formulas):
            texts = expressions_of(formulas, kernel.names, role, kernel.callable_seconds, extents, is_condition)
            location = location_of(formulas)
            for text in texts:
                Expression.parse(text, location)
        else:
            several = formulas if isinstance(formulas, list | tuple) else (formulas,)
            if any(map(callable, several)):
                return tuple(self._formulas(part, role)[0][0] for part in several), kernel.location
            texts, location = tuple(map(str, several)), kernel.location
        return tuple(map(json.dumps, texts)), location


def reference_key(reference: Callable[..., Any]) -> str:
    return fingerprint(reference)


def contents_key(array: DenseArray) -> str:
    assert array.contents is not None
    return caller.digest_of({"contents": array.contents})


def _reason(constraint: Formula, text: str) -> str:
    """What reports count the configurations by that break a constraint: the function's name, or the expression."""
    name = getattr(constraint, "__name__", "<lambda>")
    return str(json.loads(text)) if name == "<lambda>" else name


def digest_of(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def parameter_values(name: str, values: Any, location: str) -> list[Value]:
    """The values of a parameter as plain numbers and words. Raises UserError if there are none."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise UserError(location, f"the parameter {name} has no list of values", f"give it one: {name}=[..]")
    plain = list(dict.fromkeys(value.item() if hasattr(value, "item") else value for value in values))
    if not plain:
        raise UserError(location, f"the parameter {name} has no values", "list at least one")
    return plain
