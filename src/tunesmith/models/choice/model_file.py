"""Choice models as plain values, and as a YAML file: what a model was fitted on, how good it is, and its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from tunesmith.problems import MOST_GENERATED_BYTES, Node, beginning_of, shortened, text_of
from tunesmith.problems.yaml import flow, node_of, parse_yaml
from tunesmith.records import Configuration, Target, UserError, thaw

from .columns import ParameterColumn
from .model import ChoiceModel, ChoiceOrigin, feature_names
from .plans import OF_PLAN, OF_PRODUCT, PLAN_FEATURES
from .tree_file import plain_of_trees, trees_of
from .trees import TreeEnsemble

FORMAT = 3
"""The number under `tunesmith-choice`, raised when one of two versions could not read what the other wrote."""

_KEY = "tunesmith-choice"
_REMEDY = "give a file that `tunesmith heuristics fit --method choice` wrote, or fit again"
_HEAD = """\
# Expected times of kernels at sizes that nobody tuned, fitted by `tunesmith heuristics fit --method choice`
# (docs/heuristics.md). Beside its logic, the library chooses by it. A kernel is preferred to the vendor's library only
# if its gain is more than `caution` times the doubt; a larger number chooses the vendor more often.
"""
_BEGINNING = 4096
_FACTS = ("made", "fitted-on", "device", "scores", "caution", "columns", "solutions", "types", "features")
_FITTED = ("sources", "data-type", "products", "times", "families")
_ENSEMBLES = ("times", "doubts")
_LIBRARY, _PLANS = "library", "library-features"
"""The keys of a model that was fitted with plans: its trees for the library, and their features behind the others."""
_SIBLINGS, _TRANSLATED, _ALONE = "siblings", "translated", "library-alone"
_KNOWN_PLANS = (OF_PLAN, (*OF_PLAN, *OF_PRODUCT), PLAN_FEATURES)
"""The features of plans of this version and of former ones, which had fewer."""
_REMARKS = {"scores": "  # best time / time of the choice, on families that were held out"}
_DEVICE = tuple(fact.name for fact in fields_of(Target))


def plain_of_model(model: ChoiceModel) -> dict[str, Any]:
    """The model as mappings, lists, numbers and texts, with six digits of its scores; `model_of` gives it back."""
    origin = model.origin
    ensembles: dict[str, TreeEnsemble] = {name: getattr(model, name) for name in _ENSEMBLES}
    ensembles |= {_LIBRARY: model.library} if model.library else {}
    return {
        _KEY: FORMAT,
        "made": {"tunesmith": origin.tunesmith, "date": origin.date},
        "fitted-on": {
            "sources": list(origin.sources),
            "data-type": model.data_type,
            "products": origin.products,
            "times": origin.times,
            "families": origin.families,
            **({_SIBLINGS: list(origin.siblings), _TRANSLATED: origin.translated} if origin.siblings else {}),
            **({_ALONE: origin.library_alone} if origin.library_alone else {}),
        },
        "device": {name: getattr(model.target, name) for name in _DEVICE},
        "scores": {name: _digits(score) for name, score in model.scores.items()},
        "caution": model.caution,
        "columns": [
            {"name": column.name, "position": column.position, "words": list(column.words)} for column in model.columns
        ],
        "features": list(feature_names(model.columns)),
        "solutions": [
            {"kernel": kernel, "configuration": {name: thaw(value) for name, value in configuration.items()}}
            for kernel, configuration in model.solutions
        ],
        "types": {name: list(indices) for name, indices in model.types.items()},
        **({_PLANS: list(PLAN_FEATURES)} if model.library else {}),
        **{name: plain_of_trees(trees) for name, trees in ensembles.items()},
    }


def dump_choice_model(model: ChoiceModel) -> str:
    """The text of a file, whose values are those of `plain_of_model`."""
    return _HEAD + "".join(f"{line}\n" for name, value in plain_of_model(model).items() for line in _lines(name, value))


def _lines(name: str, value: Any) -> Iterator[str]:
    """The lines of a key: one, or one for each item of what is long."""
    match name:
        case "columns" | "solutions":
            yield from (f"{name}:", *(f"- {flow(item)}" for item in value))
        case "types":
            yield from (f"{name}:", *(f"  {key}: {flow(item)}" for key, item in value.items()))
        case _ if name in (*_ENSEMBLES, _LIBRARY):
            # Packed arrays need no quotes, and YAML's writer would take seconds to find that out.
            texts = {key: flow(item) if key == "base" else item for key, item in value.items()}
            yield from (f"{name}:", *(f"  {key}: {text}" for key, text in texts.items()))
        case _:
            yield f"{name}: {flow(value)}{_REMARKS.get(name, '')}"


def choice_files(folder: Path) -> list[Path]:
    """The YAML files of a folder that have the key of a choice model near their beginning."""
    return sorted(file for file in (*folder.glob("*.yaml"), *folder.glob("*.yml")) if is_choice_file(file))


def is_choice_file(file: Path) -> bool:
    """Whether a regular file has the key. Any other file is not opened, since opening it might block for ever."""
    return file.is_file() and any(
        line.startswith(_KEY.encode()) for line in beginning_of(file, "YAML", _BEGINNING).split(b"\n")
    )


def read_choice_model(path: Path) -> ChoiceModel:
    """The model in a file. Raises UserError, with the line, for a mistake in the file."""
    return parse_choice_model(text_of(path, "YAML", MOST_GENERATED_BYTES, _REMEDY), str(path))


def parse_choice_model(text: str, name: str) -> ChoiceModel:
    """The model in a file's text. Locations of errors begin with `name`."""
    return _model(parse_yaml(text, name))


def model_of(value: object, name: str) -> ChoiceModel:
    """The model of values that `plain_of_model` made. Raises UserError, with `name` as its location, for others."""
    return _model(node_of(value, name))


def _model(root: Node) -> ChoiceModel:
    version = root.mapping("a choice model").get(_KEY)
    if version is not None and version.content != FORMAT:
        raise UserError(
            version.location, f"format {shortened(version.content)}, this tunesmith reads {FORMAT}", "fit again"
        )
    parts = root.fields("a choice model", (_KEY, *_FACTS, *_ENSEMBLES), (_LIBRARY, _PLANS))
    made = parts["made"].fields("made", ("tunesmith", "date"))
    fitted = parts["fitted-on"].fields("fitted-on", _FITTED, (_SIBLINGS, _TRANSLATED, _ALONE))
    columns = tuple(map(_column, parts["columns"].sequence("columns")))
    features = tuple(node.word("a feature") for node in parts["features"].sequence("features"))
    if features != feature_names(columns):
        raise parts["features"].wrong("these are not the features of this tunesmith", "fit again with this version")
    solutions = tuple(map(_solution, parts["solutions"].sequence("solutions")))
    return ChoiceModel(
        ChoiceOrigin(
            tuple(node.word("a source") for node in fitted["sources"].sequence("sources")),
            _whole(fitted["products"], "products"),
            _whole(fitted["times"], "times"),
            _whole(fitted["families"], "families"),
            made["tunesmith"].word("tunesmith"),
            made["date"].word("date"),
            *_siblings(fitted),
            _whole(fitted[_ALONE], _ALONE) if _ALONE in fitted else 0,
        ),
        _target(parts["device"]),
        fitted["data-type"].word("data-type"),
        {name: _indices(node, len(solutions)) for name, node in parts["types"].mapping("types").items()},
        solutions,
        columns,
        _trees(parts["times"], "times", len(features)),
        _trees(parts["doubts"], "doubts", len(features)),
        _number(parts["caution"], "caution"),
        {name: _number(node, name) for name, node in parts["scores"].mapping("scores").items()},
        _library(root, parts, len(features)),
    )


def _siblings(fitted: Mapping[str, Node]) -> tuple[tuple[str, ...], int]:
    """The names of a fit's siblings, and how many of their products teach it; none of a fit without them."""
    if _SIBLINGS not in fitted or _TRANSLATED not in fitted:
        return (), 0
    names = tuple(node.word("a sibling") for node in fitted[_SIBLINGS].sequence(_SIBLINGS))
    return names, _whole(fitted[_TRANSLATED], _TRANSLATED)


def _library(root: Node, parts: Mapping[str, Node], features: int) -> TreeEnsemble | None:
    """The trees of the vendor's library, whose features are the others and those of a plan."""
    found = [key for key in (_LIBRARY, _PLANS) if key in parts]
    if not found:
        return None
    if len(found) == 1:
        raise root.wrong(f"{_LIBRARY} and {_PLANS} go together, there is {found[0]} alone", _REMEDY)
    names = tuple(node.word("a feature") for node in parts[_PLANS].sequence(_PLANS))
    if names not in _KNOWN_PLANS:
        raise parts[_PLANS].wrong("these are not the features of this tunesmith", "fit again with this version")
    return _trees(parts[_LIBRARY], _LIBRARY, features + len(names))


def _indices(node: Node, solutions: int) -> tuple[int, ...]:
    indices = tuple(_whole(item, "a solution's index") for item in node.sequence("a type's solutions"))
    if any(index >= solutions for index in indices):
        raise node.wrong(f"an index beyond the {solutions} solutions", _REMEDY)
    return indices


def _trees(node: Node, name: str, features: int) -> TreeEnsemble:
    base = node.mapping(name).get("base")
    if base is None:
        raise node.wrong(f"{name} has no base", _REMEDY)
    return trees_of(node, name, _number(base, "base"), features)


def _column(node: Node) -> ParameterColumn:
    fields = node.fields("a column", ("name", "position", "words"))
    words = tuple(word.word("a word") for word in fields["words"].sequence("words"))
    return ParameterColumn(fields["name"].word("name"), _whole(fields["position"], "position"), words)


def _solution(node: Node) -> tuple[str, Configuration]:
    fields = node.fields("a solution", ("kernel", "configuration"))
    values = fields["configuration"].mapping("configuration")
    return fields["kernel"].word("kernel"), Configuration({name: value.plain(name) for name, value in values.items()})


def _target(node: Node) -> Target:
    fields = node.fields("device", _DEVICE)
    values: dict[str, Any] = {}
    for fact in fields_of(Target):
        value = fields[fact.name].content
        if type(value).__name__ != fact.type:
            raise fields[fact.name].wrong(f"{fact.name} cannot be {shortened(value)}", _REMEDY)
        values[fact.name] = value
    return Target(**values)


def _number(node: Node, what: str) -> float:
    value: Any = node.content
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise node.wrong(f"{what} cannot be {shortened(value)}", "give a number")
    return number


def _whole(node: Node, what: str) -> int:
    value: Any = node.content
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise node.wrong(f"{what} cannot be {shortened(value)}", "give a whole number")
    return value


def _digits(value: float) -> float:
    return float(f"{value:.6g}")
