"""`matmul` on a real GPU: right in every layout, on the caller's stream, in graphs, and behind 2^31 elements."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from cuda_runner import configuration, cuda_device, toolchain, torch_on_gpu
from tunesmith.devices.cuda.driver import call
from tunesmith.kernels import KERNELS
from tunesmith.library import Library
from tunesmith.logic import Document, Logic, NamedSolution, Origin, SizeRow
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Estimate, Solution, UserError, Value

pytestmark = pytest.mark.gpu

UNIT = 2.0**-24
"""The unit roundoff of float32, the type of the sums."""

SPACINGS = {"float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""The spacing of numbers between 1 and 2."""


@pytest.fixture(scope="module")
def torch():
    return torch_on_gpu()


LOOSE = {"b": "allow_bf16_reduced_precision_reduction", "h": "allow_fp16_reduced_precision_reduction"}
"""Torch's settings, by the letters of the data types."""


@pytest.fixture(autouse=True)
def _strict_sums(torch):
    """The bounds of these tests are those of strict sums."""
    before = {setting: getattr(torch.backends.cuda.matmul, setting) for setting in LOOSE.values()}
    for setting in before:
        setattr(torch.backends.cuda.matmul, setting, False)
    yield
    for setting, is_allowed in before.items():
        setattr(torch.backends.cuda.matmul, setting, is_allowed)


NOTHING: Mapping[str, Value] = {}
CHANGED = {"TritonTmaGemm": {"DepthU": 32}}
"""Changes to the defaults, which are the same for all families but illegal in some."""


def logic(kernel, kind, values):
    """A logic in which the family's defaults with some changes won."""
    family, target = KERNELS[kernel], cuda_device().target
    toolchain(family.language)
    origin = Origin.of(target, "none", "0.1.0", "2026-11-21T12:00:00Z")
    solution = Solution(kind, kernel, configuration(family, kind, **CHANGED.get(kernel, {}), **values))
    row = SizeRow((256,) * len(kind.indices), (), 0, Estimate(1e-4, 1e-4, 1e-4, 7), 1.0)
    return Logic(Document(origin, kind, (NamedSolution("default", solution),), (row,), 0))


def library(kernel, letter, batched=False, values=NOTHING, **more):
    """A library for all transposes; its device is that of the tensors."""
    kinds = [
        gemm_type(letter, transpose_a=a, transpose_b=b, batched=batched, **more)
        for a, b in itertools.product([False, True], repeat=2)
    ]
    return Library([(Path(f"{kind.name}.yaml"), logic(kernel, kind, values)) for kind in kinds])


def close(found, a, b, rest=0.0, slack=1.0, more=0.0):
    """|found - (a b + rest)| <= (4 sqrt(K) + 2) u |a||b| and a spacing of the result's type, `slack` times: half a
    spacing for the result, and where cuBLAS rounds the product before it adds the rest, half a one for that. `more` is
    added."""
    wide_a, wide_b = a.double(), b.double()
    product = wide_a @ wide_b
    expected = product + rest
    sums = (4 * a.shape[-1] ** 0.5 + 2) * UNIT * (wide_a.abs() @ wide_b.abs())
    name = str(found.dtype).removeprefix("torch.")
    largest = expected.abs().maximum(product.abs())
    bound = slack * (sums + largest * SPACINGS[name] + 2.0**-24) + more
    assert bool(((found.double() - expected).abs() <= bound).all())


CASES = [
    *[("CudaSimtGemm", "s"), ("VendorBlas", "s"), ("VendorBlas", "b"), ("VendorBlas", "h")],
    *[("TritonGemm", "b"), ("TritonTmaGemm", "s")],
]
STRICT = ("TMA alignment", "TMA store", "TMA box", "vector width", "input precision")
"""Why the defaults of a Triton family, which are the only solution here, may not take a size or a stride."""

DTYPES = {"s": "float32", "b": "bfloat16", "h": "float16"}


def views(torch, rows, columns, dtype):
    """Row- and column-major, with leading dimensions, from odd elements, and with steps."""
    yield torch.randn(rows, columns, device="cuda").to(dtype)
    yield torch.randn(columns, rows, device="cuda").to(dtype).mT
    yield torch.randn(rows + 3, columns + 5, device="cuda").to(dtype)[3:, 5:]
    yield torch.randn(columns + 1, rows + 8, device="cuda").to(dtype)[1:, 8:].mT
    yield torch.randn(rows, 2 * columns, device="cuda").to(dtype)[:, ::2]


@pytest.mark.parametrize(("kernel", "letter"), CASES)
@pytest.mark.parametrize("size", [(64, 128, 96), (37, 129, 65), (1, 1, 1), (1, 300, 64), (200, 1, 33)])
def test_views_and_odd_sizes(torch, kernel, letter, size):
    m, n, k = size
    dtype = getattr(torch, DTYPES[letter])
    with library(kernel, letter) as lib:
        for a, b in itertools.product(views(torch, m, k, dtype), views(torch, k, n, dtype)):
            if (found := taken(lib, kernel, a, b)) is not None:
                close(found, a, b)
        whole = torch.full((m + 2, n + 3), 3.0, device="cuda", dtype=dtype)
        a, b = next(views(torch, m, k, dtype)), next(views(torch, k, n, dtype))
        inside = whole[1 : 1 + m, 2 : 2 + n]
        if taken(lib, kernel, a, b, inside) is not None:
            close(inside, a, b)
            inside.fill_(3.0)
            assert bool((whole == 3.0).all())


def taken(lib, kernel, *tensors):
    """The product; None if the family refuses the arguments with a reason."""
    try:
        return lib.matmul(*tensors)
    except UserError as error:
        if kernel.startswith("Triton") and any(reason in str(error) for reason in STRICT):
            return None
        raise


@pytest.mark.parametrize(("kernel", "letter"), CASES[:3])
def test_batches_follow_one_another_or_share_their_weights(torch, kernel, letter):
    dtype = getattr(torch, DTYPES[letter])
    a, b, w = (torch.randn(*shape, device="cuda").to(dtype) for shape in ((5, 33, 48), (5, 48, 40), (48, 40)))
    with library(kernel, letter, batched=True) as lib:
        close(lib.matmul(a, b), a, b)
        close(lib.matmul(a, w), a, w)
        close(lib.matmul(a.mT.contiguous().mT, b[:1]), a, b[:1])
        heads = torch.randn(33, 5, 48, device="cuda").to(dtype).transpose(0, 1)
        close(lib.matmul(heads, b), heads, b)


def singles(letter, launches, **more):  # type: ignore[type-arg]
    """A library of all transposes by cuBLAS, without types for batches; `launches` gets the launches."""
    kinds = [gemm_type(letter, transpose_a=a, transpose_b=b, **more) for a in (False, True) for b in (False, True)]
    if letter == "f8":
        kinds = [gemm_type(letter, transpose_a=True, transpose_b=False, **more)]
    logics = [(Path(f"{kind.name}.yaml"), logic("VendorBlas", kind, {})) for kind in kinds]
    return Library(logics, launched=launches.append)


def batches(torch, batch, rows, columns, dtype):
    """Batches that cuBLAS takes as they lie: each transposed, padded, apart, side by side, shared."""
    yield torch.randn(batch, rows, columns, device="cuda").to(dtype)
    yield torch.randn(batch, columns, rows, device="cuda").to(dtype).mT
    yield torch.randn(2 * batch, rows + 2, columns + 3, device="cuda").to(dtype)[::2, 1:-1, 3:]
    yield torch.randn(rows, batch, columns, device="cuda").to(dtype).transpose(0, 1)
    yield torch.randn(rows, columns, device="cuda").to(dtype).expand(batch, rows, columns)
    yield torch.randn(columns, rows, device="cuda").to(dtype).mT


@pytest.mark.parametrize(("letter", "dest"), [("s", ""), ("h", ""), ("b", ""), ("h", "s"), ("b", "s")])
def test_a_batch_without_a_type_is_one_call_of_cublas_in_any_layout(torch, letter, dest):
    dtype, launches = getattr(torch, DTYPES[letter]), []
    out_dtype = torch.float32 if dest else dtype
    with singles(letter, launches, dest=dest) as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in itertools.product(batches(torch, 5, 33, 48, dtype), batches(torch, 5, 48, 40, dtype)):
            if a.ndim + b.ndim == 4:
                continue
            launches.clear()
            close(lib.matmul(a, b, out_dtype=out_dtype), a, b)
            assert len(launches) == 1
        a, b = (next(batches(torch, 5, *shape, dtype)) for shape in ((33, 48), (48, 40)))
        side_by_side = torch.randn(33, 5, 40, device="cuda").to(out_dtype).transpose(0, 1)
        for residual in (side_by_side, side_by_side.contiguous()):
            out = torch.full((7, 35, 44), 3.0, device="cuda", dtype=out_dtype)
            found = lib.matmul(a, b, out[1:6, 1:34, 2:42], c=residual, alpha=2.0, beta=-0.5)
            close(found, 2 * a, b, -0.5 * residual.double(), slack=2.0)
            found.fill_(3.0)
            assert bool((out == 3.0).all())


def test_batches_of_doubles_go_to_cublas_and_those_of_integers_matrix_by_matrix(torch):
    launches: list = []
    random = torch.Generator(device="cuda").manual_seed(3)
    a, b = (torch.randint(-9, 9, shape, device="cuda", generator=random) for shape in ((5, 32, 48), (5, 48, 40)))
    expected = (a.double() @ b.double()).cpu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with singles("d", launches) as lib:
            assert bool((lib.matmul(a.double(), b.double()).cpu() == expected).all())
        with singles("i8", launches) as lib:
            for left in (a.to(torch.int8), a.to(torch.int8).mT.contiguous().mT):
                assert bool((lib.matmul(left, b.to(torch.int8)).double().cpu() == expected).all())
    batches = [launched.plan.steps[0].parameters.get("batch", 1) for launched in launches]
    assert batches[0] == 5
    assert set(batches[1:]) == {1}


def test_batches_of_float8_with_scales_by_cublas(torch):
    launches: list = []
    a, b = (torch.randint(-4, 5, shape, device="cuda").to(torch.float8_e4m3fn) for shape in ((3, 32, 64), (3, 48, 64)))
    scale = torch.full((1,), 0.5, device="cuda")
    with singles("f8", launches, dest="s", scaled=True) as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lib.matmul(a, b.mT, scale_a=scale, scale_b=scale, out_dtype=torch.float32)
    expected = 0.25 * (a.float().double() @ b.float().double().mT)
    assert bool((found.double() == expected).all())
    assert len(launches) == 1


def test_a_graph_replays_a_batch_of_cublas(torch):
    launches: list = []
    a, b = torch.randn(192, 197, 64, device="cuda"), torch.randn(192, 64, 197, device="cuda")
    with singles("s", launches) as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib.matmul(a, b)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = lib.matmul(a, b)
        a.copy_(torch.randn_like(a))
        graph.replay()
        torch.cuda.synchronize()
        close(found, a, b)


@pytest.mark.parametrize("letter", ["b", "h"])
def test_the_vendors_sums_are_as_strict_as_torchs(torch, letter):
    """A part of a loose sum is rounded to the operands' type: by half a spacing of its magnitude, and again where it is
    added. The parts' magnitudes are no more than |a||b| together."""
    dtype, launched = getattr(torch, DTYPES[letter]), []
    a, b = (torch.randn(*shape, device="cuda").to(dtype) for shape in ((256, 2884), (2884, 1090)))
    parts = SPACINGS[DTYPES[letter]] * (a.double().abs() @ b.double().abs())
    with library("VendorBlas", letter) as lib:
        lib._begun_products().torch._launched = launched.append
        for is_loose in (False, True, False):
            setattr(torch.backends.cuda.matmul, LOOSE[letter], is_loose)
            found = lib.matmul(a, b)
            close(found, a, b, more=parts if is_loose else 0.0)
            assert launched[-1].choice.name.endswith("loose sums") == is_loose


def test_bias_activation_and_residual_are_torchs(torch):
    """The epilogue is cuBLASLt's own, or torch's after the product."""
    a, b, bias, c = (torch.randn(*shape, device="cuda").bfloat16() for shape in ((64, 96), (96, 80), (80,), (64, 80)))
    wide = a.double() @ b.double() + bias.double()
    with library("VendorBlas", "b", use_beta=False, bias=True, activation="relu") as lib:
        close_to(lib.matmul(a, b, bias=bias, activation="relu"), wide.relu())
    with library("VendorBlas", "b") as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lib.matmul(a, b, bias=bias, activation="gelu", residual=c)
        close_to(found, torch.nn.functional.gelu(wide) + c.double())


def close_to(found, expected):
    """Asserts equality within a few spacings of bfloat16: the product and each later step are rounded once."""
    assert bool(((found.double() - expected).abs() <= 2 * SPACINGS["bfloat16"] * (expected.abs() + 16)).all())


@pytest.mark.parametrize(("kernel", "letter"), CASES[:3])
def test_inputs_that_a_side_stream_still_makes_are_waited_for_by_the_stream_and_not_by_the_host(torch, kernel, letter):
    dtype, side = getattr(torch, DTYPES[letter]), torch.cuda.Stream()
    a, b = (torch.zeros(256, 256, device="cuda", dtype=dtype) for _ in range(2))
    fresh = [torch.randn(256, 256, device="cuda").to(dtype) for _ in range(2)]
    with library(kernel, letter) as lib:
        lib.matmul(a, b)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(500_000_000)
            a.copy_(fresh[0])
            b.copy_(fresh[1])
            found = lib.matmul(a, b)
            assert not side.query(), "the host waited"
        side.synchronize()
        close(found, *fresh)


@pytest.mark.parametrize(("kernel", "letter"), [*CASES, ("CudaWgmmaGemm", "b")])
def test_a_graph_replays_on_new_numbers(torch, kernel, letter):
    dtype = getattr(torch, DTYPES[letter])
    a, b, c = (torch.randn(128, 128, device="cuda").to(dtype) for _ in range(3))
    with library(kernel, letter) as lib:
        for more in ({}, {"residual": c}):
            lib.matmul(a, b, **more)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                found = lib.matmul(a, b, **more)
            for tensor in (a, b):
                tensor.copy_(torch.randn(128, 128, device="cuda"))
            graph.replay()
            torch.cuda.synchronize()
            close(found, a, b, c.double() if more else 0.0, slack=2.0)


def test_what_is_not_ready_is_refused_in_a_capture(torch):
    a, b = (torch.randn(96, 96, device="cuda") for _ in range(2))
    with library("CudaSimtGemm", "s") as lib:
        lib.matmul(a, b)
        with pytest.raises(UserError, match="captured"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            lib.matmul(a[:7], b)
        close(lib.matmul(a[:7], b), a[:7], b)


FAR = [("CudaSimtGemm", "s", {}), ("VendorBlas", "h", {})]
FAR += [("TritonGemm", "b", {"LoadPath": path}) for path in ("TMA", "Pointer")]
FAR += [("CudaWgmmaGemm", "b", {"StorePath": path}) for path in ("TMA", "Direct")]


@pytest.mark.parametrize(("kernel", "letter", "values"), FAR, ids=str)
def test_offsets_beyond_two_to_the_31_elements(torch, kernel, letter, values):
    """Operands behind so many elements, or with rows so far apart that the last row is; all at multiples of 16
    elements."""
    step = 16 * (2**31 // (16 * 63) + 1)
    dtype, far = getattr(torch, DTYPES[letter]), 63 * step
    need = 2 * (far + 2**20) * (4 if letter == "s" else 2)
    if torch.cuda.mem_get_info()[0] < need + 2**30:
        pytest.skip(f"{need / 2**30:.0f} GiB are not free")
    whole = torch.zeros(far + 2**20, device="cuda", dtype=dtype)
    operand = torch.randn(64, 64, device="cuda").to(dtype)
    with library(kernel, letter, values=values) as lib:
        behind = whole[far:].view(-1)[: 64 * 64].view(64, 64)
        behind.copy_(operand)
        close(lib.matmul(behind, operand), operand, operand)
        apart = whole.as_strided((64, 64), (step, 1))
        apart.copy_(operand)
        close(lib.matmul(apart, operand), operand, operand)
        out = torch.zeros(far + 2**20, device="cuda", dtype=dtype).as_strided((64, 64), (step, 1))
        close(lib.matmul(operand, operand, out), operand, operand)


def test_a_gpu_is_the_tensors_own(torch):
    """The thread's current device and context do not change."""
    before, context = torch.cuda.current_device(), int(call("cuCtxGetCurrent"))
    last = torch.cuda.device_count() - 1
    with library("CudaSimtGemm", "s") as lib:
        for number in {0, last}:
            a, b = (torch.randn(50, 50, device=f"cuda:{number}") for _ in range(2))
            found = lib.matmul(a, b)
            torch.cuda.synchronize(number)
            close(found, a, b)
        if last:
            with pytest.raises(ValueError, match=f"cuda:{last}, a on cuda:0"):
                lib.matmul(torch.zeros(2, 2, device="cuda:0"), torch.zeros(2, 2, device=f"cuda:{last}"))
    assert (torch.cuda.current_device(), int(call("cuCtxGetCurrent"))) == (before, context)


class Lent:
    """A tensor of a library with DLPack only."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


def test_arrays_by_dlpack_and_by_the_cuda_array_interface(torch):
    a, b, out = (torch.randn(60, 60, device="cuda") for _ in range(3))
    torch.cuda.synchronize()
    with library("CudaSimtGemm", "s") as lib:
        lib.matmul(Lent(a), Lent(b), Lent(out))
        torch.cuda.synchronize()
        close(out, a, b)
        cupy = pytest.importorskip("cupy")
        arrays = [cupy.random.standard_normal((60, 60), dtype=cupy.float32) for _ in range(3)]
        stream = cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.Device().synchronize()
        lib.matmul(*arrays, stream=stream)
        stream.synchronize()
        x, y, z = (torch.from_numpy(cupy.asnumpy(array)) for array in arrays)
        close(z, x, y)


def test_numpy_arrays_go_there_and_back(torch):
    a, b = (np.random.default_rng(3).standard_normal((40, 40)).astype(np.float32) for _ in range(2))
    with library("CudaSimtGemm", "s") as lib:
        close(torch.from_numpy(lib.matmul(a, b)), torch.from_numpy(a), torch.from_numpy(b))
