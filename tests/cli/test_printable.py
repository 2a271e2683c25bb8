"""Control characters in names from outside are escaped in every output."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest
from rich.console import Console
from typer.testing import CliRunner

from portblas_files import LOCAL, TUNED
from random_benchmarks import benchmarks, write
from tunesmith.cli import app
from tunesmith.cli.output import PlainConsole
from tunesmith.formats.portblas.backend import header
from tunesmith.records import UserError, comment_text, printable
from tunesmith.report.progress import ProgressReport
from tunesmith.report.table import table, titled
from tunesmith.session.frame import events
from tuning_runs import tunesmith

EVIL = "\x1b]0;owned\x07\x1b[31m\r\x9b2J\u202egnp\x00"
"""Sets a terminal's title, its colour, clears it, turns the direction of writing; and no XML may hold it."""
FORGED = f"{EVIL}\nlook at: nothing"

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""All control characters but the end of a line."""


@pytest.mark.parametrize("code", [*range(32), *range(127, 160), 0x2028, 0x202E, 0x2066, 0xD800, 0xDC80, 0xFFFE, 0xFFFF])
def test_every_character_that_is_obeyed_or_not_xml_is_written_as_an_escape(code):
    shown = printable(f"a{chr(code)}b")
    assert shown.isprintable()
    assert shown.encode().startswith(b"a\\")
    assert ElementTree.fromstring(f"<a>{shown}</a>").text == shown


def test_what_can_be_read_stays_and_so_do_lines_where_a_text_has_them():
    assert printable("µs ± 1 %, 漢字, a b") == "µs ± 1 %, 漢字, a b"
    assert printable("one\ntwo\x1b", "\n") == "one\ntwo\\x1b"


@pytest.mark.parametrize("name", ["a\n#error b", "a\\", "a\\  ", "a??/", "a\r#error b", "a\u2028b"])
def test_a_comment_of_cpp_ends_with_its_line(name, tmp_path):
    """Compiled where there is a compiler, with trigraphs."""
    source = tmp_path / "a.cpp"
    source.write_text(f"// from {comment_text(name)}\nint here;\n")
    assert len(source.read_text().splitlines()) == 2
    if shutil.which("g++"):
        source.write_text(source.read_text() + "int main() { return here; }\n")
        subprocess.run(["g++", "-std=c++14", "-fsyntax-only", source], check=True, capture_output=True)


def test_a_mistake_is_one_line():
    assert str(UserError(f"f.yaml:1: {FORGED}", FORGED, FORGED)).isprintable()


def test_a_cell_is_one_line_as_wide_as_it_looks():
    text = io.StringIO()
    shown = table("name", "next", rows=[[FORGED, "x"]])
    shown.add_row("short", "y")
    PlainConsole(file=text, width=1000).print(titled(FORGED, shown))
    title, heads, evil, short = text.getvalue().splitlines()
    assert not OBEYED.search(text.getvalue())
    assert title.startswith("\\x1b]0;owned")
    assert evil.index(" x") == heads.index(" next") == short.index(" y")


@pytest.mark.parametrize("terminal", [False, True])
def test_sentences_and_progress_obey_no_name(terminal):
    """A terminal still gets rich's own colours and movements."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=200)
    with ProgressReport(console) as report:
        report(events.BatchBegan(purpose=EVIL, cells=3, reused=0))
        report(events.Message(f"look at: {EVIL}"))
    assert not re.search("\x07|\x9b|\u202e|\x00|\x1b\\]|\x1b\\[31m", text.getvalue())
    assert "owned" in text.getvalue()
    plain = io.StringIO()
    PlainConsole(file=plain, width=200).print(f"look at: {EVIL}")
    assert not OBEYED.search(plain.getvalue())


def invoke(*arguments):
    """Everything that the command prints, a mistake as `main` prints it."""
    result = CliRunner().invoke(app.app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, (SystemExit, UserError)), result.exception
    mistake = f"{result.exception}\n" if isinstance(result.exception, UserError) else ""
    return result.stdout + result.stderr + mistake


def test_benchmarks_with_evil_names_reach_neither_terminal_nor_svg_nor_headers(tmp_path):
    name = "x\x1b[31m\x07w"
    folder = tmp_path / "a\n#error\x1b[31m"
    folder.mkdir()
    speeds = {"uniform/float": {(256, 512): 100.0, (64, 512): 50.0}}
    evil = write(folder / "gfx90a\n#error.json", benchmarks(name, speeds) + benchmarks("xorwow", speeds), "my\nname")
    (tmp_path / "config_defaults.json").write_text(json.dumps({name: {"block_size": 256, "grid_size": 512}}))
    out = tmp_path / "out"
    options = ("--default-config", tmp_path, "--out-dir", out, "--plot-out", out / "p.svg")
    output = invoke("random", "select", evil, *options)
    assert "x\\x1b[31m\\x07w" in output
    assert not OBEYED.search(output)
    assert len([line for line in output.splitlines() if line.startswith("#error")]) == 0
    assert len(list(out.glob("*.svg"))) == 2
    for drawing in out.glob("*.svg"):
        ElementTree.parse(drawing)
    for made in out.glob("*.hpp"):
        assert not OBEYED.search(made.read_text())
        assert "#error" not in made.read_text()
    as_json = CliRunner().invoke(app.app, ["random", "select", str(evil), "--json"]).stdout
    assert as_json.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", ["a\n#error b.json", "a\x1b[31m\r.json", "a.json\\"])
def test_a_file_s_name_does_not_reach_the_lines_of_a_list_of_candidates(name, tmp_path):
    path, made = tmp_path / name, tmp_path / "c.def"
    path.write_text(json.dumps({"local": [{**LOCAL, "vectorization_size": [1]}], f"lokal{EVIL}": []}))
    output = invoke("portblas", "generate", path, made)
    assert not OBEYED.search(output)
    first, second, *rest = made.read_text().splitlines()
    assert first.startswith("// ****")
    assert second.startswith("// Config from: ")
    assert not second.endswith("\\")
    assert [line.split("(")[0] for line in rest] == ["#ifndef BENCH_PARAMS", rest[1], "#endif", "BENCH_PARAMS"]
    assert not OBEYED.search(invoke("portblas", "generate", path))


def test_a_device_s_name_does_not_reach_the_lines_of_a_header():
    text = header([TUNED], f"GPU\n#error {EVIL}\\", "1.0")
    assert not OBEYED.search(text)
    assert "\n#error" not in text


@pytest.mark.parametrize(
    "text",
    [
        '"evil\\e[31m\\nlook at: nothing": 1\n',
        'GlobalParameters:\n  "evil\\e[31m\\u009B": 1\nBenchmarkProblems: []\n',
        'BenchmarkProblems:\n  - - OperationType: "GEMM\\a"\n',
        'BenchmarkProblems:\n  - - OperationType: GEMM\n      DataType: "s\\e[2J"\n',
    ],
)
def test_keys_and_values_of_a_tuning_file_are_told_as_escapes(text, tmp_path):
    path = tmp_path / "evil\x1b[31m.yaml"
    path.write_text(text)
    done = tunesmith("plan", path)
    assert done.returncode == 2, done.stdout
    assert "evil\\x1b[31m.yaml" in done.stderr
    assert "Traceback" not in done.stderr
    assert not OBEYED.search(done.stdout + done.stderr)
