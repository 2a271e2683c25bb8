"""The reference page of tuning files, made from the tables with which tunesmith reads them."""

from __future__ import annotations

from collections.abc import Iterable

from tunesmith.problems import LIMIT, Key, shortened
from tunesmith.problems.gemm import FIELDS as GEMM_FIELDS
from tunesmith.problems.gemm.listed import COLUMNS
from tunesmith.protocol import Phase
from tunesmith.protocol.phases import INITIAL
from tunesmith.protocol.settings import GLOBAL_KEYS, LOGIC_KEYS
from tunesmith.protocol.sizes import COMMON_DEFAULT, FINAL_DEFAULT
from tunesmith.protocol.tensile import ANSWERED_GLOBALS, ANSWERED_LOGIC, IGNORED_GLOBALS, IGNORED_LOGIC
from tunesmith.spaces import Space

PHASES = {
    INITIAL: "One value for a parameter, which holds until a step decides the parameter. A parameter with a single "
    "value in a later phase has this value from the beginning; a parameter that no phase names has its default.",
    Phase.COMMON: "Each dict is a step with one winner, which holds for everything after it.",
    Phase.FORK: "Nothing is measured. Every combination of all values becomes a lineage, which is tuned separately. "
    "`Groups` lists further factors, each a list of dicts that set several parameters together.",
    Phase.BENCHMARK_FORK: "Each dict is a step with one winner for each lineage.",
    Phase.JOIN: "A list of forked parameters and derived values: the best lineage is kept for each combination of "
    "their values. `[]` keeps one lineage; absent or empty (`JoinParameters:`) keeps all.",
    Phase.BENCHMARK_JOIN: "Each dict is a step with one winner for each lineage that is left.",
    Phase.FINAL: "`ProblemSizes`, and parameters if any. Every lineage that is left is measured on every size, in all "
    "combinations of the parameters; each size has a winner of its own.",
}

SIZE_FORMS = {
    "`[n]`": "the size n",
    "`[first, last]`": "first, 2 first, 3 first ... up to last: the step is the first number, as in Tensile's code; "
    "its wiki says 16 (write `[first, 16, last]` for that)",
    "`[first, step, last]`": "from first, step apart, up to last",
    "`[first, step, growth, last]`": "from first up to last, with gaps of step, step + growth, step + 2 growth ...",
    "`i`": "the size of an earlier index, number i from 0",
}


def reference(space: Space | None = None) -> str:
    """The page in Markdown; with a space, also a section on the space's parameters."""
    sections = [_OPENING, *_problem_type(), *_phases(), *_problem_sizes(), *_settings(), *_tensile()]
    if space is not None:
        sections += ["## Parameters", _parameters(space)]
    return "\n\n".join(sections) + "\n"


_OPENING = """# Tuning files

A tuning file is YAML in the list form of Tensile's dialect. This page is made from the tables with which tunesmith
reads tuning files. Tensile's own files, of any era, are [translated into this form](from-tensile.md).

```yaml
GlobalParameters:           # how everything is measured; may be left out
BenchmarkProblems:
  - - OperationType: GEMM   # the problem type
    - ForkParameters: ...   # a size group with its phases
    - ForkParameters: ...   # further size groups go through their phases by themselves
LibraryLogic:               # how the result is labelled; may be left out
```

An unknown key is an error, and all errors of a file are reported together. When the file is read, a message says what
is assumed or ignored, once for each key. This includes a parameter that none of the file's kernel families has."""


_OTHER_OPERATIONS = """These are the keys of a GEMM. `OperationType: Custom` has one more, `Kernel`: the path of a
[kernel's description](custom-kernels.md), from this file. `OperationType: Random` has
[its own](parameters.md#random-number-generators), and so has [`OperationType: Convolution`](intensity.md#the-files),
which no kernel computes yet."""


def _problem_type() -> list[str]:
    return ["## Problem type", _OTHER_OPERATIONS, _keys(GEMM_FIELDS)]


def _phases() -> list[str]:
    rules = """A phase is a list of dicts, `parameter: [values]`. Several parameters in one dict are one step over all
their combinations, the first varying fastest, with one winner. Outside of InitialSolutionParameters a parameter is
named once. A parameter with a single value makes no step in any phase."""
    phases = _table(("phase", "meaning"), ((f"`{name}`", text) for name, text in PHASES.items()))
    return ["## Phases", phases, rules, "### Everything at once", _AT_ONCE]


_AT_ONCE = """The shortest file tries every combination on every size, and needs no phase but the last:

```yaml
- BenchmarkFinalParameters:
    - ProblemSizes:
        - Exact: [1024, 1024, 1024]
    - ThreadTile: [[4, 4], [8, 4], [8, 8]]
      VectorWidth: [1, 2, 4]
```

Combinations that are illegal (by the device's limits, or a constraint of a kernel of one's own) are counted by reason.
`tunesmith plan` says how many are left. Above 100,000 combinations, some parameters need a step of their own."""


def _problem_sizes() -> list[str]:
    common, final = shortened(COMMON_DEFAULT), shortened(FINAL_DEFAULT)
    rules = f"""`ProblemSizes` stands in a phase as a dict, `- ProblemSizes: [...]`, and lists any number of

- `Range: [...]`, one entry for each index (GEMM: M, N, batch if batched, K): every combination, the first index varying
  fastest;
- `Exact: [...]`, one size for each index; for a GEMM, LDD, LDC, LDA and LDB may follow, in elements;
- `File: problems.csv`, a list of problems or a library logic of Tensile ([below](#lists-of-problems)).

A size that is listed more than once is measured once. One `ProblemSizes` makes at most {LIMIT:,} sizes. Sizes apply
from their position on, also in the next phases; the final phase has its own sizes. Without sizes, the first index has
{common} in the steps and {final} in the final phase, the other indices are equal to it, and the batch is 1.

An entry of a `Range` is"""
    columns = ((f"`{name}`", column.takes, column.doc) for name, column in COLUMNS.items())
    forms, listed = _table(("entry", "sizes"), SIZE_FORMS.items()), _table(("column", "takes", "meaning"), columns)
    return ["## Problem sizes", rules, forms, "### Lists of problems", _LIST, listed, _LIST_RULES]


_LIST = """A `File` that ends in `.yaml` or `.yml` is a
[library logic of Tensile](from-tensile.md#exact-sizes-as-problems), whose exact sizes are taken. Any other `File` is
CSV. Its path is relative to the tuning file. The header of a CSV list names the columns. A list of GEMMs has m, n and
k, and any of the others below; a list for another operation has one for each size, by the name of its index, and family
and weight as below:"""

_LIST_RULES = """A row of a list of GEMMs is C[m, n] = op(A) op(B) of **row-major** matrices, as in `torch.mm(a, b)`
with a of m x k and b of k x n (`trans_b` is T for `torch.mm(a, w.t())` with weights w of n x k). A problem type is
column-major. A row-major C is the column-major C' = op(B)' op(A)' in the same memory, so A and B change places, and so
do m and n:

| row of the list | problem |
| --- | --- |
| m, n, k, batch | the sizes n, m, batch, k of M, N, Batch, K, with natural leading dimensions |
| `trans_b` is T | `TransposeA: True` |
| `trans_a` is T | `TransposeB: True` |
| batch is above 1 | `Batched: True` |

Rows with other transposes or another batch than the problem type are left out, with a message, so one list serves
several problem types. With `Family: [llama, wave]` (or one word) beside `File`, only rows of these families are taken.

A row's weight says how much the row counts when a step or a join decides over several sizes (`StepObjective`: a
weighted mean for geomean, a weighted sum for total_time; max and worst look at single sizes and ignore weights). Rows
of the same size count together. A size that no list names has weight 1. In the final phase every size has its own
winner, and all winners are kept."""


def _settings() -> list[str]:
    absent = "A parameter without a default here has that of the bench's policy."
    return ["## GlobalParameters", _keys(GLOBAL_KEYS.values()), absent, "## LibraryLogic", _keys(LOGIC_KEYS.values())]


def _tensile() -> list[str]:
    answers = ANSWERED_GLOBALS | ANSWERED_LOGIC
    answered = _table(("Tensile's", "here"), ((f"`{name}`", text) for name, text in answers.items()))
    names = ", ".join(f"`{name}`" for name in sorted(IGNORED_GLOBALS | IGNORED_LOGIC))
    return ["## What is read and ignored", answered, f"Without a counterpart: {names}."]


def _parameters(space: Space) -> str:
    rows = (
        (
            f"`{parameter.name}`",
            f"`{shortened(parameter.default)}`",
            ", ".join(shortened(value) for value in parameter.values),
            parameter.when.value,
            parameter.doc,
        )
        for parameter in space
    )
    return _table(("parameter", "default", "values", "acts at", "meaning"), rows)


def _keys(keys: Iterable[Key]) -> str:
    rows = (
        (f"`{key.name}`", "" if key.default is None else f"`{shortened(key.default)}`", key.takes_text(), key.doc)
        for key in keys
    )
    return _table(("key", "default", "takes", "meaning"), rows)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in lines
    )
