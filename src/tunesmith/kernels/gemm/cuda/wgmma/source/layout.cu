// Where things lie: in shared memory, and among the threads of a warp group. Whole numbers only.
//
// Every operand's tile has 128 bytes a row, swizzled over 128 bytes: within 1024 bytes, 16-byte piece p of row r lies
// at place p ^ r. Along K a row is one of the side's, with 128 bytes of K; not along K it is a step of K, with 64
// elements of the side, and 64 such rows make a box, of which the last may hold more than the tile needs. Sources: PTX
// ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Register Fragments and Shared Memory Matrix
// Layouts" of wgmma; "Tensor-Copy: Swizzling Modes".

#define ROW_BYTES 128
#define DEPTH (ROW_BYTES / ELEMENT_BYTES)
#define PRODUCT_BYTES 32
#define PRODUCTS (ROW_BYTES / PRODUCT_BYTES)
#define ROWS (64 * WARP_GROUPS)
#define BOX_BYTES (64 * ROW_BYTES)
#define X_BYTES (ROWS * ROW_BYTES)
#define IN_BOXES(side) (((side) + 63) / 64)
#define Y_BYTES ((Y_ALONG_K ? COLUMNS : 64 * IN_BOXES(COLUMNS)) * ROW_BYTES)
#define STAGE_BYTES (X_BYTES + Y_BYTES)
#define PART_BYTES (64 * PART * 2)
#define PIECES (PART / 16)
#define MULTIPLYING_THREADS (128 * WARP_GROUPS)
#define THREADS (MULTIPLYING_THREADS + 128)
// Work-groups of a cluster that have a tile each. Those in a row have the same tile of x, those in a column that of y.
#define SHARERS (CLUSTER_ROWS * CLUSTER_COLUMNS)
#define PEERS (CLUSTER_ROWS + CLUSTER_COLUMNS - 1)
// Work-groups of a cluster that have a part of K each; with 0 the launch says how many. They finish a slice of the
// tile's columns each, eight columns at a time, at most MOST_EIGHTS.
#define JOINT (CLUSTER_PARTS != 1)
#define EIGHTS (COLUMNS / 8)
#define SLICE (8 * MOST_EIGHTS)
#define EIGHT_BYTES (64 * 8 * 4)

struct __align__(16) Four { Sum at[4]; };

// How the columns of a tile are shared out: slices of so many times eight columns. The last ones may have less.
struct Slices { int parts, eights; };
__device__ __forceinline__ Slices slices_of(int parts)
{
    int steps = (EIGHTS + parts * EIGHTS_STEP - 1) / (parts * EIGHTS_STEP);
    Slices slices = {parts, steps * EIGHTS_STEP};
    return slices;
}
__device__ __forceinline__ int eights_of(const Slices &of, int slice)
{
    int left = EIGHTS - slice * of.eights;
    return left > 0 ? min(of.eights, left) : 0;
}

// One instruction's operand, number `product` of a stage: where it begins, how far apart groups of 8 rows are and,
// not along K, boxes. The swizzle is number 1.
template <int ALONG_K>
__device__ __forceinline__ u64 descriptor(u32 tile, int product)
{
    u32 address = tile + product * (ALONG_K ? PRODUCT_BYTES : PRODUCT_BYTES / ELEMENT_BYTES * ROW_BYTES);
    u64 between_boxes = ALONG_K ? 1 : BOX_BYTES >> 4;
    return (u64)((address & 0x3ffff) >> 4) | between_boxes << 16 | (u64)(8 * ROW_BYTES >> 4) << 32 | (u64)1 << 62;
}

// Of its warp group's 64 rows by COLUMNS, a thread has two neighbours of each 8 columns, in two rows 8 apart, in the
// order left, right, left below, right below. This is the first of them.
__device__ __forceinline__ int row_of(int thread) { return 16 * (thread / 32) + thread % 32 / 4; }
__device__ __forceinline__ int column_of(int thread) { return 2 * (thread % 4); }

// A part of D, 64 rows by PART columns of 16 bits, on its way through shared memory: the 16-byte row of one of the
// four 8 x 8 matrices that hold columns 16 * sixteen and on, and that this thread names. Neighbours in D lie side by
// side: 2 PART bytes of a row, swizzled over as many, or 128 bytes of 64 rows, swizzled over 128.
__device__ __forceinline__ u32 row_in_part(int sixteen, int thread)
{
    int warp = thread / 32, lane = thread % 32;
    if (ROWS_ARE_N) {
        int line = 16 * warp + lane % 16, piece = 2 * sixteen + lane / 16;
        return line * 2 * PART + ((piece ^ (line * 2 * PART >> 7 & (PART / 8 - 1))) << 4);
    }
    int line = 16 * sixteen + lane / 16 * 8 + lane % 8, piece = 2 * warp + lane / 8 % 2;
    return line * 128 + ((piece ^ (line & 7)) << 4);
}

// Where a work-group's tile lies among those of its cluster.
__device__ __forceinline__ int row_in_cluster(int rank) { return rank % CLUSTER_ROWS; }
__device__ __forceinline__ int column_in_cluster(int rank) { return rank / CLUSTER_ROWS % CLUSTER_COLUMNS; }
// The work-groups in the row, and in the column, of number `rank`, a bit for each.
__device__ __forceinline__ u32 ranks_in_row(int rank)
{
    u32 ranks = 0;
    for (int i = 0; i < CLUSTER_COLUMNS; ++i) ranks |= 1u << i * CLUSTER_ROWS;
    return ranks << row_in_cluster(rank);
}
__device__ __forceinline__ u32 ranks_in_column(int rank)
{
    return ((1u << CLUSTER_ROWS) - 1) << column_in_cluster(rank) * CLUSTER_ROWS;
}
// Those of both, PEERS of them, one after the other.
__device__ __forceinline__ int peer_of(int rank, int number)
{
    int row = row_in_cluster(rank), column = column_in_cluster(rank);
    if (number < CLUSTER_COLUMNS) return row + number * CLUSTER_ROWS;
    number -= CLUSTER_COLUMNS;
    return number + (number >= row) + column * CLUSTER_ROWS;
}

// The tile's place among those of one matrix: blocks of GROUP rows of tiles, walked column by column; and in it that
// of work-group number `rank` of the cluster.
__device__ __forceinline__ void place(int tile, int tiles_down, int tiles_across, int rank, int *row, int *column)
{
    int whole = GROUP * tiles_across, first = tile / whole * GROUP;
    int down = min(tiles_down - first, GROUP), within = tile % whole;
    *row = (first + within % down) * CLUSTER_ROWS + row_in_cluster(rank);
    *column = within / down * CLUSTER_COLUMNS + column_in_cluster(rank);
}
