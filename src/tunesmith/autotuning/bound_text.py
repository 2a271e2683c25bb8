"""A jit function's text for a call: the parameters of constants are gone, and their values stand above.

A pointer to elements that no description has (truth values) is passed as one to whole numbers, and cast in the text.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping
from typing import Any

from tunesmith.records import UserError

from .jit_text import JitText, statement_of

_CAST = "{name} = {name}.to(triton.language.pointer_type(triton.language.{dtype}))\n"


def bound_text(jit: JitText, constants: Mapping[str, Any], casts: Mapping[str, str], location: str) -> str:
    """The text in which the kernel's parameters named in `constants` are constants of the module.

    So a constant may be anything that a text can say, also None or a data type. Raises UserError for other values.
    `casts` has the data type of Triton's to which each pointer that it names is cast.
    """
    if not constants and not casts:
        return jit.text
    tree, lines = ast.parse(jit.text), jit.text.splitlines()
    taken = set(_defined(tree))
    head = ["import triton.language"]
    for name, value in constants.items():
        statement = statement_of(name, value)
        if statement is None or name in taken:
            what = f"{jit.name} is called with {name}={value!r}, which cannot be written into its text"
            raise UserError(location, what, "pass a number, a text, None or a data type, under a name of its own")
        head.append(statement)
    definition = next(
        statement for statement in tree.body if isinstance(statement, ast.FunctionDef) and statement.name == jit.name
    )
    first, last = definition.decorator_list[0].lineno - 1, definition.end_lineno
    definition.args = _without(definition.args, constants)
    definition.body[:0] = ast.parse("".join(_CAST.format(name=name, dtype=dtype) for name, dtype in casts.items())).body
    kernel = ast.unparse(definition).splitlines()
    return "\n".join([*head, *lines[:first], *kernel, *lines[last:], ""])


def _without(arguments: ast.arguments, names: Container[str]) -> ast.arguments:
    """The parameters whose names are not among `names`, without defaults."""

    def left(parameters: list[ast.arg]) -> list[ast.arg]:
        return [parameter for parameter in parameters if parameter.arg not in names]

    keyword_only = left(arguments.kwonlyargs)
    return ast.arguments(
        posonlyargs=left(arguments.posonlyargs),
        args=left(arguments.args),
        vararg=arguments.vararg,
        kwonlyargs=keyword_only,
        kw_defaults=[None] * len(keyword_only),
        kwarg=arguments.kwarg,
        defaults=[],
    )


def _defined(tree: ast.Module) -> Iterator[str]:
    """The names that a module defines, other than by imports of modules."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in statement.names)
