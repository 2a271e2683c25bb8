// softmax.cl in CUDA C++. Blocks are OpenCL's work-groups, threads its work-items, shared memory its local memory.

struct alignas(4 * WIDTH) Vector { float at[WIDTH]; };

// The statement for every `column` at which a vector of this work-item begins.
#define FOR_MY_VECTORS(statement)                                             \
    for (int start = 0; start < columns; start += GROUP * ITEMS)              \
        for (int item = 0; item < ITEMS; item += WIDTH) {                     \
            const int column = start + item * GROUP + (int)threadIdx.x * WIDTH; \
            if (column < columns) { statement }                               \
        }

// The largest value or the sum over the group, for each of its work-items.
__device__ float over_group(float *values, float mine, bool largest)
{
    const int item = threadIdx.x;
    __syncthreads();
    values[item] = mine;
    for (int distance = GROUP / 2; distance > 0; distance /= 2) {
        __syncthreads();
        if (item < distance) {
            const float other = values[item + distance];
            values[item] = largest ? fmaxf(values[item], other) : values[item] + other;
        }
    }
    __syncthreads();
    return values[0];
}

extern "C" __global__ void __launch_bounds__(GROUP)
softmax(const float *__restrict__ x, float *__restrict__ y, int columns)
{
    __shared__ float values[GROUP];
    x += (size_t)blockIdx.x * columns;
    y += (size_t)blockIdx.x * columns;

    float largest = -__int_as_float(0x7f800000), sum = 0.0f;
    FOR_MY_VECTORS(
        const Vector read = *(const Vector *)(x + column);
        for (int i = 0; i < WIDTH; ++i) largest = fmaxf(largest, read.at[i]);)
    largest = over_group(values, largest, true);

    FOR_MY_VECTORS(
        const Vector read = *(const Vector *)(x + column);
        for (int i = 0; i < WIDTH; ++i) sum += expf(read.at[i] - largest);)
    sum = over_group(values, sum, false);

    FOR_MY_VECTORS(
        Vector both = *(const Vector *)(x + column);
        for (int i = 0; i < WIDTH; ++i) both.at[i] = expf(both.at[i] - largest) / sum;
        *(Vector *)(y + column) = both;)
}
