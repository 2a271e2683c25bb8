"""The texts of a described kernel: read from files into a problem type's fields once, later taken from the fields."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from tunesmith.problems.files import read_regular
from tunesmith.problems.keys import shortened
from tunesmith.problems.yaml import parse_yaml
from tunesmith.records import Configuration, ProblemType, UserError

from .description import Description, TextOf, describe
from .triton_check import check_triton

MOST_BYTES = 16 << 20
"""The longest file that a description may name, and the longest description."""

_FILES: dict[str, Path] = {}
"""The file from which this process read a description, by the digest of its type. A worker process and a logic know no
file."""


def read_type(operation: str, path: Path, location: str) -> ProblemType:
    """The problem type of a description's file, with the text of every file that the description names.

    `location` is where the file is named. The type's fields are `Digest` (of all others), `Kernel` (the plain name of
    the file), `Description`, a source for each language under the language's name, and `Reference`. Raises UserError.
    """
    texts = {"Description": _text(path, location)}

    def read(part: str, file: str, location: str) -> str:
        texts[part] = _text(_below(path.parent, file, location), location)
        return texts[part]

    description = _checked(path, texts["Description"], read)
    texts.setdefault("Reference", "")  # only a file's function has a text
    fields = Configuration({"Kernel": path.name, **texts})
    digest = _digest(fields)
    _FILES[digest] = path
    return ProblemType(operation, description.name, description.sizes, Configuration({"Digest": digest, **fields}))


def description_of(problem_type: ProblemType) -> Description:
    """The description in a type's fields; no file is needed.

    Raises UserError for fields that are not as `read_type` made them. The fields of earlier versions name a file, which
    must exist unchanged.
    """
    return _described(problem_type, _FILES.get(str(problem_type.fields.get("Digest"))))


def former_types(problem_type: ProblemType) -> tuple[ProblemType, ...]:
    """The type as earlier versions wrote it: with the description's absolute path, and a hash of the texts.

    Empty if this process does not know the path.
    """
    path = _FILES.get(problem_type.fields.word("Digest"))
    if path is None:
        return ()
    description = description_of(problem_type)
    sources = (source.text for source in description.sources.values())
    texts = (problem_type.fields.word("Description"), *sources, description.reference_text)
    fields = {"Kernel": str(path), "Hash": hashlib.sha256("\0".join(texts).encode()).hexdigest()}
    return (ProblemType(problem_type.operation, problem_type.name, problem_type.indices, Configuration(fields)),)


@cache
def _described(problem_type: ProblemType, path: Path | None) -> Description:
    """The description. Only messages use `path`; without it they use the plain name of the file."""
    fields = problem_type.fields
    file = path or Path(str(fields.get("Kernel", problem_type.name)))
    remedy = "take the file as tunesmith wrote it, or tune again"
    if "Hash" in fields:
        current_type = read_type(problem_type.operation, file, str(file))
        if former_types(current_type) != (problem_type,):
            raise UserError(str(file), "the kernel, a source or its reference has changed", "tune again")
        return description_of(current_type)

    def field_text(part: str, _file: str = "", location: str = str(file)) -> str:
        text = fields.get(part)
        if not isinstance(text, str):
            raise UserError(location, f"the kernel's {part} is missing", remedy)
        return text

    for part in ("Digest", "Kernel", "Description", "Reference"):
        field_text(part)
    if fields["Digest"] != _digest(fields):
        raise UserError(str(file), "the kernel's texts do not fit their Digest: one is missing or was changed", remedy)
    description = _checked(file, field_text("Description"), field_text)
    if (description.name, description.sizes) != (problem_type.name, problem_type.indices):
        described = f"{description.name} with the sizes {', '.join(description.sizes)}"
        raise UserError(str(file), f"the kernel's Description is of {described}", remedy)
    return description


def _checked(path: Path, text: str, text_of: TextOf) -> Description:
    """The description that a text holds, after the checks of its Triton source."""
    root = parse_yaml(text, str(path))
    description = describe(path, root, text_of)
    check_triton(description, root)
    return description


def _digest(fields: Configuration) -> str:
    return hashlib.sha256(fields.without(["Digest"]).to_json().encode()).hexdigest()


def _text(path: Path, location: str) -> str:
    """The text of a file, with every line end as a single newline."""
    try:
        raw = read_regular(path, MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise OSError(f"it is longer than {MOST_BYTES >> 20} MiB")
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, ValueError) as error:
        raise UserError(location, f"{path} cannot be read: {error}", "give the path of a text file") from error


def _below(folder: Path, file: str, location: str) -> Path:
    """The path of a file that a description in this folder names. Raises UserError if the file lies elsewhere.

    Such a file is not the kernel's own, and its text would travel with the library logic.
    """
    path = folder / file
    if "\0" in file or not path.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            location, f"{shortened(file)} does not lie under {folder}", "copy the file beside the description"
        )
    return path
