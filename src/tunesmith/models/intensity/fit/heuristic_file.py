"""Reads and writes fitted heuristics as a YAML file that a person can read, and in which cut points can be pinned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tunesmith.models.intensity.metrics import METRICS
from tunesmith.problems import Node, read_yaml, shortened
from tunesmith.problems.yaml import flow
from tunesmith.records import Configuration, UserError, Value, thaw

from .heuristic import BucketSeed, CutPoint, FitOrigin, FittedHeuristic, MetricRule, Question, answers
from .sample import FEATURES

FORMAT = 1
"""The number under `tunesmith-heuristic`, raised when one of two versions could not read what the other wrote."""

_KEY = "tunesmith-heuristic"
_SHARED = ("made", "fitted-on", "method", "ridge", "units", "scores", "buckets")
_CUT_KEYS = ("fitted", "low", "high", "pinned")
LARGEST, LARGEST_COUNT = 1e30, 10**15
"""The largest number, and the largest whole number, that is accepted: results stay far from the largest float."""
LEAST_RIDGE = 1e-6
_MOST_BUCKETS = 64

_HEAD = f"""\
# Configurations by the size of a product, fitted by `tunesmith heuristics fit` (docs/heuristics.md).
# A product below the first cut point gets the first bucket's configuration, and so on.
# To move a cut point, write `pinned: 12.0` into its braces: the pinned value counts instead of the fitted one, and
# stays when the same command fits the file again.
{_KEY}: {FORMAT}
"""


def dump_heuristic(heuristic: FittedHeuristic) -> str:
    """The text of a file. `read_heuristic` gives the same heuristic back; scores and tile areas have six digits."""
    origin, rule = heuristic.origin, heuristic.rule
    facts = {
        "made": {"tunesmith": origin.tunesmith, "date": origin.date},
        "method": origin.method,
        "ridge": heuristic.ridge,
        "units": heuristic.units,
        "scores": {name: _digits(value) for name, value in heuristic.scores.items() if math.isfinite(value)},
    }
    lines = [
        *(f"{name}: {flow(value)}{_REMARKS.get(name, '')}" for name, value in facts.items()),
        "fitted-on:",
        *(f"  {name}: {flow(value)}" for name, value in _fitted_on(origin).items()),
    ]
    if isinstance(rule, MetricRule):
        lines += [f"metric: {rule.metric}", "cut-points:" + ("" if rule.cut_points else " []")]
        lines += [f"- {flow(_cut(cut))}" for cut in rule.cut_points]
    else:
        lines.append(f"tree: {flow(_tree(rule))}")
    lines += ["buckets:", *(f"- {flow(_bucket(seed))}" for seed in heuristic.seeds)]
    return _HEAD + "\n".join(lines) + "\n"


def read_heuristic(path: Path) -> FittedHeuristic:
    """The heuristic in a file. Raises UserError, with the line, for a mistake in the file."""
    root = read_yaml(path)
    is_tree = "tree" in root.mapping("a heuristic")
    rule_keys = ("tree",) if is_tree else ("metric", "cut-points")
    version = root.mapping("a heuristic").get(_KEY)
    if version is not None and version.content != FORMAT:
        what = f"format {shortened(version.content)}, this tunesmith reads {FORMAT}"
        raise UserError(version.location, what, "fit again into another file, and copy the cut points that are pinned")
    fields = root.fields("a heuristic", (_KEY, *_SHARED, *rule_keys))
    seeds = tuple(_read_bucket(node) for node in fields["buckets"].sequence("buckets"))
    if not 1 <= len(seeds) <= _MOST_BUCKETS:
        raise fields["buckets"].wrong(f"{len(seeds)} buckets", f"give 1 to {_MOST_BUCKETS}")
    rule = _read_tree(fields["tree"], len(seeds)) if is_tree else _read_cuts(fields, len(seeds))
    scores = fields["scores"].mapping("scores")
    return FittedHeuristic(
        _read_origin(fields),
        _number(fields["ridge"], "ridge", LEAST_RIDGE),
        _whole(fields["units"], "units", 1),
        {name: _number(node, f"the score {shortened(name)}") for name, node in scores.items()},
        rule,
        seeds,
    )


_REMARKS = {
    "ridge": "  # FLOP per byte",
    "units": "  # compute units",
    "scores": "  # on products that were held out, unless the name says otherwise",
}


def _fitted_on(origin: FitOrigin) -> dict[str, object]:
    return {
        "sources": list(origin.sources),
        "rows": origin.selection,
        "device": origin.device,
        "data-type": origin.data_type,
        "bytes": [origin.operand_bytes, origin.result_bytes],
        "products": origin.products,
        "groups": origin.groups,
    }


def _cut(cut: CutPoint) -> dict[str, float]:
    numbers = {"fitted": cut.fitted, "low": cut.low, "high": cut.high, "pinned": cut.pinned}
    return {name: value for name, value in numbers.items() if value is not None}


def _tree(question: Question | int) -> object:
    if isinstance(question, int):
        return question
    below, beyond = _tree(question.below), _tree(question.beyond)
    return {"feature": question.feature, "cut": question.cut, "below": below, "beyond": beyond}


def _bucket(seed: BucketSeed) -> dict[str, object]:
    values = {name: thaw(value) for name, value in seed.configuration.items()}
    area = {} if seed.tile_area is None else {"tile-area": _digits(seed.tile_area)}
    return {"products": seed.products, **area, "configuration": values}


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


def _read_origin(fields: Mapping[str, Node]) -> FitOrigin:
    made_by = fields["made"].fields("made", ("tunesmith", "date"))
    facts = fields["fitted-on"].fields(
        "fitted-on", ("sources", "rows", "device", "data-type", "bytes", "products", "groups")
    )
    widths = facts["bytes"].sequence("bytes")
    if len(widths) != 2:
        raise facts["bytes"].wrong(
            f"bytes has {len(widths)} numbers", "give those of an operand's and a result's element"
        )
    operand_bytes, result_bytes = (_number(node, "bytes", 1e-3) for node in widths)
    return FitOrigin(
        tuple(node.word("a source") for node in facts["sources"].sequence("sources")),
        facts["rows"].word("rows"),
        facts["device"].word("device"),
        facts["data-type"].word("data-type"),
        _whole(facts["products"], "products", 1),
        _whole(facts["groups"], "groups", 1),
        operand_bytes,
        result_bytes,
        fields["method"].word("method"),
        made_by["tunesmith"].word("tunesmith"),
        made_by["date"].word("date"),
    )


def _read_cuts(fields: Mapping[str, Node], buckets: int) -> MetricRule:
    nodes = fields["cut-points"].sequence("cut-points")
    if len(nodes) != buckets - 1:
        raise fields["cut-points"].wrong(
            f"{len(nodes)} cut points for {buckets} buckets", "give one cut point fewer than buckets"
        )
    cuts = tuple(map(_read_cut, nodes))
    for node, (lower, upper) in zip(nodes[1:], pairwise(cuts), strict=True):
        if lower.value >= upper.value:
            raise node.wrong(
                f"cut point {upper.value:g} does not lie above the one before it, {lower.value:g}",
                "write cut points from small to large, each once",
            )
    return MetricRule(_name_in(fields["metric"], "metric", METRICS), cuts)


def _read_cut(node: Node) -> CutPoint:
    fields = node.fields("a cut point", (), _CUT_KEYS)
    numbers = {name: _number(value, f"a cut point's {name}", 0.0) for name, value in fields.items()}
    cut = CutPoint(**numbers)
    if cut.fitted is None and cut.pinned is None:
        raise node.wrong("a cut point without a value", "write fitted: or pinned: with a number")
    return cut


def _read_tree(node: Node, buckets: int) -> Question:
    root = _read_answer(node, buckets)
    if isinstance(root, int):
        raise node.wrong("the tree asks no question", "write feature, cut, below and beyond")
    reached = sorted(answers(root))
    if reached != list(range(buckets)):
        raise node.wrong(
            f"the tree leads to buckets {shortened(tuple(reached))} of {buckets}", "lead to each bucket once, from 0 on"
        )
    return root


def _read_answer(node: Node, buckets: int) -> Question | int:
    if not isinstance(node.content, dict):
        return _whole(node, "a bucket's number", 0, buckets - 1)
    fields = node.fields("a question", ("feature", "cut", "below", "beyond"))
    return Question(
        _name_in(fields["feature"], "feature", FEATURES),
        _number(fields["cut"], "cut", 0.0),
        _read_answer(fields["below"], buckets),
        _read_answer(fields["beyond"], buckets),
    )


def _read_bucket(node: Node) -> BucketSeed:
    fields = node.fields("a bucket", ("products", "configuration"), ("tile-area",))
    values = fields["configuration"].mapping("configuration")
    configuration = Configuration({name: _finite(value.plain(name), value) for name, value in values.items()})
    area = _number(fields["tile-area"], "tile-area", 1e-6) if "tile-area" in fields else None
    return BucketSeed(configuration, area, _whole(fields["products"], "products", 0))


def _finite(value: Value, node: Node) -> Value:
    """The value unchanged. Raises UserError if a number in it is infinite or NaN."""
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        if isinstance(number, tuple):
            _finite(number, node)
        elif isinstance(number, float) and not math.isfinite(number):
            raise node.wrong(f"{shortened(number)} in a configuration", "give a finite number")
    return value


def _name_in(node: Node, what: str, names: Mapping[str, object]) -> str:
    word = node.word(what)
    if word not in names:
        raise node.wrong(f"{what} cannot be {shortened(word)}", f"give one of {', '.join(names)}")
    return word


def _number(node: Node, what: str, least: float = -math.inf) -> float:
    value: Any = node.content
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and least <= value and abs(value) <= LARGEST):
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise node.wrong(
            f"{what} cannot be {shortened(value) if not isinstance(value, dict) else 'a mapping'}",
            f"give a number{bound}",
        )
    return float(value)


def _whole(node: Node, what: str, least: int, most: int = LARGEST_COUNT) -> int:
    value: Any = node.content
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise node.wrong(
            f"{what} cannot be {shortened(value) if not isinstance(value, dict) else 'a mapping'}",
            f"give a whole number from {least} to {most}",
        )
    return value
