// A sort of integers by their digits, the lowest first, as radix of SPLASH-3 has it: for each digit threads count their keys'
// digits in a table of their own, add all tables up, and move their keys to where these say, so that each thread stores all over
// the other array.
//
//   --keys 1000 --bits 8 --digits 2 --threads 1 --seed 1
//
// Keys have --digits digits of --bits bits. The sort is stable, so that its result does not depend on the number of threads.
//
// Left out: SPLASH's tree of partial sums. Here a thread adds up one range of digits for all threads.
#include "cpu_rt.h"

// A line for each thread.
typedef struct {
    u64 value, unused[7];
} word_t;

static u64 count, bits, digits, threads, seed, radix;
static u32 *arrays[2], **ranks;
static word_t *totals, *sums;
static barrier_t barrier;

// Counts of all threads become the places where each of them puts its first key with a digit.
static void add_up(u64 thread) {
    range_t mine = range_of(radix, thread, threads);
    u64 total = 0, place = 0;
    for (u64 digit = mine.first; digit < mine.end; digit++)
        for (u64 i = 0; i < threads; i++) total += ranks[i][digit];
    totals[thread].value = total;
    barrier_wait(&barrier);
    for (u64 i = 0; i < thread; i++) place += totals[i].value;
    for (u64 digit = mine.first; digit < mine.end; digit++)
        for (u64 i = 0; i < threads; i++) {
            u32 here = ranks[i][digit];
            ranks[i][digit] = (u32)place;
            place += here;
        }
    barrier_wait(&barrier);
}

static void work(u64 thread) {
    range_t mine = range_of(count, thread, threads);
    u32 *rank = ranks[thread] = alloc(radix * sizeof(u32));
    u64 mask = radix - 1, sum = 0;
    for (u64 i = mine.first; i < mine.end; i++) {
        arrays[0][i] = (u32)(mix(seed, i) >> (64 - bits * digits));
        sum += mix(seed + 1, arrays[0][i]);
    }
    for (u64 digit = 0; digit < digits; digit++) {
        const u32 *from = arrays[digit % 2];
        u32 *to = arrays[(digit + 1) % 2];
        u64 shift = digit * bits;
        for (u64 i = 0; i < radix; i++) rank[i] = 0;
        for (u64 i = mine.first; i < mine.end; i++) rank[from[i] >> shift & mask]++;
        barrier_wait(&barrier);
        add_up(thread);
        for (u64 i = mine.first; i < mine.end; i++) to[rank[from[i] >> shift & mask]++] = from[i];
        barrier_wait(&barrier);
    }
    // In order, up to the first key of the next thread; the keys' sum was taken before.
    const u32 *sorted = arrays[digits % 2];
    for (u64 i = mine.first; i < mine.end; i++) {
        check(i + 1 == count || sorted[i] <= sorted[i + 1], "order of keys");
        sum -= mix(seed + 1, sorted[i]);
    }
    sums[thread].value = sum;
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    count = arg_u64(argc, argv, "--keys", 1000);
    bits = arg_u64(argc, argv, "--bits", 8);
    digits = arg_u64(argc, argv, "--digits", 2);
    seed = arg_u64(argc, argv, "--seed", 1);
    check(threads && count && count < 1ul << 32, "--threads and --keys are at least 1, --keys below 2^32");
    check(bits && digits && bits <= 16 && bits * digits <= 32, "--bits is from 1 to 16, --bits times --digits at most 32");
    radix = 1ul << bits;
    for (int i = 0; i < 2; i++) arrays[i] = alloc(count * sizeof(u32));
    ranks = alloc(threads * sizeof *ranks);
    totals = alloc(threads * sizeof *totals);
    sums = alloc(threads * sizeof *sums);
    barrier_init(&barrier, (u32)threads);
    threads_run((u32)threads, work);
    u64 difference = 0, sum = 0;
    for (u64 i = 0; i < threads; i++) difference += sums[i].value;
    check(difference == 0, "keys are those that there were");
    const u32 *sorted = arrays[digits % 2];
    for (u64 i = 0; i < count; i++) sum += mix(i, sorted[i]);
    print_value("radix: ", count);
    print_value(" keys, least ", sorted[0]);
    print_value(", greatest ", sorted[count - 1]);
    print_value(", sum ", sum);
    print_char('\n');
    return 0;
}
