"""From source to launch: modules, compiled binaries, and launch plans as data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Number

from ._configuration import Configuration


@dataclass(frozen=True, slots=True)
class Module:
    """What a toolchain compiles: a text with its options.

    `language` picks the toolchain ("OpenCL", "CUDA", "Triton"), `entries` are the kernels in it. For a language whose
    source is a Python function, `python` is `file.py:name` (or `package.module:name`), `text` its source (for the
    identity), and `constants` its compile-time arguments and options.
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


@dataclass(frozen=True, slots=True)
class CompiledFacts:
    """What the compiler tells about one entry; None where it does not tell. Bytes are per work-item or work-group."""

    entry: str
    registers: int | None = None
    spill_bytes: int | None = None
    local_bytes: int | None = None
    max_work_group_size: int | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """A compiled module: what a device loads. `metadata` is what the launch needs beyond the payload."""

    module: str
    language: str
    payload: bytes
    facts: tuple[CompiledFacts, ...]
    metadata: Configuration = Configuration()


@dataclass(frozen=True, slots=True)
class OperandArgument:
    """The address of an operand's first element."""

    name: str


@dataclass(frozen=True, slots=True)
class WorkspaceArgument:
    """An address inside the plan's workspace, `offset` bytes from its start."""

    offset: int = 0


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A value passed by value; `dtype` is NumPy's name for its type ("int32", "float32", "uint64")."""

    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class TensorMapArgument:
    """A TMA descriptor made on the host: a 1- to 5-dimensional view of an operand, innermost dimension last.

    `shape`, `strides` (innermost must be 1) and `block` are in elements. After CUDA's `cuTensorMapEncodeTiled`, whose
    number `swizzle` is too; a binary's metadata may say otherwise. With an empty name it is a view of the workspace,
    `offset` bytes from its start.
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
    """Fill part of an operand (`operand` names it) or of the workspace (`operand` is empty) with zero bytes."""

    operand: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Write:
    """Put constant bytes into the workspace at `offset`: tables that a kernel reads."""

    offset: int
    data: bytes = field(repr=False)
    digest: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha256(self.data).hexdigest())


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch. `grid` counts work-groups, `work_group` work-items, both as (x, y, z)."""

    module: int
    entry: str
    grid: tuple[int, int, int]
    work_group: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """One call of a `function` of the vendor's library that module number `module` stands for. `parameters` is all that
    the function needs but for the operands' addresses; the family writes them, and the device's library reads them."""

    module: int
    function: str
    parameters: Configuration


Step = Zero | Write | Launch | LibraryCall


ZEROED_HEAD = 1 << 14
"""Bytes at the beginning of a workspace: plans whose `zeroed` is no more, and who use nothing else of these, may take
turns in it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps that solve one problem, in order, as data: picklable, no handle in it.

    `setup` is carried out once, before the first of any number of executions of `steps` in the same workspace: it makes
    what they find there and may change (the states of random engines). It is not part of the time. Nor is that the
    first `zeroed` bytes of the workspace have to be 0 before `steps`, which leave them so (flags, lowered again).
    """

    steps: tuple[Step, ...]
    workspace_bytes: int = 0
    setup: tuple[Step, ...] = ()
    zeroed: int = field(default=0, repr=False)

    @property
    def preparation(self) -> Plan:
        """What has to be done before the first execution, as a plan by itself; maybe nothing."""
        zeros = (Zero("", 0, self.zeroed),) if self.zeroed else ()
        return Plan((*zeros, *self.setup), self.workspace_bytes)

    @property
    def from_scratch(self) -> Plan:
        """A first execution, with what has to be done before it."""
        return Plan((*self.preparation.steps, *self.steps), self.workspace_bytes)

    def digest(self) -> str:
        """SHA-256 of `text`: part of every key in a store."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def text(self) -> str:
        """All that the plan says, as `_WRITTEN` names it: keys of stores that exist are made from it."""
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
"""What `Plan.text` calls each record, and which fields it gives, in this order. These words are part of keys: a class
or a field that is renamed keeps its old name here, and a new field must be written only where it is not at its default,
as `zeroed` is."""


def _text(value: object) -> str:
    """A record as `Name(field=text, ...)`, a tuple as Python writes it, a number or a word by its `repr`.

    Raises TypeError for anything else: its text could change although nobody meant to change a key.
    """
    if type(value) is tuple:
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    if type(value) in _WRITTEN:
        name, *fields = _WRITTEN[type(value)].split()
        return _record(name, ((field, getattr(value, field)) for field in fields))
    if isinstance(value, LibraryCall):
        return _record(f"{value.function.capitalize()}Call", (("module", value.module), *value.parameters.items()))
    if isinstance(value, (Number, str)):
        return repr(value)
    raise TypeError(f"a plan holds numbers, words, tuples and its own records, not {value!r}")


def _record(name: str, fields: Iterable[tuple[str, object]]) -> str:
    return f"{name}({', '.join(f'{field}={_text(value)}' for field, value in fields)})"
