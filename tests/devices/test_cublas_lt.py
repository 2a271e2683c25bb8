"""cuBLASLt gets the calls that plain BLAS does not have: float8, a bias, an activation."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import pytest

from cublas_fakes import ADDRESSES, CONFIG, FAMILY, FakeCuBlas, bound, changed, plain, problem
from cuda_runner import H200, wrong_on_gpu
from tunesmith.devices import LaunchError
from tunesmith.devices.cuda.cublas import CuBlas
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import LibraryPlan

EXTENDED = ADDRESSES | {"Bias": 0xE008, "ScaleA": 0xF000, "ScaleB": 0xF100, "": 0x10000}


@dataclass
class FakeLt(FakeCuBlas):
    """A fake cuBLASLt with numbered descriptors. Its heuristic finds `found` algorithms; the first is all 77s."""

    found: int = 1
    alive: list[int] = field(default_factory=list)

    def __getattr__(self, name):
        def called(*arguments):
            self.calls.append((name, tuple(map(plain, arguments))))
            if name.endswith("Create"):
                arguments[0]._obj.value = len(self.alive) + 1
                self.alive.append(len(self.alive) + 1)
            if name.endswith("Destroy"):
                self.alive[arguments[0].value - 1] = 0
            if name == "cublasLtMatmulAlgoGetHeuristic":
                arguments[-1]._obj.value = self.found
                arguments[-2]._obj.algorithm[:] = [77] * 8
                arguments[-2]._obj.workspace, arguments[-2]._obj.waves = 4096, 1.5
            if name == "cublasLtMatmulAlgoConfigGetAttribute":
                arguments[2]._obj.value = 100 + arguments[1].value
            return self.status.get(name, 0)

        return called

    def calls_of(self, function):
        return [arguments for name, arguments in self.calls if name == function]


def extended(**changes):
    """A TN call of float8 with batch, scales, bias and activation."""
    kind = gemm_type("f8", transpose_a=True, transpose_b=False, batched=True, scaled=True, bias=True, activation="relu")
    (step,) = FAMILY.plan(CONFIG, problem(48, 32, 3, 64, kind=kind, alpha=1.5, beta=0.0), H200).steps
    return changed(step, **changes)


@pytest.mark.parametrize(("beta", "of_c"), [(0.5, (56, 56 * 32)), (0.0, (48, 48 * 32))])
def test_c_lies_as_it_does_where_it_is_read_and_as_d_where_it_is_not(beta, of_c):
    """M is 48 and N 32; with a leading dimension of 56, C's matrices follow at another stride than D's."""
    fake = FakeLt()
    bound(CuBlas(None, fake), extended(beta=beta, ldc=56, stride_c=56 * 32), EXTENDED, 11)
    created = [arguments[-1] for arguments in fake.calls_of("cublasLtMatrixLayoutCreate")]
    strides = [arguments[2] for arguments in fake.calls_of("cublasLtMatrixLayoutSetAttribute") if arguments[1] == 6]
    assert (created[2], strides[2]) == of_c
    assert (created[3], strides[3]) == (48, 48 * 32)


def test_one_algorithm_is_asked_for_since_there_is_room_for_one():
    fake = FakeLt()
    bound(CuBlas(None, fake), extended(), EXTENDED, 11)
    assert [arguments[-3] for arguments in fake.calls_of("cublasLtMatmulAlgoGetHeuristic")] == [1]


def test_the_extension_is_told_transposes_epilogue_bias_and_scales():
    fake = FakeLt()
    bound(CuBlas(None, fake), extended(), EXTENDED, 11)
    assert [arguments[1:3] for arguments in fake.calls_of("cublasLtMatmulDescSetAttribute")] == [
        *((3, 1), (4, 0), (7, 6)),
        *((8, 0xE008), (17, 0xF000), (18, 0xF100)),
    ]
    assert [arguments[1:] for arguments in fake.calls_of("cublasLtMatrixLayoutCreate")] == [
        *((28, 64, 48, 64), (28, 64, 32, 64)),
        *((14, 48, 32, 48), (14, 48, 32, 48)),
    ]
    batches = [arguments[1:3] for arguments in fake.calls_of("cublasLtMatrixLayoutSetAttribute")]
    assert batches == [(5, 3), (6, 64 * 48), (5, 3), (6, 64 * 32), *[(5, 3), (6, 48 * 32)] * 2]
    assert fake.calls_of("cublasLtMatmulDescCreate")[0][1:] == (68, 0)


def test_the_extension_may_use_the_plans_workspace_and_knows_how_addresses_lie():
    fake = FakeLt()
    step = extended()
    bound(CuBlas(None, fake), step, EXTENDED | {"A": 0xA010}, 11)
    assert [arguments[1:3] for arguments in fake.calls_of("cublasLtMatmulPreferenceSetAttribute")] == [
        *((1, 32 << 20), (5, 16), (6, 256), (7, 256), (8, 256)),
    ]
    assert FAMILY.plan(CONFIG, problem(48, 32, 64, kind=gemm_type("b", bias=True)), H200).workspace_bytes == 32 << 20
    assert step.parameters["workspace_bytes"] == 32 << 20


def test_the_extension_is_called_with_its_first_algorithm_on_the_stream():
    """cublasLtMatmul(handle, operation, alpha, A, layout, B, layout, beta, C, layout, D, layout, algorithm, workspace,
    bytes, stream); without beta D stands for C, and C is not copied."""
    fake = FakeLt()
    blas = CuBlas(None, fake)
    for step, c in ((extended(), 0xD000), (extended(beta=0.5, activation="none"), 0xC000)):
        fake.calls.clear()
        bound(blas, step, EXTENDED, 11)()
        (arguments,) = fake.calls_of("cublasLtMatmul")
        operands = [arguments[index] for index in (3, 5, 8, 10)]
        assert operands == [0xA000, 0xB000, c, 0xD000]
        assert (arguments[2], arguments[7]) == (1.5, step.parameters["beta"])
        assert list(arguments[12]) == [77] * 8
        assert arguments[13:] == (0x10000, 32 << 20, 11)


def test_an_algorithm_is_chosen_once_for_a_call_and_an_alignment():
    fake = FakeLt()
    blas = CuBlas(None, fake)
    chosen = []
    for address in (0xA000, 0xB00, 0xA010):
        bound(blas, extended(), EXTENDED | {"A": address}, 11)
        chosen.append(len(fake.calls_of("cublasLtMatmulAlgoGetHeuristic")))
    assert chosen == [1, 1, 2]


def test_a_call_that_is_made_again_moves_to_other_memory_with_its_bias_and_scales():
    """Descriptors are kept. Only the addresses of bias and scales that changed are set again."""
    fake = FakeLt()
    enqueue = CuBlas(None, fake).repeated(extended(), EXTENDED)
    fake.calls.clear()
    moved = {"A": 0xAA10, "D": 0xDD00, "Bias": 0xEE08, "ScaleB": 0xF200, "": 0x20000}
    for stream, addresses in ((5, EXTENDED), (6, EXTENDED | moved), (6, EXTENDED | moved)):
        enqueue(stream, addresses)
    assert [arguments[1:3] for arguments in fake.calls_of("cublasLtMatmulDescSetAttribute")] == [
        (8, 0xEE08),
        (18, 0xF200),
    ]
    first, second, third = fake.calls_of("cublasLtMatmul")
    assert [first[index] for index in (3, 5, 8, 10, 13, 15)] == [0xA000, 0xB000, 0xD000, 0xD000, 0x10000, 5]
    assert [second[index] for index in (3, 5, 8, 10, 13, 15)] == [0xAA10, 0xB000, 0xDD00, 0xDD00, 0x20000, 6]
    assert second[3:] == third[3:]
    assert len(fake.calls_of("cublasLtMatmulAlgoGetHeuristic")) == 1, "A is aligned to 16 bytes now, and to 256 before"
    assert fake.calls_of("cublasLtMatrixLayoutCreate") == []


def test_descriptors_live_as_long_as_the_call():
    fake = FakeLt()
    enqueue = bound(CuBlas(None, fake), extended(), EXTENDED, 11)
    assert sum(map(bool, fake.alive)) == 7, "a handle, an operation, four matrices and a preference"
    del enqueue
    gc.collect()
    assert sum(map(bool, fake.alive)) == 1


def test_a_call_that_the_extension_has_no_algorithm_for_is_a_launch_error():
    with pytest.raises(LaunchError) as raised:
        bound(CuBlas(None, FakeLt(found=0)), extended(), EXTENDED, 11)
    assert (raised.value.reason, raised.value.poisoned) == ("not supported", False)


def plain_call(**changes):
    kind = gemm_type("b", transpose_a=True, transpose_b=False, use_beta=False)
    (step,) = FAMILY.plan(CONFIG, problem(48, 32, 64, kind=kind), H200).steps
    return changed(step, **changes)


def test_the_extension_says_how_cublas_would_make_a_call():
    """The algorithm's numbers by their attributes; the call's workspace bounds what it may choose."""
    fake = FakeLt()
    found = CuBlas(None, fake).foreseen(plain_call(workspace_bytes=1000))
    assert found == LibraryPlan(100, 101, 102, 103, 105, 106, 108, workspace=4096, waves=1.5)
    asked = fake.calls_of("cublasLtMatmulPreferenceSetAttribute")
    assert [arguments[1:3] for arguments in asked] == [(1, 1000), *((kind, 256) for kind in (5, 6, 7, 8))]
    assert len(fake.calls_of("cublasLtMatmulAlgoGetHeuristic")) == 1
    assert fake.calls_of("cublasLtMatmul") == []
    gc.collect()
    assert sum(map(bool, fake.alive)) == 1, "the handle alone"


def test_a_number_that_an_older_extension_does_not_have_is_zero():
    fake = FakeLt(status={"cublasLtMatmulAlgoConfigGetAttribute": 7})
    assert CuBlas(None, fake).foreseen(plain_call()) == LibraryPlan(0, 0, 0, 0, 0, 0, 0, workspace=4096, waves=1.5)


def test_what_the_extension_has_no_algorithm_for_is_not_foreseen():
    with pytest.raises(LaunchError):
        CuBlas(None, FakeLt(found=0)).foreseen(plain_call())


@pytest.mark.gpu
@pytest.mark.parametrize(
    "kind",
    [
        gemm_type("b", transpose_b=False, batched=True),
        gemm_type("b", transpose_a=True, transpose_b=False, dest="s"),
        gemm_type("h", dest="s"),
        gemm_type("i8", transpose_a=True, transpose_b=False),
        gemm_type("s", tf32=True),
        gemm_type("b", transpose_a=True, transpose_b=False, bias=True),
        gemm_type("h", bias=True, activation="relu", use_beta=False),
        gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True),
        gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True, bias=True, activation="relu", use_beta=False),
    ],
    ids=lambda kind: kind.name,
)
def test_cublas_is_right_in_every_type_and_epilogue(kind):
    sizes = (48, 32, 3, 64) if "Batch" in kind.indices else (48, 32, 64)
    size = problem(*sizes, kind=kind, alpha=1.0, beta=0.0)
    for check in GemmOperation().checks(size):
        assert wrong_on_gpu(FAMILY, CONFIG, check) == []
