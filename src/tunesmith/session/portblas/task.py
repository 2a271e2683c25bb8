"""What is to be tuned with portBLAS's parameters: problems, the device, and the list of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.devices import APIS, choose
from tunesmith.formats.portblas.parameter_files import Combination, Config, RuleSet, find_set, read
from tunesmith.kernels import KERNELS, LANGUAGE
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem, ProblemType, Target, UserError

TRANSPOSES = {"nn": (False, False), "nt": (False, True), "tn": (True, False), "tt": (True, True)}
"""Whether A and B are transposed, by the original's words and in its order."""

ALL = "all"
LAYOUTS = ("strided", "interleaved")
TYPES = ("s", "d", "h")

FAMILIES = {"OpenCL": "PortBlasGemm", "CUDA": "PortBlasCuda"}
"""The family with portBLAS's parameters, by language."""

SCALARS = Configuration({"alpha": 1.0, "beta": 0.0})

VENDORS = {"sm_": "nvidia", "gfx": "amd", "nvidia": "nvidia", "amd": "amd", "radeon": "amd", "intel": "intel"}
"""Shipped sets of GPUs: what an architecture or a name holds, in the order in which it is looked for."""

MOST_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class PortBlasTask:
    """The original's arguments, and ours. `config` is a file or a set's name; empty means the device's own set.

    `repetitions` is the least number of samples of a time. `language` and `logic` may be empty: the device's first, and
    what lies in the run's folder. With `vendor` the system BLAS may win.
    """

    transposes: str
    m: int
    k: int
    n: int
    batch: int
    repetitions: int
    layout: str = "strided"
    data_type: str = "s"
    language: str = ""
    config: str = ""
    folders: tuple[Path, ...] = ()
    logic: Path | None = None
    guided: bool = False
    vendor: bool = False

    def check(self) -> None:
        """Raises UserError for an argument that means nothing."""
        _known("the transposition", self.transposes, (*TRANSPOSES, ALL))
        _known("the layout of the batch", self.layout, LAYOUTS)
        _known("--type", self.data_type, TYPES)
        _known("--language", self.language, ("", *FAMILIES))

    @property
    def names(self) -> tuple[str, ...]:
        """The transpositions to tune."""
        return tuple(TRANSPOSES) if self.transposes == ALL else (self.transposes,)

    @property
    def policy(self) -> Policy:
        return Policy(
            noise=0.01,
            minimum_samples=self.repetitions,
            maximum_samples=max(MOST_SAMPLES, self.repetitions),
            sampling_seconds=0.2,
            warm_up_seconds=0.05,
        )

    def kind(self, name: str, interleaved: bool | None = None) -> ProblemType:
        """The problem type of a transposition; `interleaved` asks for another layout than the task's."""
        a, b = TRANSPOSES[name]
        inside = self.layout == "interleaved" if interleaved is None else interleaved
        batched = self.batch > 1 or inside
        return gemm_type(self.data_type, transpose_a=a, transpose_b=b, batched=batched, interleaved=inside)

    def problem(self, kind: ProblemType) -> Problem:
        sizes = (self.m, self.n, self.batch, self.k) if "Batch" in kind.indices else (self.m, self.n, self.k)
        return Problem(kind, sizes, scalars=SCALARS)

    def target(self, selector: str | None) -> Target:
        return choose(selector, languages=[self.language] if self.language else list(FAMILIES))

    def language_on(self, target: Target) -> str:
        """The language that was asked for, else the first that the device runs."""
        spoken = [name for name in APIS[target.api].languages if name in FAMILIES]
        return self.language or spoken[0]

    def candidates(self, target: Target) -> tuple[Config, dict[Configuration, Combination]]:
        """The list as it was read, and its combinations as configurations of the family."""
        path = find_set(self.config or own_set(target), self.folders)
        config, language = read(path, RuleSet.OURS), self.language_on(target)
        if not config.combinations:
            raise UserError(str(path), "lists no kernel", "`tunesmith portblas configs` says why, and shows other sets")
        return config, {one.configuration() | {LANGUAGE: language}: one for one in config.combinations}

    def default(self, target: Target) -> Configuration:
        """The family's default configuration, for the task's layout."""
        family = KERNELS[FAMILIES[self.language_on(target)]]
        start = family.space(self.kind(self.names[0]), target).defaults
        return start | {"PortBlasAlgorithm": "interleaved" if self.layout == "interleaved" else "local"}


def own_set(target: Target) -> str:
    """The name of the shipped set for a device: its kind's or its vendor's, else `default`."""
    if target.kind == "CPU":
        return "cpu"
    said = f"{target.architecture} {target.name}".lower()
    return next((name for word, name in VENDORS.items() if word in said), "default")


def _known(location: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        raise UserError(location, f"cannot be {word!r}", f"give one of {', '.join(filter(None, known))}")
