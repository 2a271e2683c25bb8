// D = activation(alpha op(A) op(B) + bias) + beta C on Hopper's tensor cores: TMA brings tiles, warp groups multiply
// them from shared memory.
//
// One warp group fetches, WARP_GROUPS multiply, each 64 rows of a tile by its COLUMNS columns. `x` is the operand
// whose side makes the rows, `y` the other; ROWS_ARE_N says whether rows are D's N (then x is B) or its M. A
// work-group goes from segment to segment (schedule.cu), and while it finishes one the next is fetched already.
//
// With a cluster, CLUSTER_ROWS by CLUSTER_COLUMNS work-groups with neighbouring tiles do so side by side. Those that
// have the same tile of x, or of y, fetch a part of it each, for all of them. "Tile" then means all of theirs to
// schedule.cu.
//
// Or the work-groups of a cluster compute a part of K each of one tile. Each sends its sums of a slice of the
// columns to the work-group that finishes this slice. A cluster has one tile only, or one share of it. So what is sent
// need not wait where there is room for it beside the stages; elsewhere it waits until all have multiplied.

// Where sums need more registers than each thread can have, those that multiply get some of the fetching warp
// group's: at launch 168 for each of 384 threads, 128 for each of 512.
#define SUM_REGISTERS (COLUMNS / 2 * (PROMOTE_EVERY ? 2 : 1))
#if WARP_GROUPS == 2 && SUM_REGISTERS >= 96
#define FETCHING_REGISTERS 40
#define MULTIPLYING_REGISTERS 232
#elif WARP_GROUPS == 3 && SUM_REGISTERS >= 64
#define FETCHING_REGISTERS 32
#define MULTIPLYING_REGISTERS 160
#endif

// The stages in shared memory, each with a barrier that says it is full and one that says it is empty, and whose turn
// it is. `rank` is the work-group's number in the cluster.
struct Stages {
    u32 tiles, full, empty;
    int rank, now;
    u32 phase;
};
__device__ __forceinline__ void advance(Stages &stages)
{
    if (++stages.now == STAGES) {
        stages.now = 0;
        stages.phase ^= 1;
    }
}

// One of PARTS parts of a tile, for the work-groups `ranks` of the cluster, which have the same tile. Rows of 128 bytes
// are shared out, whatever they are.
template <int SIDE, int ALONG_K, int PARTS>
__device__ __forceinline__ void fetch_tile(
    u32 to, const TensorMap *map, u32 barrier, int first, int step, int batch, int part, u32 ranks)
{
    int row = part * ((ALONG_K ? SIDE : DEPTH) / PARTS);
#pragma unroll
    for (int i = 0; i < (ALONG_K ? 1 : IN_BOXES(SIDE)); ++i) {
        u32 at = to + i * BOX_BYTES + row * ROW_BYTES;
        int x = ALONG_K ? step : first + 64 * i, y = ALONG_K ? first + row : step + row;
        if (PARTS > 1) fetch_for(ranks, at, map, barrier, x, y, batch);
        else fetch(at, map, barrier, x, y, batch);
    }
}

__device__ __forceinline__ void fetch_segment(
    const TensorMap *x, const TensorMap *y, Stages &stages, const Segment &now, int part, int parts, int row,
    int column, int batch)
{
    int in_row = column_in_cluster(stages.rank), in_column = row_in_cluster(stages.rank);
    for (int step = now.begin + part; step < now.end; step += parts) {
        wait_for(stages.empty + 8 * stages.now, stages.phase ^ 1);
        u32 to = stages.tiles + stages.now * STAGE_BYTES, barrier = stages.full + 8 * stages.now;
        expect_bytes(barrier, STAGE_BYTES);
        fetch_tile<ROWS, X_ALONG_K, CLUSTER_COLUMNS>(
            to, x, barrier, row * ROWS, step * DEPTH, batch, in_row, ranks_in_row(stages.rank));
        fetch_tile<COLUMNS, Y_ALONG_K, CLUSTER_ROWS>(
            to + X_BYTES, y, barrier, column * COLUMNS, step * DEPTH, batch, in_column, ranks_in_column(stages.rank));
        advance(stages);
    }
}

// A warp group says that a stage is empty to all that fill it, a thread to each of them: products are done for all of
// its threads at once.
__device__ __forceinline__ void give_back(const Stages &stages, int stage, int thread)
{
    if (thread >= PEERS) return;
    if (SHARERS == 1) arrive(stages.empty + 8 * stage);
    else arrive_at(stages.empty + 8 * stage, peer_of(stages.rank, thread));
}
// Shared memory must outlive what the cluster says to its barriers: after all fetches, that all stages are empty.
__device__ __forceinline__ void wait_for_peers(Stages &stages)
{
    for (int i = 0; i < STAGES; ++i) {
        wait_for(stages.empty + 8 * stages.now, stages.phase ^ 1);
        advance(stages);
    }
}

// The sums over `steps` stages, at least one, which are empty afterwards. A stage is given back when the products of
// the one after it are under way, so that these never wait for each other.
__device__ __forceinline__ void multiply(Sum (&sums)[COLUMNS / 2], Stages &stages, int group, int thread, int steps)
{
    int before = -1;
    for (int step = 0; step < steps; ++step) {
        wait_for(stages.full + 8 * stages.now, stages.phase);
        u32 x = stages.tiles + stages.now * STAGE_BYTES + group * BOX_BYTES;
        u32 y = stages.tiles + stages.now * STAGE_BYTES + X_BYTES;
        begin_products();
#pragma unroll
        for (int i = 0; i < PRODUCTS; ++i)
            multiply_add(sums, descriptor<X_ALONG_K>(x, i), descriptor<Y_ALONG_K>(y, i), step > 0 || i > 0);
        end_products();
        wait_for_products<1>();
        if (before >= 0) give_back(stages, before, thread);
        before = stages.now;
        advance(stages);
    }
    wait_for_products<0>();
    give_back(stages, before, thread);
}

// The same; with PROMOTE_EVERY, the tensor cores add up so many stages at most, which they do with fewer bits than a
// float32 has where operands have 8, and the rest is added here.
__device__ __forceinline__ void sum_up(Sum (&sums)[COLUMNS / 2], Stages &stages, int group, int thread, int steps)
{
#if PROMOTE_EVERY
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; ++i) sums[i] = 0;
    for (int left = steps; left > 0; left -= PROMOTE_EVERY) {
        Sum few[COLUMNS / 2];
        multiply(few, stages, group, thread, min(left, PROMOTE_EVERY));
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; ++i) sums[i] += few[i];
    }
#else
    multiply(sums, stages, group, thread, steps);
#endif
}

#if SPLIT
// Sums over part of a tile, or of the work-group's slice of it, and a flag for each warp group of each share; of each
// work-group of a cluster.
struct Shared {
    Sum *sums;
    u32 *flags;
    int rank, in_cluster;
};
__device__ __forceinline__ Four *sums_of(const Shared &shared, int share)
{
    return (Four *)(shared.sums + (i64)(share * shared.in_cluster + shared.rank) * (ROWS * SLICE)) + threadIdx.x;
}
__device__ __forceinline__ u32 *flag_of(const Shared &shared, int share, int group)
{
    return shared.flags + (share * shared.in_cluster + shared.rank) * WARP_GROUPS + group;
}
template <int COUNT>
__device__ __forceinline__ void leave(
    const Sum (&sums)[COUNT], const Shared &shared, int share, int group, bool is_first)
{
    Four *to = sums_of(shared, share);
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i) {
        Four four = {{sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]}};
        to[i * MULTIPLYING_THREADS] = four;
    }
    meet_warp_group(group);
    if (is_first) raise_flag(flag_of(shared, share, group));
}
// What the later shares have of the tile, in their order, which is that of K: results repeat bit by bit. Each thread
// waits for some of them. Nobody else looks at their flags, which the next launch finds lowered.
template <int COUNT>
__device__ __forceinline__ void collect(
    Sum (&sums)[COUNT], const Shared &shared, const Schedule &of, const Segment &own, int group, int thread)
{
    int end = (own.tile - of.alone + 1) * of.iterations;
    for (int share = own.share + 1 + thread; share < of.shares && start_of(of, share) < end; share += 128) {
        wait_for_flag(flag_of(shared, share, group));
        lower_flag(flag_of(shared, share, group));
    }
    meet_warp_group(group);
    for (int share = own.share + 1; start_of(of, share) < end; ++share) {
        const Four *from = sums_of(shared, share);
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
            Four four = from[i * MULTIPLYING_THREADS];
            for (int j = 0; j < 4; ++j) sums[4 * i + j] += four.at[j];
        }
    }
}
#endif

#if JOINT
// The sums of slice number `rank`, over all of the cluster: own ones first, then by turns from the next work-group on,
// so that results repeat bit by bit. All slices are written to `out`, by turns from the next one on, and copied to
// their work-groups. What comes is `in`, and the barrier tells when.
__device__ __forceinline__ void exchange(
    const Sum (&sums)[COLUMNS / 2], Sum (&slice)[SLICE / 2], const Slices &of, u32 out, u32 in, u32 barrier, int rank,
    int group, int thread)
{
    const u32 block = of.eights * EIGHT_BYTES, place = thread * sizeof(Four);
    u32 own = out + (of.parts - 1) * block;
    int within = 0, turn = of.parts - 1 - rank;
#pragma unroll
    for (int i = 0; i < EIGHTS; ++i) {
        Four four = {{sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]}};
        write_shared(out + turn * block + within * EIGHT_BYTES + place, four);
        if (++within == of.eights) {
            within = 0;
            turn = turn + 1 < of.parts ? turn + 1 : 0;
        }
    }
    show_to_copies();
    meet_warp_group(group);
    if (thread < of.parts - 1) {
        int to = (rank + 1 + thread) % of.parts, eights = eights_of(of, to);
        u32 there = place_at(in + (of.parts - 2 - thread) * block, to);
        if (eights > 0) send(there, out + thread * block, eights * EIGHT_BYTES, place_at(barrier, to));
    }
#pragma unroll
    for (int i = 0; i < SLICE / 8; ++i) {
        Four four = i < of.eights ? read_shared<Four>(own + i * EIGHT_BYTES + place) : Four();
        for (int j = 0; j < 4; ++j) slice[4 * i + j] = four.at[j];
    }
    wait_for_cluster(barrier, 0);
    const int at_once = CLUSTER_PARTS ? CLUSTER_PARTS : 4;
#pragma unroll at_once
    for (int turn = 0; turn < of.parts - 1; ++turn) {
#pragma unroll
        for (int i = 0; i < SLICE / 8; ++i) {
            if (i >= of.eights) continue;
            Four four = read_shared<Four>(in + turn * block + i * EIGHT_BYTES + place);
            for (int j = 0; j < 4; ++j) slice[4 * i + j] += four.at[j];
        }
    }
}
#endif

// From a warp group's sums to its part of D.
template <int COUNT>
__device__ __forceinline__ void finish(
    Sum (&sums)[COUNT], const Destination &to, const TensorMap *d_map, u32 leaving, int *turn, int thread, int group,
    int first_row, int first_column, int batch)
{
    activate(sums, to, thread, first_row, first_column);
#if ADDS_C
    if (to.beta != 0) add_c(sums, to, thread, first_row, first_column, batch);
#endif
#if STORE_BY_TMA
    u32 parts = leaving + group * 2 * PARTS_AT_ONCE * PART_BYTES;
    write_by_copies(sums, to, d_map, parts, turn, thread, group, first_row, first_column, batch);
#else
    write_directly(sums, to, thread, first_row, first_column, batch);
#endif
}

#if SHARERS > 1
#define CLUSTERED __cluster_dims__(SHARERS, 1, 1)
#else
#define CLUSTERED
#endif
extern "C" __global__ void CLUSTERED __launch_bounds__(THREADS, 1) gemm(
    const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y,
#if STORE_BY_TMA
    const __grid_constant__ TensorMap d_map,
#define MAP_OF_D &d_map
#else
#define MAP_OF_D 0
#endif
    Output *d, const Output *c, const Output *bias, const float *scale_a, const float *scale_b,
    int rows, int columns, int k, int batches, i64 ldd, i64 stride_d, i64 ldc, i64 stride_c, Sum alpha, Sum beta
#if SPLIT
    , Sum *partial_sums, u32 *flags, int alone, int shares, int stretch, int parts
#endif
)
{
    extern __shared__ unsigned char memory[];
    u32 tiles = (address_of(memory) + 1023) & ~1023u, leaving = tiles + STAGES * STAGE_BYTES;
    u32 room = leaving + WARP_GROUPS * 2 * PARTS_AT_ONCE * PART_BYTES;
    u32 full = room + WARP_GROUPS * ROOM_EIGHTS * EIGHT_BYTES;
    u32 empty = full + STAGES * 8, sent = full + STAGES * 16;
    if (threadIdx.x == MULTIPLYING_THREADS) {
        expect_map(&x);
        expect_map(&y);
    }
    int in_cluster = CLUSTER_PARTS == 0 ? size_of_cluster() : SHARERS * CLUSTER_PARTS;
    int rank = in_cluster > 1 ? rank_in_cluster() : 0;
    Stages stages = {tiles, full, empty, rank, 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            make_barrier(full + 8 * i, 1);
            make_barrier(empty + 8 * i, WARP_GROUPS * PEERS);
        }
        for (int i = 0; i < (JOINT ? WARP_GROUPS : 0); ++i) make_barrier(sent + 8 * i, 1);
        show_barriers();
    }
    if (SHARERS > 1 || JOINT && !ROOM_IN_STAGES) announce_to_cluster();
    if (SHARERS > 1) join_cluster();
    else __syncthreads();
    // Nothing in memory was touched before, except the maps, which are parameters.
    wait_for_launch_before();

    int cluster = in_cluster > 1 ? number_of_cluster() : blockIdx.x;
    int clusters = in_cluster > 1 ? clusters_of_grid() : gridDim.x;
    int part = JOINT ? rank : 0, parts_of_k = JOINT ? in_cluster : 1;
    int down = (rows + CLUSTER_ROWS * ROWS - 1) / (CLUSTER_ROWS * ROWS);
    int across = (columns + CLUSTER_COLUMNS * COLUMNS - 1) / (CLUSTER_COLUMNS * COLUMNS);
    int iterations = (k + DEPTH - 1) / DEPTH;
#if SPLIT
    const Schedule schedule = {iterations, alone, shares, stretch, parts};
    const Shared shared = {partial_sums, flags, rank, in_cluster};
#else
    const Schedule schedule = {iterations, down * across * batches, 0, 0, 1};
#endif
    Walk walk = walk_of(schedule, cluster, clusters);
    Segment now;
    int group = threadIdx.x / 128, thread = threadIdx.x % 128, row, column;
    bool is_first = thread == 0;
    if (group == WARP_GROUPS) {
#ifdef FETCHING_REGISTERS
        give_registers<FETCHING_REGISTERS>();
#endif
        while (is_first && next(schedule, clusters, walk, now)) {
            place(now.tile % (down * across), down, across, rank, &row, &column);
            int batch = now.tile / (down * across);
            fetch_segment(&x, &y, stages, now, part, parts_of_k, row, column, batch);
        }
        if (SHARERS > 1 && is_first) wait_for_peers(stages);
        if (JOINT && !ROOM_IN_STAGES) {
            meet_warp();
            join_cluster();
        }
        return;
    }

#ifdef MULTIPLYING_REGISTERS
    take_registers<MULTIPLYING_REGISTERS>();
#endif
#if SCALED
    alpha *= *scale_a * *scale_b;
#endif
    Destination to = {d, c, bias, ldd, stride_d, ldc, stride_c, alpha, beta, rows, columns};
#if JOINT
    const Slices slices = slices_of(parts_of_k);
    if (is_first) expect_bytes(sent + 8 * group, (slices.parts - 1) * eights_of(slices, rank) * EIGHT_BYTES);
#endif
    int turn = 0;
    while (next(schedule, clusters, walk, now)) {
        Sum sums[COLUMNS / 2];
        sum_up(sums, stages, group, thread, steps_of(now, part, parts_of_k));
        place(now.tile % (down * across), down, across, rank, &row, &column);
        int first_row = row * ROWS + group * 64, first_column = column * COLUMNS, batch = now.tile / (down * across);
#if JOINT
        Sum slice[SLICE / 2];
        if (ROOM_IN_STAGES) announce_to_cluster();
        else meet_multiplying(MULTIPLYING_THREADS);
        join_cluster();
        u32 tile = slices.parts * slices.eights * EIGHT_BYTES, others = tile - slices.eights * EIGHT_BYTES;
        u32 in = (ROOM_IN_STAGES ? tiles + WARP_GROUPS * tile : room) + group * others;
        exchange(sums, slice, slices, tiles + group * tile, in, sent + 8 * group, rank, group, thread);
        announce_to_cluster();
        first_column += 8 * rank * slices.eights;
        to.columns = min(columns, first_column + 8 * eights_of(slices, rank));
#else
        Sum (&slice)[COLUMNS / 2] = sums;
#endif
#if SPLIT
        if (now.begin > 0) {
            leave(slice, shared, now.share, group, is_first);
            continue;
        }
        if (now.end < iterations) collect(slice, shared, schedule, now, group, thread);
#endif
        finish(slice, to, MAP_OF_D, leaving, &turn, thread, group, first_row, first_column, batch);
    }
#if STORE_BY_TMA
    // Shared memory must outlive the copies that read it; what they write is there when the kernel has ended.
    if (is_first) wait_until_read<0>();
#endif
    // The rest of the cluster may still fetch what it is sent.
    if (JOINT) join_cluster();
}
