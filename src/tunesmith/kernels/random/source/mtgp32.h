// MTGP32 of period 2^11213 - 1 (Saito and Matsumoto, ACM TOMS 39 (2013) 12): for every work-group of 256 work-items a
// parameter set, which gives 256 words a step.
// State, one set after the other: x[0 ... 350]; the words of a cut row (`rows.h`); the set's parameters.

#define LANES 256
#define SIZE 351
#define PARAMETERS (4 + 16 + 16)
#define STATE_WORDS (SIZE + 1 + PARAMETERS)
// So many steps go on in `x` without an index wrapping around; the last one or two of them write to its beginning.
#define STEPS 4
#define BUFFER (SIZE + (STEPS - 1) * LANES)

typedef struct {
    LOCAL u32 *x;
    LOCAL const u32 *recursion;
    LOCAL const u32 *tempering;
    u32 position;
    u32 shift1;
    u32 shift2;
    u32 mask;
} Set;

// Step 0 ... 3 of a turn: word x[n + 351] of n = 256 step + lane, tempered.
INLINE u32 next(const Set *set, int step)
{
    u32 number = step * LANES + LOCAL_ID;
    LOCAL u32 *at = set->x + number;
    u32 t = at[set->position - 1];
    u32 y = (at[0] & set->mask) ^ at[1];
    y ^= y << set->shift1;
    y ^= at[set->position] >> set->shift2;
    y ^= set->recursion[y & 15];
    if (step < STEPS - 1) at[SIZE] = y;
    if (step == STEPS - 1 || (step == STEPS - 2 && number + SIZE >= STEPS * LANES)) at[SIZE - STEPS * LANES] = y;
    BARRIER();
    t ^= t >> 16;
    t ^= t >> 8;
    return y ^ set->tempering[t & 15];
}

INLINE Vector next_vector(const Set *set, int step, Distribution distribution)
{
    u32 words[IN];
    UNROLL
    for (int i = 0; i < IN; ++i) words[i] = next(set, step + i);
    return vector_of(words, distribution);
}

// Brings the state to the beginning, after 1 ... 4 steps from there.
INLINE void rewind_after(LOCAL u32 *x, int steps)
{
    if (steps == STEPS) return;
    u32 low = x[steps * LANES + LOCAL_ID], high = x[steps * LANES + (LOCAL_ID < SIZE - LANES ? LANES + LOCAL_ID : 0)];
    BARRIER();
    x[LOCAL_ID] = low;
    if (LOCAL_ID < SIZE - LANES) x[LANES + LOCAL_ID] = high;
    BARRIER();
}

// `cut` is how many words a vector of a row takes that is gone over again, or zero.
INLINE void save(GLOBAL u32 *own, LOCAL const u32 *x, u32 cut)
{
    for (u32 i = LOCAL_ID; i < SIZE; i += LANES) own[i] = x[i];
    if (LOCAL_ID == 0) own[SIZE] = cut;
}

// `jumps` holds the sets' parameters. Seeding after rocRAND.
KERNEL initialise(GLOBAL u32 *state, GLOBAL const u32 *jumps, u64 seed, u64 offset)
{
    LOCAL_ARRAY(u32, x, SIZE);
    GLOBAL u32 *own = state + (u64)GROUP_ID * STATE_WORDS;
    GLOBAL const u32 *parameters = jumps + (u64)GROUP_ID * PARAMETERS;
    for (u32 i = LOCAL_ID; i < PARAMETERS; i += LANES) own[SIZE + 1 + i] = parameters[i];
    if (LOCAL_ID == 0) {
        GLOBAL const u32 *recursion = parameters + 4;
        u32 hidden = recursion[4] ^ recursion[8] << 16;
        u32 filler = hidden + (hidden >> 16);
        filler = ((filler + (filler >> 8)) & 0xffu) * 0x01010101u;
        u32 last = (u32)(seed ^ seed >> 32) + GROUP_ID + 1;
        x[0] = last;
        for (u32 i = 1; i < SIZE; ++i)
            x[i] = last = (i == 1 ? hidden : filler) ^ (1812433253u * (last ^ last >> 30) + i);
        own[SIZE] = 0;
    }
    BARRIER();
    for (u32 i = LOCAL_ID; i < SIZE; i += LANES) own[i] = x[i];
}

KERNEL generate(GLOBAL VALUE *out, u64 count, GLOBAL u32 *state, u32 start DISTRIBUTION_ARGUMENTS)
{
    LOCAL_ARRAY(u32, x, BUFFER);
    LOCAL_ARRAY(u32, tables, 32);
    Distribution distribution = DISTRIBUTION;
    Rows rows = rows_of(out, count, start);
    GLOBAL u32 *own = state + (u64)GROUP_ID * STATE_WORDS;
    GLOBAL u32 *parameters = own + SIZE + 1;
    Set set;
    set.x = x;
    set.recursion = tables;
    set.tempering = tables + 16;
    set.position = parameters[0];
    set.shift1 = parameters[1];
    set.shift2 = parameters[2];
    set.mask = parameters[3];
    if (LOCAL_ID < 32) tables[LOCAL_ID] = parameters[4 + LOCAL_ID];
    for (u32 i = LOCAL_ID; i < SIZE; i += LANES) x[i] = own[i];
    u32 skipped = rows.begun ? 0 : own[SIZE];
    BARRIER();
    for (; skipped; --skipped) {
        next(&set, 0);
        rewind_after(x, 1);
    }
    for (u64 row = 0; row < rows.all;) {
        if (row == rows.complete) save(own, x, IN);
        if (row < rows.begun || row + STEPS / IN > rows.plain) {
            Vector made = next_vector(&set, 0, distribution);
            store_checked(&rows, row++, &made);
            // PoCL (3.1) lets the first work-item decide for all in a branch that a loop's barriers come right behind.
            BARRIER();
            rewind_after(x, IN);
            continue;
        }
        GLOBAL VALUE *to = out + (rows.first + row * rows.engines) * OUT;
        UNROLL
        for (int step = 0; step < STEPS; step += IN) {
            Vector made = next_vector(&set, step, distribution);
            store(to, &made, rows.aligned);
            to += (u64)rows.engines * OUT;
        }
        row += STEPS / IN;
    }
    if (rows.all == rows.complete) save(own, x, 0);
}
