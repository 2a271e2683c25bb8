"""How many small mistakes do the tests notice? Mutants of the source, each run against the tests of its area.

`python benchmarks/mutants.py` makes 120 mutants, 12 of each area, drawn with a seed from all places where an operator,
a number, a condition or a choice of `min` and `max` can be turned into its neighbour. A mutant is killed if a test
fails on it or does not end in time. Some mutants compute the same as the source, so that no test can kill them:
`recorded/mutants/equivalent.json` lists them with the reason, and others are drawn in their place. The program prints a
table of the areas and every survivor with its change; `--json FILE` keeps all of it, after Ctrl-C too. The exit code is
1 if fewer than 95 % are killed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
EQUIVALENT = ROOT / "benchmarks" / "recorded" / "mutants" / "equivalent.json"
EACH, BAR, SLOWER, LEAST_SECONDS = 12, 0.95, 4, 60
"""Mutants of an area; the part that must be killed; a mutant may take this many times as long as the tests do without
it, and at least these seconds."""

AREAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "protocol": (
        ("protocol/winners.py", "protocol/joins.py", "protocol/intervals.py", "protocol/objectives.py",
         "protocol/candidates.py", "protocol/drive.py", "protocol/lineage.py", "protocol/*forecast*.py"),
        ("tests/protocol",),
    ),
    "statistics": (
        ("bench/statistics.py", "bench/timing.py"),
        ("tests/bench/test_bench_statistics.py", "tests/bench/test_bench_timing.py"),
    ),
    "verification": (
        ("bench/verification/*.py",),
        ("tests/bench/test_bench_verify.py", "tests/bench/test_bench_cases.py",
         "tests/bench/test_bench_device_memory.py", "tests/bench/test_bench_device_programs.py",
         "tests/problems/test_fill.py"),
    ),
    "store": (("store/*.py",), ("tests/store",)),
    "logic": (("logic/*.py",), ("tests/logic",)),
    "models": (("models/stream_k/*.py",), ("tests/models/stream_k",)),
    "rules": (
        ("kernels/gemm/*/rules.py", "kernels/gemm/cuda/wgmma/rules.py", "kernels/gemm/opencl/schedule.py"),
        ("tests/kernels/gemm/test_gemm_parameters.py", "tests/kernels/gemm/test_gemm_grids.py",
         "tests/kernels/wgmma/test_wgmma_gemm.py", "tests/kernels/triton/test_triton_dense.py",
         "tests/kernels/triton/test_triton_gemm.py", "tests/kernels/portblas/test_portblas_rules.py",
         "tests/kernels/portblas/test_portblas_parameters.py", "tests/kernels/gemm/test_gemm_kernels.py",
         "tests/kernels/gemm/test_opencl_limits.py", "tests/kernels/gemm/test_opencl_schedule.py",
         "tests/kernels/wgmma/test_wgmma_limits.py", "tests/kernels/triton/test_triton_limits.py"),
    ),
    "random selection": (("logic/random/*.py",), ("tests/logic/random", "tests/formats/random")),
    "library": (
        ("library/gemm/*.py", "library/launch/*.py", "library/arrays/*.py"),
        ("tests/library", "tests/session/test_session_compare.py"),
    ),
    "devices": (
        ("devices/choice.py", "devices/health.py", "devices/host_*.py", "devices/gemm_call.py", "devices/cuda/*.py"),
        ("tests/devices", "tests/kernels/gemm/test_vendor_blas.py"),
    ),
}  # fmt: skip
"""By name: the source files (patterns below `src/tunesmith`), and the tests that are to notice."""

COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}


LEFT_ALONE = (ast.Raise, ast.JoinedStr, ast.FunctionDef, ast.Lambda)
"""Messages, and what is visited by itself or is too short to matter. The `strict` of a zip is left alone too: like an
`assert`, it states what always holds."""


@dataclass(frozen=True)
class Mutant:
    """`before` becomes `after` between two offsets (bytes) of a file; `where` is its line, `function` holds it."""

    file: str
    function: str
    line: int
    start: int
    end: int
    before: str
    after: str
    occurrence: int = 1

    @property
    def name(self) -> str:
        """The same after other parts of the file have changed; `occurrence` tells equal changes of a function apart."""
        again = f" ({self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.file}:{self.function}: {self.before} -> {self.after}{again}"


@dataclass(frozen=True)
class Verdict:
    area: str
    mutant: Mutant
    killed: bool
    seconds: float
    by: str


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """The neighbours of an expression, each a copy with one change."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARE:
            yield ast.Compare(node.left, [COMPARE[type(operator)]()], node.comparators)
        case ast.BinOp(op=operator) if type(operator) in COMPUTE and not _is_text(node):
            yield ast.BinOp(node.left, COMPUTE[type(operator)](), node.right)
        case ast.BoolOp(op=operator):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.Call(func=ast.Name(id=name)) if name in CALLED:
            yield ast.Call(ast.Name(CALLED[name]), node.args, node.keywords)
        case ast.Call(func=ast.Attribute(attr=name)) if name in CALLED:
            yield ast.Call(ast.Attribute(node.func.value, CALLED[name]), node.args, node.keywords)


def _is_text(node: ast.BinOp) -> bool:
    """Whether strings or types are put together, where another operator only raises."""
    return any(isinstance(part, ast.JoinedStr | ast.List | ast.Tuple) or _is_string(part) for part in ast.walk(node))


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file's functions, but for decorators, annotations, defaults of types, `assert`s and
    `LEFT_ALONE`."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for row in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(row))

    def expressions(node: ast.AST) -> Iterator[ast.expr]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params") or isinstance(node, ast.Assert):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, LEFT_ALONE) or not isinstance(child, ast.AST):
                    continue
                if isinstance(child, ast.keyword) and child.arg == "strict":
                    continue
                if isinstance(child, ast.expr):
                    yield child
                yield from expressions(child)

    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    occurrences = Counter[tuple[str, str, str]]()
    for function in functions:
        for node in (part for statement in function.body for part in (statement, *expressions(statement))):
            if not isinstance(node, ast.expr):
                continue
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            for other in changed(node):
                before, after = ast.unparse(node), ast.unparse(other)
                file = str(path.relative_to(ROOT))
                occurrences[function.name, before, after] += 1
                occurrence = occurrences[function.name, before, after]
                yield Mutant(file, function.name, node.lineno, start, end, before, f"({after})", occurrence)


def drawn(files: Sequence[str], count: int, seed: str, equivalent: set[str]) -> list[Mutant]:
    """So many mutants of the files, spread over them by the number that each has. A change of the source changes the
    draw little: each mutant's name decides whether it is drawn."""
    candidates = [mutant for mutant in every(files) if mutant.name not in equivalent]
    return sorted(candidates, key=lambda mutant: random.Random(f"{seed} {mutant.name}").random())[:count]


def every(files: Sequence[str]) -> list[Mutant]:
    paths = [path for pattern in files for path in sorted((ROOT / "src" / "tunesmith").glob(pattern))]
    return [mutant for path in paths for mutant in mutants_of(path)]


def survivors(path: Path) -> list[tuple[str, Mutant]]:
    """Areas and mutants of an earlier run that no test killed, as they are in the source of today."""
    rows = [row for row in json.loads(path.read_text(encoding="utf-8")) if not row["killed"]]
    names = {(row["area"], Mutant(**row["mutant"]).name) for row in rows}
    return [(area, mutant) for area in AREAS for mutant in every(AREAS[area][0]) if (area, mutant.name) in names]


class Tree:
    """A copy of the repository in which one mutant at a time lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = shutil.ignore_patterns(".*", "__pycache__", "site")
        shutil.copytree(ROOT, folder, ignore=kept)

    def tested(self, tests: Sequence[str], seconds: float) -> tuple[bool, str]:
        """Whether the tests pass in time, and the first that failed."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        path = os.pathsep.join(filter(None, (str(self.folder / "src"), os.environ.get("PYTHONPATH"))))
        variables = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return False, "no end"
        failed = [row for row in done.stdout.splitlines() if row.startswith(("FAILED", "ERROR"))]
        return done.returncode == 0, failed[0].split(" - ")[0].split("::")[-1] if failed else ""

    def killed(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> tuple[bool, str]:
        path = self.folder / mutant.file
        before = path.read_bytes()
        path.write_bytes(before[: mutant.start] + mutant.after.encode() + before[mutant.end :])
        try:
            passed, by = self.tested(tests, seconds)
        finally:
            path.write_bytes(before)
        return not passed, by


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=EACH, help="mutants of an area")
    parser.add_argument("--seed", default="tunesmith", help="another draw")
    parser.add_argument("--area", action="append", choices=AREAS, help="only this one; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants that are tested at once")
    parser.add_argument("--again", type=Path, metavar="FILE", help="only the survivors of an earlier run's --json FILE")
    parser.add_argument("--json", type=Path, help="keep every verdict in this file")
    asked = parser.parse_args()
    equivalent = {row["mutant"] for row in json.loads(EQUIVALENT.read_text(encoding="utf-8"))}
    with tempfile.TemporaryDirectory() as scratch:
        free: SimpleQueue[Tree] = SimpleQueue()
        for number in range(asked.jobs):
            free.put(Tree(Path(scratch) / str(number)))
        work = (
            survivors(asked.again)
            if asked.again
            else [
                (area, mutant)
                for area in asked.area or AREAS
                for mutant in drawn(AREAS[area][0], asked.each, f"{asked.seed} {area}", equivalent)
            ]
        )
        areas = list(dict.fromkeys(area for area, _ in work))
        with ThreadPoolExecutor(asked.jobs) as pool:
            try:
                limits = dict(zip(areas, pool.map(lambda area: limit(free, AREAS[area][1]), areas), strict=True))
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                sys.exit("stopped before the first mutant, while the tests ran on the source as it is")

        verdicts: list[Verdict] = []

        def judge(area: str, mutant: Mutant) -> None:
            tree, began = free.get(), time.monotonic()
            killed, by = tree.killed(mutant, AREAS[area][1], limits[area])
            free.put(tree)
            verdicts.append(Verdict(area, mutant, killed, time.monotonic() - began, by))
            print("." if killed else "S", end="", flush=True)

        with ThreadPoolExecutor(asked.jobs) as pool:
            try:
                for judged in [pool.submit(judge, *task) for task in work]:
                    judged.result()
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
    verdicts.sort(key=lambda verdict: areas.index(verdict.area))
    print()
    report(verdicts)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n", encoding="utf-8")
    if len(verdicts) < len(work):
        sys.exit(f"stopped after {len(verdicts)} of {len(work)} mutants")
    sys.exit(sum(verdict.killed for verdict in verdicts) < BAR * len(verdicts))


def limit(free: SimpleQueue[Tree], tests: Sequence[str]) -> float:
    """Seconds that the tests of an area may take on a mutant. Ends the program if they fail without one."""
    tree, began = free.get(), time.monotonic()
    passed, by = tree.tested(tests, 3600)
    free.put(tree)
    if not passed:
        raise SystemExit(f"{' '.join(tests)}: {by} fails on the source as it is")
    return max(LEAST_SECONDS, SLOWER * (time.monotonic() - began))


def report(verdicts: Sequence[Verdict]) -> None:
    for area in dict.fromkeys(verdict.area for verdict in verdicts):
        mine = [verdict for verdict in verdicts if verdict.area == area]
        print(f"{area:20} {sum(verdict.killed for verdict in mine):3} of {len(mine)} killed")
    killed = sum(verdict.killed for verdict in verdicts)
    print(f"{'all':20} {killed:3} of {len(verdicts)} killed, {killed / len(verdicts):.1%}")
    for verdict in verdicts:
        if not verdict.killed:
            print(f"survived: {verdict.mutant.file}:{verdict.mutant.line} {verdict.mutant.name.partition(':')[2]}")


if __name__ == "__main__":
    main()
