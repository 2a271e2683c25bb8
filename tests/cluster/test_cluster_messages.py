"""What crosses a cluster: plain data that is checked, identities, addresses; and which devices an option names."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith.cluster import opened, require_dask, selectors
from tunesmith.cluster.devices import is_interchangeable, kinds_of
from tunesmith.cluster.messages import Role, WorkerIdentity, compiler_versions
from tunesmith.cluster.wire import measurement_of, plain_measurement
from tunesmith.devices import FoundDevice
from tunesmith.devices.fake import fake_target
from tunesmith.records import CompiledFacts, Cost, Estimate, Measurement, Outcome, UserError

seconds = st.floats(0, 1e3)
measurements = st.builds(
    Measurement,
    st.sampled_from(Outcome),
    st.text(max_size=9),
    st.text(max_size=9),
    st.lists(seconds, max_size=9).map(tuple),
    st.none() | st.builds(Estimate, seconds, seconds, seconds, st.integers(1, 99)),
    st.booleans(),
    st.lists(st.builds(CompiledFacts, st.text(max_size=5), st.integers(0, 255)), max_size=2).map(tuple),
    st.builds(Cost, seconds, seconds, seconds),
    seconds,
)


@given(measurements)
@settings(max_examples=50, deadline=None)
def test_a_measurement_crosses_as_plain_data_and_gains_its_device(measurement):
    crossed = msgpack.unpackb(msgpack.packb(plain_measurement(measurement)))
    received = measurement_of(crossed, "CUDA:1@a")
    assert received == measurement
    assert received.device == "CUDA:1@a"


@pytest.mark.parametrize(
    "damage",
    [
        {"outcome": "fine"},
        {"samples": ["x"]},
        {"estimate": [1, 2]},
        {"facts": [{"code": 1}]},
        {"cost": []},
        {"started": None},
    ],
    ids=str,
)
def test_what_is_no_measurement_is_refused_by_the_devices_name(damage):
    plain = plain_measurement(Measurement(Outcome.OK, estimate=Estimate(1, 1, 1, 7))) | damage
    with pytest.raises(UserError, match=r"CUDA:1@a.*same version of tunesmith"):
        measurement_of(plain, "CUDA:1@a")


def test_a_worker_says_what_it_is():
    target = fake_target()
    identity = WorkerIdentity(Role.DEVICE, "a", "fake:GPU:8@a", target, toolchains=compiler_versions(target))
    assert WorkerIdentity.of(msgpack.unpackb(msgpack.packb(identity.to_plain()))) == identity
    assert identity.toolchains == {"fake": "fake 1.0"}


@pytest.mark.parametrize("plain", [None, {}, {"role": "cook"}, {"role": "device", "target": {"api": "x"}}, "text"])
def test_a_worker_that_is_not_ours_is_no_device(plain):
    assert WorkerIdentity.of(plain) is None


def test_devices_are_of_one_kind_if_only_selector_and_memory_differ():
    first = fake_target()
    second = replace(first, selector="fake:GPU:8/1", global_memory_bytes=5)
    other = fake_target("CPU")
    assert is_interchangeable(first, second)
    for change in ({"driver": "2"}, {"compute_units": 9}, {"name": "another"}, {"local_memory_bytes": 1}):
        assert not is_interchangeable(first, replace(first, **change)), change
    assert kinds_of([first, other, second]) == [replace(first, global_memory_bytes=5), other]


@pytest.mark.parametrize(
    ("address", "exposed"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://10.0.0.2:8786", True),
        ("tcp://head:8786", True),
        ("tls://10.0.0.2:8786", False),
    ],
)
def test_a_plain_scheduler_beyond_this_host_is_exposed(address, exposed):
    assert opened.is_exposed(address) is exposed


def names(text):
    return [device.name for device in selectors.host_devices(text)]


def test_fake_devices_may_be_any_number():
    assert names("fake:GPU:8*3") == ["fake:GPU:8/0", "fake:GPU:8/1", "fake:GPU:8/2"]
    assert names("fake:GPU:8, fake:CPU:8") == ["fake:GPU:8", "fake:CPU:8"]


def test_a_cpu_is_divided_into_parts_of_equally_many_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3, 4})
    found(monkeypatch, replace(fake_target("CPU"), api="OpenCL", selector="OpenCL:0:0"))
    devices = selectors.host_devices("OpenCL:0:0*2")
    assert [(device.cores, device.part) for device in devices] == [((0, 1), "2 of 5 cores"), ((2, 3), "2 of 5 cores")]
    with pytest.raises(UserError, match="5 cores cannot be 6 parts"):
        selectors.host_devices("OpenCL:0:0*6")


def found(monkeypatch, *targets):
    listing = tuple(FoundDevice(target.name, target) for target in targets)
    monkeypatch.setattr(selectors, "discover", lambda selector: listing)


GPUS = [replace(fake_target(), api="CUDA", selector=f"CUDA:{number}", name="a GPU") for number in range(3)]
HOST = replace(fake_target("CPU"), api="OpenCL", selector="OpenCL:0:0", name="a CPU")


def test_all_are_the_devices_of_the_first_ones_api_and_kind(monkeypatch):
    """A GPU that is found through two APIs must not be measured by two workers at once."""
    twice = replace(GPUS[0], api="OpenCL", selector="OpenCL:1:0")
    found(monkeypatch, *GPUS, twice, HOST)
    assert names("all") == ["CUDA:0", "CUDA:1", "CUDA:2"]
    assert names("CUDA:0,CUDA:2") == ["CUDA:0", "CUDA:2"]
    assert names("a cpu") == ["OpenCL:0:0"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("CUDA:7", "no usable device matches 'CUDA:7'.*CUDA:0 .a GPU."),
        ("CUDA:0*2", "measured whole"),
        ("CUDA:0*x", "no whole number after"),
        ("CUDA:0,CUDA", "CUDA:0 is named twice"),
        (" ,", "names no device"),
    ],
)
def test_what_names_no_device_is_refused_with_a_remedy(text, complaint, monkeypatch):
    found(monkeypatch, *GPUS, HOST)
    with pytest.raises(UserError, match=complaint):
        selectors.host_devices(text)


def test_without_dask_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr("tunesmith.cluster.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"--devices: needs Dask.*pip install 'tunesmith\[cluster\]'"):
        require_dask("--devices")


def test_nothing_of_dask_is_imported_without_the_options(tmp_path):
    """Neither by `import tunesmith`, nor by a run on one device, nor by a help page."""
    code = (
        "import sys; import tunesmith, tunesmith.session, tunesmith.cli.tune, tunesmith.cli.worker\n"
        "from tunesmith.cli.app import app\n"
        "try: app(['tune', '--help'])\n"
        "except SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
    assert "--devices" in done.stdout
