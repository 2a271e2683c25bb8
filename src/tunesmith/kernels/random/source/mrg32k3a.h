// MRG32k3a (L'Ecuyer, Oper. Res. 47 (1999) 159), engines 2^76 apart. State: three words of each recurrence, oldest
// first.

#define M1 4294967087u
#define M2 4294944443u
#define EXCESS1 209u
#define EXCESS2 22853u
#define STRETCH 1.000000048661607

// rocRAND's product: the factor in pieces of 15 and 17 bits, modulo 2^64, folded once or twice and cut to 32 bits.
INLINE u64 folded(u64 value, u32 modulus)
{
    u64 excess = modulus == M1 ? EXCESS1 : EXCESS2;
    value = excess * (value >> 32) + (u32)value;
    if (modulus == M2) value = excess * (value >> 32) + (u32)value;
    return value >= modulus ? value - modulus : value;
}

INLINE u32 product(u32 factor, u64 seed, u32 modulus)
{
    u64 high = folded((factor >> 17) * seed, modulus), low = folded((factor & 0x1ffffu) * seed, modulus);
    return (u32)folded((high << 17) + low, modulus) % modulus;
}

// value < 2^54 modulo m. 2^32 is `excess` modulo m; where a sum reaches 2^32 with the excess added once more, it is at
// least m without it, and what is left is the residue.
INLINE u32 ended(u32 low, u32 added, u32 excess)
{
    u32 sum = low + (added + excess);
    return less_unless(sum, excess, sum < low);
}

INLINE u32 modulo_m1(u64 value) { return ended((u32)value, (u32)(value >> 32) * EXCESS1, EXCESS1); }

INLINE u32 modulo_m2(u64 value)
{
    u64 once = (value >> 32) * EXCESS2 + value;
    return ended((u32)once, ((u32)(once >> 32) - (u32)(value >> 32)) * EXCESS2, EXCESS2);
}

// Both recurrences by one step; z - 1 for their difference z modulo m1, taken in [1, m1].
INLINE u32 advance(u32 *x, u32 *y)
{
    u32 p1 = modulo_m1((u64)x[1] * 1403580u + (u64)(M1 - x[0]) * 810728u);
    u32 p2 = modulo_m2((u64)y[2] * 527612u + (u64)(M2 - y[0]) * 1370589u);
    x[0] = x[1];
    x[1] = x[2];
    x[2] = p1;
    y[0] = y[1];
    y[1] = y[2];
    y[2] = p2;
    return less_unless(p1 - p2 - 1, EXCESS1, p1 > p2);
}
