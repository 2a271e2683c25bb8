// Which work-group computes which iterations along K of which tile. Whole numbers only; the numbers in Schedule are
// made by schedule.py.
//
// Whole tiles come first, dealt in turn. Where some are split, what is left is one line of iterations, tile after
// tile, cut into shares, and the shares are dealt in turn from the last to the first. Whoever begins a tile owns it:
// it adds up the sums of the shares that go on with the tile. These are later shares, so they were dealt before, to
// work-groups with smaller numbers (a turn of split-K is of whole tiles): who starts finds all that it will wait for
// started, as GPUs start work-groups in the order of their numbers, and all is done in the end, however many run at
// once.

struct Schedule {
    int iterations; // of a tile
    int alone;      // tiles that are not split, the first ones
    int shares;     // of all iterations of the others
    int stretch;    // so many iterations are cut
    int parts;      // into so many shares, as equal as can be, the longer ones first
};
struct Segment { int tile, begin, end, share; };
struct Walk { int tile, share, at, stop; };

// Where a share begins, counted from the first iteration of the first tile that is split.
__device__ __forceinline__ int start_of(const Schedule &of, int share)
{
    int part = share % of.parts;
    return share / of.parts * of.stretch + part * (of.stretch / of.parts) + min(part, of.stretch % of.parts);
}

__device__ __forceinline__ Walk walk_of(const Schedule &of, int group, int groups)
{
    Walk walk = {group, of.shares - 1 - group + groups, 0, 0};
    return walk;
}

// How many iterations of a segment one of `parts` work-groups has: number `part`, and every `parts`th from there on.
// So a cluster reads neighbouring ones at the same time, and nobody has to divide before it begins to fetch.
__device__ __forceinline__ int steps_of(const Segment &now, int part, int parts)
{
    return (now.end - now.begin - part + parts - 1) / parts;
}

// The work-group's next stretch of iterations in one tile, in `now`; false when it has done all of its work.
__device__ __forceinline__ bool next(const Schedule &of, int groups, Walk &walk, Segment &now)
{
    if (walk.tile < of.alone) {
        Segment whole = {walk.tile, 0, of.iterations, 0};
        now = whole;
        walk.tile += groups;
        return true;
    }
#if SPLIT
    while (walk.at == walk.stop) {
        walk.share -= groups;
        if (walk.share < 0) return false;
        walk.at = start_of(of, walk.share);
        walk.stop = start_of(of, walk.share + 1);
    }
    int begin = walk.at % of.iterations, end = min(of.iterations, begin + walk.stop - walk.at);
    Segment part = {of.alone + walk.at / of.iterations, begin, end, walk.share};
    now = part;
    walk.at += end - begin;
    return true;
#else
    return false;
#endif
}
