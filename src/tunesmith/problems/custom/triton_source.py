"""Functions in the text of a Triton file: their parameters and decorators, read without running the file."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from tunesmith.records import Value, freeze

TRITON = "Triton"
"""The language's name in a description."""


@dataclass(frozen=True, slots=True)
class TritonParameter:
    """A parameter with the line of the file that names it.

    `default` is None if the function has no default for it, or a default that is no plain value.
    """

    name: str
    line: int
    is_constexpr: bool
    default: Value | None = None


@dataclass(frozen=True, slots=True)
class TritonFunction:
    """A function at the top level of a file. `decorators` maps each decorator's name, as it is written, to its line.

    `variadic` is the name of a parameter that takes any number of arguments, with its asterisks; empty without one.
    """

    name: str
    line: int
    decorators: MappingProxyType[str, int]
    parameters: tuple[TritonParameter, ...]
    variadic: str

    def constexprs(self, described: Container[str]) -> tuple[TritonParameter, ...]:
        """The parameters that are constants of a program. These are annotated with `tl.constexpr`, or have the name of
        a described parameter."""
        return tuple(item for item in self.parameters if item.is_constexpr or item.name in described)


@cache
def triton_functions(text: str) -> MappingProxyType[str, TritonFunction]:
    """The functions at the top level of a file by name. Raises SyntaxError for a text that is no Python."""
    try:
        statements = ast.parse(text).body
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(f"{error or 'too deeply nested'}") from error
    definitions = (statement for statement in statements if isinstance(statement, ast.FunctionDef))
    return MappingProxyType({definition.name: _function(definition) for definition in definitions})


def _function(definition: ast.FunctionDef) -> TritonFunction:
    arguments = definition.args
    variadic = [("*", arguments.vararg), ("**", arguments.kwarg)]
    return TritonFunction(
        name=definition.name,
        line=definition.lineno,
        decorators=MappingProxyType({_name(item): item.lineno for item in definition.decorator_list}),
        parameters=tuple(_parameters(arguments)),
        variadic=next((stars + argument.arg for stars, argument in variadic if argument), ""),
    )


def _parameters(arguments: ast.arguments) -> Iterator[TritonParameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    defaults = [*[None] * required, *arguments.defaults, *arguments.kw_defaults]
    for argument, default in zip([*positional, *arguments.kwonlyargs], defaults, strict=True):
        # Triton itself looks for this word in an annotation.
        is_constexpr = argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
        yield TritonParameter(argument.arg, argument.lineno, is_constexpr, _plain(default))


def _plain(default: ast.expr | None) -> Value | None:
    """The value of a default that is written as a number, a word or a tuple; None for anything else."""
    try:
        return freeze(ast.literal_eval(default)) if default else None
    except (ValueError, TypeError):
        return None


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)
