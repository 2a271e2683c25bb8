// From sums to D = activation(alpha sum + bias) + beta C, and the two ways to write it.

template <class Real> __device__ __forceinline__ Real none(Real x) { return x; }
template <class Real> __device__ __forceinline__ Real relu(Real x) { return x < 0 ? 0 : x; }
// x / 2 erfc(-x / sqrt 2) in few instructions, since a tile has room for no more: within 7 2^-24 |x|, and without
// cancellation where x is far below 0. Source: Abramowitz and Stegun, 7.1.26; 0.72134752 is log2(e) / 2.
__device__ __forceinline__ float gelu(float x)
{
    float size = fminf(fabsf(x), 20.0f), t = reciprocal(1.0f + 0.23164191f * size);
    float series = (((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f;
    return relu(x) - 0.5f * size * (series * t * power_of_2(-0.72134752f * size * size));
}
__device__ __forceinline__ float silu(float x) { return x * reciprocal(1.0f + power_of_2(-1.44269504f * x)); }

#if OUTPUT_F16 || OUTPUT_BF16
typedef unsigned short Output;
__device__ __forceinline__ Output narrowed(Sum x) { return (Output)packed(x, 0.0f); }
#else
typedef Sum Output;
__device__ __forceinline__ Sum widened(Output x) { return x; }
__device__ __forceinline__ Output narrowed(Sum x) { return x; }
#endif
struct __align__(2 * sizeof(Output)) Pair { Output low, high; };

// D and what is added to the product. `rows` and `columns` end those of a matrix, or of a macro tile.
struct Destination {
    Output *d;
    const Output *c, *__restrict__ bias;
    i64 ldd, stride_d, ldc, stride_c;
    Sum alpha, beta;
    int rows, columns;
};

__device__ __forceinline__ i64 element(i64 leading, int row, int column)
{
    return ROWS_ARE_N ? row * leading + column : column * leading + row;
}
// From a thread's first element of C or D to one column on, 8 rows on, 8 columns on; and whether two columns are
// neighbours in memory that can be read and written as one.
struct Ways {
    i64 right, below, across;
    bool in_pairs;
};
__device__ __forceinline__ Ways ways_of(const Output *first, i64 leading)
{
    bool in_pairs = ROWS_ARE_N && ((u64)first / sizeof(Output) | leading) % 2 == 0;
    Ways ways = {element(leading, 0, 1), element(leading, 8, 0), element(leading, 0, 8), in_pairs};
    return ways;
}
__device__ __forceinline__ Pair read_two(const Output *at, const Ways &ways, bool both)
{
    if (ways.in_pairs && both) return *(const Pair *)at;
    Pair pair = {*at, both ? at[ways.right] : *at};
    return pair;
}
__device__ __forceinline__ void write_two(Output *at, const Ways &ways, bool both, const Pair &pair)
{
    if (ways.in_pairs && both) {
        *(Pair *)at = pair;
        return;
    }
    *at = pair.low;
    if (both) at[ways.right] = pair.high;
}
__device__ __forceinline__ Sum bias_at(const Destination &to, int place, int places)
{
    return place < places ? widened(to.bias[place]) : 0;
}

// activation(alpha sum + bias); `first_row` and `first_column` are those of the sums, which a warp group has of 64 rows
// and of COUNT * 2 columns.
template <int COUNT>
__device__ __forceinline__ void activate(
    Sum (&sums)[COUNT], const Destination &to, int thread, int first_row, int first_column)
{
    int row = first_row + row_of(thread), column = first_column + column_of(thread);
#if BIAS
    Sum bias[2];
    if (!ROWS_ARE_N) for (int i = 0; i < 2; ++i) bias[i] = bias_at(to, row + 8 * i, to.rows);
#endif
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        sums[i] *= to.alpha;
#if BIAS
        if (ROWS_ARE_N && i / 2 % 2 == 0) bias[i % 2] = bias_at(to, column + i / 4 * 8 + i % 2, to.columns);
        sums[i] += bias[ROWS_ARE_N ? i % 2 : i / 2 % 2];
#endif
        sums[i] = ACTIVATION(sums[i]);
    }
}

#if ADDS_C
template <int COUNT>
__device__ __forceinline__ void add_c(
    Sum (&values)[COUNT], const Destination &to, int thread, int first_row, int first_column, int batch)
{
    int row = first_row + row_of(thread), column = first_column + column_of(thread);
    const Output *c = to.c + batch * to.stride_c + element(to.ldc, row, column);
    Ways ways = ways_of(c, to.ldc);
#pragma unroll
    for (int eight = 0; eight < COUNT / 4; ++eight) {
#pragma unroll
        for (int below = 0; below < 2; ++below) {
            if (row + 8 * below < to.rows && column < to.columns) {
                Sum *two = values + 4 * eight + 2 * below;
                Pair added = read_two(c + below * ways.below, ways, column + 1 < to.columns);
                two[0] += to.beta * widened(added.low);
                two[1] += to.beta * widened(added.high);
            }
        }
        column += 8;
        c += ways.across;
    }
}
#endif

// Every thread writes its own elements.
template <int COUNT>
__device__ __forceinline__ void write_directly(
    const Sum (&values)[COUNT], const Destination &to, int thread, int first_row, int first_column, int batch)
{
    int row = first_row + row_of(thread), column = first_column + column_of(thread);
    Output *d = to.d + batch * to.stride_d + element(to.ldd, row, column);
    Ways ways = ways_of(d, to.ldd);
#pragma unroll
    for (int eight = 0; eight < COUNT / 4; ++eight) {
#pragma unroll
        for (int below = 0; below < 2; ++below) {
            const Sum *two = values + 4 * eight + 2 * below;
            Pair pair = {narrowed(two[0]), narrowed(two[1])};
            if (row + 8 * below < to.rows && column < to.columns)
                write_two(d + below * ways.below, ways, column + 1 < to.columns, pair);
        }
        column += 8;
        d += ways.across;
    }
}

#if STORE_BY_TMA
// Parts of PART columns go through shared memory, PARTS_AT_ONCE to either of two places by turns, and TMA writes what
// lies in D. `turn` is whose turn it is, from tile to tile.
template <int COUNT>
__device__ __forceinline__ void write_by_copies(
    const Sum (&values)[COUNT], const Destination &to, const TensorMap *d, u32 parts, int *turn, int thread, int group,
    int first_row, int first_column, int batch)
{
    const int count = 2 * COUNT / PART;
#pragma unroll
    for (int first = 0; first < count; first += PARTS_AT_ONCE) {
        u32 place = parts + *turn * PARTS_AT_ONCE * PART_BYTES;
        *turn ^= 1;
        if (thread == 0) wait_until_read<1>();
        meet_warp_group(group);
#pragma unroll
        for (int i = 0; i < PIECES * PARTS_AT_ONCE && PIECES * first + i < PIECES * count; ++i) {
            const Sum *eight = values + 8 * (PIECES * first + i);
            u32 left = packed(eight[0], eight[1]), left_below = packed(eight[2], eight[3]);
            u32 right = packed(eight[4], eight[5]), right_below = packed(eight[6], eight[7]);
            u32 row = place + i / PIECES * PART_BYTES + row_in_part(i % PIECES, thread);
            if (ROWS_ARE_N) store_matrices(row, left, left_below, right, right_below);
            else store_transposed(row, left, left_below, right, right_below);
        }
        show_to_copies();
        meet_warp_group(group);
        if (thread == 0) {
            for (int part = first; part < first + PARTS_AT_ONCE && part < count; ++part) {
                int column = first_column + part * PART;
                if (column >= to.columns) break;
                u32 from = place + (part - first) * PART_BYTES;
                put(d, from, ROWS_ARE_N ? column : first_row, ROWS_ARE_N ? first_row : column, batch);
            }
            end_puts();
        }
    }
}
#endif
