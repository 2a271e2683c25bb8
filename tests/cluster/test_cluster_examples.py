"""The examples for one host, SLURM, MPI and Kubernetes start here with this host's processes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from cluster_runs import many_sizes
from forked_server import MARK
from tuning_runs import environment, orphans, rows

EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"


@pytest.fixture
def commands(tmp_path):
    """An environment in which `tunesmith` and `dask` are this interpreter's, with two fake devices and no SLURM."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, module in (("tunesmith", "tunesmith.cli.main"), ("dask", "dask")):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
        (folder / name).chmod(0o755)
    own = environment(TUNESMITH_DEVICES="fake:GPU:8*2", TUNESMITH_WAIT_FOR=2)
    return {**own, "PATH": f"{folder}:/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.mark.thorough
@pytest.mark.parametrize("script", ["one_host.sh", "slurm.sh", "mpi.sh"])
def test_a_script_tunes_and_leaves_nothing_behind(script, commands, tmp_path):
    file = many_sizes(tmp_path)
    words = ["sh", EXAMPLES / script, file, tmp_path / "run"]
    with (tmp_path / "log").open("w+") as log:
        done = subprocess.run(words, env=commands, stdout=log, stderr=log, timeout=240)
        log.seek(0)
        assert done.returncode == 0, log.read()
    assert any(name == "full" for _, name in rows(tmp_path / "run"))
    assert not orphans(commands[MARK], patience=20)


@pytest.mark.thorough
def test_the_commands_for_kubernetes_run_here(commands, tmp_path):
    """The containers' commands, with this host's address, a free port and a folder of this host."""
    many_sizes(tmp_path).rename(tmp_path / "llm.yaml")
    here = {"tcp://tunesmith-scheduler:8786": "tcp://127.0.0.1:18799", "8786": "18799"}
    here |= {"all": "fake:GPU:8*2", "8": "2"}
    by_name = {}
    for document in yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()):
        template = document["spec"].get("template")
        for container in template["spec"]["containers"] if template else []:
            by_name[container["name"]] = [
                here.get(word, word).replace("/results", str(tmp_path)) for word in container["command"]
            ]
    with ExitStack() as running:
        for name in ("scheduler", "worker"):
            log = running.enter_context((tmp_path / name).open("w"))
            process = subprocess.Popen(by_name[name], env=commands, stdout=log, stderr=log)
            running.callback(process.wait)
            running.callback(process.terminate)
        done = subprocess.run(by_name["tune"], env=commands, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert any(name == "full" for _, name in rows(tmp_path / "out"))
    assert not orphans(commands[MARK], patience=20)
