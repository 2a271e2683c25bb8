"""What holds for the project's files: size, names, pages made from code, and import rules for every room."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tunesmith.kernels import KERNELS, tuning_space
from tunesmith.problems.gemm import gemm_type
from tuning_file_page import reference

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tunesmith"
MOST_LINES = 400


def sources():
    """Every file of ours: what git knows, or would if it were added; else all but what is made."""
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git"):
        listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
        if listed.returncode == 0:
            return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]
    folders = ("src", "tests", "docs", "examples", "benchmarks", "scripts")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return [path for path in files if "__pycache__" not in path.parts]


def rooms():
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_every_python_file_has_fewer_than_400_lines():
    """One idea a file; a long one has several."""
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources()
        if path.suffix == ".py"
    }
    assert {name: length for name, length in lengths.items() if length >= MOST_LINES} == {}


def test_names_are_plain():
    """Lower case, without spaces, so that every system and shell can hold them; capitals only for the usual few."""
    usual = {"README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "NOTICE", "CMakeLists.txt", "METADATA"}
    odd = [
        str(path.relative_to(ROOT))
        for path in sources()
        if path.name not in usual and not re.fullmatch(r"[a-z0-9_.\-]+", path.name)
    ]
    assert odd == []


def test_nothing_that_is_made_is_kept():
    made = {".pyc", ".so", ".o", ".sqlite", ".whl", ".log", ".tmp", ".orig", ".rej", ".ptx", ".cubin"}
    assert [path for path in sources() if path.suffix in made] == []


def test_the_tuning_file_reference_is_made_from_the_code():
    page = (ROOT / "docs" / "tuning-file.md").read_text(encoding="utf-8")
    assert page.startswith(reference(tuning_space(gemm_type()))), "run scripts/generate_docs"


@pytest.fixture(scope="module")
def contracts():
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert configured["root_package"] == "tunesmith"
    return [contract for contract in configured["contracts"] if contract["name"].count(" imports only ")]


def test_every_room_has_its_import_rule_and_every_rule_knows_every_room(contracts):
    """Each room but the command line, which may import everything, has one contract that names all that it may not."""
    modules = {f"tunesmith.{room}" for room in rooms()}
    ruled = {}
    for contract in contracts:
        (source,) = contract["source_modules"]  # type: ignore[misc]  # one room each
        allowed = str(contract["name"]).partition(" imports only ")[2].replace("nothing of ours", "").split(", ")
        ruled[source] = {f"tunesmith.{name}" for name in allowed if name} | {source}
        assert set(contract["forbidden_modules"]) == modules - ruled[source], contract["name"]  # type: ignore[call-overload]
    assert set(ruled) == modules - {"tunesmith.cli"}


def test_every_room_imports_all_that_its_rule_allows(contracts):
    """A permission that nobody uses would let a wrong import pass."""
    for contract in contracts:
        room, _, allowed = str(contract["name"]).partition(" imports only ")
        code = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE / room).rglob("*.py"))
        imported = set(re.findall(r"^\s*(?:import|from) tunesmith\.(\w+)", code, flags=re.MULTILINE))
        assert set(allowed.replace("nothing of ours", "").split(", ")) - {""} <= imported, room


def test_the_architecture_names_every_room_and_no_other():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
    assert named == rooms()


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_a_printed_choice_has_all_parameters_of_its_family(page):
    """A family that gets a parameter makes what `select` printed before look incomplete."""
    text = (ROOT / page).read_text(encoding="utf-8")
    printed = re.findall(r"^kernel    (\w+): ((?:\w+=\S+\s+)+)", text, flags=re.MULTILINE)
    assert len(printed) == 2
    for family, values in printed:
        names = [parameter.name for parameter in KERNELS[family].space(gemm_type())]
        assert re.findall(r"(\w+)=", values) == names


MODULES = {"pyyaml": "yaml", "ml-dtypes": "ml_dtypes"}
"""How packages are imported whose module has another name."""


def test_every_required_package_is_imported():
    """What nothing imports is not asked of a user."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = [re.match(r"[\w.-]+", requirement)[0] for requirement in required]  # type: ignore[index]  # a name leads
    code = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", code, flags=re.MULTILINE))
    assert [name for name in names if MODULES.get(name, name) not in imported] == []


GENERIC = {"one", "place", "said", "given", "seen", "told", "wanted", "way", "stand", "thing", "stuff"}
"""Names that would fit whatever a variable holds, so they say nothing about it."""


@dataclass(frozen=True)
class Names:
    """What the tests below ask about a Python file, which is parsed once for all of them: its classes, the lines that
    introduce a generic name, and its functions that are not compiled, those with all annotations and those with any."""

    classes: list[str]
    generic: list[str]
    functions: set[str]
    annotated: set[str]
    partly_annotated: set[str]

    @staticmethod
    def of(text):
        found = list(nodes(ast.parse(text)))
        functions = [node for node in found if isinstance(node, ast.FunctionDef) and not _is_compiled(node)]
        return Names(
            [node.name for node in found if isinstance(node, ast.ClassDef)],
            [f"{node.lineno} {name}" for node in found if (name := _named_by(node)) in GENERIC],
            {_line_of(node) for node in functions},
            {_line_of(node) for node in functions if _is_annotated(node)},
            {_line_of(node) for node in functions if node.returns or any(_annotations(node))},
        )


@cache
def names_in(folder):
    paths = sorted((ROOT / folder).rglob("*.py"))
    return {path: Names.of(path.read_text(encoding="utf-8")) for path in paths}


def nodes(tree):
    """As `ast.walk`, without the nodes that say whether a name is read or stored."""
    rest = [tree]
    while rest:
        node = rest.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                rest.extend(child for child in value if isinstance(child, ast.AST))
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                rest.append(value)


def test_a_class_name_stands_once_in_the_package():
    """Imports then read without `as`, and a search for a name finds one thing."""
    classes = Counter(name for names in names_in("src").values() for name in names.classes)
    assert sorted(name for name, count in classes.items() if count > 1) == []


def test_no_variable_or_argument_has_a_generic_name():
    """A reader learns from a name what is in it. What is imported, as `given` from Hypothesis, was named elsewhere."""
    generic = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("src", "tests", "benchmarks", "scripts", "examples")
        for path, names in names_in(folder).items()
        for line in names.generic
    ]
    assert generic == []


def test_tests_have_one_style_of_typing():
    """Tests and what stands beside them have no annotations, since fixtures and parametrised values give the arguments;
    what tests share, in `tests/support`, is annotated as the source is."""
    for path, names in names_in("tests").items():
        if path.parent.name == "support":
            assert names.functions - names.annotated == set(), path
        elif path.name.startswith("test_"):
            assert names.partly_annotated == set(), path


def test_the_guide_names_every_file_with_tests_that_run_only_by_their_mark():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\S+\.py)`", guide.partition("## What runs only by")[2].partition("\n## ")[0]))
    mark = "pytest.mark." + "thorough"
    marked = {
        str(path.relative_to(ROOT / "tests"))
        for path in (ROOT / "tests").rglob("*.py")
        if mark in path.read_text(encoding="utf-8")
    }
    assert marked <= named


def _named_by(node):
    """The name of the variable, field, argument, caught error or match that this node introduces, if it does."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name
        case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
            return name
    return None


def _is_compiled(function):
    return any("jit" in ast.unparse(mark) for mark in function.decorator_list)


def _line_of(function):
    return f"{function.lineno} {function.name}"


def _is_annotated(function):
    return function.returns is not None and all(_annotations(function))


def _annotations(function):
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [argument.annotation for argument in every if argument and argument.arg not in ("self", "cls")]
