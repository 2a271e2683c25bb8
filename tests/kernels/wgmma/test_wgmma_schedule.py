"""Who computes what: the device's functions, compiled for the host, and the schedule that reports and models use."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess

import numpy as np
import pytest

from cuda_runner import H200
from tunesmith.kernels.gemm import stream_k
from tunesmith.kernels.gemm.cuda.wgmma.schedule import WgmmaSchedule
from tunesmith.kernels.gemm.cuda.wgmma.shape import WgmmaShape
from tunesmith.kernels.gemm.cuda.wgmma.text import text
from tunesmith.problems.gemm import Gemm
from tunesmith.records import ZEROED_HEAD, WorkspaceArgument
from wgmma_cases import FAMILY, config, kind, problem

WALK = """
#define __device__
#define __forceinline__ inline
#define SPLIT 1
inline int min(int a, int b) { return a < b ? a : b; }
"""
ENTRY = """
extern "C" int segments(const int *numbers, int group, int groups, int *out)
{
    Schedule of = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    Walk walk = walk_of(of, group, groups);
    Segment now;
    int count = 0;
    for (; next(of, groups, walk, now); ++count) {
        out[4 * count] = now.tile;
        out[4 * count + 1] = now.begin;
        out[4 * count + 2] = now.end;
        out[4 * count + 3] = now.share;
    }
    return count;
}
extern "C" int steps(int begin, int end, int number, int parts)
{
    Segment whole = {7, begin, end, 5};
    return steps_of(whole, number, parts);
}
extern "C" int start(const int *numbers, int share)
{
    Schedule of = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    return start_of(of, share);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("g++")
    if not compiler:
        pytest.skip("no g++ here")
    folder = tmp_path_factory.mktemp("schedule")
    (folder / "walk.cpp").write_text(WALK + text("schedule.cu") + ENTRY)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "walk.cpp", "-o", "walk.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "walk.so"))


class Walked:
    """A schedule as the device walks it."""

    def __init__(self, library, schedule):
        self.schedule, self._library = schedule, library
        values = (schedule.iterations, schedule.alone, schedule.shares, schedule.stretch, schedule.parts)
        self._numbers = (ctypes.c_int * 5)(*values)

    def segments(self, group):
        room = np.zeros((4096, 4), np.int32)
        count = self._library.segments(self._numbers, group, self.schedule.grid, ctypes.c_void_p(room.ctypes.data))
        return [tuple(map(int, row)) for row in room[:count]]

    def start(self, share):
        return self._library.start(self._numbers, share)


def schedule(m, n, k, **values):
    problem_type, chosen = kind(), config(**values)
    gemm = Gemm.of(problem(m, n, 1, k, problem_type=problem_type))
    return WgmmaSchedule.of(chosen, WgmmaShape.of(chosen, problem_type), gemm, H200.compute_units)


SIZES = [(1024, 1024, 640), (256, 128, 6400), (2048, 1920, 64), (5000, 3000, 1000), (200, 100, 1)]
LAUNCHES = [
    {},
    {"GlobalSplitU": 3},
    {"GlobalSplitU": 16},
    {"StreamKGrid": 7},
    {"StreamKGrid": 132},
    {"StreamKGrid": 50, "StreamKFullTiles": 1},
    {"StreamKGrid": 50, "StreamKFullTiles": 9},
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("parameters", LAUNCHES)
def test_every_iteration_is_computed_once_and_nobody_waits_forever(library, parameters, size):
    made = schedule(*size, **parameters)
    walked = Walked(library, made)
    computed = np.zeros(
        (made.alone + made.shares // made.parts * made.stretch // made.iterations, made.iterations), int
    )
    left = {group: walked.segments(group) for group in range(made.grid)}
    for tile, begin, end, _ in itertools.chain(*left.values()):
        computed[tile, begin:end] += 1
    assert (computed == 1).all()
    done: dict[int, int] = {}
    for segments in left.values():
        for segment in segments:
            assert waits_for(walked, segment) <= done.keys(), "it waits for a larger number, which may not have started"
            tile, begin, _, share = segment
            if begin > 0:
                assert share not in done, "a place for sums is written twice"
                done[share] = tile


def waits_for(walked, segment):
    """The shares whose sums the segment's work-group adds to its own."""
    tile, begin, end, share = segment
    made = walked.schedule
    if begin > 0 or end == made.iterations:
        return set()
    stop = (tile - made.alone + 1) * made.iterations
    others = {other for other in range(share + 1, made.shares) if walked.start(other) < stop}
    assert others
    return others


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("parameters", [parameters for parameters in LAUNCHES if "StreamKGrid" in parameters])
def test_the_shares_are_those_of_stream_k(library, parameters, size):
    """The last share is the first work-group's; whole tiles are dealt alike."""
    made = schedule(*size, **parameters)
    walked = Walked(library, made)
    tiles = -(-size[1] // 128) * -(-size[0] // 256)
    known = stream_k.StreamKSchedule.two_tile(tiles, made.iterations, made.grid, parameters.get("StreamKFullTiles", 0))
    for group in range(made.grid):
        mine = [(tile, begin, end) for tile, begin, end, _ in walked.segments(group)]
        whole = [
            (segment.tile, segment.begin, segment.end)
            for segment in known.segments(group)
            if segment.tile < known.alone
        ]
        mirrored = known.segments(made.grid - 1 - group)
        assert mine == whole + [
            (segment.tile, segment.begin, segment.end) for segment in mirrored if segment.tile >= known.alone
        ]


@pytest.mark.parametrize("splits", [2, 3, 5])
def test_parts_of_split_k_are_whole_and_as_equal_as_can_be(library, splits):
    made = schedule(1000, 1000, 64 * 16, GlobalSplitU=splits)
    walked = Walked(library, made)
    known = stream_k.StreamKSchedule(made.shares // splits, made.iterations, made.grid, splits=splits)
    found = {(tile, begin, end) for group in range(made.grid) for tile, begin, end, _ in walked.segments(group)}
    assert found == {(tile, *known.part(part)) for tile in range(known.tiles) for part in range(splits)}


@pytest.mark.parametrize(("begin", "end", "parts"), [(0, 12, 4), (3, 14, 4), (5, 8, 3), (0, 1, 1)])
def test_each_work_group_of_a_cluster_counts_the_iterations_that_it_walks(library, begin, end, parts):
    for number in range(parts):
        assert library.steps(begin, end, number, parts) == len(range(begin + number, end, parts))


def test_flags_are_all_that_has_to_be_zeroed_and_nothing_else_lies_among_them():
    problem_type = kind()
    plan = FAMILY.plan(config(StreamKGrid=132), problem(1000, 1000, 1, 4096, problem_type=problem_type), H200)
    (launch,) = plan.steps
    assert plan.zeroed == 132 * 2 * 4
    assert launch.grid == (132, 1, 1)
    assert plan.workspace_bytes >= ZEROED_HEAD + 132 * 128 * 256 * 4
    offsets = [argument.offset for argument in launch.arguments if isinstance(argument, WorkspaceArgument)]
    assert sorted(offsets) == [0, ZEROED_HEAD]
