// Each group takes one row, GROUP * ITEMS elements at a time; softmax_kernel.yaml describes the macros and arguments.
// The row's largest element is subtracted first, so that no exponential overflows.

typedef struct { float at[WIDTH]; } __attribute__((aligned(4 * WIDTH))) Vector;

// The statement for every `column` at which a vector of this work-item begins.
#define FOR_MY_VECTORS(statement)                                                  \
    for (int start = 0; start < columns; start += GROUP * ITEMS)                   \
        for (int item = 0; item < ITEMS; item += WIDTH) {                          \
            const int column = start + item * GROUP + (int)get_local_id(0) * WIDTH; \
            if (column < columns) { statement }                                    \
        }

// The largest value or the sum over the group, for each of its work-items.
float over_group(__local float *values, float mine, bool largest)
{
    const int item = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    values[item] = mine;
    for (int distance = GROUP / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < distance) {
            const float other = values[item + distance];
            values[item] = largest ? fmax(values[item], other) : values[item] + other;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return values[0];
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int columns)
{
    __local float values[GROUP];
    x += (size_t)get_group_id(0) * columns;
    y += (size_t)get_group_id(0) * columns;

    float largest = -INFINITY, sum = 0.0f;
    FOR_MY_VECTORS(
        const Vector read = *(__global const Vector *)(x + column);
        for (int i = 0; i < WIDTH; ++i) largest = fmax(largest, read.at[i]);)
    largest = over_group(values, largest, true);

    FOR_MY_VECTORS(
        const Vector read = *(__global const Vector *)(x + column);
        for (int i = 0; i < WIDTH; ++i) sum += exp(read.at[i] - largest);)
    sum = over_group(values, sum, false);

    FOR_MY_VECTORS(
        Vector both = *(__global const Vector *)(x + column);
        for (int i = 0; i < WIDTH; ++i) both.at[i] = exp(both.at[i] - largest) / sum;
        *(__global Vector *)(y + column) = both;)
}
