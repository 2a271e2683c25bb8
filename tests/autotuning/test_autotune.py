"""`tunesmith.autotune` as a program uses it, with a measurement and a launch that need no GPU."""

from __future__ import annotations

import threading
import time
import warnings

import pytest

triton = pytest.importorskip("triton", reason="Triton is not installed")
torch = pytest.importorskip("torch", reason="torch is not installed")

from triton.runtime.interpreter import InterpretedFunction  # noqa: E402

import tunesmith  # noqa: E402
from autotune_kernels import scaled_copy  # noqa: E402
from tunesmith import UserError  # noqa: E402
from tunesmith.autotuning import autotuned_kernel  # noqa: E402
from tunesmith.autotuning.autotuned_kernel import AutotunedKernel  # noqa: E402
from tunesmith.autotuning.choice import KernelFolder, Machine  # noqa: E402
from tunesmith.autotuning.measured_call import MeasuredCall  # noqa: E402

MACHINE = Machine("a GPU", "Triton 0")
BLOCKS = (64, 128, 256)


def configs(*blocks):
    return [triton.Config({"BLOCK": block}, num_warps=4) for block in blocks or BLOCKS]


class Bench:
    """Measures nothing: the configuration with the block nearest to the count wins, and the last one ties."""

    def __init__(self, seconds=0.0):
        self.problems, self.seconds = [], seconds

    def __call__(self, problem, arguments, folder, machine, how, location):
        time.sleep(self.seconds)
        self.problems.append(problem)
        blocks = [member["BLOCK"] for member in problem.listed]
        winner = min(range(len(blocks)), key=lambda number: abs(blocks[number] - problem.numbers["count"]))
        ties = (len(blocks) - 1,) if winner < len(blocks) - 1 else ()
        return MeasuredCall(winner, ties, dict.fromkeys(range(len(blocks)), 1.0), {}, len(blocks))


def no_bench(*arguments):
    raise AssertionError("nothing may be measured")


@pytest.fixture(autouse=True)
def launches(monkeypatch, tmp_path):
    """The launches, instead of Triton's own; the user's cache is empty."""
    made = []
    monkeypatch.setenv("TUNESMITH_CACHE", str(tmp_path))
    monkeypatch.setattr(scaled_copy, "run", lambda *args, **kwargs: made.append((args, kwargs)), raising=False)
    monkeypatch.delenv("TUNESMITH_AUTOTUNE", raising=False)
    return made


def autotuned(measure, *blocks, key=("count",), fn=scaled_copy, **changes):
    decorated = tunesmith.autotune(configs(*blocks), key, **changes)(fn)
    return AutotunedKernel(fn, decorated.settings, measure=measure, machine=lambda arguments, location: MACHINE)


def grid(meta):
    return (triton.cdiv(meta["count"], meta["BLOCK"]),)


def call(kernel, count, dtype=torch.float32, **keywords):
    x = torch.ones(count, dtype=dtype)
    return kernel[grid](torch.zeros_like(x), x, count, 2.0, None, **keywords)


def block(kernel):
    return kernel.best_config.kwargs["BLOCK"]


def test_a_new_key_is_measured_once_and_the_winner_is_launched(launches):
    bench = Bench()
    kernel = autotuned(bench)
    for count in (100, 60, 100):
        call(kernel, count)
    assert [kwargs["BLOCK"] for _, kwargs in launches] == [128, 64, 128]
    assert (launches[0][1]["num_warps"], launches[0][1]["grid"], launches[0][1]["warmup"]) == (4, grid, False)
    assert len(bench.problems) == 2
    assert block(kernel) == 128
    assert [tied.kwargs["BLOCK"] for tied in kernel.ties] == [256]
    assert list(kernel.cache) == [(100, "torch.float32", "torch.float32"), (60, "torch.float32", "torch.float32")]
    assert [member["tunesmith_grid_x"] for member in bench.problems[0].listed] == [2, 1, 1]
    call(kernel, 100, torch.float16)
    assert len(bench.problems) == 3


def test_the_measured_call_can_have_any_configuration_compiled_by_triton(launches):
    hows = []

    def bench(problem, arguments, folder, machine, how, location):
        hows.append(how)
        how.ahead.begin(2)
        how.ahead.expect(1)
        how.ahead.wait(1)
        return Bench()(problem, arguments, folder, machine, how, location)

    call(autotuned(bench), 100)
    ahead, launched = launches[:-1], launches[-1]
    assert sorted((kwargs["BLOCK"], kwargs["warmup"]) for _, kwargs in ahead) == [(128, True), (256, True)]
    assert (launched[1]["BLOCK"], launched[1]["warmup"]) == (128, False)
    assert all(arguments == launched[0] for arguments, _ in ahead)


def test_a_kernel_with_hooks_of_the_users_is_not_compiled_ahead(launches, monkeypatch):
    monkeypatch.setattr(scaled_copy, "pre_run_hooks", [print], raising=False)
    hows = []

    def bench(problem, arguments, folder, machine, how, location):
        hows.append(how)
        return Bench()(problem, arguments, folder, machine, how, location)

    call(autotuned(bench), 100)
    assert [how.ahead for how in hows] == [None]
    assert len(launches) == 1


def test_only_a_call_that_measures_asks_for_a_server_that_has_triton_and_keeps_workers(servers):
    kernel = autotuned(Bench())
    for _ in range(2):
        call(kernel, 100)
    assert servers == [(("tunesmith.toolchains.triton_ready",), True)]


def test_what_a_program_reads_of_a_decorated_kernel():
    kernel = autotuned(no_bench)
    assert (kernel.fn, kernel.jit_function, kernel.base_fn) == (scaled_copy, scaled_copy, scaled_copy.fn)
    assert [config.kwargs["BLOCK"] for config in kernel.configs] == list(BLOCKS)
    assert kernel.arg_names == scaled_copy.arg_names
    assert kernel.__name__ == "scaled_copy"
    assert kernel.cache == {}
    assert kernel.ties == []


def test_a_second_process_has_the_choice_at_once():
    call(autotuned(Bench()), 100)
    kernel = autotuned(no_bench)
    call(kernel, 100)
    assert block(kernel) == 128
    assert [tied.kwargs["BLOCK"] for tied in kernel.ties] == [256]


def test_another_list_of_configurations_is_chosen_among_again():
    call(autotuned(Bench()), 100)
    bench = Bench()
    kernel = autotuned(bench, *BLOCKS, 96)
    call(kernel, 100)
    assert (block(kernel), len(bench.problems)) == (96, 1)
    call(autotuned(no_bench, *BLOCKS, 96), 100)


def test_another_machine_has_a_choice_of_its_own():
    first = autotuned(Bench())
    call(first, 100)
    assert first.folder.choices(MACHINE)
    assert not first.folder.choices(Machine("another GPU", "Triton 0"))


def test_a_damaged_file_is_measured_again():
    first = autotuned(Bench())
    call(first, 100)
    (file,) = first.folder.path.glob("choices/*.json")
    file.write_text("{")
    bench = Bench()
    call(autotuned(bench), 100)
    assert bench.problems


def test_one_process_tunes_and_the_others_read_its_choice():
    bench = Bench(seconds=0.2)
    kernels = [autotuned(bench) for _ in range(3)]
    threads = [threading.Thread(target=call, args=(kernel, 100)) for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [block(kernel) for kernel in kernels] == [128] * 3
    assert len(bench.problems) == 1


def test_a_folder_that_cannot_be_written_is_replaced_by_a_temporary_one(monkeypatch):
    monkeypatch.setenv("TUNESMITH_CACHE", "/dev/null/nothing")
    assert KernelFolder.of("name", "text").path.is_dir()


def test_never_takes_the_nearest_key_and_says_so_once(monkeypatch):
    kernel = autotuned(Bench())
    call(kernel, 60)
    call(kernel, 300)
    monkeypatch.setenv("TUNESMITH_AUTOTUNE", "never")
    later = autotuned(no_bench)
    with pytest.warns(UserWarning, match=r"\(250, .* is not tuned, scaled_copy takes the choice of \(300, "):
        call(later, 250)
    assert block(later) == 256
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(later, 250)
        call(later, 60)
    assert block(later) == 64
    with pytest.warns(UserWarning, match="scaled_copy takes its first configuration"):
        call(later, 250, torch.float16)
    assert block(later) == 64


def test_nothing_is_tuned_while_a_graph_is_captured(monkeypatch):
    monkeypatch.setattr(autotuned_kernel, "is_capturing", lambda: True)
    kernel = autotuned(no_bench)
    with pytest.raises(UserError, match=r"test_autotune\.py:\d+: .*is being captured; call scaled_copy\.precompile"):
        call(kernel, 100)
    monkeypatch.setattr(autotuned_kernel, "is_capturing", lambda: False)
    call(autotuned(Bench()), 100)
    monkeypatch.setattr(autotuned_kernel, "is_capturing", lambda: True)
    call(kernel, 100)
    with pytest.warns(UserWarning, match="is being captured"):
        call(kernel, 101)
    assert block(kernel) == 128


def test_precompile_tunes_and_compiles_without_a_launch(launches):
    kernel, x = autotuned(Bench()), torch.ones(100)
    config = kernel.precompile(torch.zeros(100), x, 100, 2.0, None, grid=grid)
    assert config.kwargs["BLOCK"] == 128
    assert [kwargs["warmup"] for _, kwargs in launches] == [True]


def test_numbers_of_a_bucket_share_a_choice():
    bench = Bench()
    kernel = autotuned(bench, bucket="power_of_two")
    for count in (100, 128, 65):
        call(kernel, count)
    assert len(bench.problems) == 1


def test_one_configuration_needs_no_measurement(launches):
    call(autotuned(no_bench, 64), 100)
    call(autotuned(no_bench, prune_configs_by={"early_config_prune": lambda configs, named, **more: configs[1:2]}), 100)
    assert [kwargs["BLOCK"] for _, kwargs in launches] == [64, 128]


def test_an_empty_list_is_tritons_default(launches):
    kernel = tunesmith.autotune(iter([]), key=[])(scaled_copy)
    call(kernel, 100, BLOCK=32)
    assert launches[0][1]["num_warps"] == 4


def test_a_grid_without_programs_is_launched_and_not_measured(launches):
    kernel = autotuned(no_bench)
    x = torch.ones(0)
    kernel[(0,)](x, x, 0, 2.0, None)
    assert launches


def test_the_interpreter_takes_the_first_configuration():
    fn = InterpretedFunction(scaled_copy.fn)
    kernel = autotuned(no_bench, fn=fn)
    x = torch.arange(100.0)
    y = torch.zeros(100)
    kernel[grid](y, x, 100, 2.0, None)
    assert (y == 2 * x).all()
    assert block(kernel) == 64


def test_heuristics_below_are_computed_for_each_configuration(launches):
    fn = triton.heuristics({"MODE": lambda arguments: f"by{arguments['BLOCK']}"})(scaled_copy)
    bench = Bench()
    call(autotuned(bench, fn=fn), 100)
    assert [member["MODE"] for member in bench.problems[0].listed] == ["by64", "by128", "by256"]
    assert launches[0][1]["MODE"] == "by128"


def test_heuristics_above_get_what_they_need(launches):
    kernel = triton.heuristics({"MODE": lambda arguments: "above"})(autotuned(Bench()))
    call(kernel, 100)
    assert launches[0][1]["MODE"] == "above"


def test_a_configurations_hook_runs_before_the_launch_only(launches):
    hooked, bench = [], Bench()
    with pytest.warns(UserWarning, match="does not use the pre_hook of a configuration there"):
        settings = tunesmith.autotune(
            [triton.Config({"BLOCK": size}, pre_hook=hooked.append) for size in (64, 128)], key=["count"]
        )(scaled_copy).settings
    kernel = AutotunedKernel(scaled_copy, settings, measure=bench, machine=lambda arguments, location: MACHINE)
    call(kernel, 100)
    assert [arguments["BLOCK"] for arguments in hooked] == [128]
    assert hooked[0]["count"] == 100


def test_what_is_not_used_is_said_once():
    with pytest.warns(UserWarning, match="does not use warmup, rep, use_cuda_graph there") as warned:
        tunesmith.autotune(configs(), ["count"], warmup=1, rep=2, use_cuda_graph=True, cache_results=True)
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_the_arrays_to_reset_begin_with_zeros():
    bench = Bench()
    call(autotuned(bench, reset_to_zero=["y"], restore_value=["x"]), 100)
    assert [array.is_zeroed for array in bench.problems[0].arrays] == [True, False]


def test_most_results_differ_from_the_first():
    decision = MeasuredCall(0, (), {0: 1.0}, {1: "wrong result: wrong value", 2: "wrong result: wrong value"}, 3)
    with pytest.warns(UserWarning, match="2 of 3 configurations of scaled_copy have other results than the first"):
        call(autotuned(lambda *arguments: decision), 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(autotuned(lambda *arguments: decision, reference=lambda call: None), 101)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": ["coutn"]}, "key names coutn, which scaled_copy has not; name some of y, x"),
        ({"reset_to_zero": ["z"]}, "reset_to_zero names z"),
        ({"restore_value": ["z"]}, "restore_value names z"),
        ({"bucket": "tens"}, "bucket cannot be 'tens'"),
        ({"fn": tunesmith.autotune(configs(), [])(scaled_copy)}, "autotune stands above a AutotunedKernel"),
    ],
)
def test_a_mistake_in_the_decorator_is_told_at_its_line(changes, message):
    with pytest.raises(UserError, match=r"test_autotune\.py:\d+: " + message):
        autotuned(no_bench, **changes).run(torch.ones(1), torch.ones(1), 1, 1.0, None, grid=grid)


def test_an_argument_that_configurations_set_is_refused():
    with pytest.raises(UserError, match="scaled_copy is called with BLOCK, which its configurations set"):
        call(autotuned(no_bench), 100, BLOCK=64)


def test_a_call_without_a_gpu_is_told():
    with pytest.raises(UserError, match=r"test_autotune\.py:\d+: no argument is a tensor on a GPU"):
        call(tunesmith.autotune(configs(), ["count"])(scaled_copy), 100)


def test_an_unchanged_program_is_patched():
    before = triton.autotune
    with tunesmith.patch_triton():
        assert isinstance(triton.autotune(configs=configs(), key=["count"])(scaled_copy), AutotunedKernel)
    assert triton.autotune is before
    patch = tunesmith.patch_triton()
    patch.undo()
    assert triton.runtime.autotuner.autotune is before
