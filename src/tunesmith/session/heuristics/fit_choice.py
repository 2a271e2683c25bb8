"""`tunesmith heuristics fit --method choice`: measured matrices become the file of a choice model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tunesmith import __version__
from tunesmith.logic import write_atomically
from tunesmith.models.choice.fit.fitting import ChoiceFit, fit_choice
from tunesmith.models.choice.model_file import dump_choice_model, is_choice_file
from tunesmith.records import UserError

from .matrices import JudgedSubject, MatrixTask, read_matrices


@dataclass(frozen=True)
class WrittenChoice:
    """A fit, the matrix that it rests on, its file, and sentences about what was left out."""

    fit: ChoiceFit
    subject: JudgedSubject
    path: Path
    notes: tuple[str, ...]


def fit_choice_file(
    sources: tuple[Path, ...], sizes: tuple[Path, ...], plans: tuple[Path, ...], out: Path, seed: int
) -> WrittenChoice:
    """Fit, and write. `sizes` are lists with the families of the products, which are held out together, and `plans`
    files of `heuristics plans`.

    Raises UserError for sources of several devices or data types, or with too few times, and for an existing file `out`
    that is no choice model, since it might be somebody's work.
    """
    if out.exists() and not is_choice_file(out):
        raise UserError(str(out), "is there, and is no choice model", "give another name, or remove it")
    read = read_matrices(MatrixTask(sources, sizes, with_vendor=True, plans=plans))
    names = ", ".join(map(str, sources))
    if len(read.subjects) > 1:
        found = "; ".join(map(str, read.subjects))
        raise UserError(names, f"times of several devices or data types: {found}", "fit each by itself")
    (subject,) = read.subjects
    made = __version__, datetime.now(UTC).date().isoformat()
    try:
        fit = fit_choice(
            subject.matrix,
            subject.target,
            subject.data_type,
            tuple(source.name for source in sources),
            made,
            subject.noise.of_a_time,
            seed,
        )
    except ValueError as error:
        raise UserError(names, str(error), "give more products, or --sizes with their families") from error
    write_atomically(out, dump_choice_model(fit.model))
    return WrittenChoice(fit, subject, out, read.notes)
