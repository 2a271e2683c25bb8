"""Environment variables of stream-K: their meaning, their priority, and errors for invalid values."""

from __future__ import annotations

import pytest

from stream_k_fakes import calibration
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    DeviceCapacity,
    MacroTile,
    PortableModel,
    Predictor,
    SharingMode,
    StreamKChoice,
    TensileModel,
    TiledProduct,
)
from tunesmith.models.stream_k.override import VARIABLES, StreamKOverride
from tunesmith.records import UserError

UNITS = 304
BIG, FEW = TiledProduct(1024, 8, 64), TiledProduct(16, 16, 64)


def grid(work=BIG, **variables):
    environment = {f"TUNESMITH_STREAMK_{name}": str(value) for name, value in variables.items()}
    return StreamKOverride.of(environment).grid(work, UNITS)


# --- the grid -------------------------------------------------------------------------------------------------------


def test_nothing_set_leaves_everything_to_the_prediction():
    for environment in ({}, {"TUNESMITH_STREAMK_FULL_TILES": "-1"}, {"TENSILE_STREAMK_FIXED_GRID": " "}):
        override = StreamKOverride.of(environment)
        assert override.grid(BIG, UNITS) is None
        assert override.full_tiles is None
        assert override.used == ()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"FIXED_GRID": 100}, 100),
        ({"FIXED_GRID": 1000}, 1000),
        ({"DYNAMIC_GRID": 1}, 304),
        ({"DYNAMIC_GRID": 2}, 256),
        ({"DYNAMIC_GRID": 3}, 304),
        ({"MAX_CUS": 200}, 200),
        ({"MAX_CUS": 500}, 304),
        ({"GRID_MULTIPLIER": 2}, 608),
        ({"GRID_MULTIPLIER": 1}, None),
        ({"FIXED_GRID": 0, "DYNAMIC_GRID": 0, "MAX_CUS": 0, "GRID_MULTIPLIER": 0}, None),
    ],
)
def test_each_variable_sets_the_grid(variables, expected):
    assert grid(**variables) == expected


def test_a_dynamic_grid_looks_at_the_product():
    assert [grid(FEW, DYNAMIC_GRID=mode) for mode in (1, 2, 3)] == [16, 16, 32]


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize(("tiles", "work_groups"), [(0, 1), (1, 1), (2, 2)])
def test_a_dynamic_grid_has_a_work_group_even_for_an_empty_product(mode, tiles, work_groups):
    assert grid(TiledProduct(tiles, 8, 64), DYNAMIC_GRID=mode) == work_groups


PRIORITY = [("FIXED_GRID", 100, 100), ("DYNAMIC_GRID", 2, 256), ("MAX_CUS", 200, 200), ("GRID_MULTIPLIER", 2, 608)]


@pytest.mark.parametrize("first", range(len(PRIORITY)))
def test_the_published_priority(first):
    """If a variable and all later ones in PRIORITY are set, it wins, in whatever order they were set."""
    chosen = PRIORITY[first:]
    for order in (chosen, chosen[::-1]):
        assert grid(**{name: value for name, value, _ in order}) == chosen[0][2]


def test_a_variable_that_leaves_the_choice_open_gives_way_to_the_next():
    assert grid(FIXED_GRID=0, DYNAMIC_GRID=0, MAX_CUS=200) == 200


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIABLES)
def test_tensiles_names_work_and_ours_win(name):
    theirs, ours = f"TENSILE_STREAMK_{name}", f"TUNESMITH_STREAMK_{name}"
    assert StreamKOverride.of({theirs: "2"}).named == {name: theirs}
    assert StreamKOverride.of({theirs: "2", ours: "3"}).named == {name: ours}
    assert StreamKOverride.of({theirs: "2", ours: str(VARIABLES[name].unset[0])}).named == {}
    assert StreamKOverride.of({theirs: "nonsense", ours: "3"}).named == {name: ours}
    assert StreamKOverride.of({theirs: "3", ours: ""}).named == {name: theirs}


def test_used_variables_are_named_as_they_are_spelled():
    environment = {
        "TENSILE_STREAMK_FULL_TILES": "1",
        "TUNESMITH_STREAMK_MAX_CUS": "64",
        "TENSILE_STREAMK_GRID_MULTIPLIER": "2",
    }
    assert StreamKOverride.of(environment).used == ("TENSILE_STREAMK_FULL_TILES", "TUNESMITH_STREAMK_MAX_CUS")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FULL_TILES", "-2"),
        ("FULL_TILES", "one"),
        ("FULL_TILES", "1.5"),
        ("FULL_TILES", "--1"),
        ("FULL_TILES", "-+1"),
        ("FULL_TILES", "+-1"),
        ("FULL_TILES", "+"),
        ("FIXED_GRID", "-1"),
        ("FIXED_GRID", "9" * 30),
        ("FIXED_GRID", "0x10"),
        ("DYNAMIC_GRID", "4"),
        ("DYNAMIC_GRID", "6"),
        ("MAX_CUS", "all"),
        ("FIXED_GRID", str(2**31)),
        ("GRID_MULTIPLIER", "1025"),
        ("GRID_MULTIPLIER", "\u0663"),
    ],
)
@pytest.mark.parametrize("prefix", ["TUNESMITH", "TENSILE"])
def test_an_invalid_value_is_an_error_with_the_variables_name(prefix, name, value):
    variable = f"{prefix}_STREAMK_{name}"
    with pytest.raises(UserError) as error:
        StreamKOverride.of({variable: value})
    assert error.value.location == variable
    assert repr(value) in error.value.what
    assert VARIABLES[name].doc in error.value.remedy


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [
        ("FULL_TILES", "-2", "from -1"),
        ("FIXED_GRID", "-1", "from 0"),
        ("DYNAMIC_GRID", "4", "from 0 to 3"),
        ("GRID_MULTIPLIER", "1025", "from 0 to 1024"),
    ],
)
def test_an_error_says_which_values_a_variable_may_have(name, value, bounds):
    with pytest.raises(UserError) as error:
        StreamKOverride.of({f"TUNESMITH_STREAMK_{name}": value})
    assert error.value.what == f"{value!r} is no whole number {bounds}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FULL_TILES", 0),
        ("FULL_TILES", 2**31 - 1),
        ("FIXED_GRID", 1),
        ("FIXED_GRID", 2**31 - 1),
        ("DYNAMIC_GRID", 3),
        ("MAX_CUS", 2**31 - 1),
        ("GRID_MULTIPLIER", 2),
        ("GRID_MULTIPLIER", 1024),
    ],
)
def test_a_value_at_its_bound_is_valid(name, value):
    for text in (f"{value}", f"+{value}", f" {value:019} "):
        assert StreamKOverride.of({f"TUNESMITH_STREAMK_{name}": text}).values == {name: value}


# --- over a model ---------------------------------------------------------------------------------------------------

MODELS = [
    CalibratedModel(calibration(DeviceCapacity(100))),
    PortableModel(DeviceCapacity(100)),
    TensileModel(DeviceCapacity(100), gated=False),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize(("full_tiles", "streamed"), [(0, 1), (1, 101), (3, 301), (50, 1001)])
def test_full_tiles_hold_over_every_model(model, full_tiles, streamed):
    override = StreamKOverride.of(
        {"TUNESMITH_STREAMK_FULL_TILES": str(full_tiles), "TUNESMITH_STREAMK_FIXED_GRID": "100"}
    )
    decision = model.decide(TiledProduct(1001, 64, 64), override)
    assert (decision.grid, decision.streamed) == (100, streamed)
    assert decision.mode is SharingMode.STREAM_K
    assert decision.overridden == ("TUNESMITH_STREAMK_FULL_TILES", "TUNESMITH_STREAMK_FIXED_GRID")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_grid_leaves_the_tiles_to_the_model(model):
    decision = model.decide(TiledProduct(1001, 64, 64), StreamKOverride.of({"TENSILE_STREAMK_FIXED_GRID": "90"}))
    assert decision.grid == 90
    assert decision.streamed in (0, 11, 101)
    assert decision.choice.splits == 1


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_full_tiles_leave_the_grid_to_the_model(model):
    decision = model.decide(TiledProduct(101, 64, 64), StreamKOverride.of({"TUNESMITH_STREAMK_FULL_TILES": "0"}))
    assert decision.streamed == 101 % decision.grid
    assert 1 <= decision.grid <= 100


def test_a_predictor_takes_an_override():
    override = StreamKOverride.of({"TUNESMITH_STREAMK_FIXED_GRID": "7"})
    predictor = Predictor(MacroTile(64, 64, 16), PortableModel(DeviceCapacity(100)), override)
    assert predictor.decide(640, 640, 1, 4096).grid == 7
    assert Predictor(MacroTile(64, 64, 16), PortableModel(DeviceCapacity(100))).decide(
        640, 640, 1, 4096
    ).choice == StreamKChoice(100)
