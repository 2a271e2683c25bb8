// D = alpha op(A) op(B) + beta C on Hopper's tensor cores: TMA brings tiles, warp groups multiply them from shared memory.
//
// One warp group fetches, WARP_GROUPS multiply, each 64 rows of a tile by its COLUMNS columns. `x` is the operand whose
// side makes the rows, `y` the other; ROWS_ARE_N says whether rows are D's N (then x is B) or its M. A work-group goes
// from tile to tile, and while it stores one the next is fetched already.
//
// Macros: ELEMENT_F16 or ELEMENT_BF16, WARP_GROUPS, COLUMNS, STAGES, GROUP, ROWS_ARE_N, X_ALONG_K, Y_ALONG_K. Before this
// text stands `multiply_add`. Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" (descriptors, layouts in
// shared memory) and "Data Movement: cp.async.bulk.tensor".

#define DEPTH 64
#define ROWS (64 * WARP_GROUPS)
#define BOX_BYTES (64 * DEPTH * 2)
#define X_BYTES (ROWS * DEPTH * 2)
#define Y_BYTES (COLUMNS * DEPTH * 2)
#define STAGE_BYTES (X_BYTES + Y_BYTES)
#define PART 32
#define PART_BYTES (64 * PART * 2)
#define THREADS (128 * (WARP_GROUPS + 1))

// Where sums need more registers than each thread can have, those that multiply get some of the fetching warp group's: at
// launch 168 for each of 384 threads, 128 for each of 512.
#if WARP_GROUPS == 2 && COLUMNS >= 192
#define FETCHING_REGISTERS 40
#define MULTIPLYING_REGISTERS 232
#elif WARP_GROUPS == 3 && COLUMNS >= 128
#define FETCHING_REGISTERS 32
#define MULTIPLYING_REGISTERS 160
#endif

struct __align__(64) TensorMap { u64 words[16]; };

#if ELEMENT_BF16
typedef unsigned short Element;
__device__ __forceinline__ float widened(Element x) { return __uint_as_float((u32)x << 16); }
__device__ __forceinline__ u32 packed(float low, float high)
{
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(low), "f"(high));
    return both;
}
#else
typedef unsigned short Element;
__device__ __forceinline__ float widened(Element x)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x));
    return wide;
}
__device__ __forceinline__ u32 packed(float low, float high)
{
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(low), "f"(high));
    return both;
}
#endif

// ---- barriers in shared memory, and copies that signal them ----

__device__ __forceinline__ void make_barrier(u32 barrier, u32 arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void expect_bytes(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void wait_for(u32 barrier, u32 phase)
{
    asm volatile(
        "{ .reg .pred done;\n"
        "waiting:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra waiting; }" ::"r"(barrier), "r"(phase) : "memory");
}
__device__ __forceinline__ void fetch(u32 to, const TensorMap *map, u32 barrier, int x, int y, int batch)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
        ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(batch) : "memory");
}
__device__ __forceinline__ void put(const TensorMap *map, u32 from, int x, int y, int batch)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];"
        ::"l"(map), "r"(from), "r"(x), "r"(y), "r"(batch) : "memory");
}
__device__ __forceinline__ void sync_warp_group(int group)
{
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}

// ---- an operand's tile in shared memory, swizzled over 128 bytes ----

// Along K: SIDE rows of 64 elements of K, 8 rows to 1024 bytes. Else boxes of 64 elements of the side by 64 of K.
template <int SIDE, int ALONG_K>
__device__ __forceinline__ void fetch_tile(u32 to, const TensorMap *map, u32 barrier, int first, int step, int batch)
{
    if (ALONG_K) {
        fetch(to, map, barrier, step, first, batch);
    } else {
#pragma unroll
        for (int i = 0; i < SIDE / 64; ++i) fetch(to + i * BOX_BYTES, map, barrier, first + 64 * i, step, batch);
    }
}
// The operand of one instruction, 16 elements of K: the bytes between groups of 8 rows (of K where that is not along), and,
// not along K, between boxes.
template <int ALONG_K>
__device__ __forceinline__ u64 descriptor(u32 tile, int sixteenth)
{
    u32 address = tile + sixteenth * (ALONG_K ? 32 : 16 * 128);
    u64 between_boxes = ALONG_K ? 1 : BOX_BYTES >> 4;
    return (u64)((address & 0x3ffff) >> 4) | between_boxes << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

__device__ __forceinline__ void place(int tile, int tiles_m, int tiles_n, int *tile_m, int *tile_n)
{
    int whole = GROUP * tiles_n, first = tile / whole * GROUP;
    int down = min(tiles_m - first, GROUP), within = tile % whole;
    *tile_m = first + within % down;
    *tile_n = within / down;
}

extern "C" __global__ void __launch_bounds__(THREADS) gemm(
    const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y, const __grid_constant__ TensorMap d,
    const Element *c, int rows, int columns, int k, int batches, i64 ldc, i64 stride_c, float alpha, float beta)
{
    extern __shared__ unsigned char memory[];
    u32 stages = ((u32)__cvta_generic_to_shared(memory) + 1023) & ~1023u;
    u32 parts = stages + STAGES * STAGE_BYTES, full = parts + WARP_GROUPS * 2 * PART_BYTES, empty = full + STAGES * 8;
    int group = threadIdx.x / 128, is_first = threadIdx.x % 128 == 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            make_barrier(full + 8 * i, 1);
            make_barrier(empty + 8 * i, WARP_GROUPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();

    int down = (rows + ROWS - 1) / ROWS, across = (columns + COLUMNS - 1) / COLUMNS, steps = (k + DEPTH - 1) / DEPTH;
    int stage = 0;
    u32 phase = 0;
    if (group == WARP_GROUPS) {
#ifdef FETCHING_REGISTERS
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(FETCHING_REGISTERS));
#endif
        if (!is_first) return;
        for (int tile = blockIdx.x; tile < down * across * batches; tile += gridDim.x) {
            int batch = tile / (down * across), row, column;
            place(tile % (down * across), down, across, &row, &column);
            for (int step = 0; step < steps; ++step) {
                wait_for(empty + 8 * stage, phase ^ 1);
                u32 to = stages + stage * STAGE_BYTES, barrier = full + 8 * stage;
                expect_bytes(barrier, STAGE_BYTES);
                fetch_tile<ROWS, X_ALONG_K>(to, &x, barrier, row * ROWS, step * DEPTH, batch);
                fetch_tile<COLUMNS, Y_ALONG_K>(to + X_BYTES, &y, barrier, column * COLUMNS, step * DEPTH, batch);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
        return;
    }

#ifdef MULTIPLYING_REGISTERS
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(MULTIPLYING_REGISTERS));
#endif
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, which = 0;
    for (int tile = blockIdx.x; tile < down * across * batches; tile += gridDim.x) {
        int batch = tile / (down * across), row, column, before = -1;
        place(tile % (down * across), down, across, &row, &column);
        float sums[COLUMNS / 2];
        for (int step = 0; step < steps; ++step) {
            wait_for(full + 8 * stage, phase);
            u32 of_x = stages + stage * STAGE_BYTES + group * BOX_BYTES, of_y = stages + stage * STAGE_BYTES + X_BYTES;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int i = 0; i < DEPTH / 16; ++i)
                multiply_add(sums, descriptor<X_ALONG_K>(of_x, i), descriptor<Y_ALONG_K>(of_y, i), step > 0 || i > 0);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            // The products of the stage before are done then.
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (before >= 0 && is_first) arrive(empty + 8 * before);
            before = stage;
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (is_first) arrive(empty + 8 * before);

        // Thread: of each 8 columns two neighbours, in two rows 8 apart.
        int first_row = row * ROWS + group * 64, first_column = column * COLUMNS;
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; ++i) {
            sums[i] *= alpha;
            if (beta != 0.0f) {
                int at_row = first_row + 16 * warp + lane / 4 + 8 * (i / 2 % 2);
                int at_column = first_column + i / 4 * 8 + 2 * (lane % 4) + i % 2;
                if (at_row < rows && at_column < columns) {
                    i64 at = ROWS_ARE_N ? at_row * ldc + at_column : at_column * ldc + at_row;
                    sums[i] += beta * widened(c[batch * stride_c + at]);
                }
            }
        }
#pragma unroll
        for (int part = 0; part < COLUMNS / PART; ++part) {
            u32 to = parts + (2 * group + which) * PART_BYTES;
            if (is_first) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            sync_warp_group(group);
#pragma unroll
            for (int pair = 0; pair < 2; ++pair) {
                const float *eight = sums + 4 * (4 * part + 2 * pair);
                u32 low = packed(eight[0], eight[1]), low_down = packed(eight[2], eight[3]);
                u32 high = packed(eight[4], eight[5]), high_down = packed(eight[6], eight[7]);
#if ROWS_ARE_N
                // 64 rows of 32 columns, which are neighbours in D; swizzled over 64 bytes.
                int line = 16 * warp + lane % 16, chunk = 2 * pair + lane / 16;
                u32 at = to + line * 64 + ((chunk ^ (line >> 1 & 3)) << 4);
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                    ::"r"(at), "r"(low), "r"(low_down), "r"(high), "r"(high_down) : "memory");
#else
                // 32 columns of 64 rows, which are neighbours in D; swizzled over 128 bytes.
                int line = 16 * pair + lane / 16 * 8 + lane % 8, chunk = 2 * warp + lane / 8 % 2;
                u32 at = to + line * 128 + ((chunk ^ (line & 7)) << 4);
                asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                    ::"r"(at), "r"(low), "r"(low_down), "r"(high), "r"(high_down) : "memory");
#endif
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            sync_warp_group(group);
            if (is_first) {
                int at_column = first_column + part * PART;
                put(&d, to, ROWS_ARE_N ? at_column : first_row, ROWS_ARE_N ? first_row : at_column, batch);
                asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            }
            which ^= 1;
        }
    }
    if (is_first) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
