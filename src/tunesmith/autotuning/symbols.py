"""Symbols: what a user's function gets in the place of numbers, and what it may do with them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from tunesmith.records import Value
from tunesmith.spaces.expressions import Expression


class UntraceableError(Exception):
    """A function does with a symbol what no expression can say."""


class NotTunedForError(Exception):
    """A function needs the plain value of a size, at a size that was not tuned for."""


class SymbolAnswers(Protocol):
    """Answers for symbols: whether a condition holds in this call, and which values an expression may have."""

    def holds(self, condition: ast.expr) -> bool: ...

    def values_of(self, symbol: Symbol) -> list[Value]: ...

    def is_parameter(self, name: str) -> bool: ...


class Symbols(Mapping[str, "Symbol"]):
    """What a function of one parameter gets: `p["GROUP"]` or `p.GROUP`."""

    def __init__(self, symbols: Mapping[str, Symbol]) -> None:
        self._symbols = symbols

    def __getitem__(self, name: str) -> Symbol:
        return self._symbols[name]

    def __getattr__(self, name: str) -> Symbol:
        try:
            return self._symbols[name]
        except KeyError:
            raise AttributeError(f"there is no {name}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._symbols)

    def __len__(self) -> int:
        return len(self._symbols)


def _infix(kind: type[ast.operator], swapped: bool = False) -> Callable[[Symbol, Any], Symbol]:
    def apply(symbol: Symbol, other: Any) -> Symbol:
        left, right = symbol.tree, symbol.operand(other)
        if right is None:
            return NotImplemented  # type: ignore[no-any-return]  # Python asks the other operand then
        return symbol.new(ast.BinOp(right, kind(), left) if swapped else ast.BinOp(left, kind(), right))

    return apply


def _comparison(kind: type[ast.cmpop]) -> Callable[[Symbol, Any], Any]:
    def apply(symbol: Symbol, other: Any) -> Any:
        right = symbol.operand(other)
        if right is None:
            return NotImplemented
        return symbol.new(ast.Compare(symbol.tree, [kind()], [right]))

    return apply


class Symbol:
    """A number or a word whose value is not known yet. Operations on it give other symbols."""

    def __init__(self, tracer: SymbolAnswers, tree: ast.expr) -> None:
        self._tracer, self.tree = tracer, tree

    def __repr__(self) -> str:
        return ast.unparse(self.tree)

    def new(self, tree: ast.expr) -> Symbol:
        return Symbol(self._tracer, tree)

    def operand(self, other: Any) -> ast.expr | None:
        """The tree of another operand; None for what cannot stand in an expression."""
        if isinstance(other, Symbol):
            return other.tree
        plain = other.item() if isinstance(other, np.generic) else other
        return ast.Constant(plain) if isinstance(plain, int | float | str) else None

    __add__, __radd__ = _infix(ast.Add), _infix(ast.Add, swapped=True)
    __sub__, __rsub__ = _infix(ast.Sub), _infix(ast.Sub, swapped=True)
    __mul__, __rmul__ = _infix(ast.Mult), _infix(ast.Mult, swapped=True)
    __truediv__, __rtruediv__ = _infix(ast.Div), _infix(ast.Div, swapped=True)
    __floordiv__, __rfloordiv__ = _infix(ast.FloorDiv), _infix(ast.FloorDiv, swapped=True)
    __mod__, __rmod__ = _infix(ast.Mod), _infix(ast.Mod, swapped=True)
    __pow__, __rpow__ = _infix(ast.Pow), _infix(ast.Pow, swapped=True)
    __lt__, __le__ = _comparison(ast.Lt), _comparison(ast.LtE)
    __gt__, __ge__ = _comparison(ast.Gt), _comparison(ast.GtE)
    __eq__ = _comparison(ast.Eq)
    __ne__ = _comparison(ast.NotEq)

    def __neg__(self) -> Symbol:
        return self.new(ast.UnaryOp(ast.USub(), self.tree))

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return self._called("abs")

    def __floor__(self) -> Symbol:
        return self.new(ast.BinOp(self.tree, ast.FloorDiv(), ast.Constant(1)))

    def __ceil__(self) -> Symbol:
        return self._called("ceil_div", ast.Constant(1))

    def __getitem__(self, index: Any) -> Symbol:
        position = self.operand(index)
        if position is None:
            raise UntraceableError(f"takes {index!r} of a list")
        return self.new(ast.Subscript(self.tree, position, ast.Load()))

    def __bool__(self) -> bool:
        return self._tracer.holds(self.tree)

    def __hash__(self) -> int:
        return hash(self._value())

    def __index__(self) -> int:
        return operator.index(self._number())  # type: ignore[arg-type]  # a float raises TypeError, as it should

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __str__(self) -> str:
        return str(self._value())

    def __format__(self, specification: str) -> str:
        return format(self._value(), specification)

    def __round__(self, digits: int | None = None) -> float:
        return round(self._number(), digits)

    def __iter__(self) -> Iterator[Value]:
        value = self._value()
        if not isinstance(value, tuple):
            raise TypeError(f"{value!r} is no list")
        return iter(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._value(), dtype)

    def _number(self) -> int | float:
        value = self._value()
        if not isinstance(value, int | float):
            raise TypeError(f"{value!r} is not a number")
        return value

    def _value(self) -> Value:
        """A plain value: the function is called once for each that is possible."""
        values = self._tracer.values_of(self)
        for value in values[:-1] if self._names_parameters_only() else values:
            if self == value:
                return value
        if self._names_parameters_only():
            return values[-1]
        raise NotTunedForError(f"{ast.unparse(self.tree)} is none of {', '.join(map(str, values))}")

    def _names_parameters_only(self) -> bool:
        expression = Expression.parse(ast.unparse(self.tree), "")
        return all(map(self._tracer.is_parameter, expression.names))

    def _called(self, name: str, *arguments: ast.expr) -> Symbol:
        return self.new(ast.Call(ast.Name(name, ast.Load()), [self.tree, *arguments], []))
