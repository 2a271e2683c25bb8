"""What a library logic's reader accepts, to the last value, and the line that it names where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from test_logic_select import GEMM, GOOD, document, named, row

from tunesmith.logic import Logic, dump, location_in, read, write_logic
from tunesmith.records import Configuration, UserError

TIED = document(rows=(row(0, 12.5, 64, 64, 1, 64, others={1: 5.5e-05}),))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "logic.yaml"


def write(path, text):
    path.write_text(text)
    return path


def refused(path, text):
    with pytest.raises(UserError) as caught:
        Logic.load(write(path, text))
    return caught.value


def changed(old, new, text=GOOD):
    assert text.count(old) == 1, old
    return text.replace(old, new)


def test_ties_are_read_as_they_were_written(path):
    several = row(1, 12.5, 64, 64, 1, 64, others={0: 5.5e-05, 2: 6e-05})
    for solution_row in (TIED.rows[0], several):
        for ties in ((), *[(index,) for index in solution_row.others], tuple(solution_row.others)):
            tied = document(rows=(replace(solution_row, ties=ties),), solutions=tuple(map(named, range(3))), fallback=2)
            write_logic(tied, path)
            assert Logic.load(path).document == tied


def test_a_person_can_read_names_in_any_script(path):
    origin = replace(TIED.origin, device="\u7a0b\u00fc 9")
    write_logic(replace(TIED, origin=origin), path)
    assert "\u7a0b\u00fc 9" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "a\nb\n",
        "a\nb",
        "a\n\n\n",
        "\n",
        "\na\n",
        " a\nb\n",
        "\ta\nb\n",
        "a\n  b\n",
        "- a: {\n",
        "\u00fc\n\u7a0b\n",
        "\u00fc\a\n",
        "\x85\n",
        "\ufeff\n",
        "\r\n",
    ],
)
def test_a_text_of_several_lines_is_written_whole_and_readably(text):
    written = dump(document(problem_type=replace(GEMM, fields=Configuration({**GEMM.fields, "Source": text}))))
    assert yaml.safe_load(written)["texts"] == {"Source": text}
    letters = [letter for letter in text if letter.isalpha()]
    assert all(letter in written.partition("texts:")[2] for letter in letters), "no letter is escaped"


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("12.5]", "exact[0]: expected a list of 7, or of 8 where there are ties"),
        ("12.5, {1: 5.5e-05}, [1], []]", "exact[0]: expected a list of 7, or of 8 where there are ties"),
        ("12.5, {1: 5.5e-05}, 1]", "exact[0][7]: expected a list"),
        ("12.5, {1: 5.5e-05}, [1, 0]]", "exact[0][7][1]: solution 0 has no time at this size"),
        ("12.5, {1: 5.5e-05}, [-1]]", "exact[0][7][0]: expected a whole number of at least 0"),
    ],
)
def test_a_row_with_ties_that_cannot_be_is_refused(path, end, says):
    assert Logic.load(write(path, dump(TIED))).document == TIED
    assert refused(path, changed("12.5, {1: 5.5e-05}]", end, dump(TIED))).what.startswith(says)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("tunesmith-logic: 3", "tunesmith-logic: 0", "tunesmith-logic: expected a whole number of at least 1"),
        ("tunesmith-logic: 3", "tunesmith-logic: 4", "tunesmith-logic: is format 4"),
        ("tunesmith-logic: 3", "tunesmith: 3", "is no library logic of tunesmith"),
        ("fallback: 1", "fallback: -1", "fallback: expected a whole number from 0 to 1"),
        ("fallback: 1", "fallback: 2", "fallback: expected a whole number from 0 to 1"),
        ("], 7, 12.5,", "], 7, -0.5,", "exact[0][5]: expected a number of at least zero"),
        ("4.1943e-05", "0", "exact[0][2]: expected a number above zero"),
        ("4.1943e-05", ".inf", "exact[0][2]: expected a number above zero"),
        ("3.77487e-05", "0", "exact[0][3][0]: expected a number above zero"),
        ("{1: 5.5e-05}", "{-1: 5.5e-05}", "exact[0][6]: expected a whole number from 0 to 1"),
        ("sizes: 4,", "sizes: 5,", "rest: expected {'rule': 'nearest', 'sizes': 4"),
    ],
)
def test_a_value_beyond_its_bound_is_refused(path, old, new, says):
    assert refused(path, changed(old, new)).what.startswith(says)


@pytest.mark.parametrize(
    ("old", "new"),
    [("fallback: 1", "fallback: 0"), ("], 7, 12.5,", "], 7, 0,"), ("geomean: 1.25", "geomean: 0"), ("1.25", ".inf")],
)
def test_a_value_at_its_bound_is_accepted(path, old, new):
    assert Logic.load(write(path, changed(old, new))).document != document()


def test_a_type_that_its_operation_refuses_is_a_mistake_in_the_file(path):
    assert "{DataType: s," in GOOD
    error = refused(path, changed("{DataType: s,", "{DataType: q,"))
    assert error.what.startswith("problem-type.fields.DataType: ")
    line = next(number for number, text in enumerate(GOOD.splitlines(), 1) if "{DataType: s," in text)
    assert error.location == f"{path}:{line}"


def test_the_type_of_an_operation_of_ones_own_is_read_as_it_is(path):
    assert Logic.load(write(path, changed("  operation: GEMM", "  operation: Unknown"))).document.problem_type == (
        replace(GEMM, operation="Unknown")
    )


def test_a_logic_has_a_solution_and_need_not_have_a_regret(path):
    raw = yaml.safe_load(GOOD)
    without = {name: value for name, value in raw.items() if name not in ("regret", "rest")}
    for text in (yaml.safe_dump(without), yaml.safe_dump(raw | {"regret": None})):
        assert Logic.load(write(path, text)).document == document(regret=None)
    assert refused(path, yaml.safe_dump(raw | {"solutions": []})).what == "solutions: there is no solution"


def test_a_time_may_have_no_samples_and_cannot_have_fewer(path):
    assert Logic.load(write(path, changed("], 7, 12.5,", "], 0, 12.5,"))).document.rows[0].estimate.count == 0
    assert refused(path, changed("], 7, 12.5,", "], -1, 12.5,")).what.startswith("exact[0][4]: expected a whole number")


@pytest.mark.parametrize("lines", [0, 1, 20])
def test_text_that_is_no_yaml_is_reported_with_its_line(path, lines):
    """A tab cannot start a value."""
    above = "".join(f"key{line}: 1\n" for line in range(lines))
    error = refused(path, f"{above}\tword: 1\n")
    assert error.location == f"{path}:{lines + 1}"
    assert error.what.startswith("is no YAML (")


def test_a_mistake_without_a_position_is_reported_at_the_beginning(path, monkeypatch):
    def load(text, Loader):  # noqa: N803  # as YAML calls it
        raise yaml.MarkedYAMLError(problem="no position")

    assert refused(path, "").location == f"{path}:1"
    monkeypatch.setattr(yaml, "load", load)
    assert refused(path, GOOD).location == f"{path}:1"


def values(node):
    """How many values there are, every alias written out."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return 1 + sum(map(values, inner))


def test_aliases_may_expand_to_as_many_values_as_are_allowed_and_no_more(path, monkeypatch):
    text = changed("- [[64, 64, 1, 64], 0, 4.1943e-05,", "- [&size [64, 64, 1, 64], 0, 4.1943e-05,")
    text = changed("  worst-at: [64, 64, 1, 64]", "  worst-at: *size", text)
    allowed = values(yaml.safe_load(text))
    monkeypatch.setattr(read, "MOST_NODES", allowed)
    assert Logic.load(write(path, text)).document == document()
    monkeypatch.setattr(read, "MOST_NODES", allowed - 1)
    assert refused(path, text).what == f"aliases expand to more than {allowed - 1:,} values"
    assert Logic.load(write(path, GOOD)).document == document(), "without an alias, the file's length is limit enough"


def test_a_list_that_contains_itself_is_refused(path):
    assert refused(path, changed("rest: {rule: nearest,", "rest: &rest {rule: [*rest],")).what.startswith("aliases")


@pytest.mark.parametrize(
    ("keys", "beginning"),
    [
        ((), "tunesmith-logic"),
        (("solutions", 1, "kernel"), "  kernel: tiled"),
        (("exact", 0), "- [[64, 64, 1, 64], 0"),
        (("exact", 1, 0, 3), "- [[128, 64"),
        (("exact", 2), "- [[64, 64, 1, 64], 0"),
        (("regret", "worst"), "  worst: .inf"),
        (("regret", "best"), "  geomean"),
    ],
)
def test_the_line_of_a_value_is_that_where_it_begins_or_where_what_should_hold_it_begins(path, keys, beginning):
    location = location_in(write(path, GOOD), *keys)
    line = int(location.removeprefix(f"{path}:"))
    assert GOOD.splitlines()[line - 1].startswith(beginning)


def test_a_file_that_is_gone_has_no_lines(path):
    assert location_in(path, "solutions") == str(path)
