"""Two hosts: two network namespaces, each with a /tmp of its own, tune together without a shared folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from contextlib import ExitStack

import pytest

from cluster_runs import many_sizes
from forked_server import MARK
from tuning_runs import command, document, environment, orphans, rows

HEAD, OTHER = "10.77.0.1", "10.77.0.2"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def can_make_hosts():
    """Whether this process may make network namespaces and mounts; else the reason why not."""
    if not (shutil.which("ip") and shutil.which("unshare")):
        return "needs the commands ip and unshare"
    name = f"ts{uuid.uuid4().hex[:6]}"
    try:
        ip("netns", "add", name)
        ip("netns", "del", name)
        subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], check=True, capture_output=True)
    except (subprocess.CalledProcessError, OSError):
        return "needs the right to make network namespaces and mounts"
    return ""


@pytest.fixture
def hosts():
    """The names of two namespaces that are connected by a cable."""
    if reason := can_make_hosts():
        pytest.skip(reason)
    first, second = (f"ts{uuid.uuid4().hex[:6]}" for _ in range(2))
    with ExitStack() as made:
        for name in (first, second):
            ip("netns", "add", name)
            made.callback(ip, "netns", "del", name)
        ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for name, address in ((first, HEAD), (second, OTHER)):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield first, second


@pytest.mark.thorough
def test_two_hosts_tune_without_a_shared_folder(hosts, tmp_path):
    here, there = hosts
    env, scheduler = environment(), f"tcp://{HEAD}:8786"
    file = many_sizes(tmp_path)
    with ExitStack() as running:

        def start(host, log, *words):
            output = running.enter_context((tmp_path / log).open("w"))
            process = subprocess.Popen(["ip", "netns", "exec", host, *words], env=env, stdout=output, stderr=output)
            running.callback(process.wait)
            running.callback(process.terminate)

        start(
            here,
            "scheduler",
            *(
                sys.executable,
                "-m",
                "distributed.cli.dask_scheduler",
                "--host",
                HEAD,
                "--port",
                "8786",
                "--no-dashboard",
            ),
        )
        for host, name in ((here, "a"), (there, "b")):
            own_files = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /tmp && cd / && exec "$@"', "sh"]
            joining = command("worker", "--cluster", scheduler, "--devices", "fake:GPU:8*2", "--name", name)
            start(host, name, *(own_files if host == there else []), *joining)
        tuning = command("tune", file, "-o", tmp_path / "run", "--cluster", scheduler, "--wait-for", 4, "--json")
        done = subprocess.run(
            ["ip", "netns", "exec", here, *tuning], env=env | {"PWD": "/"}, capture_output=True, text=True, timeout=240
        )
    found = document(done)
    assert found["measured"] == len(rows(tmp_path / "run"))
    shares = {share["device"]: share["measured"] for share in found["devices"]}
    assert set(shares) == {f"fake:GPU:8/{number}@{host}" for number in range(2) for host in "ab"}
    assert all(measured > 1 for measured in shares.values()), "each host measured more than its anchor"
    assert f"the scheduler at {scheduler} is neither on this host nor protected" in done.stderr
    assert not orphans(env[MARK])
