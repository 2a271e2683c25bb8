"""Choices by size and by rule. Files of logic are read as they were written, and other files are refused."""

from __future__ import annotations

import itertools
import math
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith.logic import Document, Logic, NamedSolution, Origin, Regret, Rule, SizeRow, dump, write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate, ProblemType, Solution, UserError

GEMM = gemm_type(transpose_b=False, batched=True)
ORIGIN = Origin("fake", "a fake device", "CPU", "none", "1.0", "compiler 1", "0.1.0", "2026-11-20T12:00:00Z")


def named(tile):
    return NamedSolution(
        f"T{tile}", Solution(GEMM, "tiled", Configuration({"Tile": tile, "Group": (8, 8), "Pad": True}))
    )


def row(solution, gflops, *where, others=None):
    seconds = 2.0 * math.prod(where[:4]) / gflops * 1e-9
    low, median, high = (float(f"{seconds * factor:.6g}") for factor in (0.9, 1.0, 1.1))
    return SizeRow(where[:4], where[4:], solution, Estimate(median, low, high, 7), gflops, others or {})


def logic(*rows, solutions=4, fallback=0):
    return Logic(Document(ORIGIN, GEMM, tuple(map(named, range(solutions))), rows, fallback))


def names(choices):
    return [choice.name for choice in choices]  # type: ignore[attr-defined]


class TestChoosing:
    def test_a_measured_size_is_answered_exactly(self):
        choice = logic(row(1, 10.0, 64, 64, 1, 64), row(2, 20.0, 65, 64, 1, 64)).choose((64, 64, 1, 64))
        assert (choice.name, choice.rule) == ("T1", Rule.EXACT)
        assert choice.expected_seconds == pytest.approx(2 * 64**3 / 10e9, rel=1e-5)

    def test_near_is_near_in_ratio_not_in_elements(self):
        """16 is 4096 elements from 4112 and 48 from 64, but 4000 is nearest to 4096 and 40 to 64, by ratio."""
        asked = logic(row(1, 1.0, 16, 64, 1, 64), row(2, 1.0, 64, 64, 1, 64), row(3, 1.0, 4096, 64, 1, 64))
        assert asked.choose((40, 64, 1, 64)).name == "T2"
        assert asked.choose((30, 64, 1, 64)).name == "T1", (
            "30 is 14 from 16 and 34 from 64, and nearer to 16 by ratio too"
        )
        assert asked.choose((1000, 64, 1, 64)).name == "T3", "936 above 64, 3096 below 4096: by elements it were 64"

    def test_the_neighbour_and_its_distance_are_said(self):
        choice = logic(row(1, 10.0, 64, 64, 1, 64)).choose((128, 128, 1, 64))
        assert (choice.rule, choice.neighbour) == (Rule.NEAREST, (64, 64, 1, 64))
        assert choice.distance == pytest.approx(math.sqrt(2))

    def test_a_neighbours_time_is_scaled_to_its_gflops(self):
        choice = logic(row(1, 10.0, 64, 64, 1, 64)).choose((128, 100, 3, 64))
        assert choice.expected_seconds == pytest.approx(2 * 128 * 100 * 3 * 64 / 10e9, rel=1e-5)

    @pytest.mark.parametrize("count", [1, 5])
    def test_an_operation_may_have_any_number_of_sizes(self, count):
        """Distance and alignment treat all sizes equally, and a time grows with the product of the sizes."""
        kind = ProblemType("Own", "Own", tuple("ABCDE"[:count]), Configuration())
        solutions = tuple(NamedSolution(f"S{n}", Solution(kind, "own", Configuration({"N": n}))) for n in range(3))
        time = Estimate(1e-3, 1e-3, 1e-3, 7)
        places = [(64,) * (count - 1) + (last,) for last in (64, 256, 70)]
        rows = tuple(SizeRow(sizes, (), n, time, 1.0) for n, sizes in enumerate(places))
        asked = Logic(Document(ORIGIN, kind, solutions, rows, 0))
        exact, aligned, odd = (asked.choose((64,) * (count - 1) + (last,)) for last in (64, 192, 74))
        assert [exact.name, exact.rule] == ["S0", Rule.EXACT]
        assert (aligned.name, aligned.neighbour) == ("S1", places[1])
        assert aligned.distance == pytest.approx(math.log2(256 / 192))
        assert aligned.expected_seconds == pytest.approx(1e-3), "never less than the shortest time measured"
        assert (odd.name, odd.distance) == ("S2", pytest.approx(math.log2(74 / 70)))
        assert odd.expected_seconds == pytest.approx(1e-3 * 74 / 70)
        with pytest.raises(ValueError, match=f"{count + 1} sizes given, Own has A"):
            asked.choose((1,) * (count + 1))

    @pytest.mark.parametrize("order", [1, -1])
    def test_of_equally_near_sizes_the_faster_speaks(self, order):
        rows = [row(1, 10.0, 64, 64, 1, 64), row(2, 99.0, 256, 64, 1, 64)][::order]
        assert logic(*rows).choose((128, 64, 1, 64)).name == "T2"

    def test_every_solution_comes_once_and_the_fallback_that_ran_nowhere_last(self):
        rows = [row(1, 1.0, s, 64, 1, 64) for s in (512, 64)] + [row(2, 1.0, s, 64, 1, 64) for s in (128, 1024)]
        asked = logic(*rows, solutions=3, fallback=0)
        found = list(asked.candidates((64, 64, 1, 64)))
        assert names(found) == ["T1", "T2", "T0"]
        assert [choice.rule for choice in found] == [Rule.EXACT, Rule.NEAREST, Rule.FALLBACK]
        assert found[2].expected_seconds is None
        assert names(asked.candidates((900, 64, 1, 64))) == ["T2", "T1", "T0"]

    def test_without_any_measured_size_the_fallback_answers(self):
        choice = logic(fallback=3).choose((64, 64, 1, 64))
        assert (choice.name, choice.rule) == ("T3", Rule.FALLBACK)

    def test_leading_dimensions_are_another_measured_problem(self):
        asked = logic(row(1, 10.0, 64, 64, 1, 64), row(2, 5.0, 64, 64, 1, 64, 80, 80, 80, 80))
        assert (asked.choose((64, 64, 1, 64)).name, asked.choose((64, 64, 1, 64)).rule) == ("T1", Rule.EXACT)
        padded = asked.choose((64, 64, 1, 64), (80, 80, 80, 80))
        assert (padded.name, padded.rule) == ("T2", Rule.EXACT)
        other = asked.choose((64, 64, 1, 64), (96, 96, 96, 96))
        assert (other.name, other.rule, other.distance) == ("T1", Rule.NEAREST, 0.0)

    def test_a_wrong_number_of_sizes_is_refused(self):
        with pytest.raises(ValueError, match="M, N, Batch, K"):
            logic(row(1, 1.0, 64, 64, 1, 64)).choose((64, 64, 64))

    def test_what_is_good_at_all_near_sizes_comes_before_what_won_the_nearest(self):
        """T1 won at 64, where T2 took 1.3 times as long; at the others T1 took twice T2's time."""
        near = row(1, 10.0, 64, 64, 1, 64, others={2: 1.3 * 2 * 64**3 / 10e9})
        rows = [row(2, 10.0, size, 64, 1, 64, others={1: 4 * size * 64**2 / 10e9}) for size in (128, 256)]
        asked = logic(near, *rows)
        choice = asked.choose((88, 64, 1, 64))
        assert (choice.name, choice.neighbour) == ("T2", (64, 64, 1, 64))
        assert choice.expected_seconds == pytest.approx(1.3 * 2 * 88 * 64**2 / 10e9)
        assert asked.choose((72, 64, 1, 64)).name == "T1"
        assert asked.choose((66, 64, 1, 64)).name == "T2", "66 is not aligned as 64 is, which speaks no louder"

    def test_a_size_that_is_very_near_does_not_drown_all_others(self):
        """T1 won at 1024 by a hundredth, and took twice T2's time at three other sizes; 1032 is next to 1024."""
        flops = 2.0 * 64 * 64
        rows = [row(1, 1.0, 1024, 64, 1, 64, others={2: 1.01 * flops * 1024e-9})]
        rows += [row(2, 1.0, size, 64, 1, 64, others={1: 2 * flops * size * 1e-9}) for size in (512, 2048, 256)]
        assert logic(*rows, solutions=3).choose((1032, 64, 1, 64)).name == "T2"

    @pytest.mark.parametrize("order", [1, -1])
    def test_equally_near_is_so_whatever_the_logarithms_last_bit_says(self, order):
        """40 is five times 8 and a fifth of 200; in binary logarithms these distances differ by one rounding."""
        assert math.log2(40) - math.log2(8) != math.log2(200) - math.log2(40)
        rates = (10.0, 99.0)[::order]
        rows = [row(1, rates[0], 8, 64, 1, 64), row(2, rates[1], 200, 64, 1, 64)]
        assert logic(*rows).choose((40, 64, 1, 64)).name == ("T2" if order == 1 else "T1")

    def test_only_the_nearest_four_are_asked(self):
        """Four sizes for T1, and fifty for T2 a little farther away, which would outweigh the four if all counted."""
        rows = [row(1, 1.0, 64, 64, 1, size) for size in (32, 64, 128, 256)]
        rows += [row(2, 1.0, size, 64, 1, 64) for size in range(264, 664, 8)]
        assert names(logic(*rows, solutions=3).candidates((64, 64, 1, 96)))[:2] == ["T1", "T2"]

    def test_a_size_with_several_leading_dimensions_speaks_once(self):
        padded = [row(1, 1.0, 64, 64, 1, 64, 64 + 8 * more, 64, 64, 64) for more in range(1, 4)]
        rows = [row(2, 1.0, size, 64, 1, 64, others={1: 20 * size * 64**2 / 1e9}) for size in (128, 136, 144)]
        choices = [logic(row(1, 1.0, 64, 64, 1, 64), *more, *rows).choose((90, 64, 1, 64)) for more in ([], padded)]
        assert names(choices) == ["T2", "T2"]

    def test_the_fallback_speaks_where_it_ran(self):
        rows = [
            row(winner, 1.0, size, size, 1, size, others={0: 1.01 * 2 * size**3 / 1e9, 3 - winner: 10 * size**3 / 1e9})
            for winner, size in ((1, 64), (2, 128), (1, 256), (2, 512))
        ]
        assert names(logic(*rows, solutions=3).candidates((176, 176, 1, 176)))[0] == "T0"

    def test_an_aligned_size_is_asked_by_aligned_ones(self):
        rows = [row(1, 1.0, 1000, 64, 1, 64), row(2, 1.0, 1001, 64, 1, 64), row(3, 1.0, 1004, 64, 1, 64)]
        chosen = [logic(*rows).choose((size, 64, 1, 64)).name for size in (1008, 1003, 1012)]
        assert chosen == ["T1", "T2", "T3"]

    def test_sizes_beyond_64_bits_are_sizes(self):
        assert logic(row(1, 1.0, 64, 64, 1, 64)).choose((2**70, 1, 1, 1)).name == "T1"

    @settings(max_examples=80, deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.integers(3, 9),
                st.integers(3, 9),
                st.dictionaries(st.integers(0, 3), st.floats(1, 9)),
            ),
            min_size=1,
        ),
        st.tuples(st.integers(3, 9), st.integers(3, 9)),
    )
    def test_the_order_is_that_of_a_plain_sort(self, made, asked):  # type: ignore[no-untyped-def]
        """Sizes are powers of two, all aligned alike, so that distances are exact and ties are frequent."""
        rows = {}
        for winner, m, n, slower in made:
            seconds = 2.0 * 2 ** (m + n) * 64 * 1e-9
            others = {tile: factor * seconds for tile, factor in slower.items() if tile != winner}
            rows[m, n] = row(winner, 1.0, 2**m, 2**n, 1, 64, others=others)
        sizes = (2 ** asked[0], 2 ** asked[1], 1, 64)

        def far(found):
            return round(math.dist([math.log2(size) for size in found.sizes[:2]], asked), 9)

        def loss(found, tile):
            times = {found.solution: found.estimate.seconds, **dict(found.others)}
            return math.log(times[tile] / min(times.values())) if tile in times else 1.0

        ordered = sorted(rows.values(), key=far)
        near = [(1 / (0.1 + far(found)) ** 2, found) for found in ordered[:4]]
        chosen = logic(*rows.values()).candidates(sizes)
        given_names = [choice.name for choice in chosen if choice.rule is Rule.NEAREST]
        if len({far(found) for found in ordered[:5]}) == len(ordered[:5]):
            lost = [sum(w * loss(found, int(name[1:])) for w, found in near) for name in given_names]
            assert all(after > before - 1e-6 for before, after in itertools.pairwise(lost))
        exact = [found for found in ordered if found.sizes == sizes]
        won = {f"T{found.solution}" for found in rows.values()}
        if any(0 in found.others for found in rows.values()):
            won.add("T0")  # the fallback
        assert set(given_names) == won - {f"T{found.solution}" for found in exact}

    def test_asking_again_gives_the_same(self):
        asked = logic(row(1, 10.0, 64, 64, 1, 64))
        assert asked.choose((100, 64, 1, 64)) is asked.choose((100, 64, 1, 64))


def document(**changes):
    rows = (row(0, 12.5, 64, 64, 1, 64, others={1: 5.5e-05}), row(1, 20.0, 128, 64, 1, 64, 128, 128, 160, 64))
    regret = Regret(1.25, math.inf, (64, 64, 1, 64), (((64, 64, 1, 64), math.inf), ((128, 64, 1, 64, 1, 2, 3, 4), 1.0)))
    parts = {"origin": ORIGIN, "problem_type": GEMM, "solutions": (named(0), named(1)), "rows": rows, "fallback": 1}
    return Document(**{**parts, "regret": regret, **changes})  # type: ignore[arg-type]


class TestFiles:
    def test_what_is_written_is_read(self, tmp_path):
        write_logic(document(), tmp_path / "deep" / "logic.yaml")
        assert Logic.load(tmp_path / "deep" / "logic.yaml").document == document()

    def test_an_interval_that_is_not_known_stays_unknown(self, tmp_path):
        unknown = SizeRow((64, 64, 1, 64), (), 0, Estimate(1.0, math.nan, math.inf, 1), 1.0)
        write_logic(document(rows=(unknown,)), tmp_path / "logic.yaml")
        estimate = Logic.load(tmp_path / "logic.yaml").document.rows[0].estimate
        assert math.isnan(estimate.low)
        assert math.isnan(estimate.high)

    @settings(max_examples=60, deadline=None)
    @given(
        st.dictionaries(
            st.text(min_size=1),
            st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.integers()).map(tuple),
        ),
        st.text(min_size=1),
    )
    def test_any_configuration_and_device_name_survive(self, parameters, device):  # type: ignore[no-untyped-def]
        from dataclasses import replace

        solution = Solution(GEMM, "tiled", Configuration(parameters))
        made = document(
            solutions=(NamedSolution(device, solution),), rows=(), fallback=0, origin=replace(ORIGIN, device=device)
        )
        with tempfile.TemporaryDirectory() as folder:
            write_logic(made, Path(folder, "logic.yaml"))
            assert Logic.load(Path(folder, "logic.yaml")).document == made

    def test_a_row_is_a_line_that_a_person_can_read(self):
        lines = dump(document()).splitlines()
        assert "tunesmith-logic: 3" in lines
        assert "- [[64, 64, 1, 64], 0, 4.1943e-05, [3.77487e-05, 4.61373e-05], 7, 12.5, {1: 5.5e-05}]" in lines

    def test_no_object_of_pythons_can_come_out_of_a_file(self, tmp_path):
        (tmp_path / "logic.yaml").write_text("!!python/object/apply:os.system ['true']")
        with pytest.raises(UserError):
            Logic.load(tmp_path / "logic.yaml")


GOOD = dump(document())


def _changed(old, new):
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new), GOOD[: GOOD.index(old)].count("\n") + 1


class TestMalformedFiles:
    """Each message names the file, the line and the key."""

    def refused(self, folder, text):
        path = folder / "logic.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(UserError) as caught:
            Logic.load(path)
        assert caught.value.location.startswith(str(path))
        return caught.value

    @pytest.mark.parametrize(
        ("old", "new", "says"),
        [
            ("tunesmith-logic: 3", "tunesmith-logic: 1", "format 1"),
            ("tunesmith-logic: 3", "tunesmith-logic: one", "whole number"),
            ("fallback: 1", "fallback: 7", "fallback"),
            ("fallback: 1", "fallback: true", "fallback"),
            ("fallback: 1", "fallbak: 1", "fallbak"),
            ("  driver: '1.0'", "  driver: 1.0", "origin.driver"),
            ("  operation: GEMM", "  operation:", "problem-type.operation"),
            ("indices: [M, N, Batch, K]", "indices: [M, N, M, K]", "indices[2]"),
            ("- index: 1", "- index: 0", "solutions[1].index"),
            ("  name: T1", "  name: T0", "twice"),
            ("- [[64, 64, 1, 64], 0, 4.1943e-05,", "- [[64, 64, 1, 64], 2, 4.1943e-05,", "exact[0][1]"),
            ("- [[64, 64, 1, 64], 0, 4.1943e-05,", "- [[64, 64, 64], 0, 4.1943e-05,", "exact[0][0]"),
            ("- [[64, 64, 1, 64], 0, 4.1943e-05,", "- [[64, 0, 1, 64], 0, 4.1943e-05,", "exact[0][0][1]"),
            ("- [[64, 64, 1, 64], 0, 4.1943e-05,", "- [[64, 64, 1, 64], 0, fast,", "exact[0][2]"),
            ("- [[64, 64, 1, 64], 0, 4.1943e-05,", "- [[64, 64, 1, 64], 0, .nan,", "exact[0][2]"),
            ("- [[64, 64, 1, 64], 0, 4.1943e-05,", "- [[64, 64, 1, 64], 0,", "exact[0]"),
            ("[[128, 64, 1, 64, 128, 128, 160, 64], 1", "[[64, 64, 1, 64], 1", "twice"),
            ("  geomean: 1.25", "  geomean: -1", "regret.geomean"),
            ("12.5, {1: 5.5e-05}]", "12.5, [5.5e-05]]", "exact[0][6]"),
            ("12.5, {1: 5.5e-05}]", "12.5, {2: 5.5e-05}]", "exact[0][6]"),
            ("12.5, {1: 5.5e-05}]", "12.5, {1: 0}]", "exact[0][6]"),
            ("12.5, {1: 5.5e-05}]", "12.5, {0: 5.5e-05}]", "exact[0][6]"),
            ("rest: {rule: nearest,", "rest: {rule: farthest,", "rest"),
        ],
    )
    def test_the_line_and_the_key_are_named(self, tmp_path, old, new, says):
        text, line = _changed(old, new)
        error = self.refused(tmp_path, text)
        assert error.location.endswith(f":{line}")
        assert says in error.what

    @pytest.mark.parametrize("key", ["origin", "problem-type", "solutions", "fallback", "exact"])
    def test_a_missing_key_is_named(self, tmp_path, key):
        raw = yaml.safe_load(GOOD)
        del raw[key]
        assert f"{key} is missing" in self.refused(tmp_path, yaml.safe_dump(raw)).what

    @pytest.mark.parametrize(
        "text",
        ["", "[]", "- {MinimumRequiredVersion: 4.2.0}\n- vega20", "word", "a: [", "a: !!int x", "\t", b"\xff\xfe\x00",
         "[" * 5000, "tunesmith-logic: 3", "{[1]: 2}", "{{a: 1}: 2}", "!!binary x: 3", "2026-13-99"],
    )  # fmt: skip
    def test_something_else_altogether(self, tmp_path, text):
        self.refused(tmp_path, text)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("{DataType: s,", "{{DataType: {},"),
            ("fallback: 1", "fallback: {}"),
            ("rest: {rule: nearest,", "rest: {{rule: {},"),
            ("  kind: CPU", "  kind: {}"),
            ("  worst-at: [64, 64, 1, 64]", "  worst-at: {}"),
        ],
    )
    def test_a_bomb_of_aliases_does_no_harm(self, tmp_path, old, new):
        """A few lines with aliases that expand to 9^30 numbers."""
        bomb = "&x0 [1]"
        for layer in range(1, 30):
            bomb = f"&x{layer} [{bomb}{f', *x{layer - 1}' * 8}]"
        text, _ = _changed(old, new.format(bomb))
        self.refused(tmp_path, text)

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(UserError, match="cannot be read"):
            Logic.load(tmp_path / "none.yaml")
        with pytest.raises(UserError, match="cannot be read"):
            Logic.load(tmp_path)

    @settings(max_examples=150, deadline=None)
    @given(st.data())
    def test_a_mangled_file_is_a_logic_or_a_user_error(self, data):
        text = GOOD
        for _ in range(data.draw(st.integers(1, 3))):
            start = data.draw(st.integers(0, len(text)))
            end = data.draw(st.integers(start, min(len(text), start + 30)))
            text = (
                text[:start]
                + data.draw(
                    st.text(max_size=6) | st.sampled_from(["[", "{", ": ", "- ", "&a ", "*a", "\n", "0", ".inf"])
                )
                + text[end:]
            )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "logic.yaml")
            path.write_text(text, encoding="utf-8")
            try:
                made = Logic.load(path)
            except UserError:
                return
            made.choose((50,) * len(made.document.problem_type.indices))


def test_selecting_imports_nothing_heavy():
    program = "import sys, tunesmith.logic; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"scipy", "sqlalchemy", "pydantic", "matplotlib", "rich", "typer", "tunesmith.logic.build"} & set(loaded)


def test_a_document_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(document())) == document()
