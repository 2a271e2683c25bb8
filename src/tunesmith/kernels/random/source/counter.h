// The driver of counter-based generators. 16 bytes of output, a package, come from 4 words whatever the distribution;
// package p from words `skipped` + 4 p onwards, whoever computes it, so that the launch's shape changes nothing.
// A work-item makes a unit at a time: as many packages as one block of words fills, or as 4 words do.

#define UNIT_WORDS (BLOCK_WORDS > 4 ? BLOCK_WORDS : 4)
#define UNIT_PACKAGES (UNIT_WORDS / 4)
#define PACKAGE_VALUES (16 / (int)sizeof(VALUE))
#define UNIT_VALUES (UNIT_PACKAGES * PACKAGE_VALUES)

typedef union { VALUE values[UNIT_VALUES]; Words4 packages[UNIT_PACKAGES]; } Unit;

// The words of a unit that begins a block.
INLINE void aligned_words(u64 first, u64 seed, u32 *words)
{
    UNROLL
    for (int i = 0; i < UNIT_WORDS; i += BLOCK_WORDS) block(first / BLOCK_WORDS + i / BLOCK_WORDS, seed, words + i);
}

// The words of a unit that begins anywhere: from one block more than it has.
INLINE void unaligned_words(u64 first, u64 seed, u32 *words)
{
    u32 made[UNIT_WORDS + BLOCK_WORDS];
    u32 within = (u32)first % BLOCK_WORDS;
    aligned_words(first - within, seed, made);
    block((first - within + UNIT_WORDS) / BLOCK_WORDS, seed, made + UNIT_WORDS);
    // An index that the compiler does not know would put the words into memory.
    UNROLL
    for (int shift = 0; shift < BLOCK_WORDS; ++shift) {
        UNROLL
        for (int i = 0; i < UNIT_WORDS; ++i)
            if (within == (u32)shift) words[i] = made[i + shift];
    }
}

INLINE Unit unit_of(const u32 *words, Distribution distribution)
{
    Unit unit;
    UNROLL
    for (int vector = 0; vector < UNIT_WORDS / IN; ++vector)
        values(words + vector * IN, unit.values + vector * OUT, distribution);
    return unit;
}

// `count` values to any address that is aligned for a value; words before number `skipped` are left out.
KERNEL generate(GLOBAL VALUE *out, u64 count, u64 seed, u64 skipped DISTRIBUTION_ARGUMENTS)
{
    Distribution distribution = DISTRIBUTION;
    u64 full = count / UNIT_VALUES;
    u32 words[UNIT_WORDS];
    if (skipped % BLOCK_WORDS == 0 && ((u64)out & 15) == 0) {
        for (u64 number = GLOBAL_ID; number < full; number += GLOBAL_SIZE) {
            aligned_words(skipped + UNIT_WORDS * number, seed, words);
            Unit unit = unit_of(words, distribution);
            UNROLL
            for (int i = 0; i < UNIT_PACKAGES; ++i)
                ((GLOBAL Words4 *)out)[number * UNIT_PACKAGES + i] = unit.packages[i];
        }
    } else {
        for (u64 number = GLOBAL_ID; number < full; number += GLOBAL_SIZE) {
            unaligned_words(skipped + UNIT_WORDS * number, seed, words);
            Unit unit = unit_of(words, distribution);
            UNROLL
            for (int i = 0; i < UNIT_VALUES; ++i) out[number * UNIT_VALUES + i] = unit.values[i];
        }
    }
    if (GLOBAL_ID == full % GLOBAL_SIZE && full * UNIT_VALUES < count) {
        unaligned_words(skipped + UNIT_WORDS * full, seed, words);
        Unit unit = unit_of(words, distribution);
        UNROLL
        for (int i = 0; i < UNIT_VALUES; ++i)
            if (full * UNIT_VALUES + i < count) out[full * UNIT_VALUES + i] = unit.values[i];
    }
}
