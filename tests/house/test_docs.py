"""The documentation is true: its commands run, its excerpts and tables are the code's, its links lead somewhere."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from cuda_runner import cuda_device, toolchain
from opencl_runner import opencl_device
from page_runs import run_command, run_program
from tunesmith.toolchains.cache import FOLDER_VARIABLE

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _script(path):
    """A script without a suffix as a module."""
    loader = SourceFileLoader(path.name, str(path))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    sys.modules[path.name] = module
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


docs = _script(ROOT / "scripts" / "generate_docs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all pages, so that what the first has measured is found by the second, with a user's cache."""
    opencl_device()  # skips where there is none
    made = tmp_path_factory.mktemp("docs")
    docs.prepare(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield made


def executed(mark=""):
    """The executed pages' blocks in their order: those with the mark `slow` or `gpu`, or those without."""
    for path in docs.EXECUTED:
        for block in docs.blocks(path.read_text(encoding="utf-8")):
            if {"slow", "gpu"} & set(block.words) == ({mark} if mark else set()):
                line = path.read_text(encoding="utf-8").count("\n", 0, block.start)
                yield pytest.param(block, id=f"{path.name}:{line}")


def _check(block, folder):
    if block.title:
        (folder / block.title).write_text(block.text, encoding="utf-8")
    if block.language == "python":
        status, output = run_program(block.text, folder, docs.environment())
        assert status == 0, output
    if block.language == "console":
        for command, shown in block.commands():
            status, output = _output(command, folder)
            assert status == 0 or (status == 1 and _only_drift(output)), f"{command}: {status}\n{output}"
            if "machine" not in block.words:
                assert _constant(shown) <= _constant(output.split("\n")), output


def _output(command, folder):
    """Exit status and output of a command. The shell finds what is not `tunesmith` by itself, and `tunesmith devices`,
    the tutorial's first command: it is started as users start it."""
    if re.fullmatch(r"tunesmith (?!devices)[\w ./-]+", command):
        return run_command(command, folder, docs.environment())
    return docs.run(command, folder)


def _only_drift(output):
    """A busy machine may raise the alarm; nothing else is allowed to."""
    alarms = [line for line in output.split("\n") if line.startswith("look at:")]
    return bool(alarms) and all("the anchor drifted" in line for line in alarms)


def _constant(lines):
    """Lines without a number and without a device's name, which no machine and no day changes, each word for word but
    for its spaces. PoCL's names of devices begin with `pthread-`."""
    changing = re.compile(r"\d|^\.\.\.$|\bpthread-")
    return {" ".join(line.split()) for line in lines if line.strip() and not changing.search(line)}


@pytest.mark.opencl
@pytest.mark.parametrize("block", list(executed()))
def test_what_readme_and_tutorial_say_can_be_done(block, folder):
    """Each command ends well and still prints the lines that the page shows, apart from those with numbers."""
    _check(block, folder)


@pytest.mark.opencl
@pytest.mark.thorough
@pytest.mark.parametrize("block", list(executed("slow")))
def test_what_takes_long_can_be_done_too(block, folder):
    _check(block, folder)


@pytest.mark.gpu
@pytest.mark.parametrize("block", list(executed("gpu")))
def test_what_needs_a_gpu_can_be_done_on_it(block, tmp_path):
    toolchain("Triton")
    cuda_device()
    (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    status, output = docs.run([sys.executable, block.title], tmp_path)
    assert status == 0, output


@pytest.mark.parametrize("path", docs.PAGES, ids=lambda path: path.name)
def test_generated_pages_are_what_the_generator_writes(path):
    assert path.read_text(encoding="utf-8") == docs.PAGES[path](), "run scripts/generate_docs"


def _anchors(page):
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{link}: nothing there"
        assert not anchor or anchor in _anchors(target.read_text(encoding="utf-8")), f"{link}: no such heading"


def test_the_site_leads_to_every_page():
    """A page that the navigation lacks is built, and nobody finds it."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"([\w./-]+\.md)$", nav, re.MULTILINE)
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(pages)


def test_excerpts_are_the_code():
    found = 0
    for page in PAGES:
        for block in docs.blocks(page.read_text(encoding="utf-8")):
            for word in block.words:
                if word.startswith("source="):
                    source = (ROOT / word.partition("=")[2].strip('"')).read_text(encoding="utf-8")
                    assert block.text in source, f"{page.name} quotes what {word} does not say:\n{block.text}"
                    found += 1
    assert found, "no excerpt was looked at"


def test_the_table_of_rooms_is_what_the_import_rules_hold():
    """Every folder of the package is a room, and a room's row lists what its contract allows."""
    table = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    rooms = {path.name for path in (ROOT / "src/tunesmith").iterdir() if (path / "__init__.py").is_file()}
    assert {room for room, _ in table} == rooms
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    held = dict(
        contract["name"].split(" imports only ") for contract in contracts if " imports only " in contract["name"]
    )
    for room, may_import in table:
        assert may_import == held.get(room, "everything but testing"), room


def test_a_log_of_the_quickstart_goes_into_its_place():
    page = "before\n{}\nold\n{}\nafter\n".format(*docs.QUICKSTART)
    log = f"\x1b[1mtuning\x1b[0m   \nstep 1\rstep 2\n{docs.ROOT}/out/x.csv\n\n"
    once = docs.with_quickstart(page, log, "2026-01-02")
    assert "tuning\nstep 2\nout/x.csv\n```" in once
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert docs.with_quickstart(once, log, "2026-01-02") == once
    assert docs.QUICKSTART[0] in docs.README.read_text(encoding="utf-8")
