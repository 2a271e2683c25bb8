// Threefry with LANES (2, 4) words of LANE_BITS (32, 64) and 20 rounds (Salmon et al., SC 2011, after Threefish): block n
// is the counter n under a key made of the seed as KEY says.

#if LANE_BITS == 32
typedef u32 Lane;
#define PARITY 0x1BD11BDAu
#else
typedef u64 Lane;
#define PARITY 0x1BD11BDAA9FC1A22ul
#endif

#define BLOCK_WORDS (LANES * LANE_BITS / 32)

INLINE Lane rotated(Lane x, int by) { return x << by | x >> (LANE_BITS - by); }

// Threefish's mixing: lane a takes in lane b, which turns.
#define MIX(a, b, by) \
    a += b; \
    b = rotated(b, by) ^ a;

#if LANES == 2
#define KEY_INJECTED(number) \
    x0 += key[(number) % 3]; \
    x1 += key[((number) + 1) % 3] + (Lane)(number);
#define FOUR_ROUNDS(a, b, c, d) \
    MIX(x0, x1, a) \
    MIX(x0, x1, b) \
    MIX(x0, x1, c) \
    MIX(x0, x1, d)
#if LANE_BITS == 32
#define EVEN_ROUNDS FOUR_ROUNDS(13, 15, 26, 6)
#define ODD_ROUNDS FOUR_ROUNDS(17, 29, 16, 24)
#else
#define EVEN_ROUNDS FOUR_ROUNDS(16, 42, 12, 31)
#define ODD_ROUNDS FOUR_ROUNDS(16, 32, 24, 21)
#endif
#else
#define KEY_INJECTED(number) \
    x0 += key[(number) % 5]; \
    x1 += key[((number) + 1) % 5]; \
    x2 += key[((number) + 2) % 5]; \
    x3 += key[((number) + 3) % 5] + (Lane)(number);
#define FOUR_ROUNDS(a, b, c, d, e, f, g, h) \
    MIX(x0, x1, a) MIX(x2, x3, b) \
    MIX(x0, x3, c) MIX(x2, x1, d) \
    MIX(x0, x1, e) MIX(x2, x3, f) \
    MIX(x0, x3, g) MIX(x2, x1, h)
#if LANE_BITS == 32
#define EVEN_ROUNDS FOUR_ROUNDS(10, 26, 11, 21, 13, 27, 23, 5)
#define ODD_ROUNDS FOUR_ROUNDS(6, 20, 17, 11, 25, 10, 18, 20)
#else
#define EVEN_ROUNDS FOUR_ROUNDS(14, 16, 52, 57, 23, 40, 5, 37)
#define ODD_ROUNDS FOUR_ROUNDS(25, 33, 46, 12, 58, 22, 32, 32)
#endif
#endif

// The seed makes the key as in rocRAND: each word is the seed shifted further, cut to the word.
INLINE void block(u64 number, u64 seed, u32 *out)
{
    Lane key[LANES + 1];
    key[LANES] = PARITY;
    UNROLL
    for (int i = 0; i < LANES; ++i) {
        key[i] = (Lane)(seed >> (64 / LANES * i));
        key[LANES] ^= key[i];
    }
    Lane x0 = (Lane)number, x1 = LANE_BITS == 32 ? (Lane)(number >> 32) : 0;
#if LANES == 4
    Lane x2 = 0, x3 = 0;
#endif
    KEY_INJECTED(0)
    EVEN_ROUNDS KEY_INJECTED(1)
    ODD_ROUNDS KEY_INJECTED(2)
    EVEN_ROUNDS KEY_INJECTED(3)
    ODD_ROUNDS KEY_INJECTED(4)
    EVEN_ROUNDS KEY_INJECTED(5)
#if LANES == 2
    Lane lanes[2];
    lanes[0] = x0;
    lanes[1] = x1;
#else
    Lane lanes[4];
    lanes[0] = x0;
    lanes[1] = x1;
    lanes[2] = x2;
    lanes[3] = x3;
#endif
    UNROLL
    for (int i = 0; i < BLOCK_WORDS; ++i) out[i] = (u32)((u64)lanes[i * 32 / LANE_BITS] >> (i * 32 % LANE_BITS));
}
