// Verification on the device: memory is filled before a run and looked at after it, and what goes back are a few words.
//
// Memory is an array of words of 8 bytes. An operand's storage begins with a word, at byte `begin`, and ends before byte
// `end`, anywhere in a word. A pattern is a word too, which holds an element as often as it fits. A flag is raised by
// everyone who sees a reason, all writing 1.

#define WORD_BYTES 8
#define GOLDEN 0x9E3779B97F4A7C15

// The bits of the bytes of word number `word` that lie before byte `end`.
INLINE u64 before(u64 word, u64 end)
{
    u64 first = word * WORD_BYTES;
    if (first >= end) return 0;
    return end - first >= WORD_BYTES ? ~(u64)0 : ((u64)1 << 8 * (end - first)) - 1;
}

// `inside` into the storage, `around` into what surrounds it.
KERNEL lay(GLOBAL u64 *memory, u64 words, u64 begin, u64 end, u64 inside, u64 around)
{
    EACH(i, words) {
        u64 storage = i * WORD_BYTES < begin ? 0 : before(i, end);
        memory[i] = (inside & storage) | (around & ~storage);
    }
}

// Raise the flag where what surrounds the storage has changed.
KERNEL guards(const GLOBAL u64 *memory, u64 words, u64 begin, u64 end, u64 around, GLOBAL u32 *flags, u32 flag)
{
    u64 in_front = begin / WORD_BYTES, last = end / WORD_BYTES;
    EACH(i, in_front + words - last) {
        u64 word = i < in_front ? i : last + i - in_front;
        u64 storage = i < in_front ? 0 : before(word, end);
        if ((memory[word] ^ around) & ~storage) flags[flag] = 1;
    }
}

// Whether a storage element is one of the array's, given strides that fall and the extents that go with them.
INLINE int belongs(u64 place, u64 stride0, u64 extent0, u64 stride1, u64 extent1, u64 stride2, u64 extent2)
{
    u64 rest = place % stride0;
    int inside = place / stride0 < extent0 && rest / stride1 < extent1;
    rest %= stride1;
    return inside && rest / stride2 < extent2 && rest % stride2 == 0;
}

// Raise the flag `flag` where an element of the array still holds the poison, and the next where one between rows does
// not. `padded` is 0 where there is nothing between rows.
KERNEL elements(const GLOBAL u64 *memory, u64 begin, u64 count, u32 bits, u64 poison, u32 padded, u64 stride0,
                u64 extent0, u64 stride1, u64 extent1, u64 stride2, u64 extent2, GLOBAL u32 *flags, u32 flag)
{
    const GLOBAL u64 *storage = memory + begin / WORD_BYTES;
    u64 lanes = 64 / bits, mask = ~(u64)0 >> (64 - bits);
    EACH(i, (count + lanes - 1) / lanes) {
        u64 difference = storage[i] ^ poison;
        for (u64 lane = 0; lane < lanes && i * lanes + lane < count; ++lane) {
            int held = (difference >> lane * bits & mask) == 0;
            if (!padded) {
                if (held) flags[flag] = 1;
            } else if (held == belongs(i * lanes + lane, stride0, extent0, stride1, extent1, stride2, extent2)) {
                flags[held ? flag : flag + 1] = 1;
            }
        }
    }
}

INLINE u64 element(const GLOBAL u64 *memory, u64 begin, u64 place, u32 bits)
{
    const GLOBAL u64 *storage = memory + begin / WORD_BYTES;
    switch (bits) {
    case 8: return ((const GLOBAL u8 *)storage)[place];
    case 16: return ((const GLOBAL u16 *)storage)[place];
    case 32: return ((const GLOBAL u32 *)storage)[place];
    default: return storage[place];
    }
}

// A number of `bits` bits: with `exponent_bits` of them as in IEEE 754, or whole where there are none.
INLINE double number(u64 word, u32 bits, u32 exponent_bits, u32 is_signed)
{
    u64 negative = word >> (bits - 1);
    if (!exponent_bits) {
        if (!is_signed) return (double)word;
        return (double)(i64)(negative ? word | ~(~(u64)0 >> (64 - bits)) : word);
    }
    if (bits == 64) return bits_double(word);
    if (bits == 32) return bits_float((u32)word);
    u32 fraction_bits = bits - 1 - exponent_bits, largest = (1u << exponent_bits) - 1;
    u64 fraction = word & (((u64)1 << fraction_bits) - 1);
    u32 exponent = (u32)(word >> fraction_bits) & largest;
    double magnitude;
    if (exponent == largest) {
        magnitude = bits_double(fraction ? 0x7FF8000000000000 : 0x7FF0000000000000);
    } else {
        // fraction x 2^scale, by the bits of the power of two: 1023 is the bias of a double's exponent, 52 its fraction.
        int scale = (int)(exponent ? exponent : 1) - (int)(largest / 2) - (int)fraction_bits;
        if (exponent) fraction |= (u64)1 << fraction_bits;
        magnitude = (double)fraction * bits_double((u64)(scale + 1023) << 52);
    }
    return negative ? -magnitude : magnitude;
}

#define SUM_UP(part)                                                          \
    BARRIER();                                                                \
    for (u32 width = BLOCK_SIZE / 2; width; width /= 2) {                        \
        if (LOCAL_ID < width) part[LOCAL_ID] += part[LOCAL_ID + width];       \
        BARRIER();                                                            \
    }

// Compare the elements at `places` with reals, raise the flag where one is beyond its bound, and give each work-group's
// sum of squared differences in one slot, of squared values in the next.
KERNEL values(const GLOBAL u64 *memory, u64 begin, u32 bits, u32 exponent_bits, u32 is_signed, u64 count,
              const GLOBAL u64 *places, const GLOBAL double *value, const GLOBAL double *bound, GLOBAL u32 *flags,
              u32 flag, GLOBAL double *sums, u32 slot)
{
    LOCAL_ARRAY(double, differences, BLOCK_SIZE);
    LOCAL_ARRAY(double, squares, BLOCK_SIZE);
    double of_differences = 0, of_values = 0;
    EACH(i, count) {
        double wanted = value[i];
        double difference = number(element(memory, begin, places[i], bits), bits, exponent_bits, is_signed) - wanted;
        // Written so that a NaN on either side counts as wrong.
        if (!(fabs(difference) <= bound[i])) flags[flag] = 1;
        of_differences += difference * difference;
        of_values += wanted * wanted;
    }
    differences[LOCAL_ID] = of_differences;
    squares[LOCAL_ID] = of_values;
    SUM_UP(differences)
    SUM_UP(squares)
    if (LOCAL_ID == 0) {
        sums[slot * GROUPS + GROUP_ID] = differences[0];
        sums[(slot + 1) * GROUPS + GROUP_ID] = squares[0];
    }
}

// Compare the elements at `places` with whole numbers, bit by bit.
KERNEL exact(const GLOBAL u64 *memory, u64 begin, u32 bits, u64 count, const GLOBAL u64 *places,
             const GLOBAL u64 *value, GLOBAL u32 *flags, u32 flag)
{
    EACH(i, count)
        if (element(memory, begin, places[i], bits) != value[i]) flags[flag] = 1;
}

// Raise the flag where an element is not finite, and give each work-group's sum of the squares of the elements that differ
// from those of `old`, a memory like this one, in one slot, and their number in the next. With `all`, every element counts.
KERNEL changes(const GLOBAL u64 *memory, u64 begin, u32 bits, u32 exponent_bits, u32 is_signed, u64 count,
               const GLOBAL u64 *old, u32 all, GLOBAL u32 *flags, u32 flag, GLOBAL double *sums, u32 slot)
{
    LOCAL_ARRAY(double, squares, BLOCK_SIZE);
    LOCAL_ARRAY(double, numbers, BLOCK_SIZE);
    double of_squares = 0, of_changes = 0;
    EACH(i, count) {
        u64 word = element(memory, begin, i, bits);
        double now = number(word, bits, exponent_bits, is_signed);
        // NaN and infinity minus themselves are NaN.
        if (!(now - now == 0)) flags[flag] = 1;
        if (all || now != number(element(old, begin, i, bits), bits, exponent_bits, is_signed)) {
            of_squares += now * now;
            of_changes += 1;
        }
    }
    squares[LOCAL_ID] = of_squares;
    numbers[LOCAL_ID] = of_changes;
    SUM_UP(squares)
    SUM_UP(numbers)
    if (LOCAL_ID == 0) {
        sums[slot * GROUPS + GROUP_ID] = squares[0];
        sums[(slot + 1) * GROUPS + GROUP_ID] = numbers[0];
    }
}

// Make the elements of a dense array the reference of later runs, with a bound for each.
KERNEL learn(const GLOBAL u64 *memory, u64 begin, u32 bits, u32 exponent_bits, u32 is_signed, u64 count,
             GLOBAL u64 *places, GLOBAL double *value, GLOBAL double *bound, double tolerance, double typical)
{
    EACH(i, count) {
        double now = number(element(memory, begin, i, bits), bits, exponent_bits, is_signed);
        places[i] = i;
        value[i] = now;
        bound[i] = tolerance * (fabs(now) + typical);
    }
}

KERNEL learn_exact(const GLOBAL u64 *memory, u64 begin, u32 bits, u64 count, GLOBAL u64 *places, GLOBAL u64 *value)
{
    EACH(i, count) {
        places[i] = i;
        value[i] = element(memory, begin, i, bits);
    }
}

// Each work-group's sum over its words of a hash of the word and its place. For one place the hash is a bijection
// (the finisher of SplitMix64: Steele, Lea and Flood, OOPSLA 2014), so no change of a single word leaves the sum as it is.
KERNEL digest(const GLOBAL u64 *memory, u64 words, GLOBAL u64 *sums, u32 slot)
{
    LOCAL_ARRAY(u64, part, BLOCK_SIZE);
    u64 sum = 0;
    EACH(i, words) {
        u64 x = memory[i] ^ (i + 1) * GOLDEN;
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
        x = (x ^ x >> 27) * 0x94D049BB133111EB;
        sum += x ^ x >> 31;
    }
    part[LOCAL_ID] = sum;
    SUM_UP(part)
    if (LOCAL_ID == 0) sums[slot * GROUPS + GROUP_ID] = part[0];
}
