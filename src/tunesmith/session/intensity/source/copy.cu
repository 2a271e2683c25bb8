// Each block copies GROUP * ITEMS neighbouring vectors; copy.yaml describes the macros and arguments.

extern "C" __global__ void copy_of_memory(const uint4 *source, uint4 *target)
{
    const size_t first = blockIdx.x * (size_t)(GROUP * ITEMS) + threadIdx.x;
#pragma unroll
    for (int item = 0; item < ITEMS; item++)
        target[first + item * GROUP] = source[first + item * GROUP];
}
