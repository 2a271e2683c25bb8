"""Commands that are imported when they are called; a help page that lists them does not import them.

A command is a module of this package or of its group's folder, with a function of the command's name. A list of
commands shows the function's docstring, which is read from the source file.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from keyword import iskeyword
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from .main import interrupted

SETTINGS: dict[str, Any] = {"add_completion": False, "rich_markup_mode": "markdown", "pretty_exceptions_enable": False}
"""The settings of every typer application here."""


class LazyCommands(Mapping[str, Any]):
    """The commands of a group, by their last word; a lookup imports the command. `words` has the full words of each."""

    def __init__(self, words: Sequence[str], takes_sizes: Sequence[str], groups: Mapping[str, Any]) -> None:
        self._words = {word.split()[-1]: word for word in words}
        self._takes_sizes, self._groups = takes_sizes, groups

    def __getitem__(self, name: str) -> Any:
        return self._groups[name] if name in self._groups else self._imported(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._words, *self._groups))

    def __contains__(self, name: object) -> bool:
        return name in self._words or name in self._groups

    def __len__(self) -> int:
        return len(self._words) + len(self._groups)

    def described(self, name: str) -> Any:
        """A stand-in with the command's description, which does nothing."""
        if name in self._groups:
            return self._groups[name]
        application = typer.Typer(**SETTINGS)
        application.command(name, help=_docstring(_module_of(self._words[name]), _function_of(name)))(lambda: None)
        return get_command(application)

    def _imported(self, name: str) -> Any:
        words = self._words[name]
        try:
            module = import_module(f"tunesmith.cli.{_module_of(words)}")
        except KeyboardInterrupt:
            interrupted()
        function = getattr(module, _function_of(name))
        application = typer.Typer(**SETTINGS)
        application.command(name, context_settings={"allow_extra_args": words in self._takes_sizes})(function)
        return get_command(application)


def lazy_group(commands: LazyCommands) -> type[TyperGroup]:
    """The class of a group that has these commands."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = commands  # type: ignore[assignment]  # only read: nothing is added later
            self._is_listing = False

        def list_commands(self, ctx: Any) -> list[str]:
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in commands:
                return None
            return commands.described(cmd_name) if self._is_listing else commands[cmd_name]

        def format_help(self, ctx: Any, formatter: Any) -> None:
            self._is_listing = True
            try:
                super().format_help(ctx, formatter)
            finally:
                self._is_listing = False

    return LazyGroup


def group_of(name: str, purpose: str, words: Sequence[str], takes_sizes: Sequence[str]) -> Any:
    """A group of commands as one command."""
    commands = LazyCommands([f"{name} {word}" for word in words], takes_sizes, {})
    application = typer.Typer(name=name, help=purpose, no_args_is_help=True, cls=lazy_group(commands), **SETTINGS)
    return get_group(application)


def _module_of(words: str) -> str:
    return ".".join(map(_function_of, words.split()))


def _function_of(name: str) -> str:
    """The Python name of a command; a word that Python keeps for itself gets an underscore."""
    return f"{name}_" if iskeyword(name) else name.replace("-", "_")


@cache
def _docstring(module: str, function: str) -> str:
    source = files("tunesmith.cli").joinpath(f"{module.replace('.', '/')}.py")
    tree = ast.parse(source.read_text(encoding="utf-8"))
    definition = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return inspect.cleandoc(ast.get_docstring(definition) or "")
