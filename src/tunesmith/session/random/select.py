"""Choosing launch shapes from benchmark files and our own stores, and writing the chosen shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.formats import DoubtError, read_random
from tunesmith.formats.random.outputs import write_selection
from tunesmith.formats.random.settings import read_defaults, read_weights
from tunesmith.logic import write_atomically
from tunesmith.logic.random.choice import Selection, choose_shapes
from tunesmith.logic.random.decision import RandomDecision, RandomObjective
from tunesmith.logic.random.shapes import DEFAULT_SHAPES
from tunesmith.records import UserError

Draw = Callable[[Sequence[RandomDecision]], Iterable[tuple[RandomDecision, str]]]
"""Draws a picture (SVG) for each decision."""


@dataclass(frozen=True)
class SelectedShapes:
    """The chosen shapes, the mistakes found in the files, and the paths of the written files by their kind."""

    selection: Selection
    complaints: list[UserError]
    written: dict[str, Sequence[Path]] = field(default_factory=dict)

    @property
    def ends_the_original(self) -> bool:
        """Whether rocRAND's script would end with an error, or a file could not be written here. Mistakes that the
        script only warns about do not count."""
        return any(not isinstance(complaint, DoubtError) for complaint in self.complaints)


def select_random(
    files: Sequence[Path],
    objective: RandomObjective = RandomObjective.GEOMEAN,
    *,
    out_dir: Path | None = None,
    merge_from: Path | None = None,
    plot_out: Path | None = None,
    draw: Draw = lambda decisions: (),
    default_config: Path | None = None,
    weights: Path | None = None,
    no_regressions: bool = False,
) -> SelectedShapes:
    """Choose a launch shape for each generator and architecture. Headers and table go to `out_dir`, pictures beside
    `plot_out`.

    A mistake in a file becomes a complaint, and the rest of the file is read. Raises UserError for settings that cannot
    be read and for a folder that cannot be written.
    """
    defaults = {**DEFAULT_SHAPES, **(read_defaults(default_config) if default_config else {})}
    reading = read_random(files)
    selection = choose_shapes(
        reading.rows, objective, defaults, read_weights(weights) if weights else None, no_regressions
    )
    selected = SelectedShapes(selection, [*reading.complaints, *selection.complaints])
    if out_dir and selection.decisions:
        outputs = write_selection(selection.decisions, out_dir, merge_from)
        selected.complaints.extend(outputs.complaints)
        selected.written.update(header=outputs.headers, table=[outputs.table] if outputs.table else [])
    if plot_out:
        selected.written["plot"] = [_plotted(plot_out, *picture) for picture in draw(selection.decisions)]
    return selected


def _plotted(path: Path, decision: RandomDecision, svg: str) -> Path:
    name = re.sub(r"[^\w.-]", "_", f"{path.stem}_{decision.architecture}_{decision.generator}{path.suffix}")
    write_atomically(path.with_name(name), svg)
    return path.with_name(name)
