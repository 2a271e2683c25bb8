"""Random generators without a device: which buffers they fill, on which stream, and how positions move."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from random_reference import OnGpu, StreamingDevice, close, expected
from tunesmith.devices.cuda import device as cuda
from tunesmith.library.arrays._streams import Stream, stream_of
from tunesmith.library.random import _runner
from tunesmith.library.random._buffers import Buffer, buffer_of, value_type_of
from tunesmith.library.random._position import Position
from tunesmith.problems.random import GENERATORS, GeneratorKind
from tunesmith.random import Generator
from tunesmith.records import Plan, UserError, Write

SHAPE = (64, 2)
T = 128


def test_positions_say_what_each_engine_has_given():
    """Positions agree with a count of each engine's words, over calls with vectors of one, two and four words."""
    random = np.random.default_rng(3)
    for trial in range(200):
        engines, skips = int(random.integers(1, 9)), bool(trial % 2)
        offset = int(random.integers(0, 30)) if skips else 0
        position = Position(offset)
        word_counts = offset // engines + (np.arange(engines) < offset % engines)
        first, left, last = offset % engines, engines, 1
        for _ in range(12):
            width, vectors = int(random.choice([1, 2, 4])), int(random.integers(1, 3 * engines))
            must_finish = last != width and (last > 1 or not skips)
            if must_finish and left < engines:
                word_counts[(first + np.arange(left)) % engines] += last
                first, left = (first + left) % engines, engines
            elif last != width:
                left = engines
            position = position.fit_for(width, engines)
            np.add.at(word_counts, (first + np.arange(vectors)) % engines, width)
            first = (first + vectors) % engines
            left, last = engines - (engines - left + vectors) % engines, width
            position = position.after(vectors, width, engines, skips)
            assert (position.offset + position.vectors) % engines == first
            begun = (np.arange(engines) - position.offset) % engines < position.vectors
            launches = (
                position.offset // engines + (np.arange(engines) < position.offset % engines) + begun * position.width
            )
            assert (launches == word_counts).all()
            assert position.words == word_counts.sum()


def test_numpy_arrays_are_taken_as_they_are():
    memory = np.zeros((4, 6), np.float32)
    buffer = buffer_of(memory[1:3])
    assert (buffer.dtype, buffer.count, buffer.selector) == ("float32", 12, "")
    buffer.array[:] = 1
    assert memory.sum() == 12
    assert buffer_of(np.zeros((), np.uint8)).count == 1
    assert buffer_of(np.zeros((3, 0))).count == 0


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.zeros((4, 4))[:, ::2], ValueError, "not contiguous"),
        (np.ma.masked_array(np.zeros(4), [0, 1, 0, 0]), TypeError, "out is a masked array"),
        (np.zeros((4, 4), order="F")[:, 1:], ValueError, "not contiguous"),
        (np.frombuffer(b"12345678"), ValueError, "must not be written"),
        ([0.0, 0.0], TypeError, "list.*__cuda_array_interface__"),
        (OnGpu(np.zeros(4), data=(4096, True)), ValueError, "must not be written"),
        (OnGpu(np.zeros((4, 4)), strides=(64, 8)), ValueError, "not contiguous"),
        (OnGpu(np.zeros(4), mask=np.ones(4)), ValueError, "masked"),
    ],
)
def test_what_cannot_be_filled_is_refused(out, error, message):
    with pytest.raises(error, match=message):
        buffer_of(out)


@pytest.mark.parametrize(
    ("distribution", "dtype", "named"),
    [
        ("uniform", "bfloat16", "float16, float32, float64, int16, int32, int64, int8, uint16"),
        ("uniform", "complex64", "float32"),
        ("uniform", "float32 in another byte order", "float32"),
        ("normal", "int32", "come as float16, float32, float64$"),
        ("poisson", "float32", "come as int32, uint32$"),
    ],
)
def test_data_types_that_do_not_come_are_refused_with_those_that_do(distribution, dtype, named):
    with pytest.raises(TypeError, match=named):
        value_type_of(distribution, dtype)


def test_an_array_in_another_byte_order_is_refused():
    with pytest.raises(TypeError, match="byte order"):
        Generator().uniform(np.zeros(4, np.dtype("f4").newbyteorder()))


def test_gpu_arrays_tell_where_they_lie_and_who_wrote_them(monkeypatch):
    monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address: 1)
    array = np.zeros((2, 3), np.float16)
    buffer = buffer_of(OnGpu(array, strides=(6, 2), stream=2))
    assert buffer == Buffer("float16", 6, address=array.ctypes.data, selector="CUDA:1", written_on=2)
    assert buffer_of(OnGpu(np.zeros(0), data=(0, False))).selector == ""


class Tensor:
    """A stand-in for torch with the attributes that are used."""

    def __init__(self, array, dtype="float32", device="cpu", contiguous=True):
        self.array, self.dtype = array, f"torch.{dtype}"
        self.device, self.is_cpu, self.is_cuda = device, device == "cpu", device == "cuda"
        self.get_device = lambda: 1
        self.is_contiguous = lambda: contiguous
        self.numel = lambda: array.size
        self.data_ptr = lambda: array.ctypes.data
        self.detach = lambda: SimpleNamespace(numpy=lambda: array)


def test_torch_tensors_are_taken_on_their_current_stream(monkeypatch):
    current = SimpleNamespace(current_stream=lambda ordinal: SimpleNamespace(cuda_stream=100 + ordinal))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor, cuda=current))
    array = np.zeros(5, np.float32)
    on_host = buffer_of(Tensor(array))
    assert np.shares_memory(on_host.array, array)
    on_gpu = buffer_of(Tensor(array, device="cuda"))
    assert on_gpu == Buffer(
        "float32", 5, address=array.ctypes.data, selector="CUDA:1", stream=Stream(101, on_gpu.stream.owner)
    )
    for device in ("cpu", "cuda"):
        with pytest.raises(TypeError, match="bfloat16"):
            Generator().uniform(Tensor(array, dtype="bfloat16", device=device))
        with pytest.raises(ValueError, match="not contiguous"):
            buffer_of(Tensor(array, contiguous=False))
    with pytest.raises(TypeError, match="cpu and cuda"):
        buffer_of(Tensor(array, device="mps"))


def test_streams_are_handles_or_have_one():
    """A handle still means the same stream later only if an object keeps the stream alive, or if it is one of CUDA's
    own."""

    class Ours:
        def __cuda_stream__(self):
            return 0, 77

    of_torch, ours, of_thread = SimpleNamespace(cuda_stream=6), Ours(), SimpleNamespace(__cuda_stream__=(0, 2))
    assert stream_of(None) is None
    streams = [stream_of(stream) for stream in (np.int64(5), 0, of_torch, ours, of_thread)]
    assert [stream.handle for stream in streams] == [5, 0, 6, 77, 2]
    assert [stream.lasts for stream in streams] == [False, True, True, True, False]
    with pytest.raises(TypeError, match="str"):
        stream_of("first")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "philox"}, "no generator 'philox'.*philox4_32_10"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**64}, "seed"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"offset": 2**63}, "offset"),
        ({"name": "mt19937", "offset": 1}, "cannot leave out"),
        ({"name": "mtgp32", "offset": 1}, "cannot leave out"),
        ({"ordering": "fastest"}, "no ordering 'fastest'.*default, legacy, dynamic"),
        ({"ordering": "quasi"}, "no ordering 'quasi'"),
        ({"name": "sobol32", "ordering": "dynamic"}, "no ordering 'dynamic'"),
        ({"dimensions": 2}, "has no dimensions"),
        ({"name": "sobol32", "dimensions": 0}, "dimensions is 0"),
        ({"shape": (64,)}, "shape is"),
        ({"shape": (0, 64)}, "shape is"),
        ({"shape": "64x4"}, "shape is"),
        ({"table": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_what_does_not_go_together_is_said_at_once(options, message):
    with pytest.raises(UserError, match=message):
        Generator(**options)


@pytest.mark.parametrize("name", ["mt19937", "mtgp32"])
def test_generators_that_cannot_skip_say_so(name):
    with pytest.raises(UserError, match="cannot leave out"):
        Generator(name).skip(1)


def test_parameters_out_of_range_are_refused():
    numbers, out = Generator(), np.zeros(4, np.float32)
    for stddev in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="stddev"):
            numbers.normal(out, stddev=stddev)
    for lam in (0, -2, 2.0**31, float("nan")):
        with pytest.raises(ValueError, match="lam"):
            numbers.poisson(out.astype(np.uint32), lam)
    with pytest.raises(ValueError, match="uint32"):
        numbers.poisson(out.astype(np.int32), 2.0**30)
    with pytest.raises(ValueError, match="host"):
        numbers.uniform(out, stream=0)


def test_an_empty_buffer_needs_no_device():
    numbers, out = Generator("sobol32", dimensions=4), np.zeros((4, 0), np.float32)
    assert numbers.uniform(out) is out
    assert (numbers.position, numbers.launched) == (0, None)


def test_a_state_that_is_none_is_refused():
    state = Generator("xorwow", 3, offset=9).state()
    assert Generator.from_state(state).state() == state
    with pytest.raises(UserError, match="'width'"):
        Generator.from_state({key: value for key, value in state.items() if key != "width"})
    with pytest.raises(UserError, match="vectors is -1"):
        Generator.from_state({**state, "vectors": -1})


@pytest.mark.parametrize("kind", GeneratorKind)
def test_every_kind_shows_itself(kind):
    name = next(name for name, generator in GENERATORS.items() if generator.kind is kind)
    shown = repr(Generator(name, 5))
    assert name in shown
    assert "seed=5" in shown


@pytest.fixture
def streaming(monkeypatch):
    monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address: 0)
    monkeypatch.setattr(_runner, "Mark", object)
    device = StreamingDevice()
    monkeypatch.setattr("tunesmith.toolchains.opencl.context", lambda selector: device._inner._context)
    return device


def filled(numbers, count, **options):
    array = np.zeros(count, np.float32)
    numbers.uniform(OnGpu(array), **options)
    numbers._runner.device._inner.synchronize()
    return array


@pytest.mark.opencl
def test_nothing_waits_on_the_callers_stream_and_streams_follow_one_another(streaming):
    """Tables are copied before any work; engines are seeded and go on where the last call was enqueued."""
    numbers = Generator("xorwow", 7, ordering="dynamic", shape=SHAPE, device=streaming)
    first, second = filled(numbers, 100, stream=11), filled(numbers, 200, stream=22)
    close(np.concatenate([first, second]), expected("xorwow", "uniform", "float32", 300, seed=7, engines=T))
    setup = [("write", "own"), ("wait", "own"), ("initialise", 11)]
    assert streaming.log == [*setup, ("generate", 11), ("record", 11), ("follow", 22), ("generate", 22), ("record", 22)]


@pytest.mark.opencl
def test_on_one_stream_that_lasts_there_is_nothing_but_launches(streaming):
    """The end of a call is marked when the next call uses another stream, or our own stream for a buffer without
    one."""
    numbers = Generator("xorwow", 7, ordering="dynamic", shape=SHAPE, device=streaming)
    first, second = SimpleNamespace(cuda_stream=11), SimpleNamespace(cuda_stream=22)
    found = [filled(numbers, 100, stream=stream) for stream in (first, first, second, None, first)]
    close(np.concatenate(found), expected("xorwow", "uniform", "float32", 500, seed=7, engines=T))
    assert streaming.log[3:] == [
        ("generate", 11),
        ("generate", 11),
        *[("record", 11), ("follow", 22), ("generate", 22)],
        *[("record", 22), ("follow", "own"), ("generate", "own"), ("wait", "own")],
        ("generate", 11),
    ]


@pytest.mark.opencl
def test_a_new_poisson_table_is_copied_behind_the_launches_that_read_the_old_one(streaming):
    numbers, out = Generator(device=streaming), OnGpu(np.zeros(64, np.uint32))
    for lam in (3.0, 4.0):
        numbers.poisson(out, lam, stream=11)
    streaming._inner.synchronize()
    table = [("write", "own"), ("wait", "own"), ("generate", 11), ("record", 11)]
    assert streaming.log == [*table, ("follow", 11), ("write", 11), ("generate", 11), ("record", 11)]


@pytest.mark.opencl
def test_without_a_stream_the_numbers_are_there_on_return(streaming):
    numbers, array = Generator(device=streaming), np.zeros(50, np.float32)
    numbers.uniform(OnGpu(array, stream=5))
    assert streaming.log == [("wait", 5), ("generate", "own"), ("wait", "own")]
    close(array, expected("philox4_32_10", "uniform", "float32", 50, seed=0))
    from_host = numbers.uniform(np.zeros(50, np.float32))
    close(from_host, expected("philox4_32_10", "uniform", "float32", 50, seed=0, position=50))


@pytest.mark.opencl
def test_a_buffer_on_another_gpu_is_refused(streaming, monkeypatch):
    monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address: 1)
    with pytest.raises(UserError, match=r"lies on CUDA:1.*device='CUDA:1'"):
        Generator(device=streaming).uniform(OnGpu(np.zeros(4)))


def test_within_on_a_gpu_works_on_the_callers_stream_in_its_own_context(monkeypatch):
    """Constants are copied on that stream, too, and nothing waits for them."""
    log = []
    monkeypatch.setattr(cuda, "call", lambda name, *arguments: log.append((name, *arguments)))
    monkeypatch.setattr(cuda, "bindings", lambda: SimpleNamespace(CUstream=int))

    def of_driver(function):
        return lambda *arguments: log.append((function, *(argument.value for argument in arguments))) or 0

    monkeypatch.setattr("tunesmith.devices.cuda.repeated.driver_function", of_driver)
    device = object.__new__(cuda.CudaDevice)
    device._context, device._own_stream, device._stream = "ours", 7, 7
    memory = cuda.CudaMemory(1000, 64, owned=True)
    with device.on(5):
        device.prepare(Plan((Write(16, b"abc"),), 64), [], {}, memory).enqueue()
        with device.on(None):
            device.synchronize()
        device.follow(SimpleNamespace(event="mark"))
    device.synchronize()
    assert log == [
        ("cuCtxPushCurrent", "ours"),
        ("cuMemcpyHtoDAsync_v2", 1016, b"abc", 3, 5),
        ("cuCtxPushCurrent", "ours"),
        ("cuStreamSynchronize", 7),
        ("cuCtxPopCurrent",),
        ("cuStreamWaitEvent", 5, "mark", 0),
        ("cuCtxPopCurrent",),
        ("cuStreamSynchronize", 7),
    ]
