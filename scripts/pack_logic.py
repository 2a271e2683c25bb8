"""Makes a file of the logic that ships with tunesmith from tuned folders and a choice model.

    python scripts/pack_logic.py RUN... --choice MODEL.yaml --name NAME --list LIST --command COMMAND -o FILE

RUN are output folders of `tunesmith tune` on one kind of device, or files that this script made. Of a size that several
runs have, the row of the first counts. MODEL is the file of `tunesmith heuristics fit --method choice`; what it says of
other problem types than those of the runs is left out. `--list` says which lists of problems were measured, and
`--command` how, once for each command: both are kept in the file behind those of packed RUNs, and `tunesmith logic
show` prints them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tunesmith.logic import Document, Logic, NamedSolution, SizeRow, is_shipped, logic_files, read_head, read_shipped
from tunesmith.logic.shipped import FOLDER, SUFFIX, ShippedHead, write_shipped
from tunesmith.logic.table import unique
from tunesmith.models.choice.model import ChoiceModel
from tunesmith.models.choice.model_file import plain_of_model, read_choice_model
from tunesmith.problems.gemm import DATA_TYPES
from tunesmith.records import ProblemType


def merged(documents: Sequence[Document]) -> Document:
    """One document of one problem type: all solutions, and each size's row in the first document that has the size.

    The origin and the fallback are the first document's. Its regret is left out, since it is of the first document's
    sizes alone.
    """
    first = documents[0]
    named = {entry.solution: entry.name for document in reversed(documents) for entry in document.solutions}
    order = dict.fromkeys(entry.solution for document in documents for entry in document.solutions)
    numbers = {solution: number for number, solution in enumerate(order)}
    names = unique([named[solution] for solution in order])
    rows: dict[tuple[int, ...], SizeRow] = {}
    for document in documents:
        renumbered = [numbers[entry.solution] for entry in document.solutions]
        for row in document.rows:
            rows.setdefault(row.where, _renumbered(row, renumbered))
    return Document(
        origin=replace(first.origin, date=max(document.origin.date for document in documents)),
        problem_type=first.problem_type,
        solutions=tuple(NamedSolution(name, solution) for name, solution in zip(names, order, strict=True)),
        rows=tuple(rows.values()),
        fallback=numbers[first.solutions[first.fallback].solution],
    )


def _renumbered(row: SizeRow, numbers: Sequence[int]) -> SizeRow:
    others = {numbers[other]: seconds for other, seconds in row.others.items()}
    ties = tuple(sorted(numbers[tie] for tie in row.ties))
    return replace(row, solution=numbers[row.solution], others=others, ties=ties)


def documents_of(runs: Sequence[Path]) -> list[Document]:
    """The merged document of each problem type. Exits if the runs are of several kinds of device."""
    by_type: dict[ProblemType, list[Document]] = {}
    for run in runs:
        logics = read_shipped(run).logics if is_shipped(run) else map(Logic.load, logic_files(run))
        for document in (logic.document for logic in logics):
            by_type.setdefault(document.problem_type, []).append(document)
    origins = {_device(document) for documents in by_type.values() for document in documents}
    if len(origins) != 1:
        raise SystemExit(f"one kind of device is needed, there are {sorted(origins)}")
    return [merged(documents) for documents in by_type.values()]


def _device(document: Document) -> tuple[str, ...]:
    origin = document.origin
    return origin.api, origin.device, origin.architecture


def head_of(name: str, documents: Sequence[Document], lists: Sequence[str], commands: Sequence[str]) -> ShippedHead:
    origin = documents[0].origin
    (letters,) = {document.problem_type.fields.word("DataType") for document in documents}
    return ShippedHead(
        name=name,
        api=origin.api,
        device=origin.device,
        architecture=origin.architecture,
        driver=origin.driver,
        toolchain=origin.toolchain,
        date=max(document.origin.date for document in documents),
        data_type=DATA_TYPES[letters].dtype,
        types=tuple(document.problem_type.name for document in documents),
        lists=tuple(lists),
        commands=tuple(commands),
    )


def model_of_types(path: Path, names: Sequence[str]) -> ChoiceModel:
    """The part of a model that says something of these types. Exits if it does not know one of them."""
    model = read_choice_model(path).only(names)
    if unknown := set(names) - set(model.types):
        raise SystemExit(f"{path} does not know {', '.join(sorted(unknown))}: fit it to all runs")
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--choice", type=Path, metavar="MODEL")
    parser.add_argument("--name", required=True)
    parser.add_argument("--list", action="append", default=[], dest="lists")
    parser.add_argument("--command", action="append", default=[], dest="commands")
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    documents = documents_of(options.runs)
    packed = [read_head(run) for run in options.runs if is_shipped(run)]
    if packed and not options.choice:
        raise SystemExit("a packed file has a choice model: give --choice MODEL, fitted to all runs")
    lists = list(dict.fromkeys([*(text for head in packed for text in head.lists), *options.lists]))
    commands = list(dict.fromkeys([*(text for head in packed for text in head.commands), *options.commands]))
    head = head_of(options.name, documents, lists, commands)
    model = plain_of_model(model_of_types(options.choice, head.types)) if options.choice else None
    out = options.out or FOLDER / f"{options.name}{SUFFIX}"
    write_shipped(out, head, documents, model)
    sizes = sum(len(document.rows) for document in documents)
    solutions = sum(len(document.solutions) for document in documents)
    counts = f"{len(documents)} types, {sizes} sizes, {solutions} solutions"
    print(f"{out}: {counts}, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
