"""Expressions over parameter names, as a user writes them in a file; evaluated by a whitelist, never by `eval`.

Allowed are numbers, words, truth values and lists of them; `+ - * / // % **`, comparisons (also chained), `in`, `and or
not`, `a if condition else b`, `WorkGroup[0]`, and the functions in `FUNCTIONS`. The length of the text, the number of
its parts and every intermediate number are bounded, so that no expression can take long or fill the memory.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunesmith.records import UserError, Value, freeze

LONGEST_TEXT = 2000
MOST_PARTS = 400
DEEPEST = 60
LARGEST = 2**63 - 1
"""The largest absolute value of an intermediate number: the range of sizes and addresses."""


def ceil_div(dividend: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-dividend // divisor)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is at least `value`."""
    return ceil_div(value, multiple) * multiple


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil_div": ceil_div,
    "len": len,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round_up": round_up,
}


@dataclass(frozen=True)
class Expression:
    """A well-formed expression. `names` are the names whose values it needs."""

    text: str
    location: str
    names: frozenset[str]
    _tree: ast.expr = field(repr=False, compare=False)

    @staticmethod
    def parse(text: object, location: str) -> Expression:
        """Parses an expression from a file; a plain number is an expression too. Raises UserError at `location`."""
        if not isinstance(text, (str, int, float)):
            raise UserError(location, f"{text!r} is not an expression", f"write one such as {_EXAMPLE!r}")
        stripped = str(text).strip()
        tree = _parsed(stripped, location)
        parts = list(ast.walk(tree))
        if len(parts) > MOST_PARTS:
            raise UserError(location, f"the expression has {len(parts)} parts", f"use at most {MOST_PARTS}")
        _check(tree, location, depth=0)
        called = {id(part.func) for part in parts if isinstance(part, ast.Call)}
        names = frozenset(part.id for part in parts if isinstance(part, ast.Name) and id(part) not in called)
        return Expression(stripped, location, names, tree)

    def evaluate(self, values: Mapping[str, Value]) -> Value:
        """The value of the expression with `values[name]` for each name. Raises UserError at the expression's
        location."""
        try:
            return freeze(_value(self._tree, values))
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
            assignments = ", ".join(f"{name} = {_shown(values.get(name))}" for name in sorted(self.names)) or "no names"
            raise UserError(
                self.location, f"{self.text!r} has no value with {assignments}: {_why(error)}", "mend the expression"
            ) from error

    def truth(self, values: Mapping[str, Value]) -> bool:
        """Whether the value is anything but zero, false or empty."""
        return bool(self.evaluate(values))

    def integer(self, values: Mapping[str, Value], least: int = 0) -> int:
        """The value as a whole number of at least `least`. Raises UserError for anything else."""
        kind = "a positive whole number" if least == 1 else f"a whole number from {least}"
        return int(self._number(values, least, kind, is_whole=True))

    def number(self, values: Mapping[str, Value], least: float = -math.inf) -> float:
        """The value as a number of at least `least`. Raises UserError for anything else."""
        kind = "a number" if least == -math.inf else f"a number from {least:g}"
        return float(self._number(values, least, kind))

    def _number(self, values: Mapping[str, Value], least: float, kind: str, is_whole: bool = False) -> int | float:
        value = self.evaluate(values)
        if not isinstance(value, (int, float)) or value < least or (is_whole and value != int(value)):
            raise UserError(self.location, f"{self.text!r} is {_shown(value)}", f"it must give {kind}")
        return value


def _parsed(text: str, location: str) -> ast.expr:
    if len(text) > LONGEST_TEXT:
        raise UserError(location, f"the expression has {len(text)} characters", f"use at most {LONGEST_TEXT}")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "too deeply nested, or not text"
        raise UserError(
            location, f"{text[:80]!r} is not an expression: {reason}", f"write one such as {_EXAMPLE!r}"
        ) from None


def _check(part: ast.AST, location: str, depth: int) -> None:
    """Raises UserError for anything that is not in the tables below, before the expression is evaluated."""
    if depth > DEEPEST:
        raise UserError(location, "the expression is too deeply nested", f"use at most {DEEPEST} levels")
    match part:
        case ast.Constant(value):
            allowed = isinstance(value, str) or (isinstance(value, (int, float)) and _in_bounds(value))
        case ast.BinOp(op=sign) | ast.UnaryOp(op=sign):
            allowed = type(sign) in _OPERATORS
        case ast.Compare(ops=signs):
            allowed = all(type(sign) in _COMPARISONS for sign in signs)
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            allowed = name in FUNCTIONS
        case _:
            allowed = isinstance(part, _OTHER_PARTS)
    if not allowed:
        text = ast.unparse(part)[:60] if isinstance(part, ast.expr) else type(part).__name__
        raise UserError(location, f"{text!r} is not allowed in an expression", _REMEDY)
    for inner in ast.iter_child_nodes(part):
        if isinstance(inner, ast.expr):
            _check(inner, location, depth + 1)


def _value(part: ast.expr, values: Mapping[str, Value]) -> Any:
    match part:
        case ast.Constant(value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.List(items) | ast.Tuple(items):
            return tuple(_value(item, values) for item in items)
        case ast.BoolOp(op=ast.And(), values=terms):
            return all(_value(term, values) for term in terms)
        case ast.BoolOp(values=terms):
            return any(_value(term, values) for term in terms)
        case ast.UnaryOp(op=sign, operand=operand):
            return _OPERATORS[type(sign)](_value(operand, values))
        case ast.BinOp(left, sign, right):
            return _bounded(_OPERATORS[type(sign)](_number(_value(left, values)), _number(_value(right, values))))
        case ast.Compare(left, signs, rights):
            return _compare(_value(left, values), signs, rights, values)
        case ast.IfExp(condition, then, otherwise):
            return _value(then if _value(condition, values) else otherwise, values)
        case ast.Subscript(sequence, index):
            return _item(_value(sequence, values), _value(index, values))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _bounded(FUNCTIONS[name](*(_value(argument, values) for argument in arguments)))
    raise TypeError(f"{type(part).__name__} has no value")


def _compare(left: Any, signs: Sequence[ast.cmpop], rights: Sequence[ast.expr], values: Mapping[str, Value]) -> bool:
    for sign, right in zip(signs, rights, strict=True):
        right_value = _value(right, values)
        if not _COMPARISONS[type(sign)](left, right_value):
            return False
        left = right_value
    return True


def _number(value: Any) -> Any:
    if not isinstance(value, (int, float)):
        raise TypeError(f"{_shown(value)} is not a number")
    return value


def _in_bounds(value: Any) -> bool:
    return not isinstance(value, (int, float)) or (math.isfinite(value) and abs(value) <= LARGEST)


def _bounded(value: Any) -> Any:
    if isinstance(value, complex) or not _in_bounds(value):
        raise OverflowError("a number on the way is too large")
    return value


def _power(base: Any, exponent: Any) -> Any:
    """The power. Raises OverflowError for a large result before computing it."""
    if isinstance(base, int) and abs(exponent) * max(1, abs(base).bit_length() - 1) > 64 and abs(base) > 1:
        raise OverflowError("a number on the way is too large")
    return base**exponent


def _item(sequence: Any, index: Any) -> Any:
    if not isinstance(sequence, tuple):
        raise TypeError(f"{_shown(sequence)} is not a list")
    return sequence[index]


def _why(error: Exception) -> str:
    return f"nothing is called {error.args[0]}" if isinstance(error, KeyError) else str(error)


def _shown(value: object) -> str:
    return repr(value)[:60]


_FUNCTION_NAMES = ", ".join(FUNCTIONS)
_REMEDY = f"use names, numbers, words, lists, + - * / // % **, comparisons, and, or, not, if, and {_FUNCTION_NAMES}"

_EXAMPLE = "ceil_div(M, 16) * WorkGroup[0]"

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.USub: lambda value: -_number(value),
    ast.UAdd: lambda value: +_number(value),
    ast.Not: operator.not_,
}

_COMPARISONS: Mapping[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, sequence: item in sequence,
    ast.NotIn: lambda item, sequence: item not in sequence,
}

_OTHER_PARTS = (ast.Name, ast.List, ast.Tuple, ast.BoolOp, ast.IfExp, ast.Subscript)
