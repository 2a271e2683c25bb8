// D = alpha op(A) op(B) + beta C, column-major, or with SPLIT the sums over a part of K each, which `reduce` adds.
//
// Macros: REAL; ITEMS_M x ITEMS_N threads a block; THREAD_M x THREAD_N elements of D a thread; DEPTH steps of K a tile;
// A_ALONG_K, B_ALONG_K: 1 where K is the contiguous dimension of A or B; SPLIT; REDUCE_THREADS.

typedef REAL real;
typedef long long index;  // elements: a matrix may have more than 2^31

constexpr int TILE_M = ITEMS_M * THREAD_M, TILE_N = ITEMS_N * THREAD_N, THREADS = ITEMS_M * ITEMS_N;

extern __shared__ __align__(16) unsigned char shared[];

// Bring DEPTH steps of `extent` rows into tile[step][row], zeros outside. Neighbouring threads read neighbours in memory.
template <int ROWS, bool ALONG_K>
__device__ void load_tile(real* tile, const real* matrix, index leading, int first_row, int rows, int first_k, int end_k)
{
    for (int i = threadIdx.x; i < ROWS * DEPTH; i += THREADS) {
        const int row = ALONG_K ? i / DEPTH : i % ROWS;
        const int step = ALONG_K ? i % DEPTH : i / ROWS;
        const index r = first_row + row, k = first_k + step;
        const bool inside = r < rows && k < end_k;
        tile[step * ROWS + row] = inside ? matrix[ALONG_K ? r * leading + k : k * leading + r] : real(0);
    }
}

__device__ real with_c(real sum, const real* c, real alpha, real beta)
{
    return beta == real(0) ? alpha * sum : alpha * sum + beta * *c;  // beta = 0 must not read C
}

extern "C" __global__ void __launch_bounds__(THREADS) gemm(
    const real* __restrict__ a, const real* __restrict__ b,
#if SPLIT
    real* __restrict__ partial,
#else
    const real* __restrict__ c, real* __restrict__ d,
#endif
    int m, int n, int k, int part_k, int parts, index lda, index ldb, index stride_a, index stride_b
#if !SPLIT
    , index ldc, index ldd, index stride_c, index stride_d, real alpha, real beta
#endif
)
{
    real* tile_a = reinterpret_cast<real*>(shared);
    real* tile_b = tile_a + DEPTH * TILE_M;
    const int tiles_m = (m + TILE_M - 1) / TILE_M;
    const int first_m = (blockIdx.x % tiles_m) * TILE_M, first_n = (blockIdx.x / tiles_m) * TILE_N;
    const int item_m = threadIdx.x % ITEMS_M, item_n = threadIdx.x / ITEMS_M;
    const int batch = blockIdx.z / parts, part = blockIdx.z % parts;
    const index first_k = index(part) * part_k;
    const int end_k = first_k + part_k < k ? int(first_k + part_k) : k;
    a += batch * stride_a;
    b += batch * stride_b;

    real sums[THREAD_N][THREAD_M] = {};
    for (index at = first_k; at < end_k; at += DEPTH) {
        load_tile<TILE_M, A_ALONG_K>(tile_a, a, lda, first_m, m, int(at), end_k);
        load_tile<TILE_N, B_ALONG_K>(tile_b, b, ldb, first_n, n, int(at), end_k);
        __syncthreads();
#pragma unroll
        for (int step = 0; step < DEPTH; ++step) {
            real of_a[THREAD_M], of_b[THREAD_N];
#pragma unroll
            for (int i = 0; i < THREAD_M; ++i) of_a[i] = tile_a[step * TILE_M + item_m + i * ITEMS_M];
#pragma unroll
            for (int j = 0; j < THREAD_N; ++j) of_b[j] = tile_b[step * TILE_N + item_n + j * ITEMS_N];
#pragma unroll
            for (int j = 0; j < THREAD_N; ++j)
#pragma unroll
                for (int i = 0; i < THREAD_M; ++i) sums[j][i] += of_a[i] * of_b[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int j = 0; j < THREAD_N; ++j)
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i) {
            const index row = first_m + item_m + i * ITEMS_M, column = first_n + item_n + j * ITEMS_N;
            if (row >= m || column >= n) continue;
#if SPLIT
            partial[((index(part) * (gridDim.z / parts) + batch) * n + column) * m + row] = sums[j][i];
#else
            d[batch * stride_d + column * ldd + row] =
                with_c(sums[j][i], c + (batch * stride_c + column * ldc + row), alpha, beta);
#endif
        }
}

#if SPLIT
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS) reduce(
    const real* __restrict__ partial, const real* __restrict__ c, real* __restrict__ d,
    int m, int n, int parts, index ldc, index ldd, index stride_c, index stride_d, real alpha, real beta)
{
    const index elements = index(m) * n, element = index(blockIdx.x) * REDUCE_THREADS + threadIdx.x;
    if (element >= elements) return;
    const index batch = blockIdx.z, row = element % m, column = element / m;
    real sum = 0;
    for (int part = 0; part < parts; ++part) sum += partial[(part * index(gridDim.z) + batch) * elements + element];
    d[batch * stride_d + column * ldd + row] = with_c(sum, c + (batch * stride_c + column * ldc + row), alpha, beta);
}
#endif
