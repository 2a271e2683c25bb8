"""How long does a new program take until its first product without a logic, at its first and at its second start?

    python benchmarks/cold_start.py [--starts 5] [--json RESULT.json]

Every start is a new interpreter. All caches (tunesmith's, PoCL's, Triton's, CUDA's) are in one new folder for each
product, so that the first start compiles everything and the second start finds it. On the host's CPU the seconds are
those of the whole process, with NumPy's import. Beside them are its processor seconds, which depend less on other load.
On a GPU the seconds begin after torch is imported and has its context and the operands, and end when the result is
complete; `import tunesmith` is included. With several `--starts`, each pair of starts has its own folder, and the least
time counts. Every result is checked against a product in double precision. A start that takes longer than LIMIT_SECONDS
is ended. A product that would begin after `--deadline` seconds is left out, and the output says so.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

LIMIT_SECONDS, DEADLINE_SECONDS = 25.0, 45.0

VARIABLES = {
    "XDG_CACHE_HOME": "xdg",
    "TUNESMITH_CACHE": "tunesmith",
    "POCL_CACHE_DIR": "pocl",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
}
"""The environment variable of each cache, with its subfolder."""

ON_CPU = """
import sys
import numpy as np
import tunesmith
m, n, k = map(int, sys.argv[1].split("x"))
random = np.random.default_rng(0)
a, b = (random.standard_normal(shape).astype(sys.argv[2]) for shape in ((m, k), (k, n)))
d = tunesmith.matmul(a, b)
"""

ON_GPU = """
import sys, time
import torch
m, n, k = map(int, sys.argv[1].split("x"))
a, b = (torch.randn(shape, device="cuda").to(getattr(torch, sys.argv[2])) for shape in ((m, k), (k, n)))
torch.cuda.synchronize()
start = time.perf_counter()
import tunesmith
d = tunesmith.matmul(a, b)
torch.cuda.synchronize()
seconds = time.perf_counter() - start
"""

CHECKED = """
import json, warnings
from tunesmith.library import Library
warnings.simplefilter("ignore")
told = []
wide = [x.double() if hasattr(x, "double") else x.astype(float) for x in (a, b, d)]
spacing = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
unit = min(spacing[sys.argv[2]], spacing["float32"]) / 2
wanted = wide[0] @ wide[1]
bound = (4 * k**0.5 + 2) * unit * (abs(wide[0]) @ abs(wide[1])) + spacing[sys.argv[2]] / 2 * abs(wanted)
right = bool((abs(wide[2] - wanted) <= bound + 1e-300).all())
Library((), launched=told.append).matmul(a, b)
kernel = told[0].choice.solution.kernel if told else "NumPy"
print(json.dumps({"seconds": globals().get("seconds"), "right": right, "kernel": kernel}))
"""

PRODUCTS = (
    *(("GPU", "255x129x67", "bfloat16"), ("GPU", "4096x4096x4096", "bfloat16"), ("GPU", "255x129x67", "float32")),
    *(("CPU", "255x129x67", "float32"), ("CPU", "1000x700x333", "float64")),
)
"""Device, M x N x K and data type."""


@dataclass(frozen=True)
class ProgramStart:
    """One start of a program: its seconds (see above), its processor seconds, whether the result was right, and the
    kernel family. If the start failed, these are None or empty, and `problem` says why."""

    device: str
    size: str
    dtype: str
    start: str
    seconds: float | None = None
    cpu_seconds: float | None = None
    right: bool | None = None
    kernel: str = ""
    problem: str = ""

    def __str__(self) -> str:
        subject = f"{self.device}  {self.size:16} {self.dtype:9} {self.start:7}"
        if self.problem:
            return f"{subject} {self.problem}"
        cpu = f"   processor {self.cpu_seconds:5.2f} s" if self.cpu_seconds is not None else ""
        return f"{subject} {self.seconds:5.2f} s{cpu}   {'right' if self.right else 'WRONG'}   {self.kernel}"


def started(device: str, size: str, dtype: str, start: str, caches: Path) -> ProgramStart:
    """Start the program with its caches in a folder."""
    plain = ON_CPU if device == "CPU" else ON_GPU
    # The check is not part of a start: on the CPU the program is timed without the check, then run again with it.
    problem, wall, used, _ = ran(plain, size, dtype, caches) if device == "CPU" else ("", None, None, "")
    if not problem:
        problem, _, _, output = ran(plain + CHECKED, size, dtype, caches)
    if problem:
        return ProgramStart(device, size, dtype, start, problem=problem)
    answer = json.loads(output.splitlines()[-1])
    return ProgramStart(device, size, dtype, start, wall or answer["seconds"], used, answer["right"], answer["kernel"])


def ran(program: str, size: str, dtype: str, caches: Path) -> tuple[str, float, float, str]:
    """The reason of a failure (empty without one), wall and processor seconds of the process, and its output."""
    environment = os.environ | {name: str(caches / part) for name, part in VARIABLES.items()}
    for part in VARIABLES.values():
        (caches / part).mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [sys.executable, "-W", "ignore", "-c", program, size, dtype]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return f"took more than {LIMIT_SECONDS:g} s", 0.0, 0.0, ""
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    problem = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1] if done.returncode else ""
    return problem, wall, used, done.stdout


def measured(starts: int, deadline: float, has_gpu: bool) -> Iterator[ProgramStart]:
    begin = time.perf_counter()
    for device, size, dtype in PRODUCTS:
        if device == "GPU" and not has_gpu:
            yield ProgramStart(device, size, dtype, "-", problem="left out: torch has no GPU here")
            continue
        for _ in range(starts):
            if time.perf_counter() - begin > deadline:
                yield ProgramStart(device, size, dtype, "-", problem=f"left out after {deadline:g} s")
                break
            with tempfile.TemporaryDirectory() as caches:
                for start in ("first", "second"):
                    yield started(device, size, dtype, start, Path(caches))


def has_gpu() -> bool:
    """Whether torch has a GPU, asked in a separate process so that this one loads no driver."""
    program = "import torch; print(torch.cuda.is_available())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return done.stdout.strip().endswith("True")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--starts", type=int, default=1, help="Pairs of a first and a second start, of each product.")
    parser.add_argument("--deadline", type=float, default=DEADLINE_SECONDS, help="Seconds.")
    parser.add_argument("--json", type=Path, help="Write every start here.")
    arguments = parser.parse_args()
    starts = []
    for start in measured(arguments.starts, arguments.deadline, has_gpu()):
        print(start, flush=True)
        starts.append(start)
    least: dict[tuple[str, ...], float] = {}
    for start in starts:
        if start.seconds is not None:
            key = start.device, start.size, start.dtype, start.start
            least[key] = min(start.seconds, least.get(key, start.seconds))
    print("least seconds")
    for key, seconds in least.items():
        print(f"{seconds:6.2f}  {' '.join(key)}")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(start) for start in starts], indent=1))


if __name__ == "__main__":
    main()
