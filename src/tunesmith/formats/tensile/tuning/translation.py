"""Translates a Tensile tuning file of any era into a tuning file of our form, and says what became of everything.

The translated tree keeps the locations of the file, so that later mistakes are found where they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith.problems import Mistakes, Node, read_yaml
from tunesmith.records import UserError

from .layout import CUSTOM_KERNELS, FINAL, GROUPED_FORK, PHASES, SIZES, Layout, layout_of
from .ledger import NameLedger
from .parameters import Vocabulary
from .problem import ProblemTranslator
from .record import Dialect, Fate, TensileImport, Treatment
from .settings import initial_scalars, most_oblong, translated_globals, translated_logic, translated_top

SHORTEST_LOGIC = 8
"""The fewest elements of a library logic in list form."""


@dataclass(frozen=True)
class TranslatedFile:
    """A file in our form, and the record of what was translated; no record if the file was in our form already."""

    root: Node
    imported: TensileImport | None = None


def read_translated(path: Path, vocabulary: Callable[[], Vocabulary], sizes_file: Path | None = None) -> TranslatedFile:
    """Read a tuning file and translate it if it is one of Tensile's.

    `vocabulary` gives the parameters that GEMM kernels here have. `sizes_file` holds the sizes of a file in the split
    form. Raises UserError, as `read_yaml` does. What is wrong inside of a file is left for the reader of our form.
    """
    tolerated = Mistakes()
    root = read_yaml(path, tolerated)
    if isinstance(root.content, tuple) and len(root.content) >= SHORTEST_LOGIC:
        what = "this is a list, as Tensile's library logic is, and no tuning file"
        raise UserError(root.location, what, "see it with `tunesmith logic show`, or name a tuning file")
    sizes = _sizes_of(sizes_file) if sizes_file is not None else None
    translated = _translated(root, sizes, vocabulary, tolerated)
    if translated is not None:
        return translated
    tolerated.tell()
    if sizes_file is not None:
        what = f"{path} is not in Tensile's split form, so it takes no sizes"
        raise UserError(str(sizes_file), what, "leave --sizes out")
    return TranslatedFile(root)


def _sizes_of(path: Path) -> Node:
    """The sizes of a sizes file: a list of Range and Exact, or such a list under ProblemSizes."""
    node = read_yaml(path)
    if isinstance(node.content, dict) and SIZES in node.content:
        node = node.content[SIZES]
    node.sequence("a sizes file")
    return node


def _translated(
    root: Node, sizes: Node | None, vocabulary: Callable[[], Vocabulary], tolerated: Mistakes
) -> TranslatedFile | None:
    """The translation; None for a file that has no sign of Tensile."""
    layout = layout_of(root, sizes)
    if layout is None or not any(problem.is_tensile for problem in layout.problems):
        return None
    ledger = NameLedger()
    ledger.is_foreign = layout.dialect not in (Dialect.SIZE_GROUPS, Dialect.FORK_AND_FINAL)
    scalars, ratio = initial_scalars(layout.settings), most_oblong(layout.settings)
    translator = ProblemTranslator(layout.dialect, vocabulary(), scalars, ratio, ledger)
    problems = [translator.problem(problem) for problem in layout.problems]
    entries = (*layout.malformed, *(problem.entry for problem in problems if problem.entry is not None))
    if layout.dialect is Dialect.SPLIT and sizes is None and FINAL not in layout.top:
        what = "the file has no sizes, so Tensile's default sizes are measured: give --sizes FILE"
        ledger.remark(layout.location, what)
    content = _content(root, layout, entries, ledger)
    if not ledger.is_foreign:
        return None
    imported = TensileImport(
        layout.dialect,
        (*ledger.treatments(), *_tolerated(tolerated)),
        tuple(group for problem in problems if problem.rejection is None for group in problem.groups),
        tuple(problem.rejection for problem in problems if problem.rejection is not None),
        ledger.remarks,
    )
    places = {name: root.at(name) for name in content} | {"GlobalParameters": layout.settings_location}
    return TranslatedFile(Node(root.location, content, places), imported)


def _content(root: Node, layout: Layout, entries: tuple[Node, ...], ledger: NameLedger) -> dict[str, Node]:
    """The keys at the top of the translated file. Unknown ones stay, so that they are refused."""
    own = {
        "GlobalParameters": translated_globals(layout.settings, ledger, layout.dialect.is_dict_form),
        "BenchmarkProblems": Node(root.at("BenchmarkProblems"), entries),
        "LibraryLogic": translated_logic(layout.top.get("LibraryLogic"), ledger),
    }
    taken = {*own}
    if layout.dialect is Dialect.DESIGN:
        taken.add("Parameters")
    elif layout.dialect is Dialect.SPLIT:
        taken |= {*PHASES, CUSTOM_KERNELS, GROUPED_FORK, "ProblemType"}
    left = translated_top(root, taken, ledger)
    return {name: value for name, value in (*own.items(), *left.items()) if value is not None}


def _tolerated(mistakes: Mistakes) -> tuple[Treatment, ...]:
    """What the file says twice, and keys that are no words."""
    found: dict[tuple[str, str], Treatment] = {}
    for mistake in mistakes.collected:
        name, twice, _ = mistake.what.partition(" is given twice")
        becomes = "its last value, as in Tensile" if twice else "a word"
        page = found.get((name, becomes))
        if page is None:
            found[name, becomes] = Treatment(
                "repeated key" if twice else "key", name, Fate.TRANSLATED, becomes, mistake.location
            )
        else:
            found[name, becomes] = replace(page, mentions=page.mentions + 1)
    return tuple(found.values())
