"""After `os.fork()` calls in the child work, or raise an error at once, since a driver's threads stay in the parent."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from test_library_opencl import target, write  # noqa: F401  # a fixture

from cuda_runner import cuda_device
from tunesmith.devices.cuda import driver as _cuda_driver
from tunesmith.library.launch._locks import call_lock
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError
from tunesmith.toolchains.forked import Driver

SECONDS = 60
"""Far longer than all calls take. After it a child that hangs is killed."""

SCRIPT = """
import os, sys, threading
import numpy as np
import tunesmith
import tunesmith.random
from tunesmith.records import UserError

a = np.eye(16, dtype=np.float32)
def matmul(): return (library.matmul(a, a) == a).all()
def fresh():
    with tunesmith.load(sys.argv[1], floor=False) as another:
        return (another.matmul(a, a) == a).all()
def fill(): return (generator.uniform(np.zeros(100, np.float32)) > 0).any()
def select(): return library.select(16, 16, 16).name != ""
def close():
    library.close()
    return True
def refused(call):
    try:
        call()
    except UserError as error:
        return "fork" in str(error)

def in_a_child(inside):
    child = os.fork()
    if not child:
        sys.exit(0 if eval(inside) else "it is not so")
    print(inside, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sep=": ", flush=True)

def hold():
    with generator._lock:
        held.set()
        done.wait()

library = tunesmith.load(sys.argv[1], floor=False)
generator = tunesmith.random.Generator("philox4_32_10", device="OpenCL")
in_a_child(sys.argv[2])
assert matmul() and fill()
for inside in sys.argv[3:-1]:
    in_a_child(inside)
library._lock.acquire()
held, done = threading.Event(), threading.Event()
threading.Thread(target=hold, daemon=True).start()
held.wait()
in_a_child(sys.argv[-1])
done.set()
assert matmul() and fill()
print("the parent goes on: 0")
"""

UNUSED = "matmul() and fill() and fresh() and select() and close()"
"""Asked before the parent uses the device."""
USED = ["refused(matmul)", "refused(fill)", "refused(fresh)", "select()", "refused(matmul) and close()"]
HELD = "refused(fill) and refused(matmul)"
"""Asked while another thread holds the generator's lock."""


@pytest.fixture(scope="module")
def ended(target, tmp_path_factory):  # noqa: F811
    """The exit status of each child, by what holds in it, and what the program wrote to its standard error."""
    folder = tmp_path_factory.mktemp("logic")
    write(gemm_type("s", transpose_a=False, transpose_b=False), target, folder)
    command = [sys.executable, "-c", SCRIPT, str(folder), UNUSED, *USED, HELD]
    # A session of its own, so that the children go too when one hangs.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            printed, warned = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            printed, warned = process.communicate()
            warned += "the next child hangs"
    return dict(line.rsplit(": ", 1) for line in printed.splitlines()), warned


@pytest.mark.opencl
@pytest.mark.parametrize("inside", USED)
def test_a_child_of_who_used_the_device_is_told(inside, ended):
    statuses, warned = ended
    assert (statuses.get(inside), warned) == ("0", "")


@pytest.mark.opencl
def test_a_child_of_who_had_not_used_the_device_works(ended):
    statuses, warned = ended
    assert (statuses.get(UNUSED), warned) == ("0", "")


@pytest.mark.opencl
def test_a_child_is_told_while_another_thread_is_in_a_call(ended):
    """The other thread holds the generator's lock, and does not exist in the child to release it."""
    statuses, warned = ended
    assert (statuses.get(HELD), warned) == ("0", "")
    assert statuses.get("the parent goes on") == "0"


def in_a_child(check):
    child = os.fork()
    if not child:
        try:
            os._exit(0 if check() else 1)  # type: ignore[operator]
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refuses(call):
    try:
        call()  # type: ignore[operator]
    except UserError as error:
        return "fork" in error.what
    return False


def test_a_driver_that_was_used_is_lost_in_a_child_and_in_its_children():
    driver, other = Driver("one"), Driver("other")
    driver.use()
    assert in_a_child(lambda: refuses(driver.use) and in_a_child(lambda: refuses(driver.use)) == 0) == 0
    assert in_a_child(lambda: other.use() is None) == 0
    driver.use()


def test_a_call_of_cudas_driver_is_refused_in_a_child(monkeypatch):
    """The driver is not called. Without a GPU a stand-in takes its place."""
    monkeypatch.setattr(_cuda_driver, "CUDA", Driver("CUDA"))
    monkeypatch.setattr(_cuda_driver, "bindings", lambda: SimpleNamespace(cuInit=lambda flags: (0,)))
    assert _cuda_driver.call("cuInit", 0) is None
    assert in_a_child(lambda: refuses(lambda: _cuda_driver.call("cuInit", 0))) == 0
    assert in_a_child(lambda: _cuda_driver.destroy_handle("cuEventDestroy", 1) is None) == 0


def test_a_lock_that_another_thread_holds_is_free_in_a_child():
    lock, held, done = call_lock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert in_a_child(lambda: lock.acquire(timeout=5)) == 0
        assert not lock.acquire(blocking=False)
    finally:
        done.set()
        thread.join()


@pytest.mark.gpu
def test_a_child_of_who_used_a_gpu_is_told():
    cuda_device()
    script = (
        "import os, sys, numpy as np\nimport tunesmith.random\nfrom tunesmith.records import UserError\n"
        "generator = tunesmith.random.Generator('philox4_32_10', device='CUDA')\n"
        "generator.uniform(np.zeros(100, np.float32))\nchild = os.fork()\nif not child:\n"
        "    try:\n        generator.uniform(np.zeros(100, np.float32))\n"
        "    except UserError as error:\n        os._exit(0 if 'fork' in str(error) else 1)\n    os._exit(2)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=SECONDS).returncode == 0
