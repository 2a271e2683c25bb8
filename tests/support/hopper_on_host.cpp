// What kernels/gemm/cuda/wgmma/source/hardware.cu asks of a Hopper GPU, done by the host: a thread for each
// work-item, shared memory with its barriers for each work-group, copies and products as PTX ISA describes them.
//
// What the hardware does later is done as late as it may be: products when they are waited for, copies to memory when
// they are. A stage that is given away too early, or a part that is written again too early, gives wrong numbers here
// too. Written from PTX ISA, not from the kernel: where an element lies is said here a second time.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "half_on_host.h"
#include "hopper_waiting.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __restrict__ __restrict

typedef unsigned long long u64;
typedef unsigned int u32;
using std::min;

struct Index { int x, y, z; };
thread_local Index threadIdx, blockIdx;
Index gridDim;

// ---- a work-group, and its cluster ----

const u32 SHARED_AT = 256; // shared memory begins somewhere: not where tiles must be aligned to

struct Barrier {
    int arrivals, pending;
    long bytes;
    u32 phase;
    std::vector<std::function<void()>> sent; // what arrives when the phase ends
};
struct Warp {
    Meeting meeting{32};
    std::array<u32, 32> rows;
    std::array<std::array<u32, 4>, 32> registers;
};
struct Group {
    Group(int items, int bytes) : memory(bytes + SHARED_AT, 0xff), all(items), all_multiplying(items - 128)
    {
        for (int i = 0; i < items / 128; ++i) warp_groups.emplace_back(128);
        for (int i = 0; i < items / 32; ++i) warps.emplace_back();
    }
    std::atomic<int> running{0};
    std::vector<unsigned char> memory;
    std::map<u32, Barrier> barriers;
    std::mutex lock;
    std::condition_variable changed;
    Meeting all, all_multiplying;
    std::deque<Meeting> warp_groups;
    std::vector<Group *> cluster;
    Meeting *meeting_of_cluster = nullptr;
    std::deque<Warp> warps;

    unsigned char *at(u32 address, u32 bytes)
    {
        check(address >= SHARED_AT && address + bytes <= memory.size(), "an address outside of shared memory");
        return memory.data() + address;
    }
    void settle(Barrier &barrier)
    {
        check(barrier.pending >= 0, "more arrivals at a barrier than it was made for");
        if (barrier.pending || barrier.bytes) return;
        for (auto &arrival : barrier.sent) arrival();
        barrier.sent.clear();
        barrier.phase ^= 1;
        barrier.pending = barrier.arrivals;
        changed.notify_all();
    }
};
thread_local Group *here;

void __syncthreads() { here->all.meet("all work-items"); }
u32 address_of(void *) { return SHARED_AT; }

// Pieces of 16 bytes change places by the bits above: 128 bytes by three of them, 64 by two, 32 by one.
u32 swizzled(u32 address, int mode)
{
    const u32 bits = (1u << mode) - 1;
    return address ^ ((address >> 7 & bits) << 4);
}

// ---- barriers ----

void make_barrier(u32 barrier, u32 arrivals)
{
    check(barrier % 8 == 0, "a barrier that is not aligned");
    here->at(barrier, 8);
    here->barriers[barrier] = {(int)arrivals, (int)arrivals, 0, 0, {}};
}
void show_barriers() {}
void change(Group *group, u32 barrier, int arrivals, long bytes, std::function<void()> sent = {})
{
    check(group->running > 0, "a work-group of the cluster has ended");
    std::lock_guard<std::mutex> held(group->lock);
    check(group->barriers.count(barrier), "a barrier that was never made");
    Barrier &one = group->barriers[barrier];
    one.pending -= arrivals;
    one.bytes += bytes;
    if (sent) one.sent.push_back(std::move(sent));
    group->settle(one);
}
void expect_bytes(u32 barrier, u32 bytes) { change(here, barrier, 1, bytes); }
void arrive(u32 barrier) { change(here, barrier, 1, 0); }
void arrive_at(u32 barrier, u32 rank) { change(here->cluster.at(rank), barrier, 1, 0); }
u32 size_of_cluster() { return here->cluster.size(); }
u32 number_of_cluster() { return blockIdx.x / here->cluster.size(); }
u32 clusters_of_grid() { return gridDim.x / here->cluster.size(); }
u32 rank_in_cluster() { return blockIdx.x % here->cluster.size(); }
thread_local long announced = -1;
thread_local bool has_joined;
void announce_to_cluster()
{
    check(announced < 0, "a work-item announces itself twice");
    announced = here->meeting_of_cluster->announce();
}
void join_cluster()
{
    check(announced >= 0, "a work-item joins without announcing itself");
    here->meeting_of_cluster->join(announced, "a cluster");
    announced = -1;
    has_joined = true;
}
void wait_for(u32 barrier, u32 phase)
{
    std::unique_lock<std::mutex> held(here->lock);
    check(here->barriers.count(barrier), "a barrier that was never made");
    Barrier &one = here->barriers[barrier];
    wait_until(held, here->changed, "a barrier's phase", [&] { return (one.phase & 1) != phase; });
}

void wait_for_cluster(u32 barrier, u32 phase) { wait_for(barrier, phase); }

// A place of another work-group, as an address beyond the shared memory of any.
const u32 RANK_AT = 24;
u32 place_at(u32 address, u32 rank) { return address | (rank + 1) << RANK_AT; }
thread_local bool hidden_from_copies;
template <class Four> void write_shared(u32 at, const Four &four)
{
    check(at % sizeof four == 0, "sums for a place that is not aligned");
    memcpy(here->at(at, sizeof four), &four, sizeof four);
    hidden_from_copies = true;
}
template <class Four> Four read_shared(u32 at)
{
    Four four;
    memcpy(&four, here->at(at, sizeof four), sizeof four);
    return four;
}
// The bytes are read when the last ones that the barrier waits for are there, and the place is not as it was from now on.
void send(u32 there, u32 from, u32 bytes, u32 barrier_there)
{
    const u32 of_place = (1u << RANK_AT) - 1;
    check(there >> RANK_AT == barrier_there >> RANK_AT, "sums go to one work-group and their bytes to another");
    check(there % 16 == 0 && from % 16 == 0 && bytes % 16 == 0, "bytes that are not aligned");
    check(has_joined, "sums are sent to a work-group that may not have begun");
    Group *group = here->cluster.at((there >> RANK_AT) - 1), *own = here;
    unsigned char *to = group->at(there & of_place, bytes), *source = own->at(from, bytes);
    memset(to, 0xff, bytes);
    change(group, barrier_there & of_place, 0, -(long)bytes, [=] {
        check(own->running > 0, "a work-group ended before its sums were fetched");
        memcpy(to, source, bytes);
    });
}

void show_to_copies() { hidden_from_copies = false; }
void meet_warp() { here->warps[threadIdx.x / 32].meeting.meet("a warp"); }
void meet_multiplying(int threads)
{
    check(threads == here->all_multiplying.members(), "a meeting of other work-items");
    here->all_multiplying.meet("all warp groups that multiply");
}
void meet_warp_group(int group)
{
    check(group == threadIdx.x / 128, "a meeting of another warp group");
    check(!hidden_from_copies, "what a thread wrote was not shown to copies before it met the others");
    here->warp_groups[group].meet("a warp group");
}

// ---- copies: a box of a view, innermost dimension first ----

struct __align__(64) TensorMap { u64 words[16]; };
struct View {
    unsigned char *address;
    u64 size, extents[3], strides[3], box[3];
    int mode;
    explicit View(const TensorMap &map)
        : address((unsigned char *)map.words[0]), size(map.words[1]),
          extents{map.words[2], map.words[3], map.words[4]}, strides{map.words[1], map.words[5], map.words[6]},
          box{map.words[7], map.words[8], map.words[9]}, mode((int)map.words[10])
    {
        check((u64)address % 16 == 0 && strides[1] % 16 == 0 && strides[2] % 16 == 0, "a view that is not aligned");
        check(std::max({box[0], box[1], box[2]}) <= 256, "a box of more than 256 elements");
        check(box[0] * size <= 16u << mode, "a box that is wider than what is swizzled");
        check(extents[0] && extents[1] && extents[2], "a view of nothing");
    }
    u64 bytes() const { return size * box[0] * box[1] * box[2]; }
    // Calls `with` for each element of the box whose row is inside the view: where it is in shared memory and in
    // memory, and its place in the row; `without` for the others.
    template <class With, class Without>
    void each(Group *group, u32 shared, int x, int y, int z, With with, Without without) const
    {
        check(shared % (128u << mode) == 0, "a box that is not aligned in shared memory");
        for (u64 line = 0; line < box[1]; ++line)
            for (u64 i = 0; i < box[0]; ++i) {
                u32 at = swizzled(shared + (u32)((line * box[0] + i) * size), mode);
                unsigned char *target = group->at(at, (u32)size);
                u64 place = x + i, row = y + line, matrix = z;
                if (row >= extents[1] || matrix >= extents[2]) without(target);
                else with(target, address + place * size + row * strides[1] + matrix * strides[2], place);
            }
    }
};

thread_local bool may_touch_memory;
void wait_for_launch_before() { may_touch_memory = true; }

void fetch_to(Group *group, u32 to, const TensorMap *map, u32 barrier, int x, int y, int z)
{
    check(may_touch_memory, "a fetch while the launch before may still run");
    View view(*map);
    auto zero = [&](unsigned char *shared) { memset(shared, 0, view.size); };
    auto copy = [&](unsigned char *shared, unsigned char *element, u64 place) {
        if (place < view.extents[0]) memcpy(shared, element, view.size);
        else zero(shared);
    };
    view.each(group, to, x, y, z, copy, zero);
    change(group, barrier, 0, -(long)view.bytes());
}
void expect_map(const TensorMap *) {}
void fetch(u32 to, const TensorMap *map, u32 barrier, int x, int y, int z)
{
    fetch_to(here, to, map, barrier, x, y, z);
}
void fetch_for(u32 ranks, u32 to, const TensorMap *map, u32 barrier, int x, int y, int z)
{
    check(has_joined, "a copy to a work-group that may not have begun");
    for (u32 rank = 0; ranks >> rank; ++rank)
        if (ranks >> rank & 1) fetch_to(here->cluster.at(rank), to, map, barrier, x, y, z);
}

thread_local std::deque<std::vector<std::function<void()>>> puts_under_way;
thread_local std::vector<std::function<void()>> puts_of_a_group;
void put(const TensorMap *map, u32 from, int x, int y, int z)
{
    check(may_touch_memory, "D is written while the launch before may still run");
    puts_of_a_group.push_back([=] {
        View view(*map);
        // As seen on an H200: the last 16 bytes of a row are written whole.
        u64 row_ends = (view.extents[0] * view.size + 15) / 16 * 16;
        auto copy = [&](unsigned char *shared, unsigned char *element, u64 place) {
            if (place * view.size < row_ends) memcpy(element, shared, view.size);
        };
        view.each(here, from, x, y, z, copy, [](unsigned char *) {});
    });
}
void end_puts()
{
    puts_under_way.push_back(std::move(puts_of_a_group));
    puts_of_a_group.clear();
}
template <int LEFT> void wait_until_read()
{
    for (; puts_under_way.size() > LEFT; puts_under_way.pop_front())
        for (auto &put : puts_under_way.front()) put();
}

// Thread i of a warp holds, of each matrix, columns 2 (i % 4) and the next of row i / 4, and names row i % 8 of
// matrix i / 8.
void store_four(u32 row, std::array<u32, 4> registers, bool transposed)
{
    int lane = threadIdx.x % 32;
    Warp &warp = here->warps[threadIdx.x / 32];
    warp.rows[lane] = row;
    warp.registers[lane] = registers;
    warp.meeting.meet("a warp");
    check(row % 16 == 0, "a row of a matrix that is not aligned");
    for (int i = 0; i < 8; ++i) {
        int from_row = transposed ? i : lane % 8, from_column = transposed ? lane % 8 : i;
        u32 both = warp.registers[from_row * 4 + from_column / 2][lane / 8];
        uint16_t element = from_column % 2 ? both >> 16 : both & 0xffff;
        memcpy(here->at(row + 2 * i, 2), &element, 2);
    }
    hidden_from_copies = true;
    warp.meeting.meet("a warp");
}
void store_matrices(u32 row, u32 a, u32 b, u32 c, u32 d) { store_four(row, {a, b, c, d}, false); }
void store_transposed(u32 row, u32 a, u32 b, u32 c, u32 d) { store_four(row, {a, b, c, d}, true); }

// ---- numbers ----

float power_of_2(float x) { return exp2f(x); }
float reciprocal(float x) { return 1 / x; }
float from_bits(u32 bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
u32 to_bits(float x)
{
    u32 bits;
    memcpy(&bits, &x, 4);
    return bits;
}
float of_float8(unsigned char bits, int fraction_bits, int bias)
{
    int fraction = bits & ((1 << fraction_bits) - 1), exponent = (bits & 0x7f) >> fraction_bits;
    float size = exponent ? std::ldexp(1.0f + std::ldexp((float)fraction, -fraction_bits), exponent - bias)
                          : std::ldexp((float)fraction, 1 - bias - fraction_bits);
    return bits & 0x80 ? -size : size;
}
// All 256 numbers of a format, since a product reads each of its elements many times.
template <int fraction_bits, int bias> float float8(unsigned char bits)
{
    static const auto numbers = [] {
        std::array<float, 256> values;
        for (int i = 0; i < 256; ++i) values[i] = of_float8((unsigned char)i, fraction_bits, bias);
        return values;
    }();
    return numbers[bits];
}
template <class Bits> Bits bits_at(const unsigned char *at)
{
    Bits bits;
    memcpy(&bits, at, sizeof bits);
    return bits;
}
template <int BYTES> struct Wide { static const int bytes = BYTES; };
struct f16 : Wide<2> { static float read(const unsigned char *at) { return float_of_half(bits_at<uint16_t>(at)); } };
struct bf16 : Wide<2> {
    static float read(const unsigned char *at) { return from_bits((u32)bits_at<uint16_t>(at) << 16); }
};
struct e4m3 : Wide<1> { static float read(const unsigned char *at) { return float8<3, 7>(*at); } };
struct e5m2 : Wide<1> { static float read(const unsigned char *at) { return float8<2, 15>(*at); } };
struct s8 : Wide<1> { static int read(const unsigned char *at) { return (signed char)*at; } };
struct tf32 : Wide<4> {
    static float read(const unsigned char *at) { return from_bits(bits_at<u32>(at) & 0xffffe000); }
};

// What a program whose output is one of these formats calls, which says `using namespace` for it.
namespace halves_of_bf16 {
float widened(unsigned short x) { return from_bits((u32)x << 16); }
u32 half_of(float x) { u32 bits = to_bits(x); return (bits + 0x7fff + (bits >> 16 & 1)) >> 16; }
u32 packed(float low, float high) { return half_of(low) | half_of(high) << 16; }
}
namespace halves_of_f16 {
float widened(unsigned short x) { return float_of_half(x); }
u32 packed(float low, float high) { return half_of_float(low) | (u32)half_of_float(high) << 16; }
}

// ---- products ----

// Row (or column) `side` and step `k` of an operand: along K groups of 8 rows of 128 bytes; transposed groups of 8
// steps of K, 64 elements each, and boxes of 64.
template <class Kind, bool TRANSPOSED> const unsigned char *element_of(u64 descriptor, int side, int k)
{
    check(descriptor >> 62 == 1, "an operand that is not swizzled over 128 bytes");
    u32 start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4;
    u32 stride = (descriptor >> 32 & 0x3fff) << 4, address = start;
    if (TRANSPOSED) address += side / 64 * leading + side % 64 * Kind::bytes + k / 8 * stride + k % 8 * 128;
    else address += side / 8 * stride + side % 8 * 128 + k * Kind::bytes;
    return here->at(swizzled(address, 3), Kind::bytes);
}

thread_local std::deque<std::vector<std::function<void()>>> under_way;
thread_local bool products_begun;
void begin_products()
{
    under_way.emplace_back();
    products_begun = true;
}
void end_products() { products_begun = false; }
template <int LEFT> void wait_for_products()
{
    check(!products_begun, "products that were not ended");
    while (under_way.size() > LEFT) {
        for (auto &one : under_way.front()) one();
        under_way.pop_front();
        // They are the warp group's: done for one of its threads means done for all.
        here->warp_groups[threadIdx.x / 128].meet("a warp group's products");
    }
}
template <class Kind, int K, bool TRANSPOSED_X, bool TRANSPOSED_Y, class Sum, int COUNT>
void multiply_add_as(Sum (&sums)[COUNT], u64 x, u64 y, int keep)
{
    check(products_begun, "a product outside of a group");
    under_way.back().push_back([&sums, x, y, keep] {
        int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
        // A thread's sums belong to two rows and to COUNT / 2 columns, each of which has a sum in both rows.
        Sum rows[2][K], column_elements[K];
        for (int second = 0; second < 2; ++second)
            for (int k = 0; k < K; ++k)
                rows[second][k] =
                    Kind::read(element_of<Kind, TRANSPOSED_X>(x, 16 * warp + 8 * second + lane / 4, k));
        for (int pair = 0; pair < COUNT / 2; ++pair) {
            int column = 8 * (pair >> 1) + 2 * (lane & 3) + (pair & 1);
            for (int k = 0; k < K; ++k)
                column_elements[k] = Kind::read(element_of<Kind, TRANSPOSED_Y>(y, column, k));
            for (int second = 0; second < 2; ++second) {
                int i = 4 * (pair >> 1) + 2 * second + (pair & 1);
                Sum sum = keep ? sums[i] : 0;
                for (int k = 0; k < K; ++k) sum += rows[second][k] * column_elements[k];
                sums[i] = sum;
            }
        }
    });
}
template <int REGISTERS> void take_registers() {}
template <int REGISTERS> void give_registers() {}

// ---- flags ----

void raise_flag(u32 *flag) { std::atomic_ref<u32>(*flag).store(1, std::memory_order_release); }
void lower_flag(u32 *flag) { std::atomic_ref<u32>(*flag).store(0, std::memory_order_relaxed); }
void wait_for_flag(const u32 *flag)
{
    auto start = std::chrono::steady_clock::now();
    while (!std::atomic_ref<u32>(*const_cast<u32 *>(flag)).load(std::memory_order_acquire)) {
        if (broken) throw std::runtime_error("another thread failed");
        if (std::chrono::steady_clock::now() - start > PATIENCE) fail("nothing comes: a flag");
        std::this_thread::yield();
    }
}

// ---- a launch: `together` work-groups at a time, in the order of their numbers ----

template <class... T, std::size_t... place>
const char *launch_each(
    void (*kernel)(T...), int cluster, const int *grid, int items, int shared, int together, void **arguments,
    std::index_sequence<place...>)
{
    gridDim = {grid[0], grid[1], grid[2]};
    broken = false;
    for (int first = 0; first < grid[0] && !broken; first += together) {
        std::deque<Group> groups;
        std::deque<Meeting> clusters;
        std::vector<std::thread> threads;
        for (int group = first; group < std::min(first + together, grid[0]); ++group) {
            groups.emplace_back(items, shared);
            groups.back().running = items;
            if (group % cluster == cluster - 1) {
                clusters.emplace_back(cluster * items);
                std::vector<Group *> members;
                for (int i = 0; i < cluster; ++i) members.push_back(&groups[groups.size() - cluster + i]);
                for (Group *member : members) {
                    member->cluster = members;
                    member->meeting_of_cluster = &clusters.back();
                }
            }
        }
        for (int group = first; group < first + (int)groups.size(); ++group) {
            Group *its = &groups[group - first];
            for (int item = 0; item < items; ++item)
                threads.emplace_back([=] {
                    here = its;
                    threadIdx = {item, 0, 0};
                    blockIdx = {group, 0, 0};
                    try {
                        kernel(*static_cast<std::remove_cv_t<T> *>(arguments[place])...);
                        bool is_done = puts_of_a_group.empty() && puts_under_way.empty() && under_way.empty();
                        check(is_done, "it ends before its copies or products do");
                    } catch (const std::exception &error) {
                        std::lock_guard<std::mutex> held(why_lock);
                        if (!broken.exchange(true)) why = error.what();
                    }
                    --its->running;
                    its->meeting_of_cluster->leave(announced);
                });
        }
        for (auto &one : threads) one.join();
    }
    return broken ? why.c_str() : "";
}
template <class... T>
const char *launch(
    void (*kernel)(T...), int cluster, const int *grid, int items, int shared, int together, void **arguments)
{
    return launch_each(kernel, cluster, grid, items, shared, together, arguments, std::index_sequence_for<T...>());
}
