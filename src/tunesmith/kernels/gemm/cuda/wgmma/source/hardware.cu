// What only the machine's own instructions can say: barriers in shared memory, copies by TMA, products of warp
// groups, flags between work-groups, conversions. Everything else of the family is plain C++ on top of these
// functions, and of `multiply_add`, which is made for a tile's width (text.py).
//
// Addresses of 32 bits are in shared memory. Sources: PTX ISA, "Parallel Synchronization: mbarrier", "Data Movement:
// cp.async.bulk.tensor", "Asynchronous Warpgroup Level Matrix Instructions", "Memory Consistency Model".

struct __align__(64) TensorMap { u64 words[16]; };

__device__ __forceinline__ u32 address_of(void *shared) { return (u32)__cvta_generic_to_shared(shared); }

// ---- barriers ----

__device__ __forceinline__ void make_barrier(u32 barrier, u32 arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
// To every thread and to TMA; a meeting of the threads must follow.
__device__ __forceinline__ void show_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ __forceinline__ void expect_bytes(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
#define WAIT_FOR(barrier, phase, acquire) \
    asm volatile( \
        "{ .reg .pred done;\n" \
        "waiting:\n" \
        "mbarrier.try_wait.parity" acquire ".shared::cta.b64 done, [%0], %1;\n" \
        "@!done bra waiting; }" ::"r"(barrier), "r"(phase) : "memory")
__device__ __forceinline__ void wait_for(u32 barrier, u32 phase) { WAIT_FOR(barrier, phase, ""); }
// The same, for what other work-groups of the cluster send.
__device__ __forceinline__ void wait_for_cluster(u32 barrier, u32 phase)
{
    WAIT_FOR(barrier, phase, ".acquire.cluster");
}
// A barrier at the same place in work-group number `rank` of the cluster. What it says was read, was read by products
// that are done, so nothing has to be released to the cluster: that would be a fence of the GPU's memory, a microsecond.
__device__ __forceinline__ void arrive_at(u32 barrier, u32 rank)
{
    asm volatile(
        "{ .reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier), "r"(rank) : "memory");
}
// The same place in the shared memory of work-group number `rank` of the cluster.
__device__ __forceinline__ u32 place_at(u32 address, u32 rank)
{
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
__device__ __forceinline__ u32 size_of_cluster()
{
    u32 size;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}
// The cluster's number, and how many there are.
__device__ __forceinline__ u32 number_of_cluster()
{
    u32 number;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(number));
    return number;
}
__device__ __forceinline__ u32 clusters_of_grid()
{
    u32 clusters;
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters));
    return clusters;
}
__device__ __forceinline__ u32 rank_in_cluster()
{
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// The threads of a cluster meet in two steps: nobody passes `join_cluster` before all threads that have not ended have
// announced themselves. Of what was done before, only new barriers are sure to be seen then.
__device__ __forceinline__ void announce_to_cluster()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void join_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ void meet_warp_group(int group)
{
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}
__device__ __forceinline__ void meet_warp() { __syncwarp(); }
// All warp groups that multiply.
__device__ __forceinline__ void meet_multiplying(int threads)
{
    asm volatile("bar.sync 15, %0;" ::"r"(threads) : "memory");
}

// ---- launches ----

// Returns when the launch before this one has ended and all that it wrote is there: this one may have started earlier.
__device__ __forceinline__ void wait_for_launch_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// ---- copies ----

// A copy by this map will follow: its first one need not wait for the map.
__device__ __forceinline__ void expect_map(const TensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void fetch(u32 to, const TensorMap *map, u32 barrier, int x, int y, int batch)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5}], [%2];"
        ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(batch) : "memory");
}
// To the same place in some work-groups of a cluster, and to a barrier of each: bit i of `ranks` is number i.
__device__ __forceinline__ void fetch_for(
    u32 ranks, u32 to, const TensorMap *map, u32 barrier, int x, int y, int batch)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4, %5}], [%2], %6;"
        ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(batch), "h"((unsigned short)ranks) : "memory");
}
__device__ __forceinline__ void put(const TensorMap *map, u32 from, int x, int y, int batch)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];"
        ::"l"(map), "r"(from), "r"(x), "r"(y), "r"(batch) : "memory");
}
// What this thread put since the last time is a group.
__device__ __forceinline__ void end_puts() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// All but the newest `LEFT` groups of this thread's have been read from shared memory.
template <int LEFT> __device__ __forceinline__ void wait_until_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}
// What this thread wrote to shared memory can be read by TMA after the next meeting.
__device__ __forceinline__ void show_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Four 8 x 8 matrices of 16-bit elements, held by a warp as products leave them, to rows of 16 bytes: each thread
// names one.
__device__ __forceinline__ void store_matrices(u32 row, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
        ::"r"(row), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
__device__ __forceinline__ void store_transposed(u32 row, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
        ::"r"(row), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// Sums, which this thread writes to shared memory, and reads there.
template <class Four> __device__ __forceinline__ void write_shared(u32 at, const Four &four)
{
    *(Four *)__cvta_shared_to_generic(at) = four;
}
template <class Four> __device__ __forceinline__ Four read_shared(u32 at)
{
    return *(const Four *)__cvta_shared_to_generic(at);
}
// Bytes of shared memory to a place of any work-group of the cluster (place_at); its barrier counts them as arrived.
__device__ __forceinline__ void send(u32 there, u32 from, u32 bytes, u32 barrier_there)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(there), "r"(from), "r"(bytes), "r"(barrier_there) : "memory");
}

// ---- products ----

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// All but the newest `LEFT` groups of products are done.
template <int LEFT> __device__ __forceinline__ void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
template <int REGISTERS> __device__ __forceinline__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> __device__ __forceinline__ void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// ---- flags in global memory ----

// What the threads wrote that met this one before is seen by whoever sees the flag.
__device__ __forceinline__ void raise_flag(u32 *flag)
{
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}
__device__ __forceinline__ void wait_for_flag(const u32 *flag)
{
    u32 raised;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
    } while (!raised);
}
__device__ __forceinline__ void lower_flag(u32 *flag)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(flag) : "memory");
}

// ---- numbers ----

// To about 2 units in the last place, numbers below 2^-126 being 0.
__device__ __forceinline__ float power_of_2(float x)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}
__device__ __forceinline__ float reciprocal(float x)
{
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return inverse;
}

#if OUTPUT_BF16
__device__ __forceinline__ float widened(unsigned short x) { return __uint_as_float((u32)x << 16); }
__device__ __forceinline__ u32 packed(float low, float high)
{
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(low), "f"(high));
    return both;
}
#elif OUTPUT_F16
__device__ __forceinline__ float widened(unsigned short x)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x));
    return wide;
}
__device__ __forceinline__ u32 packed(float low, float high)
{
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(low), "f"(high));
    return both;
}
#endif
