"""The tokens of an MLIR text and its nested brackets: enough to read attributes without MLIR."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tunesmith.records import UserError

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
    | (?P<text>"(?:[^"\\\n]|\\.)*")
    | (?P<word>[%@\#!^]?[A-Za-z0-9_$.\-]*[A-Za-z0-9_$](?:\#[0-9]+)?)
    | (?P<mark>->|>=|<=|==|::|[-{}()\[\]<>,=:+*?!@%\#^/|;&.])""",
    re.VERBOSE,
)
_CLOSERS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_MOST_DEPTH = 200
_REMEDY = "give a whole tuning spec of IREE's"


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a punctuation mark or a quoted text, with its line."""

    text: str
    line: int


@dataclass(frozen=True)
class TokenTree:
    """The tokens of a text. `closers` maps the index of each opening bracket to the index of its closing bracket."""

    name: str
    tokens: tuple[Token, ...]
    closers: dict[int, int]

    def error(self, index: int, what: str, remedy: str = _REMEDY) -> UserError:
        """An error at the line of the token at an index."""
        return UserError(f"{self.name}:{self.tokens[index].line}", what, remedy)

    def inside(self, opener: int) -> range:
        """The indices between a bracket and its partner."""
        return range(opener + 1, self.closers[opener])

    def found(self, word: str, among: range) -> Iterator[int]:
        """The indices of the tokens that are this word."""
        return (index for index in among if self.tokens[index].text == word)

    def next_of(self, texts: Sequence[str], among: range) -> int | None:
        """The first index of a token that is one of these texts; None without one."""
        return next((index for index in among if self.tokens[index].text in texts), None)

    def value(self, key: str, among: range) -> range | None:
        """The tokens after `key =`, up to a comma or bracket that ends the value; None without the key."""
        for index in self.found(key, among):
            if index + 2 in among and self.tokens[index + 1].text == "=":
                return range(index + 2, self._end(index + 2, among.stop))
        return None

    def numbers(self, among: range) -> tuple[int, ...] | None:
        """The whole numbers of a flat list in brackets; None for anything else."""
        texts = [self.tokens[index].text for index in among]
        if len(texts) < 2 or texts[0] != "[" or self.closers.get(among.start) != among.stop - 1:
            return None
        items = texts[1:-1]
        numbers, commas = items[::2], items[1::2]
        if set(commas) - {","} or not all(re.fullmatch(r"[0-9]{1,12}", text) for text in numbers):
            return None
        return tuple(map(int, numbers))

    def _end(self, start: int, stop: int) -> int:
        index = start
        while index < stop:
            if index in self.closers:
                index = self.closers[index] + 1
                continue
            begins_next = index > start and index + 1 < stop and self.tokens[index + 1].text == "="
            if begins_next or self.tokens[index].text in (",", *_CLOSERS.values()):
                return index
            index += 1
        return stop


def token_tree(text: str, name: str) -> TokenTree:
    """The tokens of a text; `name` is the file's name in errors. Raises UserError, with the line, for a character that
    MLIR does not have, and for a bracket without a partner."""
    tokens = tuple(_tokens(text, name))
    closers: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.text in _CLOSERS:
            opened.append(index)
            if len(opened) > _MOST_DEPTH:
                raise UserError(f"{name}:{token.line}", f"brackets nest more than {_MOST_DEPTH} deep", _REMEDY)
        elif token.text in _CLOSERS.values():
            if not opened or _CLOSERS[tokens[opened[-1]].text] != token.text:
                what = f"{token.text} closes nothing" if not opened else f"{token.text} meets {tokens[opened[-1]].text}"
                since = "" if not opened else f" of line {tokens[opened[-1]].line}"
                raise UserError(f"{name}:{token.line}", f"{what}{since}", _REMEDY)
            closers[opened.pop()] = index
    if opened:
        last = tokens[opened[-1]]
        raise UserError(f"{name}:{last.line}", f"the text ends before this {last.text} is closed", _REMEDY)
    return TokenTree(name, tokens, closers)


def _tokens(text: str, name: str) -> Iterator[Token]:
    line, position = 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UserError(f"{name}:{line}", f"{text[position]!r} is no MLIR", _REMEDY)
        if match.lastgroup != "skip":
            yield Token(match.group(), line)
        line += match.group().count("\n")
        position = match.end()
