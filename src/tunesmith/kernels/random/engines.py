"""What the sources of the engine kind need: files, and memory for states and in a work-group."""

from __future__ import annotations

from dataclasses import dataclass

WORD = 4
"""Bytes of a word of state, and of local memory."""


@dataclass(frozen=True, slots=True)
class EngineSource:
    """The `sources`, in this order behind `programs.HEADERS`, and the memory that their kernels use.

    Every `sharing` engines have `state_words` words of state between them; a work-group has `local_words` words of
    local memory, and as many again for each of its work-items as `local_words_each` says.
    """

    sources: tuple[str, ...]
    state_words: int
    sharing: int = 1
    local_words: int = 0
    local_words_each: int = 0
    needs_double: bool = False
    """Whether an OpenCL device must compute in double precision even for other values."""
    goes_in_rows: bool = False
    """Whether engines advance together: then a call after one whose last row (of a vector an engine) was cut, with
    vectors of another number of words, must have `start` 0, which leaves out the rest of that row."""

    def state_bytes(self, engines: int) -> int:
        return WORD * self.state_words * engines // self.sharing

    def local_bytes(self, block: int) -> int:
        """Of a work-group of `block` work-items."""
        return WORD * (self.local_words + self.local_words_each * block)


ENGINES: dict[str, EngineSource] = {
    "xorwow": EngineSource(("xorwow.h", "vector.h", "engine.h"), 6),
    "lfsr113": EngineSource(("lfsr113.h", "vector.h", "engine.h"), 4),
    "mrg32k3a": EngineSource(("mrg32k3a.h", "mrg.h", "vector.h", "engine.h"), 6, needs_double=True),
    "mrg31k3p": EngineSource(("mrg31k3p.h", "mrg.h", "vector.h", "engine.h"), 6, needs_double=True),
    "mt19937": EngineSource(("vector.h", "rows.h", "mt19937.h"), 79, local_words_each=78, goes_in_rows=True),
    "mtgp32": EngineSource(
        ("vector.h", "rows.h", "mtgp32.h"), 351 + 1 + 36, sharing=256, local_words=1119 + 32, goes_in_rows=True
    ),
}
"""By generator."""
