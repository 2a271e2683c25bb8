"""`scripts/pack_logic.py` makes one logic of several runs: no size gets another solution than the run gave it."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from library_fakes import TARGET, logic, solution
from packaged_logic import packaged_model
from tunesmith.logic import ShippedHead, read_head, read_shipped_model, write_logic
from tunesmith.logic.shipped import write_shipped
from tunesmith.models.choice.model_file import dump_choice_model, model_of
from tunesmith.problems.gemm import gemm_type

KIND = gemm_type()
SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "pack_logic.py"))
SHARED, FIRST_ONLY, SECOND_ONLY = {"LoopUnroll": 4}, {"LoopUnroll": 8}, {"LoopUnroll": 16}


def document(configs, rows):
    """A document whose rows each have the other solution as measured and tied."""
    made = logic(KIND, configs, rows).document
    return replace(
        made,
        rows=tuple(replace(row, others={1 - row.solution: 2e-3}, ties=(1 - row.solution,)) for row in made.rows),
    )


def test_each_size_keeps_its_solutions_and_the_first_run_decides_a_size_of_both():
    first = document([SHARED, FIRST_ONLY], {(64, 64, 64): 0, (96, 64, 64): 1})
    second = document([SECOND_ONLY, SHARED], {(64, 64, 64): 0, (128, 64, 64): 1})
    merged = SCRIPT["merged"]([first, second])
    solutions = [named.solution for named in merged.solutions]
    assert solutions == [solution(KIND, **config) for config in (SHARED, FIRST_ONLY, SECOND_ONLY)]
    assert len({named.name for named in merged.solutions}) == 3
    found = {
        row.sizes[0]: [solutions[index].configuration["LoopUnroll"] for index in (row.solution, *row.ties)]
        for row in merged.rows
    }
    assert found == {64: [4, 8], 96: [8, 4], 128: [4, 16]}
    assert {row.sizes[0]: list(row.others) for row in merged.rows} == {
        row.sizes[0]: list(row.ties) for row in merged.rows
    }
    assert solutions[merged.fallback] == first.solutions[first.fallback].solution


def test_a_file_of_the_package_is_a_run_like_others(tmp_path):
    packed = document([SHARED, FIRST_ONLY], {(64, 64, 64): 0, (96, 64, 64): 1})
    more = document([SECOND_ONLY, SHARED], {(64, 64, 64): 0, (128, 64, 64): 1})
    head = ShippedHead(
        *("f", TARGET.api, TARGET.name, TARGET.architecture, "1", "1", "2026", "s"), (KIND.name,), (), ()
    )
    write_shipped(tmp_path / "f.json.gz", head, [packed], None)
    (tmp_path / "run").mkdir()
    write_logic(more, tmp_path / "run" / "logic.yaml")
    (found,) = SCRIPT["documents_of"]([tmp_path / "f.json.gz", tmp_path / "run"])
    assert found == SCRIPT["merged"]([packed, more])


@pytest.fixture
def packed_with(tmp_path, monkeypatch):
    """Packs a logic of KIND in single precision and a former file of it, with a model."""

    def pack(model):
        head = ShippedHead(
            *("f", TARGET.api, TARGET.name, TARGET.architecture, "1", "1", "2026", "float32"),
            *((KIND.name,), ("former list",), ("former command",)),
        )
        former, out = tmp_path / "former.json.gz", tmp_path / "new.json.gz"
        write_shipped(former, head, [document([SHARED, FIRST_ONLY], {(64, 64, 64): 0})], None)
        (tmp_path / "choice.yaml").write_text(dump_choice_model(model))
        words = former, "--choice", tmp_path / "choice.yaml", "--name", "new", "--list", "more", "-o", out
        monkeypatch.setattr("sys.argv", ["pack_logic.py", *map(str, words)])
        SCRIPT["main"]()
        return read_head(out), model_of(read_shipped_model(out), "new")

    return pack


def test_a_file_that_is_packed_anew_keeps_what_it_was_made_of_and_what_the_model_says_of_its_types(packed_with):
    whole = known_model()
    kind, other = whole.types
    model = replace(whole, types={KIND.name: whole.types[kind], other: whole.types[other]})
    head, packed = packed_with(model)
    assert head.lists == ("former list", "more")
    assert head.commands == ("former command",)
    assert list(packed.types) == [KIND.name]
    assert packed.solutions_of(KIND) == model.solutions_of(KIND)
    assert len(packed.solutions) == len(set(whole.types[kind])) < len(whole.solutions)


def test_a_model_without_one_of_the_types_is_not_packed(packed_with):
    with pytest.raises(SystemExit, match=f"does not know {KIND.name}"):
        packed_with(known_model())


def known_model():
    """A model of the package, with two types that share some solutions."""
    model = packaged_model("nvidia-h200-tf32")
    return model.only(list(model.types)[:2])
