"""`import_file`: brings a tuning file of Tensile's over into our form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tunesmith.formats.tensile.tuning import TensileImport, text_of_import
from tunesmith.logic import write_atomically
from tunesmith.records import UserError

from .file import read_both, refuse_empty


@dataclass(frozen=True)
class ImportedFile:
    """A file that was brought over: where it was written, and what became of everything."""

    written: Path
    groups: int
    imported: TensileImport


def import_file(path: Path, out: Path, *, sizes: Path | None = None) -> ImportedFile:
    """Write a tuning file of Tensile's to `out`, in our form, with comments on what was dropped and why.

    `sizes` is the sizes file of a file in Tensile's split form. Raises UserError for a file with a mistake, one in our
    form already, one of whose problems none can be computed, and for an `out` that exists.
    """
    if out.exists():
        raise UserError(str(out), "the file exists", "give the name of a new file")
    translated, file = read_both(path, None, None, sizes)
    if translated.imported is None:
        what = "the file is in our form already"
        raise UserError(str(path), what, "`tunesmith plan` and `tunesmith tune` take it as it is")
    refuse_empty(path, file, translated.imported)
    text = text_of_import(translated.root, translated.imported, path.name)
    try:
        write_atomically(out, text)
    except OSError as error:
        raise UserError(str(out), f"cannot be written ({error.strerror or error})", "give another path") from error
    return ImportedFile(out, len(file.groups), translated.imported)
