"""`tunesmith heuristics fit --method choice`: measured matrices become the file of a choice model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tunesmith import __version__
from tunesmith.logic import write_atomically
from tunesmith.models.choice.fit.fitting import ChoiceFit, fit_choice
from tunesmith.models.choice.fit.library import LibraryRun
from tunesmith.models.choice.fit.siblings import FewSharedError, Sibling
from tunesmith.models.choice.model_file import dump_choice_model, is_choice_file
from tunesmith.problems.gemm import equally_fast, of_batches
from tunesmith.records import Problem, Solution, UserError

from .matrices import JudgedSubject, MatrixTask, data_type_of, read_matrices, sides_of
from .plans import ForeseenProduct, plans_of, read_plans

ProblemOrSolution = TypeVar("ProblemOrSolution", Problem, Solution)


@dataclass(frozen=True)
class FitChoiceTask:
    """The sources of a choice model, and its file. `sizes` are lists with the families of the products, which are held
    out together, `plans` files of `heuristics plans`, and `siblings` sources with times of other devices of the same
    architecture, of a data type that is as fast, or of single matrices for a model of batches."""

    sources: tuple[Path, ...]
    sizes: tuple[Path, ...]
    out: Path
    plans: tuple[Path, ...] = ()
    siblings: tuple[Path, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class WrittenChoice:
    """A fit, the matrix that it rests on, its file, and sentences about what was left out."""

    fit: ChoiceFit
    subject: JudgedSubject
    path: Path
    notes: tuple[str, ...]


def fit_choice_file(task: FitChoiceTask) -> WrittenChoice:
    """Fit, and write.

    Raises UserError for sources of several devices or data types, or with too few times, for sources of siblings that
    have none, and for an existing file that is no choice model, since it might be somebody's work.
    """
    out = task.out
    if out.exists() and not is_choice_file(out):
        raise UserError(str(out), "is there, and is no choice model", "give another name, or remove it")
    read = read_matrices(MatrixTask(task.sources, task.sizes, with_vendor=True, plans=task.plans))
    names = ", ".join(map(str, task.sources))
    if len(read.subjects) > 1:
        found = "; ".join(map(str, read.subjects))
        raise UserError(names, f"times of several devices or data types: {found}", "fit each by itself")
    (subject,) = read.subjects
    made = __version__, datetime.now(UTC).date().isoformat()
    siblings, notes = _siblings(task, subject) if task.siblings else ((), ())
    try:
        fit = fit_choice(
            subject.matrix,
            subject.target,
            subject.data_type,
            tuple(source.name for source in task.sources),
            made,
            subject.noise.of_a_time,
            task.seed,
            siblings,
            library_runs(task.plans, subject),
        )
    except FewSharedError as error:
        remedy = "measure more of the sources' products there, with the same solutions"
        raise UserError(", ".join(map(str, task.siblings)), str(error), remedy) from error
    except ValueError as error:
        raise UserError(names, str(error), "give more products, or --sizes with their families") from error
    write_atomically(out, dump_choice_model(fit.model))
    return WrittenChoice(fit, subject, out, (*read.notes, *notes))


def library_runs(plans: Sequence[Path], subject: JudgedSubject) -> list[LibraryRun]:
    """The library's times in files, on the subject's device and at products of its types. A family that the subject has
    not is none: its products are grouped as those of no family are. Raises UserError for a file that cannot be read."""
    kinds = {problem.type for problem in subject.matrix.problems}
    families, device = set(subject.matrix.families), subject.target.name
    return [
        LibraryRun(
            product.problem,
            product.row.family if product.row.family in families else sides_of(product.problem),
            product.plan,
            product.seconds,
            str(path),
        )
        for path in plans
        for product in read_plans([path])
        if product.seconds and product.device == device and product.type in kinds
    ]


def _siblings(task: FitChoiceTask, subject: JudgedSubject) -> tuple[tuple[Sibling, ...], tuple[str, ...]]:
    """The siblings of the subject in their sources, and sentences about what was left out. Raises UserError if there is
    none."""
    names, here = ", ".join(map(str, task.siblings)), subject.target
    planned = list(read_plans(task.plans))
    read = read_matrices(MatrixTask(task.siblings, task.sizes, with_vendor=True))
    like = tuple(found for found in read.subjects if _is_sibling(found, subject))
    if not like:
        what = f"times of {', '.join(map(str, read.subjects))}, none of a sibling of {subject}"
        remedy = (
            f"give {subject.data_type} on another device of {here.architecture}, or a type that is as fast, batches if "
            "the fit is of batches; or to a fit of batches single matrices of its device and type"
        )
        raise UserError(names, what, remedy)
    others = tuple(f"{found}, which is no sibling" for found in read.subjects if not _is_sibling(found, subject))
    siblings = tuple(_sibling(found, subject, planned) for found in like)
    return siblings, (*read.notes, *others)


def _is_sibling(found: JudgedSubject, subject: JudgedSubject) -> bool:
    """Whether a subject is another device of the same architecture or has another data type that is as fast, and has
    batches if the fit has; or has single matrices of the same device and type, and the fit has batches alone."""
    there, here = found.target, subject.target
    if (there.api, there.architecture) != (here.api, here.architecture):
        return False
    if _is_single_beside_batches(found, subject):
        return True
    if _batch_flags(found) != _batch_flags(subject):
        return False
    if found.data_type == subject.data_type:
        return there.name != here.name
    first = found.matrix.problems[0]
    kind = equally_fast(first.type)
    return kind is not None and data_type_of(replace(first, type=kind)) == subject.data_type


def _is_single_beside_batches(found: JudgedSubject, subject: JudgedSubject) -> bool:
    alike = (found.data_type, found.target.name) == (subject.data_type, subject.target.name)
    return alike and _batch_flags(found) == {False} and _batch_flags(subject) == {True}


def _batch_flags(subject: JudgedSubject) -> set[bool]:
    """True if it has types with a batch, and False if it has others."""
    return {problem.type.fields.flag("Batched") for problem in subject.matrix.problems}


def _sibling(found: JudgedSubject, subject: JudgedSubject, planned: Sequence[ForeseenProduct]) -> Sibling:
    """A subject that is a sibling, with products and solutions of the types of the fit, and plans of both."""
    matrix, there, here = found.matrix, found.target.name, subject.target.name
    problems, solutions, name = matrix.problems, matrix.solutions, there
    is_single = _is_single_beside_batches(found, subject)
    if is_single:
        problems, solutions = tuple(map(_batch_of_one, problems)), tuple(map(_for_batches, solutions))
        name = f"single matrices in {found}"
    elif found.data_type != subject.data_type:
        problems, solutions = tuple(map(_as_fast, problems)), tuple(map(_as_fast, solutions))
        name = str(found)
    own = plans_of(planned, there, matrix.problems)
    plans = {
        translated: own[original]
        for translated, original in zip(problems, matrix.problems, strict=True)
        if original in own
    }
    of_type = replace(matrix, problems=problems, solutions=solutions, plans=plans)
    plans_here = plans if is_single else plans_of(planned, here, problems)
    return Sibling(name, found.target, of_type, plans_here, needs_translation=not is_single)


def _as_fast(part: ProblemOrSolution) -> ProblemOrSolution:
    """The same problem or solution of the type that is as fast, which there must be."""
    kind = equally_fast(part.type)
    assert kind is not None, part.type
    return replace(part, type=kind)


def _for_batches(solution: Solution) -> Solution:
    """The same kernel and configuration for the type with a batch."""
    return replace(solution, type=of_batches(solution.type))


def _batch_of_one(problem: Problem) -> Problem:
    """A single product as a batch."""
    m, n, k = problem.sizes
    return replace(problem, type=of_batches(problem.type), sizes=(m, n, 1, k))
