"""The task of `tunesmith portblas tune`: problems, device, and the list of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.devices import APIS, choose
from tunesmith.formats.portblas.parameter_files import Combination, ParameterFile, RuleSet, find_set, read
from tunesmith.kernels import KERNELS, LANGUAGE
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem, ProblemType, Target, UserError

TRANSPOSES = {"nn": (False, False), "nt": (False, True), "tn": (True, False), "tt": (True, True)}
"""Whether A and B are transposed, by the original's words, in the original's order."""

ALL = "all"
LAYOUTS = ("strided", "interleaved")
TYPES = ("s", "d", "h")

FAMILIES = {"OpenCL": "PortBlasGemm", "CUDA": "PortBlasCuda"}
"""The family with portBLAS's parameters, by language."""

SCALARS = Configuration({"alpha": 1.0, "beta": 0.0})

VENDORS = {"sm_": "nvidia", "gfx": "amd", "nvidia": "nvidia", "amd": "amd", "radeon": "amd", "intel": "intel"}
"""The shipped sets of GPUs, by a text that the device's architecture or name contains; the first match counts."""

MOST_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class PortBlasTask:
    """The original's arguments, and ours. `config` is a file or a set's name; empty means the device's own set.

    `repetitions` is the least number of samples of a time; far slower combinations than the best have three. An empty
    `language` means the device's first language; without `logic`, the logic in the run's folder is the current library.
    With `vendor` the system BLAS may win.
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
        """Raises UserError for a word that an argument cannot have."""
        _check_word("the transposition", self.transposes, (*TRANSPOSES, ALL))
        _check_word("the layout of the batch", self.layout, LAYOUTS)
        _check_word("--type", self.data_type, TYPES)
        _check_word("--language", self.language, ("", *FAMILIES))

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
        """The problem type of a transposition, in the task's layout unless `interleaved` says otherwise."""
        transpose_a, transpose_b = TRANSPOSES[name]
        if interleaved is None:
            interleaved = self.layout == "interleaved"
        return gemm_type(
            self.data_type,
            transpose_a=transpose_a,
            transpose_b=transpose_b,
            batched=self.batch > 1 or interleaved,
            interleaved=interleaved,
        )

    def problem(self, kind: ProblemType) -> Problem:
        sizes = (self.m, self.n, self.batch, self.k) if "Batch" in kind.indices else (self.m, self.n, self.k)
        return Problem(kind, sizes, scalars=SCALARS)

    def target(self, selector: str | Target | None) -> Target:
        return choose(selector, languages=[self.language] if self.language else list(FAMILIES))

    def language_on(self, target: Target) -> str:
        """The language that was asked for, else the first that the device runs."""
        runnable = [name for name in APIS[target.api].languages if name in FAMILIES]
        return self.language or runnable[0]

    def candidates(self, target: Target) -> tuple[ParameterFile, dict[Configuration, Combination]]:
        """The parameter file, and its combinations by their configurations of the family."""
        path = find_set(self.config or own_set(target), self.folders)
        config, language = read(path, RuleSet.OURS), self.language_on(target)
        if not config.combinations:
            raise UserError(str(path), "lists no kernel", "`tunesmith portblas configs` says why, and shows other sets")
        return config, {entry.configuration() | {LANGUAGE: language}: entry for entry in config.combinations}

    def default(self, target: Target) -> Configuration:
        """The family's default configuration, for the task's layout."""
        family = KERNELS[FAMILIES[self.language_on(target)]]
        start = family.space(self.kind(self.names[0]), target).defaults
        return start | {"PortBlasAlgorithm": "interleaved" if self.layout == "interleaved" else "local"}


def own_set(target: Target) -> str:
    """The name of the shipped set for a device: `cpu`, a GPU vendor's, or `default`."""
    if target.kind == "CPU":
        return "cpu"
    names = f"{target.architecture} {target.name}".lower()
    return next((name for part, name in VENDORS.items() if part in names), "default")


def _check_word(location: str, word: str, allowed: Sequence[str]) -> None:
    if word not in allowed:
        raise UserError(location, f"cannot be {word!r}", f"give one of {', '.join(filter(None, allowed))}")
