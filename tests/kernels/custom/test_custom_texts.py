"""The type of a user's kernel holds all of its texts: no file has to be there for a worker, a logic or another host."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import tunesmith
from described import EXAMPLES, ORIGIN, STENCIL, document_of, edited, type_of
from library_fakes import TYPES
from library_fakes import logic as gemm_logic
from tunesmith.kernels.custom import CustomKernel
from tunesmith.logic import Document, Logic, NamedSolution, dump, write_logic
from tunesmith.problems import OPERATIONS
from tunesmith.problems.custom import CustomOperation, description_of
from tunesmith.records import Configuration, Problem, ProblemType, Solution, UserError

FILES = ("custom_stencil.cl", "custom_stencil.cu", "custom_stencil.py", STENCIL)


def elsewhere(program, *, stdin="", folder):
    """What a process that has read no description prints."""
    path = os.pathsep.join([str(Path(__file__).parents[2] / "support"), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", program],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    ).stdout


def gone(description):
    for path in description.parent.glob("custom_stencil.*"):
        path.unlink()


ANSWERS = """
import sys
import numpy as np
from tunesmith.kernels.custom import CustomCudaKernel, CustomKernel
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, ProblemType
problem = Problem(ProblemType.from_json(sys.stdin.read()), (5, 7))
for kernel in (CustomKernel(), CustomCudaKernel()):
    (module,) = kernel.modules(kernel.space(problem.type).defaults, problem.type)
    print(module.digest())
operation = OPERATIONS["Custom"]
print(operation.flops(problem), operation.reference(problem, {"input": np.ones(35, np.float32)})["output"].value.sum())
"""


def test_another_process_needs_the_type_and_no_file(copied, tmp_path):
    here = elsewhere(ANSWERS, stdin=type_of(EXAMPLES / STENCIL).to_json(), folder=tmp_path)
    text = type_of(copied).to_json()
    gone(copied)
    assert elsewhere(ANSWERS, stdin=text, folder=tmp_path) == here
    assert here.count("\n") == 3


def test_the_type_is_that_of_its_texts_wherever_they_lie(copied, tmp_path):
    made = type_of(copied)
    assert made == type_of(EXAMPLES / STENCIL)
    assert str(tmp_path) not in made.to_json()
    moved = tmp_path / "deeper" / "down"
    moved.mkdir(parents=True)
    for path in copied.parent.glob("custom_stencil.*"):
        shutil.move(path, moved)
    assert type_of(moved / STENCIL) == made


MISTAKE = """
import sys
from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, ProblemType, UserError
import numpy as np
problem = Problem(ProblemType.from_json(sys.stdin.read()), (5, 7))
try:
    OPERATIONS["Custom"].reference(problem, {"input": np.ones(35, np.float32)})
except UserError as error:
    import traceback
    last = traceback.extract_tb(error.__cause__.__traceback__)[-1]
    print(error.location, last.filename, last.lineno, last.line, sep="|")
"""


def test_messages_name_the_path_where_it_is_known_else_the_plain_file_and_its_line(copied, tmp_path):
    """Of the description the line that names the reference, of the reference the line that failed."""
    edited(copied.with_name("custom_stencil.py"), 'arrays["input"]', 'arrays["none"]')
    made = type_of(copied)
    line = next(n for n, text in enumerate(copied.read_text().splitlines(), 1) if text.startswith("Reference"))
    failed = '8|return {"output": (_five_points(arrays["none"]), _five_points(np.abs(arrays["input"])))}'
    found = elsewhere(MISTAKE, stdin=made.to_json(), folder=tmp_path / "..")
    assert found == f"{STENCIL}:{line}|custom_stencil.py|{failed}\n"
    with pytest.raises(UserError) as caught:
        CustomOperation().reference(Problem(made, (5, 7)), {"input": np.ones(35, np.float32)})
    assert caught.value.location == f"{copied}:{line}"


def test_a_reference_knows_its_own_file_and_imports_what_it_could_import_before(copied):
    reference = copied.with_name("custom_stencil.py")
    (copied.parent / "beside.py").write_text("FACTOR = 1\n")
    edited(reference, "import numpy as np", "import json, numpy as np\nassert __file__.endswith('custom_stencil.py')")
    problem = Problem(type_of(copied), (2, 2))
    assert CustomOperation().reference(problem, {"input": np.ones(4, np.float32)})
    edited(reference, "import json", "import beside, json")
    with pytest.raises(UserError, match="cannot be imported: ModuleNotFoundError: No module named 'beside'"):
        CustomOperation().reference(Problem(type_of(copied), (2, 2)), {"input": np.ones(4, np.float32)})


@pytest.mark.parametrize("part", ["Digest", "Kernel", "Description", "OpenCL", "CUDA", "Reference"])
def test_fields_that_lack_a_text_or_hold_another_are_refused(part):
    made = type_of(EXAMPLES / STENCIL)
    for fields in (made.fields.without([part]), made.fields | {part: made.fields.word(part) + " "}):
        with pytest.raises(UserError, match=rf"{part} is missing|do not fit their Digest"):
            description_of(replace(made, fields=fields))


def test_a_type_whose_name_or_sizes_are_not_the_descriptions_is_refused():
    made = type_of(EXAMPLES / STENCIL)
    for other in (replace(made, name="stencil6"), replace(made, indices=("Columns", "Rows"))):
        with pytest.raises(UserError, match="Description is of stencil5 with the sizes Rows, Columns"):
            description_of(other)


@pytest.mark.parametrize("named", ["custom_stencil.cl", "custom_stencil.py"])
def test_what_is_no_regular_file_or_too_long_is_refused_where_it_is_named(copied, monkeypatch, named):
    (copied.parent / named).unlink()
    os.mkfifo(copied.parent / named)
    with pytest.raises(UserError, match=rf"{STENCIL}:\d+: .*{named} cannot be read: it is no regular file"):
        type_of(copied)
    (copied.parent / named).unlink()
    (copied.parent / named).write_text("#" * 10_001)
    monkeypatch.setattr("tunesmith.problems.custom.texts.MOST_BYTES", 10_000)
    with pytest.raises(UserError, match=rf"{STENCIL}:\d+: .*{named} cannot be read: it is longer"):
        type_of(copied)


# Logic files.


def test_a_logic_holds_its_kernels_files_as_they_are(copied, tmp_path):
    """Readable: every line of theirs is a line of its own, once."""
    path = tmp_path / "logic" / "stencil5.yaml"
    write_logic(document_of(type_of(copied)), path)
    lines = path.read_text().splitlines()
    for name in FILES:
        assert all(not line or f"    {line}" in lines for line in (copied.parent / name).read_text().splitlines())
    assert len([line for line in lines if "def _five_points" in line]) == 1
    assert Logic.load(path).document == document_of(type_of(copied))


CHOOSES = """
import sys, tunesmith
with tunesmith.load(sys.stdin.read()) as library:
    print(library.says(64, 64).solution.configuration["KernelLanguage"], library.says(60, 70).rule)
"""


def test_a_logic_alone_can_be_moved(copied, tmp_path):
    write_logic(document_of(type_of(copied)), tmp_path / "run" / "logic" / "stencil5.yaml")
    gone(copied)
    shutil.move(tmp_path / "run" / "logic", tmp_path / "shipped")
    assert elsewhere(CHOOSES, stdin=str(tmp_path / "shipped"), folder=tmp_path) == "OpenCL nearest\n"


ODD = st.text(
    st.sampled_from(" \t\n\r#:-|>\"'%{}abé€\u2028\x85\ufeff\U0001f600\x00\x0c\x7f") | st.characters(codec="utf-8"),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ODD, min_size=1, max_size=3))
def test_any_text_comes_back_from_a_logic_to_the_last_character(texts):
    """Tabs, spaces at the ends of lines, lines without an end, line breaks of other kinds, what cannot be printed."""
    kind = ProblemType("Random", "texts", ("N",), Configuration({f"Text{n}": text for n, text in enumerate(texts)}))
    made = Document(ORIGIN, kind, (NamedSolution("S0", Solution(kind, "tiled", Configuration())),), (), 0)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # No operation makes such a type.
        patch.setattr(type(OPERATIONS["Random"]), "validate", lambda *_: None)
        write_logic(made, Path(folder, "logic.yaml"))
        assert Logic.load(Path(folder, "logic.yaml")).document == made


@pytest.mark.parametrize(
    "text", ["plain\n", "\tx\n", "  x\n", "x", "\n", "\n\nx\n\n", "x \n \n", "x\ny \t", "# x\n--- a: [\n"]
)
def test_a_text_of_plain_lines_is_never_escaped(text):
    kind = ProblemType("Random", "texts", ("N",), Configuration({"Text": text + "\n"}))
    written = dump(Document(ORIGIN, kind, (NamedSolution("S0", Solution(kind, "tiled", Configuration())),), (), 0))
    assert "\n  Text: |" in written
    assert all(f"    {line}\n" in written for line in text.split("\n") if line)


def test_a_damaged_or_missing_part_is_shown_with_file_and_line(copied, tmp_path):
    path = tmp_path / "stencil5.yaml"
    write_logic(document_of(type_of(copied)), path)
    whole = path.read_text()
    line = whole.splitlines().index(next(text for text in whole.splitlines() if text.startswith("  fields:"))) + 1
    cut = whole[: whole.index("\n  CUDA: |") + 1]
    changed = whole.replace("0.25f", "0.26f", 1)
    without = whole[: whole.index("# The kernel's files")]
    for text, what in ((cut, "Reference is missing"), (changed, "fit their Digest"), (without, "n is missing")):
        assert text != whole
        path.write_text(text)
        with pytest.raises(UserError, match=what) as caught:
            Logic.load(path)
        assert caught.value.location == f"{path}:{line}"


# What earlier versions wrote.


def former_problem(description, sizes):
    """Version 0.1.0 of November 2026 as its code had it: the absolute path, and a hash of the files in their order."""
    texts = [(description.parent / name).read_text() for name in (STENCIL, *FILES[:3])]
    fields = {"Kernel": str(description.resolve()), "Hash": sha256("\0".join(texts).encode()).hexdigest()}
    return Problem(ProblemType("Custom", "stencil5", ("Rows", "Columns"), Configuration(fields)), sizes)


def test_the_problem_is_known_in_the_form_of_earlier_versions(copied):
    problem = Problem(type_of(copied), (5, 7))
    (former,) = OPERATIONS["Custom"].former(problem)
    assert former == former_problem(copied, (5, 7))
    assert json.loads(former.to_json()) == {
        "leading": [],
        "scalars": {},
        "sizes": [5, 7],
        "type": former_problem(copied, (5, 7)).type.to_json(),
    }


def test_where_the_path_is_not_known_there_is_no_former_form(copied, tmp_path):
    program = "import pickle, sys; from tunesmith.problems import OPERATIONS; "
    program += "print(OPERATIONS['Custom'].former(pickle.loads(bytes.fromhex(sys.stdin.read()))))"
    sent = pickle.dumps(Problem(type_of(copied), (5, 7))).hex()
    assert elsewhere(program, stdin=sent, folder=tmp_path) == "()\n"
    assert OPERATIONS["GEMM"].former(Problem(TYPES[0], (8, 8, 8))) == ()


def test_a_logic_of_an_earlier_version_serves_while_the_files_lie_there_unchanged(copied, tmp_path):
    new, old = type_of(copied), former_problem(copied, (5, 7)).type
    raw = yaml.safe_load(dump(document_of(new)))
    raw["problem-type"]["fields"] = dict(old.fields)
    del raw["texts"]
    path = tmp_path / "old.yaml"
    path.write_text(yaml.safe_dump(raw, sort_keys=False))
    edited(copied.with_name("custom_stencil.cl"), "0.25f", "0.26f")
    with pytest.raises(UserError, match=r"old\.yaml:\d+: .*has changed; tune again"):
        Logic.load(path)
    edited(copied.with_name("custom_stencil.cl"), "0.26f", "0.25f")
    copied.rename(copied.with_suffix(".moved"))
    with pytest.raises(UserError, match=r"old\.yaml:\d+: .*custom_stencil\.yaml cannot be read"):
        Logic.load(path)
    copied.with_suffix(".moved").rename(copied)
    kind = Logic.load(path).document.problem_type
    assert kind == old
    assert CustomKernel().space(kind) == CustomKernel().space(new)


def test_a_damaged_logic_sinks_alone(copied, tmp_path):
    write_logic(gemm_logic(TYPES[0]).document, tmp_path / "gemm.yaml")
    path = tmp_path / "stencil5.yaml"
    write_logic(document_of(type_of(copied)), path)
    path.write_text(path.read_text().replace("0.25f", "0.26f", 1))
    with pytest.warns(UserWarning, match=r"stencil5\.yaml:\d+: .*fit their Digest.*; its problem type is left out"):
        library = tunesmith.load(tmp_path)
    assert library.says(8, 8, 8).solution.type == TYPES[0]
    with pytest.raises(UserError, match="fit their Digest"):
        tunesmith.load(path)
