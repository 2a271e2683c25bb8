"""Parameters with their values, defaults and meanings, and the space that they span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tunesmith.records import Configuration, UserError, Value


class ActsAt(StrEnum):
    """When a parameter acts: when the program is compiled, or only in the launch plan."""

    COMPILE = "compile-time"
    LAUNCH = "launch-time"


NUMBER_OR_WORD = "number or word"
"""What a parameter accepts whose values only the tuning file lists."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its name, default, sensible values, and meaning (`doc`).

    `values` are those that documentation and searches list. `accepts` decides which values a tuning file may give:
    "positive integer", "natural number", "natural number or -1", "truth value", "one of the values", "number or word",
    "list of N positive integers", "list of N or M natural numbers".
    """

    name: str
    default: Value
    values: tuple[Value, ...]
    doc: str
    when: ActsAt = ActsAt.COMPILE
    accepts: str = "one of the values"

    def check(self, value: Value, location: str) -> Value:
        """The value in the parameter's own type (0 and 1 become truth values). Raises UserError at `location` for a
        value that the parameter does not accept."""
        checked = self._accepted(value)
        if checked is None:
            raise UserError(location, f"{self.name} cannot be {_shown(value)}", f"give {self._remedy()}")
        return checked

    def _accepted(self, value: Value) -> Value | None:
        is_truth = isinstance(value, bool)
        if self.accepts in _LEAST:
            return value if _is_integer(value, _LEAST[self.accepts]) else None
        if self.accepts == NUMBER_OR_WORD:
            return (
                value if isinstance(value, int | float) or (isinstance(value, str) and value.isidentifier()) else None
            )
        if self.accepts == "truth value":
            return bool(value) if is_truth or value in (0, 1) else None
        if self.accepts == "one of the values":
            same_kind = (listed for listed in self.values if isinstance(listed, bool) == is_truth)
            return next((listed for listed in same_kind if listed == value), None)
        least = 0 if self.accepts.endswith("natural numbers") else 1
        lengths = [int(word) for word in self.accepts.split() if word.isdigit()]
        is_list = isinstance(value, tuple) and len(value) in lengths and all(_is_integer(item, least) for item in value)
        return value if is_list else None

    def _remedy(self) -> str:
        if self.accepts == NUMBER_OR_WORD:
            return f"a {self.accepts}"
        examples = ", ".join(_shown(value) for value in self.values[:8])
        return f"one of {examples}" if self.accepts == "one of the values" else f"a {self.accepts} such as {examples}"


def _shown(value: Value) -> str:
    return "[" + ", ".join(map(_shown, value)) + "]" if isinstance(value, tuple) else str(value)


def _is_integer(value: Value, lowest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= lowest


_LEAST = {"positive integer": 1, "natural number": 0, "natural number or -1": -1}


@dataclass(frozen=True)
class Space:
    """Parameters, in the order in which they are shown."""

    parameters: tuple[Parameter, ...]
    _by_name: Mapping[str, Parameter] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {parameter.name: parameter for parameter in self.parameters})

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Parameter:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    @property
    def defaults(self) -> Configuration:
        return Configuration({parameter.name: parameter.default for parameter in self.parameters})

    def launch_time(self, config: Configuration) -> Configuration:
        """The part of a configuration that acts only in the launch plan."""
        return config.only(p.name for p in self.parameters if p.when is ActsAt.LAUNCH)
