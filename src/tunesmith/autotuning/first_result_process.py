"""Launches a jit function once, as a program of its own, and writes what its arrays hold then.

`python -m tunesmith.autotuning.first_result_process FOLDER` reads `job.json` and `inputs.npz` there, and writes
`outputs.npz`. Arrays are written as bytes, so that every data type can be.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.toolchains.triton_text import function_of_text

JOB, INPUTS, OUTPUTS, ERRORS = "job.json", "inputs.npz", "outputs.npz", "errors.txt"


def launch(folder: Path) -> None:
    """Do the job in a folder."""
    import torch

    job: dict[str, Any] = json.loads((folder / JOB).read_text(encoding="utf-8"))
    function = function_of_text(job["text"], f"{job['entry']}.py", job["entry"])
    device = torch.device(job["device"])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    with np.load(folder / INPUTS, allow_pickle=False) as inputs:
        arrays = {
            name: torch.from_numpy(inputs[name]).view(getattr(torch, dtype)).to(device)
            for name, dtype in job["arrays"].items()
        }
    function[tuple(job["grid"])](**arrays, **job["numbers"], **job["config"])
    outputs: dict[str, Any] = {name: array.cpu().view(torch.uint8).numpy() for name, array in arrays.items()}
    np.savez(folder / OUTPUTS, **outputs)


if __name__ == "__main__":
    launch(Path(sys.argv[1]))
