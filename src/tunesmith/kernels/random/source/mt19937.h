// MT19937 (Matsumoto and Nishimura, ACM TOMACS 8 (1998) 3), a generator for every 8 work-items, which have every eighth
// word of it; in local memory word i of a generator is in row i / 8, at its work-item i % 8.
// State: the rows; then, the same for all engines, how many of them are used up, and the words of a cut row (`rows.h`).

#define LANES 8
#define ROWS 78
#define PHASE 26
#define STATE_WORDS (ROWS + 1)
// For uniform numbers only: with other distributions a turn unrolled is too long for a GPU's instruction cache.
#if DISTRIBUTION_KIND == UNIFORM
#define UNROLLS_TURNS (ROWS % IN == 0)
#else
#define UNROLLS_TURNS 0
#endif

// Renews rows first ... first + 25, which it also gives. Of each word the next one comes in, and that 397 = 49 rows and 5 words further. The
// work-items of a generator are of one warp.
INLINE void twist(LOCAL u32 *ring, const int first, u32 *renewed)
{
    u32 lane = LOCAL_ID % LANES;
    LOCAL u32 *own = ring + LOCAL_ID;
    LOCAL u32 *next = lane == 7 ? own + BLOCK_SIZE - 7 : own + 1;
    LOCAL u32 *middle = lane < 3 ? own + 49 * BLOCK_SIZE + 5 : own + 50 * BLOCK_SIZE - 3;
    UNROLL
    for (int i = 0; i < PHASE; ++i) {
        int row = first + i;
        u32 upper = own[row * BLOCK_SIZE];
        u32 lower = next[(row == ROWS - 1 && lane == 7 ? -1 : row) * BLOCK_SIZE];
        u32 far = middle[(row > 28 || (row == 28 && lane >= 3) ? row - ROWS : row) * BLOCK_SIZE];
        u32 joined = chosen_bits(0x80000000u, upper, lower);
        renewed[i] = far ^ joined >> 1 ^ (lower & 1 ? 0x9908b0dfu : 0);
    }
    WARP_BARRIER();
    UNROLL
    for (int i = 0; i < PHASE; ++i) own[(first + i) * BLOCK_SIZE] = renewed[i];
    WARP_BARRIER();
}

INLINE u32 tempered(u32 y)
{
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

INLINE void save(GLOBAL u32 *state, LOCAL const u32 *own, u32 used, u32 cut)
{
    for (int row = 0; row < ROWS; ++row) state[row * GLOBAL_SIZE + GLOBAL_ID] = own[row * BLOCK_SIZE];
    state[ROWS * GLOBAL_SIZE + GLOBAL_ID] = used | cut << 8;
}

INLINE u32 mixed(u32 word, u32 multiplier) { return (word ^ word >> 30) * multiplier; }

// Both seedings of mt19937ar.c.
INLINE void seed_generator(LOCAL u32 *ring, u64 seed, u32 generator)
{
#define WORD(i) ring[(i) / LANES * BLOCK_SIZE + (i) % LANES]
    if (generator == 0 && seed >> 32 == 0) {
        u32 last = WORD(0) = (u32)seed;
        for (u32 i = 1; i < LANES * ROWS; ++i) last = WORD(i) = mixed(last, 1812433253u) + i;
        return;
    }
    // The key, each part with its place added, is gone through again and again; it is mixed into the state of one seed.
    u32 key = (u32)seed, key1 = (u32)(seed >> 32) + 1, key2 = generator + 2;
    u32 common = 19650218u, last = common;
    for (u32 i = 1; i < LANES * ROWS; ++i) {
        common = mixed(common, 1812433253u) + i;
        last = WORD(i) = (common ^ mixed(last, 1664525u)) + key;
        u32 used = key;
        key = key1;
        key1 = key2;
        key2 = used;
    }
    last = WORD(1) = (WORD(1) ^ mixed(last, 1664525u)) + key;
    for (u32 i = 2; i < LANES * ROWS; ++i) last = WORD(i) = (WORD(i) ^ mixed(last, 1566083941u)) - i;
    WORD(1) = (WORD(1) ^ mixed(last, 1566083941u)) - 1;
    WORD(0) = 0x80000000u;
#undef WORD
}

// `jumps` is not looked at, nor is `offset`: there is no way to skip.
KERNEL initialise(GLOBAL u32 *state, GLOBAL const u32 *jumps, u64 seed, u64 offset)
{
    LARGE_LOCAL_ARRAY(u32, ring, ROWS * BLOCK_SIZE);
    if (LOCAL_ID % LANES == 0) seed_generator(ring + LOCAL_ID, seed, (u32)GLOBAL_ID / LANES);
    WARP_BARRIER();
    for (int row = 0; row < ROWS; ++row) state[row * GLOBAL_SIZE + GLOBAL_ID] = ring[row * BLOCK_SIZE + LOCAL_ID];
    state[ROWS * GLOBAL_SIZE + GLOBAL_ID] = ROWS;
}

// Every loop turn uses up what is left in local memory, then renews it; where only whole vectors are wanted and a turn
// makes a whole number of them, they are made of the words while these are in registers.
KERNEL generate(GLOBAL VALUE *out, u64 count, GLOBAL u32 *state, u32 start DISTRIBUTION_ARGUMENTS)
{
    LARGE_LOCAL_ARRAY(u32, ring, ROWS * BLOCK_SIZE);
    Distribution distribution = DISTRIBUTION;
    Rows rows = rows_of(out, count, start);
    LOCAL u32 *own = ring + LOCAL_ID;
    GLOBAL u32 *kept = state + GLOBAL_ID;
    for (int row = 0; row < ROWS; ++row) own[row * BLOCK_SIZE] = kept[row * GLOBAL_SIZE];
    u32 used = kept[ROWS * GLOBAL_SIZE] & 0xffu, dropped = rows.begun ? 0 : kept[ROWS * GLOBAL_SIZE] >> 8;
    u64 row = 0;
    u64 turns = (used + dropped + rows.all * IN - 1) / ROWS;
    u32 words[IN], begun = 0;
    WARP_BARRIER();
    for (u64 turn = 0;; ++turn) {
        while (used < ROWS && (dropped || row < rows.all)) {
            if (!dropped && !begun && row >= rows.begun && row < rows.plain && used + IN <= ROWS) {
                u32 many = (ROWS - used) / IN;
                if (many > rows.plain - row) many = (u32)(rows.plain - row);
                GLOBAL VALUE *to = out + (rows.first + row * rows.engines) * OUT;
                LOCAL u32 *from = own + used * BLOCK_SIZE;
                u32 stride = rows.engines * OUT;
                UNROLL_BY(4)
                for (u32 i = 0; i < many; ++i) {
                    u32 taken[IN];
                    UNROLL
                    for (int k = 0; k < IN; ++k) taken[k] = tempered(from[k * BLOCK_SIZE]);
                    Vector made = vector_of(taken, distribution);
                    store(to, &made, rows.aligned);
                    to += stride;
                    from += IN * BLOCK_SIZE;
                }
                used += many * IN;
                row += many;
                continue;
            }
            if (!dropped && !begun && row == rows.complete) save(state, own, used, IN);
            UNROLL
            for (int k = 0; k < IN - 1; ++k) words[k] = words[k + 1];
            words[IN - 1] = tempered(own[used++ * BLOCK_SIZE]);
            if (dropped) {
                --dropped;
            } else if (++begun == IN) {
                Vector made = vector_of(words, distribution);
                store_checked(&rows, row++, &made);
                begun = 0;
            }
        }
        if (turn == turns) break;
        int at_once = UNROLLS_TURNS && !dropped && !begun && row >= rows.begun && row + ROWS / IN <= rows.plain;
        GLOBAL VALUE *to = out + (rows.first + row * rows.engines) * OUT;
        u32 stride = rows.engines * OUT, renewed[PHASE];
        UNROLL
        for (int first = 0; first < ROWS; first += PHASE) {
            twist(ring, first, renewed);
            if (!at_once) continue;
            UNROLL
            for (int i = 0; i < PHASE; i += IN) {
                UNROLL
                for (int k = 0; k < IN; ++k) words[k] = tempered(renewed[(i + k) % PHASE]);
                Vector made = vector_of(words, distribution);
                store(to, &made, rows.aligned);
                to += stride;
            }
        }
        used = at_once ? ROWS : 0;
        if (at_once) row += ROWS / IN;
    }
    if (rows.all == rows.complete) save(state, own, used, 0);
}
