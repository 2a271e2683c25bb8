"""What `tunesmith.autotune` makes of a jit function: a kernel whose launches take the chosen configuration.

Importing this module imports neither torch nor Triton, and no session: a kernel that has its choice needs none.
"""

from __future__ import annotations

import inspect
import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tunesmith.records import Outcome, UserError, Value

from .callables import callers_location, fingerprint
from .choice import KeptChoice, KernelFolder, Machine, digest_among, plain_config
from .current_device import is_capturing, machine_of, on_gpu, open_driver
from .jit_text import JitText, is_interpreted, is_jit_function
from .tuning_key import Bucket, Pruning, TuningKey, nearest

if TYPE_CHECKING:
    from .call_reference import CallReference
    from .launch_ahead import LaunchAhead
    from .measured_call import MeasuredCall

MODE_VARIABLE = "TUNESMITH_AUTOTUNE"
NEVER = "never"
"""The variable's value with which nothing is tuned."""

LOG = logging.getLogger("tunesmith.autotune")

Measure = Callable[..., "MeasuredCall"]
FindMachine = Callable[[Mapping[str, Any], str], Machine]


@dataclass(frozen=True)
class AutotuneSettings:
    """What `autotune` was told. `location` is the line of the program that called it."""

    configs: Sequence[Any]
    key: Sequence[str]
    pruning: Pruning
    reset_to_zero: tuple[str, ...]
    restore_value: tuple[str, ...]
    bucket: Bucket | None
    reference: CallReference | None
    tolerance: float
    settings: Mapping[str, Value]
    quiet: bool
    location: str


class AutotunedKernel:
    """A jit function with configurations to choose from, launched as `kernel[grid](..)`.

    `cache` has the configuration of each key that occurred in this process, `best_config` that of the last launch, and
    `ties` the configurations that could not be told from it. `measured` describes the last run that measured.
    """

    def __init__(
        self,
        fn: Any,
        settings: AutotuneSettings,
        *,
        measure: Measure | None = None,
        machine: FindMachine | None = None,
    ) -> None:
        self.fn, self.settings = fn, settings
        self.arg_names: list[str] = list(fn.arg_names)
        self.keys, self.reset_to_zero = list(settings.key), list(settings.reset_to_zero)
        self.cache: dict[tuple[Any, ...], Any] = {}
        self.best_config: Any = None
        self.measured: MeasuredCall | None = None
        self._ties: dict[tuple[Any, ...], list[Any]] = {}
        self._last_key: tuple[Any, ...] = ()
        self._measure, self._machine = measure, machine or machine_of
        self._warned: set[str] = set()
        named = {"key": settings.key, "reset_to_zero": settings.reset_to_zero, "restore_value": settings.restore_value}
        for argument, names in named.items():
            if unknown := [name for name in names if name not in self.arg_names]:
                what = f"{argument} names {', '.join(unknown)}, which {self.__name__} has not"
                raise UserError(settings.location, what, f"name some of {', '.join(self.arg_names)}")

    @property
    def __name__(self) -> str:
        return str(self.base_fn.__name__)

    @property
    def configs(self) -> list[Any]:
        return list(self.settings.configs)

    @property
    def ties(self) -> list[Any]:
        """The configurations that could not be told from `best_config` when it was chosen."""
        return self._ties.get(self._last_key, [])

    @property
    def jit_function(self) -> Any:
        """The jit function itself, below `triton.heuristics`."""
        return self._layers[-1]

    @property
    def base_fn(self) -> Any:
        """The Python function."""
        return self.jit_function.fn

    @cached_property
    def folder(self) -> KernelFolder:
        """The folder that keeps the kernel's measurements and choices."""
        return KernelFolder.of(self.__name__, self._text.text)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch the chosen configuration through Triton; a call with a new key is tuned before."""
        config = self._config_for(args, kwargs, grid)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**self._named(args), **kwargs, **config.all_kwargs()})
        return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs, **config.all_kwargs())

    def precompile(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Tune for these arguments without a launch; the chosen configuration, which is compiled."""
        config = self._config_for(args, kwargs, grid)
        self.fn.run(*args, grid=grid, warmup=True, **kwargs, **config.all_kwargs())
        return config

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> list[Any]:
        """Compile every configuration for these arguments, as Triton does. Nothing is tuned."""
        pruned = self._pruned(args, kwargs)
        return [self.fn.warmup(*args, grid=grid, **kwargs, **config.all_kwargs()) for config in pruned]

    def _config_for(self, args: Sequence[Any], kwargs: Mapping[str, Any], grid: Any) -> Any:
        if len(self.settings.configs) == 1:
            return self.settings.configs[0]
        passed = {**self._named(args), **kwargs}
        arguments = {name: passed[name] for name in self.arg_names if name in passed}
        key = TuningKey.of(self.keys, arguments, self.settings.bucket)
        self._last_key = key.as_tuple
        if self._last_key not in self.cache:
            self._choose(key, args, kwargs, arguments, grid)
        return self.cache[self._last_key]

    def _choose(
        self, key: TuningKey, args: Sequence[Any], kwargs: Mapping[str, Any], arguments: Mapping[str, Any], grid: Any
    ) -> None:
        configs = self._pruned(args, kwargs)
        if len(configs) == 1 or is_interpreted(self.jit_function):
            self.cache[key.as_tuple] = configs[0]
            return
        for name in configs[0].kwargs.keys() & kwargs.keys():
            what = f"{self.__name__} is called with {name}, which its configurations set"
            raise UserError(self._callers_line, what, f"leave {name} out of the call")
        machine = self._machine(arguments, self._callers_line)
        among = digest_among(self._text.text, machine, configs)
        if self._take(self.folder.choice(key, machine), configs, among):
            return
        if os.environ.get(MODE_VARIABLE) == NEVER:
            self._take_nearest(key, machine, configs, f"{MODE_VARIABLE}={NEVER}")
            return
        if is_capturing():
            self._take_nearest(key, machine, configs, "a CUDA graph is being captured", needs_choice=True)
            return
        from tunesmith.session import keep_server

        # The processes that compile come from a server, which imports while this process imports and prepares the run.
        keep_server(("tunesmith.toolchains.triton_ready",), keeps_workers=True)
        ahead = self._launch_ahead(machine, configs, args, kwargs, grid)
        with self.folder.tuning():
            # Another process may have chosen while this one waited.
            if not self._take(self.folder.choice(key, machine), configs, among):
                self._tune(key, machine, configs, among, arguments, grid, ahead)

    def _tune(
        self,
        key: TuningKey,
        machine: Machine,
        configs: list[Any],
        among: str,
        arguments: Mapping[str, Any],
        grid: Any,
        ahead: LaunchAhead | None,
    ) -> None:
        from .call_problem import call_problem, listed_config

        settings, location = self.settings, self._callers_line
        known = {**_defaults(self.base_fn), **arguments}
        needs_registers = any(config.maxnreg is not None for config in configs)
        listed = []
        for config in configs:
            computed = self._computed({**known, **config.kwargs})
            meta = {**known, **config.kwargs, **computed}
            extents = grid(meta) if callable(grid) else grid
            extents = extents if isinstance(extents, tuple | list) else (extents,)
            listed.append(listed_config(config, computed, extents, needs_registers, location))
        if not all(all(member[name] for name in member if name.startswith("tunesmith_grid")) for member in listed):
            self.cache[key.as_tuple] = configs[0]  # Nothing is launched, so nothing can be measured.
            return
        remaining = {name: known[name] for name in self.arg_names if name in known and name not in listed[0]}
        problem = call_problem(
            self._text,
            remaining,
            listed,
            reset_to_zero=self.reset_to_zero,
            tolerance=settings.tolerance,
            reference=fingerprint(settings.reference) if settings.reference else "",
            location=location,
        )
        self.measured = self._measured(problem, remaining, machine, location, ahead)
        ties = [plain_config(configs[position]) for position in self.measured.ties]
        choice = KeptChoice(key, machine, plain_config(configs[self.measured.winner]), tuple(ties), among)
        self.folder.keep(choice)
        self._take(choice, configs, among)
        LOG.info("%s %s: %s", self.__name__, key.as_tuple, self._report())
        wrong = [reason for reason in self.measured.failures.values() if reason.startswith(Outcome.WRONG_RESULT.value)]
        if settings.reference is None and len(wrong) > len(self.measured.seconds):
            differ = (
                f"{len(wrong)} of {len(configs)} configurations of {self.__name__} have other results than the first"
            )
            self._warn("results differ", f"{differ} that runs; if that one is wrong, give autotune a reference")

    def _launch_ahead(
        self, machine: Machine, configs: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any], grid: Any
    ) -> LaunchAhead | None:
        """What Triton makes ahead of a call's first launch; None if hooks of the user's would run once too often, since
        they run with every compilation."""
        from .launch_ahead import LaunchAhead

        if getattr(self.jit_function, "pre_run_hooks", ()):
            return None
        make = partial(self._compile_ahead, machine, configs, args, kwargs, grid)
        ahead = LaunchAhead(make, partial(open_driver, machine))
        ahead.begin_to_prepare()
        return ahead

    def _compile_ahead(
        self,
        machine: Machine,
        configs: Sequence[Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        grid: Any,
        position: int,
        makes_launcher: bool,
    ) -> None:
        """Compile one of the configurations for a call, and perhaps make Triton's launcher for it, in any thread. The
        compiled kernel is not loaded."""
        from triton.runtime import driver

        with on_gpu(machine):
            compiled = self.fn.run(*args, grid=grid, warmup=True, **kwargs, **configs[position].all_kwargs())
            if makes_launcher:
                driver.active.launcher_cls(compiled.src, compiled.metadata)

    def _measured(
        self,
        problem: Any,
        arguments: Mapping[str, Any],
        machine: Machine,
        location: str,
        ahead: LaunchAhead | None,
    ) -> MeasuredCall:
        from .measured_call import CallSettings, measure_call

        settings = self.settings
        how = CallSettings(settings.reference, settings.settings, settings.quiet, ahead)
        measure = self._measure or measure_call
        return measure(problem, arguments, self.folder.path, machine, how, location)

    def _take(self, choice: KeptChoice | None, configs: Sequence[Any], among: str = "") -> bool:
        """Whether a kept choice is used: it was chosen among the same configurations (any, if `among` is empty)."""
        if choice is None or (among and choice.among != among):
            return False
        by_plain = {str(plain_config(config)): config for config in reversed(configs)}
        config = by_plain.get(str(choice.config))
        if config is None:
            return False
        ties = (by_plain.get(str(tie)) for tie in choice.ties)
        self._ties[choice.key.as_tuple] = [tie for tie in ties if tie is not None]
        self.cache[choice.key.as_tuple] = config
        return True

    def _take_nearest(
        self, key: TuningKey, machine: Machine, configs: Sequence[Any], why: str, needs_choice: bool = False
    ) -> None:
        """Use the choice of the nearest key, else the first configuration; said once. With `needs_choice`, raises
        UserError if no key is near."""
        texts = {str(plain_config(config)) for config in configs}
        kept = {choice.key: choice for choice in self.folder.choices(machine) if str(choice.config) in texts}
        best = nearest(key, kept)
        if best is not None and self._take(kept[best], configs):
            self.cache[key.as_tuple] = self.cache[best.as_tuple]
            self._warn(why, f"{key.as_tuple} is not tuned, {self.__name__} takes the choice of {best.as_tuple}")
        elif needs_choice:
            what = f"{self.__name__} is not tuned for {key.as_tuple}, and {why}"
            raise UserError(self._callers_line, what, f"call {self.__name__}.precompile(.., grid=grid) before")
        else:
            self.cache[key.as_tuple] = configs[0]
            what = "takes its first configuration"
            self._warn(f"{why} and no key is near", f"{key.as_tuple} is not tuned, {self.__name__} {what}")

    def _pruned(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        return self.settings.pruning.pruned(self.configs, self._named(args), kwargs, self._callers_line)

    def _named(self, args: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.arg_names, args, strict=False))

    def _computed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The constants that `triton.heuristics` computes."""
        computed: dict[str, Any] = {}
        for layer in self._layers[:-1]:
            for name, function in layer.values.items():
                computed[name] = function({**arguments, **computed})
        return computed

    @cached_property
    def _layers(self) -> list[Any]:
        """The decorated function, and what it was made from, down to the jit function."""
        layers = [self.fn]
        while not is_jit_function(layers[-1]):
            if not isinstance(getattr(layers[-1], "values", None), Mapping):
                what = f"autotune stands above a {type(layers[-1]).__name__}"
                raise UserError(self.settings.location, what, "put it above @triton.jit or @triton.heuristics")
            layers.append(layers[-1].fn)
        return layers

    @cached_property
    def _text(self) -> JitText:
        return JitText(self.jit_function)

    @property
    def _callers_line(self) -> str:
        return callers_location()

    def _report(self) -> str:
        assert self.measured is not None
        tied = f", {len(self.measured.ties)} not told from it" if self.measured.ties else ""
        failed = f", {len(self.measured.failures)} failed" if self.measured.failures else ""
        return f"{self.cache[self._last_key]} ({self.measured.measured} measured{tied}{failed})"

    def _warn(self, why: str, sentence: str) -> None:
        """Say a sentence, once for each reason."""
        if why not in self._warned:
            self._warned.add(why)
            warnings.warn(f"{why}: {sentence}", stacklevel=2)


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The defaults of a function's parameters."""
    parameters = inspect.signature(function).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty}
