// Ranks of integers by counting, as IS of the NAS parallel benchmarks has it: all threads count their keys in one table by
// atomic additions, add the counts up, and so know the rank of every key; --iterations times, with two keys changed before each.
// Keys are means of four random numbers, so that the middle of the table is hot.
//
//   --keys 1000 --range 256 --iterations 2 --threads 1 --seed 1
//
// After the last iteration threads put their keys in order, each place taken by an atomic addition. Equal keys may change
// places, which cannot be seen.
#include "cpu_rt.h"

enum { SAMPLES = 5 };

// A line for each thread.
typedef struct {
    u64 value, unused[7];
} word_t;

static u64 count, range, iterations, threads, seed, sum;
static u32 *keys, *table, *sorted;
static word_t *totals;
static barrier_t barrier;

// Counts become numbers of smaller keys: each thread adds a part up, then what the parts before it have.
static void add_up(u64 thread) {
    range_t mine = range_of(range, thread, threads);
    u32 total = 0, before = 0;
    for (u64 i = mine.first; i < mine.end; i++) total += table[i];
    totals[thread].value = total;
    barrier_wait(&barrier);
    for (u64 i = 0; i < thread; i++) before += (u32)totals[i].value;
    for (u64 i = mine.first; i < mine.end; i++) {
        u32 here = table[i];
        table[i] = before;
        before += here;
    }
    barrier_wait(&barrier);
}

static void work(u64 thread) {
    range_t mine = range_of(count, thread, threads), part = range_of(range, thread, threads);
    for (u64 i = mine.first; i < mine.end; i++) {
        u64 mean = 0, random = mix(seed, i);
        for (int j = 0; j < 4; j++, random >>= 16) mean += (random & 0xffff) * range >> 16;
        keys[i] = (u32)(mean / 4);
    }
    barrier_wait(&barrier);
    for (u64 iteration = 1; iteration <= iterations; iteration++) {
        if (thread == 0) {
            keys[iteration % count] = (u32)(iteration % range);
            keys[(iteration + iterations) % count] = (u32)(range - 1 - iteration % range);
        }
        for (u64 i = part.first; i < part.end; i++) table[i] = 0;
        barrier_wait(&barrier);
        for (u64 i = mine.first; i < mine.end; i++) __atomic_fetch_add(&table[keys[i]], 1, __ATOMIC_RELAXED);
        barrier_wait(&barrier);
        add_up(thread);
        for (u64 i = 0; thread == 0 && i < SAMPLES; i++) {
            u64 sample = mix(seed + 1, i) % count;
            sum += mix(iteration, table[keys[sample]]);
        }
        barrier_wait(&barrier);
    }
    for (u64 i = mine.first; i < mine.end; i++) {
        u32 key = keys[i];
        sorted[__atomic_fetch_add(&table[key], 1, __ATOMIC_RELAXED)] = key;
    }
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    count = arg_u64(argc, argv, "--keys", 1000);
    range = arg_u64(argc, argv, "--range", 256);
    iterations = arg_u64(argc, argv, "--iterations", 2);
    seed = arg_u64(argc, argv, "--seed", 1);
    check(threads && count && range && iterations, "--threads, --keys, --range and --iterations are at least 1");
    check(count < 1ul << 32 && range <= 1ul << 32, "--keys and --range are at most 2^32");
    keys = alloc(count * sizeof *keys);
    sorted = alloc(count * sizeof *sorted);
    table = alloc(range * sizeof *table);
    totals = alloc(threads * sizeof *totals);
    barrier_init(&barrier, (u32)threads);
    threads_run((u32)threads, work);
    // In order, and the same keys: counts are taken again, up and down.
    for (u64 i = 0; i < range; i++) table[i] = 0;
    for (u64 i = 0; i < count; i++) {
        check(i == 0 || sorted[i - 1] <= sorted[i], "order of keys");
        table[keys[i]]++;
        table[sorted[i]]--;
        sum += mix(i, sorted[i]);
    }
    for (u64 i = 0; i < range; i++) check(table[i] == 0, "keys are those that there were");
    print_value("is: ", count);
    print_value(" keys, least ", sorted[0]);
    print_value(", greatest ", sorted[count - 1]);
    print_value(", sum ", sum);
    print_char('\n');
    return 0;
}
