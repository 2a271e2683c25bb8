// MRG31k3p (L'Ecuyer and Touzin, Winter Simulation Conf. (2000) 683), engines 2^72 apart. State: three words of each
// recurrence, newest first.

#define M1 2147483647u
#define M2 2147462579u
#define EXCESS2 21069u
#define STRETCH 2.000000001396983862

INLINE u32 product(u32 factor, u64 seed, u32 modulus) { return (u32)(factor * seed % modulus); }

// For x < 2 m: the smaller of x and x - m, since the latter wraps around where x < m.
INLINE u32 less(u32 x, u32 m) { return x - m < x ? x - m : x; }

// Both recurrences by one step; z - 1 for their difference z modulo m1, taken in [1, m1].
INLINE u32 advance(u32 *x, u32 *y)
{
    // 2^31 is 1 modulo m1 and EXCESS2 modulo m2; the first sum is below 2^54, the second below 2^48.
    u64 first = (u64)x[1] * 4194304u + (u64)x[2] * 129u, second = (u64)y[0] * 32768u + (u64)y[2] * 32769u;
    u32 p1 = less(((u32)first & 0x7fffffffu) + (u32)(first >> 31), M1);
    u32 p2 = less(((u32)second & 0x7fffffffu) + (u32)(second >> 31) * EXCESS2, M2);
    x[2] = x[1];
    x[1] = x[0];
    x[0] = p1;
    y[2] = y[1];
    y[1] = y[0];
    y[0] = p2;
    u32 difference = p1 - p2 - 1;
    return difference + M1 < difference ? difference + M1 : difference;
}
