"""Modules (source text), compiled binaries, and launch plans, all as data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Number
from operator import attrgetter
from typing import Any

from ._configuration import Configuration
from ._pickled import pickled_by_fields


@dataclass(frozen=True, slots=True)
class Module:
    """The input of a toolchain: a source text with its options.

    `language` selects the toolchain ("OpenCL", "CUDA", "Triton"); `entries` are the kernels in the text. If the source
    is a Python function, `constants` are its compile-time arguments and options. Then `python` is `file.py:name` (or
    `package.module:name`) and `text` its source (for the identity). An empty `python` means that `text` is complete:
    the toolchain builds the function from it.
    """

    language: str
    text: str
    entries: tuple[str, ...]
    options: tuple[str, ...] = ()
    python: str = ""
    constants: Configuration = Configuration()

    def digest(self) -> str:
        parts = (self.language, self.text, *self.entries, *self.options, self.python, self.constants.to_json())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class CompiledFacts:
    """What the compiler reports about one entry; None for what it does not report. Spilled bytes are per work-item,
    local bytes per work-group."""

    entry: str
    registers: int | None = None
    spill_bytes: int | None = None
    local_bytes: int | None = None
    max_work_group_size: int | None = None


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Binary:
    """A compiled module, which a device loads. `metadata` is what a launch needs besides the payload."""

    module: str
    language: str
    payload: bytes
    facts: tuple[CompiledFacts, ...]
    metadata: Configuration = Configuration()


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class OperandArgument:
    """The address of an operand's first element."""

    name: str


@dataclass(frozen=True, slots=True)
class WorkspaceArgument:
    """An address inside the plan's workspace, `offset` bytes from its start."""

    offset: int = 0


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number that is passed by value. `dtype` is NumPy's name for its type ("int32", "float32", "uint64")."""

    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class TensorMapArgument:
    """A TMA descriptor made on the host: a 1- to 5-dimensional view of an operand, innermost dimension last.

    `shape`, `strides` (the innermost must be 1) and `block` are in elements, as in CUDA's `cuTensorMapEncodeTiled`.
    `swizzle` is that function's number; a binary's metadata may override it. With an empty name, the view is of the
    workspace, `offset` bytes from its start.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    swizzle: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class LocalArgument:
    """Local memory whose size is given at launch (OpenCL), in bytes."""

    size: int


Argument = OperandArgument | WorkspaceArgument | ScalarArgument | TensorMapArgument | LocalArgument


@dataclass(frozen=True, slots=True)
class Zero:
    """Fills part of an operand (`operand` is its name) or of the workspace (`operand` is empty) with zero bytes."""

    operand: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Write:
    """Writes constant bytes, such as tables that a kernel reads, into the workspace at `offset`."""

    offset: int
    data: bytes = field(repr=False)
    digest: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha256(self.data).hexdigest())


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch. `grid` counts work-groups, `work_group` work-items, both as (x, y, z). `cluster` neighbours in
    x run side by side, if the program leaves open how many. With `early`, work-groups may start while the launch before
    it in the stream still runs; the program itself waits for that launch to end before it touches memory."""

    module: int
    entry: str
    grid: tuple[int, int, int]
    work_group: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0
    cluster: int = 1
    early: bool = False


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """A call of a `function` of the vendor's library, which module number `module` stands for. `parameters` is all that
    the function needs except the operands' addresses. The kernel family writes the parameters, and the device's library
    reads them."""

    module: int
    function: str
    parameters: Configuration


Step = Zero | Write | Launch | LibraryCall


ZEROED_HEAD = 1 << 14
"""Bytes at the beginning of a workspace. Plans whose `zeroed` is at most this number, and that use none of these bytes
otherwise, may take turns in one workspace."""


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Plan:
    """The steps that solve one problem, in order, as data: picklable, without a handle.

    `setup` is executed once, before any number of executions of `steps` in the same workspace. It initialises data that
    `steps` read and may change (the states of random engines). The first `zeroed` bytes of the workspace must be 0
    before `steps`, which leave them 0 (flags that are reset). Neither `setup` nor zeroing is part of the measured time.
    """

    steps: tuple[Step, ...]
    workspace_bytes: int = 0
    setup: tuple[Step, ...] = ()
    zeroed: int = field(default=0, repr=False)

    @property
    def preparation(self) -> Plan:
        """A plan for what must be done before the first execution; possibly without a step."""
        zeros = (Zero("", 0, self.zeroed),) if self.zeroed else ()
        return Plan((*zeros, *self.setup), self.workspace_bytes)

    @property
    def from_scratch(self) -> Plan:
        """A plan for a first execution, including its preparation."""
        return Plan((*self.preparation.steps, *self.steps), self.workspace_bytes)

    def digest(self) -> str:
        """SHA-256 of `text`: part of every key in a store."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def text(self) -> str:
        """The whole plan as text, with the names in `_WRITTEN`. Keys of existing stores are made from this text."""
        return _text(self) + (f" zeroed {self.zeroed}" if self.zeroed else "")


_WRITTEN: dict[type, str] = {
    OperandArgument: "OperandArgument name",
    WorkspaceArgument: "WorkspaceArgument offset",
    ScalarArgument: "ScalarArgument value dtype",
    TensorMapArgument: "TensorMapArgument name dtype shape strides block swizzle offset",
    LocalArgument: "LocalArgument size",
    Zero: "Zero operand offset size",
    Write: "Write offset digest",
    Launch: "Launch module entry grid work_group arguments shared_bytes",
    Plan: "Plan steps workspace_bytes setup",
}
"""The name of each record in `Plan.text`, and its fields in order. These words are part of keys. So a class or a field
that is renamed keeps its old name here, and a new field is written only if it is not at its default, as for
`zeroed`."""


def _text(value: object) -> str:
    """A record as `Name(field=text, ...)`, a tuple as Python writes it, a number or a word by its `repr`.

    Raises TypeError for anything else, because its text could change and so change a key unintentionally.
    """
    if (write := _WRITERS.get(type(value))) is not None:
        return write(value)
    if isinstance(value, (Number, str)):
        return repr(value)
    raise TypeError(f"a plan holds numbers, words, tuples and its own records, not {value!r}")


def _tuple_text(value: tuple[object, ...]) -> str:
    return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"


def _call_text(call: LibraryCall) -> str:
    parameters = [f"{name}={_text(value)}" for name, value in (("module", call.module), *call.parameters.items())]
    return f"{call.function.capitalize()}Call({', '.join(parameters)})"


def _record_writer(words: str) -> Callable[[object], str]:
    name, *fields = words.split()
    values = [attrgetter(field) for field in fields]
    pattern = f"{name}({', '.join(f'{field}={{}}' for field in fields)})"
    return lambda record: pattern.format(*[_text(value(record)) for value in values])


def _launch_text(launch: Launch) -> str:
    cluster = f" cluster {launch.cluster}" if launch.cluster != 1 else ""
    return _written_launch(launch) + cluster + (" early" if launch.early else "")


_written_launch = _record_writer(_WRITTEN[Launch])
_WRITERS: dict[type, Callable[[Any], str]] = {
    tuple: _tuple_text,
    LibraryCall: _call_text,
    **{kind: _record_writer(words) for kind, words in _WRITTEN.items()},
    Launch: _launch_text,
    **dict.fromkeys((bool, int, float, str), repr),
}
"""How a value of exactly this type is written. A plan has dozens of values, and a cell has several plans."""
