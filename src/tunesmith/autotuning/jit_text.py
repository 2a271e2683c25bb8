"""The text of a Triton function of the user's, complete: with its helpers, its imports and the values it reads.

Worker processes get this text, not the function. So a function of a notebook works, and one that is defined again later
has no effect on what runs.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tunesmith.records import UserError

PLAIN = (bool, int, float, str, type(None))


def is_jit_function(kernel: object) -> bool:
    """Whether an object is what `@triton.jit` makes, also under Triton's interpreter."""
    return type(kernel).__name__ in ("JITFunction", "InterpretedFunction") and hasattr(kernel, "fn")


def is_interpreted(kernel: object) -> bool:
    """Whether a jit function runs in Triton's interpreter, where times say nothing."""
    return type(kernel).__name__ == "InterpretedFunction"


@dataclass
class JitText:
    """The text of a jit function, and the location in the user's files of each of its lines."""

    kernel: Any
    lines: list[tuple[str, str]] = field(default_factory=list)
    _done: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._add_function(self.kernel)

    @property
    def name(self) -> str:
        return str(self.kernel.fn.__name__)

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line, _ in self.lines)

    def location_at(self, number: int) -> str:
        """The location in the user's file of line `number` of the text, counted from 1."""
        return self.lines[number - 1][1] if 1 <= number <= len(self.lines) else ""

    def _add_function(self, kernel: Any) -> None:
        function: types.FunctionType = kernel.fn
        file, first = function.__code__.co_filename, function.__code__.co_firstlineno
        try:
            lines, start = inspect.getsourcelines(function)
        except OSError as error:
            what = f"the text of {function.__name__} cannot be found ({error})"
            raise UserError(f"{file}:{first}", what, "define the function in a file or a notebook") from None
        text = textwrap.dedent("".join(lines))
        definition = ast.parse(text).body[0]
        assert isinstance(definition, ast.FunctionDef)
        self._done[function.__name__] = kernel
        for name, number in _names_read(definition):
            self._add_value(function, name, f"{file}:{start + number - 1}")
        self._add("", "")
        self._add("@triton.jit", f"{file}:{start}")
        self._add_value(function, "triton", f"{file}:{start}")
        body = text.splitlines()[definition.lineno - 1 :]
        for offset, line in enumerate(body):
            self._add(line, f"{file}:{start + definition.lineno - 1 + offset}")

    def _add_value(self, function: types.FunctionType, name: str, location: str) -> None:
        """Add what a function reads under a name: an import, a helper or a constant."""
        surroundings = _surroundings(function)
        if name == "triton" and name not in surroundings:
            import triton

            surroundings = {"triton": triton}
        if name not in surroundings:
            if not hasattr(builtins, name):
                raise UserError(location, f"{function.__name__} reads {name}, which is not defined", "define it before")
            return
        value = surroundings[name]
        if name in self._done:
            if self._done[name] is not value and self._done[name] != value:
                what = f"{name} means two things in {self.name} and its helpers"
                raise UserError(location, what, "rename one of them")
            return
        if is_jit_function(value):
            if value.fn.__name__ != name:
                what = f"{function.__name__} calls {value.fn.__name__} by the name {name}"
                raise UserError(location, what, "call a jit function by its own name")
            self._add_function(value)
            return
        line = statement_of(name, value)
        if line is None:
            what = f"{function.__name__} reads {name}, which is a {type(value).__name__}"
            raise UserError(location, what, "pass it as an argument, or make it a number, a text or a jit function")
        self._done[name] = value
        self.lines.insert(self._after_head(), (line, location))

    def _after_head(self) -> int:
        """Where a statement goes: after earlier ones, before the first function."""
        heads = [number for number, (line, _) in enumerate(self.lines) if not line]
        return heads[0] if heads else len(self.lines)

    def _add(self, line: str, location: str) -> None:
        self.lines.append((line, location))


def statement_of(name: str, value: Any) -> str | None:
    """The statement that defines a name in the text; None if none can."""
    if isinstance(value, types.ModuleType):
        return f"import {name}" if value.__name__ == name else f"import {value.__name__} as {name}"
    module = getattr(value, "__module__", "") or ""
    plain = value.value if type(value).__name__ == "constexpr" else value
    if isinstance(plain, PLAIN):
        return f"import triton.language; {name} = triton.language.constexpr({plain!r})"
    if type(value).__module__.startswith("triton.") and type(value).__name__ == "dtype":
        return f"import triton.language; {name} = triton.language.{_dtype_name(value)}"
    if module.startswith("triton.") and callable(value):
        return f"from {module} import {value.__name__} as {name}"
    return None


def _dtype_name(value: Any) -> str:
    import triton.language as tl

    return next(name for name in dir(tl) if getattr(tl, name) is value)


def _names_read(definition: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """The names that a function reads from around it, each with its first line; annotations included."""
    arguments = definition.args
    named = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names = [node for node in ast.walk(definition) if isinstance(node, ast.Name)]
    decorators = {id(node) for decorator in definition.decorator_list for node in ast.walk(decorator)}
    bound = named | {node.id for node in names if isinstance(node.ctx, ast.Store)}
    yielded: set[str] = set()
    for node in names:
        if node.id not in bound | yielded and id(node) not in decorators:
            yielded.add(node.id)
            yield node.id, node.lineno


def _surroundings(function: types.FunctionType) -> dict[str, Any]:
    """The names that a function may read: its module's, and those of the functions around it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    enclosing = {}
    for name, cell in cells:
        try:
            enclosing[name] = cell.cell_contents
        except ValueError:
            continue
    return {**function.__globals__, **enclosing}
