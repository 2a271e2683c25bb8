"""The headers and the table that a selection writes: headers compile and merge, and existing content stays."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from random_benchmarks import GOLDEN, rows
from tunesmith.formats.random.outputs import write_selection
from tunesmith.formats.random.rocrand_headers import header, targets
from tunesmith.logic.random.choice import choose_shapes
from tunesmith.logic.random.table import RandomTable, TunedShapes, read_table, write_table
from tunesmith.records import LaunchShape, UserError


def architectures(text):
    return set(re.findall(r"case target_arch::(\w+): return", text))


SHAPES = {"gfx90a": LaunchShape(512, 2048), "gfx1100": LaunchShape(64, 896)}
DEFAULT = LaunchShape(256, 1024)

BY_HAND = """// Copyright of somebody, with gfx90a: return 7; in a comment
#ifndef A_GUARD_HPP_
#define A_GUARD_HPP_

#include "config_defaults.hpp"

namespace rocrand_host::detail
{
/* get_threads(arch) { switch(arch) { default: */
template<class T>
struct generator_config_selector<ROCRAND_RNG_PSEUDO_PHILOX4_32_10, T>
{
    __host__ __device__ constexpr unsigned int get_threads(const target_arch arch) const
    {
        switch(arch)
        {
            case target_arch::gfx1030: return 1024;
            case target_arch::gfx90a: return 128; // by hand
            default:
                return generator_config_defaults<ROCRAND_RNG_PSEUDO_PHILOX4_32_10, T>{}.threads;
        }
    }

    __host__ __device__ constexpr unsigned int get_blocks(const target_arch arch) const
    {
        switch(arch)
        {
            case target_arch::gfx1030: return 2304;
            default:
                return generator_config_defaults<ROCRAND_RNG_PSEUDO_PHILOX4_32_10, T>{}.blocks;
        }
    }
};
} // a remark
#endif
"""


def test_a_merge_changes_returns_and_adds_cases_and_nothing_else():
    merged = header("philox4_32_10", SHAPES, DEFAULT, BY_HAND, "place")
    gone = [line for line in BY_HAND.splitlines() if line not in merged.splitlines()]
    new = [line for line in merged.splitlines() if line not in BY_HAND.splitlines()]
    assert gone == ["            case target_arch::gfx90a: return 128; // by hand"]
    assert new == [
        "            case target_arch::gfx90a: return 512; // by hand",
        "            case target_arch::gfx1100: return 64;",
        "            case target_arch::gfx1100: return 896;",
        "            case target_arch::gfx90a: return 2048;",
    ]
    assert architectures(merged) == {"gfx1030", "gfx1100", "gfx90a"}
    assert header("philox4_32_10", SHAPES, DEFAULT, merged, "place") == merged


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("int x;", "has no generator_config_selector"),
        (BY_HAND.replace("get_blocks", "blocks"), "get_blocks has no switch over target_arch with a default"),
        (BY_HAND.replace("gfx1030: return 1024;", "gfx1100:"), "gfx1100 shares its return"),
    ],
)
def test_a_header_that_cannot_be_merged_is_said(text, words):
    with pytest.raises(UserError, match=words) as raised:
        header("philox4_32_10", SHAPES, DEFAULT, text, "out/a.hpp")
    assert raised.value.location == "out/a.hpp"


def test_the_architecture_unknown_is_never_written():
    """rocRAND takes the branch of `unknown` for its default ordering."""
    text = header("xorwow", {**SHAPES, "unknown": DEFAULT}, DEFAULT)
    assert "unknown" not in text
    with pytest.raises(UserError, match="no architecture"):
        header("xorwow", {"unknown": DEFAULT}, DEFAULT)


def test_our_headers_carry_our_licence_and_nobody_elses_words():
    text = header("xorwow", {**SHAPES, "sm_90": DEFAULT}, DEFAULT)
    assert text.startswith("// SPDX-License-Identifier: Apache-2.0\n")
    assert "Copyright" not in text
    assert "Permission" not in text


ROCRAND_STUB = {
    "config_defaults.hpp": """#pragma once
#define __host__
#define __device__
enum rocrand_rng_type { ROCRAND_RNG_PSEUDO_PHILOX4_32_10, ROCRAND_RNG_QUASI_SOBOL32 };
namespace rocrand_impl::host {
enum class target_arch { gfx90a, gfx1100, gfx906, unknown };
template<rocrand_rng_type G, class T> struct generator_config_defaults {
    static constexpr unsigned int threads = 256, blocks = 1024;
};
template<rocrand_rng_type G, class T> struct generator_config_selector {};
}
""",
    "rocrand/rocrand.h": "#pragma once\n",
}

INSIDE = """#include "{name}_config.hpp"
using namespace rocrand_impl::host;
using Config = generator_config_selector<{id}, float>;
static_assert(Config::get_threads(target_arch::gfx90a) == 512 && Config::get_blocks(target_arch::gfx90a) == 2048);
static_assert(Config::get_threads(target_arch::gfx906) == 256 && Config::get_blocks(target_arch::unknown) == 1024);
"""

OUTSIDE = """#include "{name}_config.hpp"
using namespace tunesmith::random;
constexpr target_arch h200 = parse_target_arch("sm_90"), amd = parse_target_arch("gfx90a:sramecc+:xnack-");
static_assert({name}_config::get_threads(h200) == 128 && {name}_config::get_blocks(h200) == 528);
static_assert({name}_config::get_threads(amd) == {amd});
static_assert({name}_config::get_threads(parse_target_arch("gfx90")) == 256);
static_assert(parse_target_arch("sm_90a") == target_arch::unknown);
static_assert(parse_target_arch("x86-64") == target_arch::x86_64);
"""

H200 = {"sm_90": LaunchShape(128, 528), "x86_64": LaunchShape(64, 4)}


def compiles(folder, text, *include):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (folder / "test.cpp").write_text(text)
    options = [option for path in include for option in ("-I", str(path))]
    command = [compiler, "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", *options, str(folder / "test.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def rocrand(tmp_path):
    """A folder with those parts of rocRAND that its configuration headers include."""
    for name, text in ROCRAND_STUB.items():
        (tmp_path / "stub" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "stub" / name).write_text(text)
    return tmp_path / "stub"


@pytest.mark.parametrize(("name", "id_"), [("philox4_32_10", "PSEUDO_PHILOX4_32_10"), ("sobol32", "QUASI_SOBOL32")])
def test_a_header_for_gfx_names_compiles_where_rocrands_do(name, id_, tmp_path, rocrand):
    (tmp_path / f"{name}_config.hpp").write_text(header(name, SHAPES, DEFAULT))
    compiles(tmp_path, INSIDE.format(name=name, id="ROCRAND_RNG_" + id_), rocrand)


@pytest.mark.parametrize("order", ["at once", "gfx first", "others first"])
def test_a_header_for_both_compiles_in_rocrand_and_outside_whatever_came_first(order, tmp_path, rocrand):
    name, text = "philox4_32_10", ""
    steps = {"at once": [SHAPES | H200], "gfx first": [SHAPES, H200], "others first": [H200, SHAPES]}[order]
    for shapes in steps:
        text = header(name, shapes, DEFAULT, text, "place")
    (tmp_path / f"{name}_config.hpp").write_text(text)
    (tmp_path / "tunesmith_target_arch.hpp").write_text(targets([*SHAPES, *H200]))
    compiles(tmp_path, INSIDE.format(name=name, id="ROCRAND_RNG_PSEUDO_PHILOX4_32_10"), rocrand)
    compiles(tmp_path, OUTSIDE.format(name=name, amd=512 if order == "at once" else 256))
    again = header(name, {"sm_90": LaunchShape(1, 2), "gfx90a": LaunchShape(3, 4)}, DEFAULT, text, "place")
    assert re.findall(r"target_arch::sm_90: return (\d+)", again) == ["1", "2"]
    assert set(re.findall(r"target_arch::gfx90a: return (\d+)", again)) == {"3", "4"}


def test_our_target_arch_keeps_what_it_knew():
    text = targets(["sm_90"], targets(["gfx90a", "x86_64"]))
    assert re.findall(r"^    (\w+),$", text, re.MULTILINE) == ["unknown", "gfx90a", "sm_90", "x86_64"]


def test_outputs_merge_with_what_is_in_the_folder_or_in_another(tmp_path):
    def decisions(architecture, grid):
        speeds = {"uniform/float": {(256, 1024): 100.0, (64, grid): 130.0}}
        return choose_shapes(rows("philox4_32_10", speeds, architecture)).decisions

    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (source / "philox4_32_10_config.hpp").write_text(BY_HAND)
    written = write_selection(decisions("gfx1100", 512), out, merge_from=source)
    assert written.complaints == ()
    assert [path.name for path in written.headers] == ["philox4_32_10_config.hpp"]
    write_selection(decisions("sm_90", 2048), out, merge_from=source)
    text = (out / "philox4_32_10_config.hpp").read_text()
    assert architectures(text) == {"gfx1030", "gfx90a", "gfx1100", "sm_90"}
    table = read_table(out / "tunesmith_random.json")
    assert table.shape("gfx1100", "philox4_32_10") == LaunchShape(64, 512)
    assert table.shape("sm_90", "philox4_32_10") == LaunchShape(64, 2048)
    assert (source / "philox4_32_10_config.hpp").read_text() == BY_HAND


def test_what_cannot_be_merged_is_left_as_it_is_and_the_rest_is_written(tmp_path):
    (tmp_path / "xorwow_config.hpp").write_text("int x;")
    (tmp_path / "tunesmith_random.json").write_text("[]")
    speeds = {"uniform/float": {(256, 1024): 100.0, (256, 512): 130.0}}
    found = rows("philox4_32_10", speeds) + rows("xorwow", speeds) + rows("../evil", speeds)
    selection = choose_shapes(
        found, defaults={name: LaunchShape(256, 512) for name in ("philox4_32_10", "xorwow", "../evil")}
    )
    written = write_selection(selection.decisions, tmp_path)
    assert [path.name for path in written.headers] == ["philox4_32_10_config.hpp"]
    assert written.table is None
    assert [complaint.what for complaint in written.complaints] == [
        "is no name for a C++ header",
        "has no generator_config_selector<...> with switches over target_arch",
        "has no key tunesmith-random",
    ]
    assert (tmp_path / "xorwow_config.hpp").read_text() == "int x;"
    assert (tmp_path / "tunesmith_random.json").read_text() == "[]"


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="the golden cases are not there (TUNESMITH_DATA)")
def test_rocrands_own_headers_can_be_merged_and_keep_all_their_lines():
    for path in sorted(GOLDEN.glob("*/out/*.hpp")):
        text = path.read_text()
        generator = path.name.removesuffix("_config.hpp")
        merged = header(generator, {"gfx1201": LaunchShape(7, 9)}, DEFAULT, text, "place")
        new = merged.splitlines()
        assert [new.pop(new.index(f"            case target_arch::gfx1201: return {n};")) for n in (7, 9)]
        assert new == text.splitlines()


# The library's table


def test_the_table_is_read_as_it_was_written_and_answers_by_pair(tmp_path):
    pairs = {("normal", "float"): LaunchShape(512, 2048)}
    table = RandomTable({"x86_64": {"philox4_32_10": TunedShapes(DEFAULT, pairs), "xorwow": TunedShapes(DEFAULT)}})
    write_table(table, tmp_path / "t.json")
    again = read_table(tmp_path / "t.json")
    assert again == table
    assert again.shape("x86-64", "philox4_32_10", "normal", "float") == LaunchShape(512, 2048)
    assert again.shape("x86-64", "philox4_32_10", "normal", "double") == DEFAULT
    assert again.shape("x86-64", "mt19937") is None
    assert again.shape("sm_90", "philox4_32_10") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("3", "has no key tunesmith-random"),
        ('{"tunesmith-random": 2}', "is format 2, this tunesmith reads 1"),
        ('{"tunesmith-random": 1}', "architectures: is no JSON object"),
        ('{"tunesmith-random": 1, "architectures": {"a": 3}}', "a: is no JSON object"),
        ('{"tunesmith-random": 1, "architectures": {"a": {"g": {"shape": [1, 0]}}}}', "a.g.shape: is no"),
        ('{"tunesmith-random": 1, "architectures": {"a": {"g": {"shape": [true, 2]}}}}', "a.g.shape: is no"),
        ('{"tunesmith-random": 1, "architectures": {"a": {"g": {"shape": [1, 2], "pairs": {"x": 1}}}}}', "pairs.x: is"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_table_is_said(text, words, tmp_path):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(UserError, match=re.escape(words)):
        read_table(tmp_path / "t.json")
