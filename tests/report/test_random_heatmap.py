"""Heat maps of launch shapes: each shape in its cell, one colour scale, marks, and labels that fit."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from random_benchmarks import decide, rows
from tunesmith.logic.random.choice import choose_shapes
from tunesmith.logic.random.decision import RandomObjective
from tunesmith.records import LaunchShape, Rejection
from tunesmith.report.colours import DARK, FASTER, LIGHT, LIMITS, SLOWER, ColourScale, ink, lightness
from tunesmith.report.drawing import LARGE, NORMAL, SMALL, width
from tunesmith.report.random.heatmap import common_scale, heatmap, heatmaps

SVG = "{http://www.w3.org/2000/svg}"

SPEEDS = {
    "uniform/float": {(256, 512): 100.0, (64, 2048): 125.0, (512, 512): 80.0, (512, 2048): 100.0},
    "normal/half": {(256, 512): 50.0, (64, 2048): 60.0, (512, 512): 55.0},
}


def drawn(decision, scale=None):
    return ElementTree.fromstring(heatmap(decision, scale or common_scale([decision])))


def cells(picture):
    """The tips of all cells, facet by facet."""
    return [
        group.findtext(f"{SVG}title", "") for group in picture.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None
    ]


def texts(picture, of_class=""):
    return [node.text or "" for node in picture.iter(f"{SVG}text") if of_class in (node.get("class") or "")]


def marks(picture, kind):
    return len([node for node in picture.iter() if node.get("class") == kind])


def test_a_facet_for_everything_and_one_for_each_pair_with_every_shape_in_it():
    picture = drawn(decide(rows("xorwow", SPEEDS)))
    assert texts(picture, "title") == ["all distributions and types", "normal half", "uniform float"]
    assert texts(picture, "heading") == ["xorwow on gfx90a"]
    tips = cells(picture)
    assert len(tips) == 3 * 3 * 2, "blocks 64, 256, 512 by grids 512, 2048"
    assert tips[6:12] == [
        "64x512: not measured",
        "64x2048: 1.200 times the default, 60 GB/s",
        "256x512: 1.000 times the default, 50 GB/s",
        "256x2048: not measured",
        "512x512: 1.100 times the default, 55 GB/s",
        "512x2048: not measured",
    ]
    assert "512x2048: not measured everywhere: not measured for normal/half" in tips[:6]


def test_default_and_winner_are_marked_in_every_facet_and_in_the_legend():
    picture = drawn(decide(rows("xorwow", SPEEDS)))
    assert (marks(picture, "default"), marks(picture, "chosen"), marks(picture, "own")) == (4, 4, 0)
    assert {"default 256x512", "chosen 64x2048", "no value"} <= set(texts(picture))
    same = drawn(decide(rows("xorwow", {"uniform/float": {(256, 512): 2.0, (64, 512): 1.0}})))
    assert (marks(same, "default"), marks(same, "chosen")) == (3, 3), "also where they are one"


def test_a_pairs_own_shape_is_marked_in_its_facet_only():
    speeds = {"uniform/float": {(256, 1024): 1.0, (64, 64): 2.0}, "normal/float": {(256, 1024): 1.0, (64, 64): 0.4}}
    picture = drawn(decide(rows("philox4_32_10", speeds)))
    assert marks(picture, "own") == 2, "and in the legend"


def test_a_cells_tip_has_its_failure_or_its_interval():
    found = rows("xorwow", SPEEDS, interval=(1.0, 1.0))
    found += rows("xorwow", {"normal/half": {(512, 2048): math.nan}}, aside=Rejection("failed", "launch"))
    tips = cells(drawn(decide(found)))
    assert "512x2048: failed" in tips
    assert "64x2048: 1.250 times the default, 125 GB/s ±0.0 %" in tips
    twice = rows("xorwow", SPEEDS)
    assert "64x2048: 1.250 times the default, 125 GB/s ±0.0 %, 2 rows" in cells(drawn(decide(twice + twice)))


def test_buffer_sizes_are_named_where_there_are_several():
    found = rows("xorwow", SPEEDS, bytes=2**30) + rows("xorwow", SPEEDS, bytes=2**24)
    assert "normal half, 16 MiB" in texts(drawn(decide(found)), "title")


def test_all_pictures_of_a_selection_have_one_scale():
    found = rows("xorwow", SPEEDS) + rows("mrg32k3a", {"uniform/float": {(256, 512): 1.0, (64, 64): 1.8}}, "sm_90")
    decisions = choose_shapes(found).decisions
    ticks = [re.findall(r"≥ ([\d.]+)<", svg) for _, svg in heatmaps(decisions)]
    assert ticks == [["2.00"], ["2.00"]]


@pytest.mark.parametrize(
    ("ratios", "limit"),
    [
        ([], 1.1),
        ([1.0, 1.05, 0.95], 1.1),
        ([1.2] * 3, 1.25),
        ([0.7, 0.9, 0.95], 1.25),
        ([1.3, 0.01], 2.0),
        ([9.0], 2.0),
    ],
)
def test_the_scale_is_as_narrow_as_what_matters(ratios, limit):
    assert ColourScale.over(ratios).limit == limit


@pytest.mark.parametrize("limit", LIMITS)
def test_colours_darken_to_both_sides_alike_and_inks_can_be_read(limit):
    """Lightness alone gives the order, for every kind of colour blindness; yellow against blue gives the side."""
    scale = ColourScale(limit)
    for sign in (-1, 1):
        shades = [scale.colour(limit ** (sign * step / 10)) for step in range(11)]
        assert [lightness(shade) for shade in shades] == sorted((lightness(shade) for shade in shades), reverse=True)
        assert all(abs(lightness(ink(shade)) - lightness(shade)) > 0.35 for shade in shades)
    for step in range(1, 11):
        slower, faster = scale.colour(limit ** (-step / 10)), scale.colour(limit ** (step / 10))
        assert abs(lightness(slower) - lightness(faster)) < 0.1
        assert int(slower[5:], 16) < int(slower[1:3], 16), "less blue than red"
        assert int(faster[5:], 16) > int(faster[1:3], 16), "more blue than red"
    assert scale.colour(1.0) == FASTER[0]
    assert (scale.colour(limit * 9), scale.colour(1 / limit / 9)) == (FASTER[2], SLOWER[2])
    assert {ink(FASTER[2]), ink(FASTER[0])} == {LIGHT, DARK}


def boxes(picture):
    """Text, left, right, baseline and font size of every horizontal text, in pixels of the picture."""
    found: list[tuple[str, float, float, float, float]] = []
    sizes = {"heading": LARGE, "title": NORMAL, "summary": NORMAL}

    def visit(node, x, y):
        moved = re.match(r"translate\(([\d.-]+) ([\d.-]+)\)(.*)", node.get("transform") or "")
        x, y = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
        if node.tag == f"{SVG}text" and not (moved and "rotate" in moved[3]):
            words = (node.get("class") or "").split()
            size = next((sizes[word] for word in words if word in sizes), SMALL)
            wide = width(node.text or "", size, bold="heading" in words or "title" in words)
            left = x + float(node.get("x", 0)) - wide * (0.5 if "middle" in words else "end" in words)
            found.append((node.text or "", left, left + wide, y + float(node.get("y", 0)), size))
        for child in node:
            visit(child, x, y)

    visit(picture, 0.0, 0.0)
    return found


def matrix(blocks, grids, pairs):
    kinds = ["float", "half", "double", "unsigned_long_long"]
    names = [
        f"{distribution}/{value_type}" for distribution in ("uniform", "log_normal", "poisson") for value_type in kinds
    ][:pairs]
    default = (blocks[0], grids[0])
    row = {(block, grid): 100.0 + block / grids[-1] for block in blocks for grid in grids} | {default: 100.0}
    found = rows("threefry4_64_20", dict.fromkeys(names, row))
    return decide(found, RandomObjective.GEOMEAN, defaults={"threefry4_64_20": LaunchShape(*default)})


@pytest.mark.parametrize(
    "decision",
    [
        matrix([64], [64], 1),
        matrix([64, 128], [1], 2),
        matrix([64, 128, 256, 512, 1024], [64, 128, 256, 512, 1024, 2048], 12),
        matrix([32, 1024], [10**6 + step for step in range(40)], 3),
        matrix([1 << step for step in range(17)], [65536, 131072], 5),
    ],
    ids=lambda decision: f"{len(decision.matrix.shapes)} shapes, {len(decision.matrix.cases)} pairs",
)
def test_no_label_leaves_the_picture_or_touches_another(decision):
    picture = drawn(decision)
    wide, high = (float(picture.get(name, 0)) for name in ("width", "height"))
    placed = boxes(picture)
    assert all(left >= 0 and right <= wide and size <= base <= high for _, left, right, base, size in placed)
    for index, (text, left, right, base, size) in enumerate(placed):
        for other_text, other_left, other_right, other_base, other_size in placed[index + 1 :]:
            apart = right <= other_left or other_right <= left or abs(base - other_base) >= 0.8 * max(size, other_size)
            assert apart, f"{text!r} and {other_text!r}"


def test_names_are_text_and_not_markup():
    found = rows("a<b>&c", {"uniform/float": {(1, 1): 1.0}}, "gfx90a")
    decision = decide(found, defaults={"a<b>&c": LaunchShape(1, 1)})
    assert texts(drawn(decision), "heading") == ["a<b>&c on gfx90a"]


def test_a_picture_of_compat_is_drawn_even_where_its_mean_is_infinite():
    found = rows("xorwow", SPEEDS) + rows("xorwow", {"uniform/double": {(64, 2048): 1.0}})
    found += rows("xorwow", {"uniform/double": {(256, 512): 0.0}}, aside=Rejection("no speed", "it is 0"))
    (decision,) = choose_shapes(found, RandomObjective.COMPAT).decisions
    assert math.isinf(decision.score)
    assert "64x2048: no score" in cells(drawn(decision))


def test_a_picture_of_aggregates_alone_has_their_means_and_no_pairs():
    found = rows("xorwow", SPEEDS, aside=Rejection("aggregate", "mean"))
    (decision,) = choose_shapes(found, RandomObjective.COMPAT).decisions
    picture = drawn(decision)
    assert texts(picture, "title") == ["all distributions and types"]
    assert "64x2048: 1.225 times the default" in cells(picture)
