// Sobol' points in Gray-code order, of WORD_BITS bits: a row of work-groups for every dimension, `count` values each.
//
// Point n is the xor of the direction numbers at the bits of n ^ (n >> 1). That is linear in the bits of n, so it is
// also the xor of one table entry for each hexadecimal digit of n; every work-group makes the tables first.

#if WORD_BITS == 64
typedef u64 Word;
#else
typedef u32 Word;
#endif

#define DIGITS (WORD_BITS / 4)
#define PACKAGE (16 / (int)sizeof(VALUE))

typedef union { VALUE values[PACKAGE]; Words4 whole; } Package;

// What the upper half of a number contributes, which is the same for many numbers.
typedef struct { u32 number; Word point; } Upper;

INLINE Word looked_up(LOCAL const Word *tables, u32 digits)
{
    Word point = 0;
    UNROLL
    for (int i = 0; i < 8; ++i) point ^= tables[16 * i + (digits >> 4 * i & 15)];
    return point;
}

INLINE Word point_of(LOCAL const Word *tables, u64 n, Upper *upper)
{
#if WORD_BITS == 64
    if ((u32)(n >> 32) != upper->number) {
        upper->number = (u32)(n >> 32);
        upper->point = looked_up(tables + 128, upper->number);
    }
#endif
    return looked_up(tables, (u32)n) ^ upper->point;
}

INLINE VALUE value_of(Word point, Distribution distribution)
{
    u32 words[IN];
    VALUE made[OUT];
    UNROLL
    for (int i = 0; i < IN; ++i) words[i] = (u32)((u64)point >> 32 * i);
    values(words, made, distribution);
    return made[0];
}

// `out` points n ... n + many - 1, by all work-items of the dimension.
INLINE void fill_singly(GLOBAL VALUE *out, u64 many, u64 n, LOCAL const Word *tables, Upper *upper,
                        Distribution distribution)
{
    for (u64 i = GLOBAL_ID; i < many; i += GLOBAL_SIZE) out[i] = value_of(point_of(tables, n + i, upper), distribution);
}

// Packages of 16 bytes, aligned, the first point being n. Points whose numbers differ in their last bits only differ by
// table entries; unless n is a multiple of a package, each package has points of two such series.
INLINE void fill_packages(GLOBAL Words4 *out, u64 packages, u64 n, const int is_split, LOCAL const Word *tables,
                          Upper *upper, Distribution distribution)
{
    u32 before = (u32)n % PACKAGE;
    Word within[PACKAGE];
    UNROLL
    for (int i = 0; i < PACKAGE; ++i) within[i] = tables[0] ^ tables[(before + i) % PACKAGE];
    for (u64 number = GLOBAL_ID; number < packages; number += GLOBAL_SIZE) {
        u64 series = n - before + number * PACKAGE;
        Word point = point_of(tables, series, upper), following = point;
        if (is_split) following = point_of(tables, series + PACKAGE, upper);
        Package made;
        UNROLL
        for (int i = 0; i < PACKAGE; ++i)
            made.values[i] = value_of((before + i < PACKAGE ? point : following) ^ within[i], distribution);
        out[number] = made.whole;
    }
}

KERNEL generate(GLOBAL VALUE *out, u64 count, GLOBAL const Word *directions, GLOBAL const Word *shift, u64 offset
                DISTRIBUTION_ARGUMENTS)
{
    LOCAL_ARRAY(Word, tables, 16 * DIGITS);
    Distribution distribution = DISTRIBUTION;
    GLOBAL const Word *own = directions + (u64)GROUP_ID_Y * WORD_BITS;
    for (u32 entry = LOCAL_ID; entry < 16 * DIGITS; entry += BLOCK_SIZE) {
        // Each number has a last digit, whose table takes the shift in.
        Word point = entry < 16 ? shift[GROUP_ID_Y] : 0;
        for (u32 bit = 0; bit < 4; ++bit) {
            u32 place = entry / 16 * 4 + bit;
            if (entry >> bit & 1) point ^= own[place] ^ (place ? own[place - 1] : 0);
        }
        tables[entry] = point;
    }
    BARRIER();

    Upper upper;
    upper.number = 0;
    upper.point = 0;
    out += (u64)GROUP_ID_Y * count;
    u64 head = (16 - (u64)out % 16) % 16 / sizeof(VALUE);
    if (head > count) head = count;
    u64 packages = (count - head) / PACKAGE, done = head + packages * PACKAGE;
    fill_singly(out, head, offset, tables, &upper, distribution);
    if ((offset + head) % PACKAGE == 0) {
        fill_packages((GLOBAL Words4 *)(out + head), packages, offset + head, 0, tables, &upper, distribution);
    } else {
        fill_packages((GLOBAL Words4 *)(out + head), packages, offset + head, 1, tables, &upper, distribution);
    }
    fill_singly(out + done, count - done, offset + done, tables, &upper, distribution);
}
