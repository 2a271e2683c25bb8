"""Files of logic that ships: they are read back as they were written, and a damaged one is said to be so."""

from __future__ import annotations

import gc
import gzip
import json
import weakref
from dataclasses import replace

import pytest

from library_fakes import TARGET, logic
from tunesmith.logic import Logic
from tunesmith.logic.shipped import (
    SUFFIX,
    ShippedHead,
    is_shipped,
    read_head,
    read_shipped,
    read_shipped_model,
    shipped_files,
    shipped_for,
    write_shipped,
)
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError

TYPES = [gemm_type(transpose_a=a, transpose_b=False) for a in (False, True)]
LOGICS = [logic(kind, [{}, {"TileM": 32}], {(64, 64, 64): 0, (96, 64, 64): 1}) for kind in TYPES]
DOCUMENTS = [
    replace(
        found.document,
        rows=tuple(
            replace(row, others={1 - row.solution: 2e-3}, ties=(1 - row.solution,)) for row in found.document.rows
        ),
    )
    for found in LOGICS
]
HEAD = ShippedHead(
    *("fake-gpu-f32", TARGET.api, TARGET.name, TARGET.architecture, TARGET.driver, "fake 1.0", "2026-11-24", "float32"),
    tuple(kind.name for kind in TYPES),
    ("list.csv",),
    ("tunesmith tune f32.yaml -o out",),
)

MODEL = {"numbers": [1, 2.5], "text": "a model's"}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / f"fake-gpu-f32{SUFFIX}"
    write_shipped(path, HEAD, DOCUMENTS, MODEL)
    return path


def test_what_was_written_is_read_back(path):
    shipped = read_shipped(path)
    assert shipped.head == read_head(path) == HEAD
    assert [found.document for found in shipped.logics] == DOCUMENTS
    assert read_shipped_model(path) == MODEL
    assert is_shipped(path)
    assert shipped_files(path.parent) == [path]


def test_the_same_contents_are_the_same_bytes(path, tmp_path):
    again = tmp_path / f"again{SUFFIX}"
    write_shipped(again, HEAD, DOCUMENTS, MODEL)
    assert again.read_bytes() == path.read_bytes()


def test_files_of_the_device_come_before_those_of_its_siblings(path):
    sibling = path.with_name(f"a-sibling{SUFFIX}")
    write_shipped(sibling, replace(HEAD, device="another fake CPU"), DOCUMENTS, None)
    write_shipped(path.with_name(f"other{SUFFIX}"), replace(HEAD, architecture="x1"), DOCUMENTS, None)
    targets = TARGET, replace(TARGET, name="another fake CPU"), replace(TARGET, api="OpenCL")
    found = [shipped_for(target, path.parent) for target in targets]
    assert [(list(files), damaged) for files, damaged in found] == [
        ([path, sibling], []),
        ([sibling, path], []),
        ([], []),
    ]
    assert found[0][0][path] == HEAD


def lines_of(path):
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def changed_head(path, **changes):
    head, *rest = lines_of(path)
    return gzip.compress(json.dumps(json.loads(head) | changes).encode() + b"\n" + b"".join(rest))


def changed_row(path, index, value):
    head, rest, model = lines_of(path)
    logics = json.loads(rest)
    logics[0]["exact"][0][index] = value
    return gzip.compress(head + json.dumps(logics).encode() + b"\n" + model)


DAMAGES = {
    "it ends in the middle": lambda path: path.read_bytes()[:-30],
    "a byte is another": lambda path: path.read_bytes()[:200] + b"\0\0" + path.read_bytes()[202:],
    "it is not compressed": lambda path: b"".join(lines_of(path)),
    "it is empty": lambda path: b"",
    "a line is missing": lambda path: gzip.compress(b"".join(lines_of(path)[:2])),
    "its logics are no list": lambda path: gzip.compress(b"".join([lines_of(path)[0], b"{}\n", b"null\n"])),
    "a line more": lambda path: gzip.compress(b"".join([*lines_of(path), b"{}\n"])),
    "another format": lambda path: changed_head(path, **{"tunesmith-shipped": 99}),
    "an unknown key": lambda path: changed_head(path, color="red"),
    "a number for a text": lambda path: changed_head(path, device=5),
    "a text for a list": lambda path: changed_head(path, types="Cij"),
    "types in another order": lambda path: changed_head(path, types=list(HEAD.types[::-1])),
    "a type less": lambda path: changed_head(path, types=list(HEAD.types[:1])),
    "its logics are of no type": lambda path: gzip.compress(b"".join([lines_of(path)[0], b"[{}, {}]\n", b"null\n"])),
    "its logics are numbers": lambda path: gzip.compress(b"".join([lines_of(path)[0], b"[1, 2]\n", b"null\n"])),
}
WRONG_ROWS = {
    "a solution that is not there": lambda path: changed_row(path, 1, 77),
    "times by no numbers": lambda path: changed_row(path, 6, [["first"], [1.0]]),
    "a time less than solutions": lambda path: changed_row(path, 6, [[0, 1], [1.0]]),
    "times in another way": lambda path: changed_row(path, 6, {"1": 1.0}),
    "times in no way": lambda path: changed_row(path, 6, []),
    "two times of a solution": lambda path: changed_row(path, 6, [[1, 1], [1.0, 2.0]]),
    "no times": lambda path: changed_row(path, 6, None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_said_to_be_so(path, damage):
    path.write_bytes(DAMAGES[damage](path))
    with pytest.raises(UserError) as error:
        read_shipped(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("wrong", WRONG_ROWS)
def test_a_wrong_row_is_told_when_its_logic_is_used_and_the_others_are_served(path, wrong):
    path.write_bytes(WRONG_ROWS[wrong](path))
    first, *others = read_shipped(path).logics
    assert [logic.document for logic in others] == list(DOCUMENTS[1:])
    with pytest.raises(UserError) as error:
        first.choose((1, 1, 1))
    assert str(error.value).startswith(str(path))


class Source:
    """Makes a document, and notes that in a list."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self):
        self.calls.append("made")
        return DOCUMENTS[0]


def test_a_logic_is_made_once_and_what_it_was_made_of_is_freed():
    calls = []
    source = Source(calls)
    reference, found = weakref.ref(source), Logic(source)
    del source
    assert calls == []
    assert found.document is found.document is DOCUMENTS[0]
    assert calls == ["made"]
    gc.collect()
    assert reference() is None


def test_a_file_of_the_former_format_is_told_apart(path):
    """It had two lines."""
    head, logics, _ = lines_of(path)
    path.write_bytes(gzip.compress(head.replace(b'shipped":2', b'shipped":1') + logics))
    for read in (read_head, read_shipped, read_shipped_model):
        with pytest.raises(UserError, match="not of format 2"):
            read(path)


def test_a_model_that_is_no_json_is_damaged(path):
    path.write_bytes(gzip.compress(b"".join([*lines_of(path)[:2], b"{\n"])))
    assert len(read_shipped(path).logics) == len(LOGICS)
    with pytest.raises(UserError, match="is damaged"):
        read_shipped_model(path)


@pytest.mark.parametrize("damage", ["it ends in the middle", "a line is missing", "a line more", "another format"])
def test_a_model_of_a_damaged_file_is_not_read(path, damage):
    path.write_bytes(DAMAGES[damage](path))
    with pytest.raises(UserError, match="damaged"):
        read_shipped_model(path)


def test_a_damaged_head_is_told_beside_the_files_that_fit(path):
    broken = path.with_name(f"broken{SUFFIX}")
    broken.write_bytes(b"no gzip")
    files, (error,) = shipped_for(TARGET, path.parent)
    assert list(files) == [path]
    assert str(error) == f"{broken}: is damaged (Not a gzipped file (b'no')); install tunesmith again"
