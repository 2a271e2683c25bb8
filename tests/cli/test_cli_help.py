"""Help pages: they name every command with its first sentence, and import none of them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from keyword import iskeyword

import pytest
from typer.testing import CliRunner

import tunesmith
from tunesmith.cli import app

GROUPED = [(group, name) for group, (_, names) in app.GROUPS.items() for name in names]
ALL = [(name,) for name in app.COMMANDS] + GROUPED


def page(*words):
    result = CliRunner().invoke(app.app, [*words, "--help"], env={"COLUMNS": "400"})
    assert result.exit_code == 0, result.output
    return result.stdout


def first_words(words):
    *group, name = (f"{word}_" if iskeyword(word) else word.replace("-", "_") for word in words)
    text = inspect.getdoc(getattr(import_module(".".join(("tunesmith.cli", *group, name))), name))
    assert text
    return " ".join(text.split()[:5])


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_a_page_describes_each_command_as_its_own_page_does(words):
    summary = first_words(words)
    assert summary in page(*words[:-1])
    assert summary in page(*words)


def test_the_first_page_imports_no_command():
    code = (
        "import sys; from tunesmith.cli.app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: print(*(n for n in sys.modules if n.startswith('tunesmith')), sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    known = set(done.stderr.split())
    assert "tunesmith.cli.app" in known
    assert not known & {"tunesmith.session", "tunesmith.kernels", "tunesmith.cli.tune", "tunesmith.report"}


@pytest.mark.parametrize("start", [["-m", "tunesmith"], ["-m", "tunesmith.cli.main"]], ids=" ".join)
def test_version(start):
    done = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tunesmith {tunesmith.__version__}\n"


def test_an_unknown_command_is_refused_with_the_nearest_one():
    result = CliRunner().invoke(app.app, ["tuna"])
    assert result.exit_code == 2
    assert "tune" in result.output
