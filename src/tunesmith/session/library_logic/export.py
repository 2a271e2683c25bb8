"""Writes our library logic in Tensile's list form (`tunesmith logic export`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tunesmith.formats.tensile.library.contraction import SizedContraction
from tunesmith.formats.tensile.library.export import export_logic
from tunesmith.formats.tensile.library.read import read_logic
from tunesmith.formats.tensile.library.selection import TensileSelector
from tunesmith.logic import write_atomically

from .summary import ours_in


@dataclass(frozen=True, slots=True)
class ExportedLogic:
    """The file that was written, of which logic, and how many solutions and exact sizes it has. `notes` tells what the
    file cannot say."""

    source: Path
    path: Path
    problem_type: str
    solutions: int
    rows: int
    distance: str
    notes: tuple[str, ...]


def exported(folder: Path, out: Path, problem_type: str = "") -> ExportedLogic:
    """Write the logic of a folder (or a file) as Tensile's, read it back, and ask it for every exact size.

    Raises UserError for a type that Tensile does not have, and if the file cannot be written.
    """
    source, document = ours_in(folder, problem_type)
    made = export_logic(document, str(source))
    write_atomically(out, made.text)
    logic = read_logic(out)
    selector = TensileSelector(logic)
    for row in logic.rows:
        chosen = selector.choose(SizedContraction(logic.problem_type, row.sizes)).solution
        assert chosen is not None, f"{out}:{row.line} has no choice for its own size"
        assert chosen.index == row.solution, f"{out}:{row.line} is not chosen for its own size"
    return ExportedLogic(
        source, out, document.problem_type.name, len(logic.solutions), len(logic.rows), made.distance.value, made.notes
    )
