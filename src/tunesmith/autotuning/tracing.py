"""Turns the user's functions of sizes and parameters into expressions.

The function is called with symbols, which write down what is done with them. Where it asks whether something holds, it
is called once for either answer, and both results become parts of one conditional expression. Where it needs a plain
number (an index, `math.log2`), it is called for each value that the parameter may have. So everything that happens in
the function happens here, in the program that defined it; the expression is data, for files and other processes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from tunesmith.records import UserError, Value
from tunesmith.spaces.expressions import Expression

from .callables import in_time, location_of, parameters_of
from .symbols import Symbol, Symbols, UntraceableError

MOST_CALLS, MOST_QUESTIONS = 500, 50
"""The most calls of one function, and the most questions that sizes decide, or different parameters, in one call."""
MOST_FREE_QUESTIONS = 8
"""The most questions in one call if the values of parameters are not looked at. A loop asks more."""
MOST_ASSIGNMENTS = 4096
"""The most combinations of values that are tried, to see which answers are possible together."""


class TooManyError(UserError):
    """A function asks more questions, or gives more answers, than can be written down."""


@dataclass(frozen=True)
class Names:
    """The names that a function may use: each parameter's values, and the values of each size that is tuned for.
    `others` are properties of the device, whose values are not known yet."""

    parameters: Mapping[str, Sequence[Value]]
    sizes: Mapping[str, Sequence[int]]
    others: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.sizes, *self.parameters, *self.others)


def expressions_of(
    function: Callable[..., Any], names: Names, role: str, seconds: float, extents: int = 1, is_condition: bool = False
) -> tuple[str, ...]:
    """The expressions of a function's result; several if it gives a tuple of up to `extents` numbers.

    If it `is_condition`, only the truth of the result counts. Raises UserError, with the line of the function, if it
    raises, gives something else than numbers, does not end in time, or needs what no expression can say.
    """
    location = location_of(function)

    def traced() -> _Branch | Leaf:
        try:
            return _Tracer(function, names, role, location).branch(())
        except TooManyError:
            return _Tracer(function, names, role, location, knows_values=True).branch(())

    outcome = in_time(traced, seconds, f"the function for {role}", location)
    lengths = {len(leaf) for leaf in _leaves(outcome) if leaf is not None}
    count = max(lengths, default=1)
    if count > extents:
        raise UserError(location, f"the function for {role} gave {count} numbers", f"return at most {extents}")
    trees = [_extent(outcome, position) for position in range(count)]
    return tuple(ast.unparse(_condition(tree) if is_condition else tree) for tree in trees)


Leaf = tuple[ast.expr, ...] | None
"""The numbers that a function returned; None if no values lead there."""


@dataclass(frozen=True)
class _Branch:
    condition: ast.expr
    then: _Branch | Leaf
    otherwise: _Branch | Leaf


@dataclass
class _Tracer:
    """Calls a function with symbols.

    With `knows_values`, a question that the parameters' values decide is not written down. That ends loops. Without it
    the expression does not depend on the values that happen to be listed.
    """

    function: Callable[..., Any]
    names: Names
    role: str
    location: str
    knows_values: bool = False
    calls: int = 0
    answers: tuple[bool, ...] = ()
    asked: list[ast.expr] = field(default_factory=list)

    def branch(self, answers: tuple[bool, ...]) -> _Branch | Leaf:
        """What the function gives if its first questions have these answers."""
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise self._too_many(f"gives more than {MOST_CALLS} different answers")
        self.answers, self.asked = answers, []
        try:
            leaf: Leaf = self._leaf(self._call())
        except UserError:
            raise
        except UntraceableError as error:
            raise self._wrong(str(error), "write an expression, such as 'ceil_div(Rows, GROUP)'") from None
        except Exception as error:
            values = self._example(self.asked, self.answers)
            if values is None:
                leaf = None
            else:
                shown = ", ".join(f"{name} = {value!r}" for name, value in values.items())
                what = f"raised {type(error).__name__}: {error}" + (f", with {shown}" if shown else "")
                raise self._wrong(what, f"mend it; it may use {', '.join(self.names.all)}") from error
        if len(self.asked) <= len(answers):
            return leaf
        condition = self.asked[len(answers)]
        return _Branch(condition, self.branch((*answers, True)), self.branch((*answers, False)))

    def holds(self, condition: ast.expr) -> bool:
        """The answer to the next question."""
        if self.knows_values:
            possible = self._possible(condition, self.answers[: len(self.asked)])
            if len(possible) == 1:
                return possible.pop()
        repeated = [answer for asked, answer in zip(self.asked, self.answers, strict=False) if _is(asked, condition)]
        if repeated:
            return repeated[0]
        most = MOST_QUESTIONS if self.knows_values else MOST_FREE_QUESTIONS
        if len(self.asked) == most:
            raise self._too_many(f"asks more than {most} questions about sizes and parameters")
        self.asked.append(condition)
        if len(self.asked) > len(self.answers):
            self.answers = (*self.answers, True)
            return True
        return self.answers[len(self.asked) - 1]

    def values_of(self, symbol: Symbol) -> list[Value]:
        """The values that an expression may have, over all values of the names in it."""
        expression = Expression.parse(ast.unparse(symbol.tree), self.location)
        if unknown := expression.names - self.names.parameters.keys() - self.names.sizes.keys():
            raise UntraceableError(f"needs the value of {', '.join(sorted(unknown))}, which the device decides")
        known = {**self.names.parameters, **self.names.sizes}
        values = [expression.evaluate(assignment) for assignment in _assignments(expression.names, known)]
        return list(dict.fromkeys(values))

    def is_parameter(self, name: str) -> bool:
        return name in self.names.parameters

    def _call(self) -> Any:
        symbols = {name: Symbol(self, ast.Name(name, ast.Load())) for name in self.names.all}
        needed = parameters_of(self.function, self.location)
        if len(needed) == 1 and needed[0] not in symbols:
            return self.function(Symbols(symbols))
        if unknown := [name for name in needed if name not in symbols]:
            remedy = f"it may use {', '.join(self.names.all)}"
            raise self._wrong(f"has a parameter {unknown[0]}, which is no size and no parameter", remedy)
        return self.function(**{name: symbols[name] for name in needed})

    def _leaf(self, result: Any) -> Leaf:
        parts = result if isinstance(result, tuple | list) else (result,)
        if not parts:
            raise self._wrong("gave an empty list", "return a number or a tuple of numbers")
        return tuple(self._tree_of(part) for part in parts)

    def _tree_of(self, part: Any) -> ast.expr:
        if isinstance(part, Symbol):
            return part.tree
        plain = part.item() if isinstance(part, np.generic) else part
        if isinstance(plain, int | float):
            return ast.Constant(plain)
        raise self._wrong(f"gave a {type(part).__name__}", "return a number or a tuple of numbers")

    def _possible(self, condition: ast.expr, earlier: Sequence[bool]) -> set[bool]:
        """The answers that some values of the parameters give, with the earlier answers. Both, if sizes or the device
        decide: the function is for other sizes, too."""
        expression = Expression.parse(ast.unparse(condition), self.location)
        if not expression.names <= self.names.parameters.keys():
            return {True, False}
        found = {expression.truth(values) for values in self._fitting(self.asked, earlier, expression.names)}
        return found or {True, False}

    def _fitting(
        self, conditions: Sequence[ast.expr], answers: Sequence[bool], more: frozenset[str] = frozenset()
    ) -> Iterator[dict[str, Value]]:
        """The values of parameters that give these answers. Conditions on sizes are not looked at."""
        parsed = [Expression.parse(ast.unparse(condition), self.location) for condition in conditions]
        decided = [
            (expression, answer)
            for expression, answer in zip(parsed, answers, strict=False)
            if expression.names <= self.names.parameters.keys()
        ]
        names = frozenset(more).union(*(expression.names for expression, _ in decided))
        for values in _assignments(names, self.names.parameters):
            if all(expression.truth(values) == answer for expression, answer in decided):
                yield values

    def _example(self, conditions: Sequence[ast.expr], answers: Sequence[bool]) -> dict[str, Value] | None:
        """Values that lead to these answers; None if there are none, or if a size decided one of them."""
        on_sizes = any(
            not Expression.parse(ast.unparse(condition), self.location).names <= self.names.parameters.keys()
            for condition in conditions
        )
        return None if on_sizes else next(self._fitting(conditions, answers), None)

    def _too_many(self, what: str) -> TooManyError:
        return TooManyError(self.location, f"the function for {self.role} {what}", "write an expression")

    def _wrong(self, what: str, remedy: str) -> UserError:
        return UserError(self.location, f"the function for {self.role} {what}", remedy)


def _assignments(names: frozenset[str], values: Mapping[str, Sequence[Value]]) -> Iterator[dict[str, Value]]:
    ordered = sorted(names)
    count = 1
    for name in ordered:
        count *= len(values[name])
    if count > MOST_ASSIGNMENTS:
        raise UntraceableError(f"mixes {', '.join(ordered)}, which have {count} combinations of values")
    for combination in product(*(values[name] for name in ordered)):
        yield dict(zip(ordered, combination, strict=True))


def _leaves(outcome: _Branch | Leaf) -> Iterator[Leaf]:
    if isinstance(outcome, _Branch):
        yield from _leaves(outcome.then)
        yield from _leaves(outcome.otherwise)
    else:
        yield outcome


def _extent(outcome: _Branch | Leaf, position: int) -> ast.expr:
    """The expression for one of the numbers. A missing extent is 1. Values that lead nowhere give 0, which no launch
    takes and which fulfils no constraint."""
    if isinstance(outcome, _Branch):
        then, otherwise = _extent(outcome.then, position), _extent(outcome.otherwise, position)
        return then if _is(then, otherwise) else ast.IfExp(outcome.condition, then, otherwise)
    if outcome is None:
        return ast.Constant(0)
    return outcome[position] if position < len(outcome) else ast.Constant(1)


def _condition(tree: ast.expr) -> ast.expr:
    """The tree with `and` and `or` in the place of conditional expressions that say the same."""
    if not isinstance(tree, ast.IfExp):
        return tree
    question, then, otherwise = tree.test, _condition(tree.body), _condition(tree.orelse)
    if _is(otherwise, question) or _is(otherwise, ast.Constant(False)) or _is(otherwise, ast.Constant(0)):
        return ast.BoolOp(ast.And(), [question, then])
    if _is(then, question) or _is(then, ast.Constant(True)) or _is(then, ast.Constant(1)):
        return ast.BoolOp(ast.Or(), [question, otherwise])
    return ast.IfExp(question, then, otherwise)


def _is(tree: ast.expr, other: ast.expr) -> bool:
    return ast.dump(tree) == ast.dump(other)
