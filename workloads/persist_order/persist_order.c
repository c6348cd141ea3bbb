// Small tests of persist order, over and over: each round has lines of its own, and stores to them in an order that the
// hardware must keep where a fence, or a message between threads, says so. What a power failure may not leave is looked for by
// --recover.
//
//   --test N --rounds 16 | --recover
//
//   0  write_read     x; fence; y                                      y without x
//   1  chain          A; fence; flag | sees flag; C                    C without A
//   2  exchange       b; fence; swaps 1 in | a; swaps 2 in; fence; c   c without b, where 1 was swapped in first
//   3  same_line      word 0; fence; word 1 of one line                word 1 without word 0
//   4  full           17 lines; fence; z                               z without one of them
//   5  three          A; fence; flag | sees flag; fence; other | sees other; C      C without A
//   6  no_fence       x; y                                             nothing forbids y without x: --recover tells it
//   7  chain_no_fence A; flag | sees flag; C                           nothing forbids C without A: --recover tells it
//
// Sources: Fig. 5 of the persistence parallelism paper (2, read backwards: its relation is "must be persisted before"), persist
// chains of relaxed persistency. Exit codes: 0, 10 header, 20 a state that the test looks for.
#include "cpu_rt.h"
#include "pm.h"

enum { LINE = 64, LINES = 18, HEADER = 4096, FOUND = 20 };

typedef struct {
    u64 magic, test, rounds;
} header_t;

// Of a round, in ordinary memory: lines of their own.
typedef struct {
    volatile u64 flag, unused[7];
    volatile u64 other, unused2[7];
} signals_t;

static const u64 MAGIC = 0x6f726465723031;
static u8 *pool;
static u64 test, rounds;
static signals_t *signals;
static barrier_t barrier;

// Lines of a round lie apart: in one row of the memory or in several, in one bank or in two, as the round has it.
static volatile u64 *word(u64 round, u64 line, u64 at) {
    return (volatile u64 *)(pool + HEADER + (line * rounds + round) * LINE + 8 * at);
}

static void put(u64 round, u64 line, u64 value) {
    *word(round, line, 0) = value;
    pm_clean((const void *)word(round, line, 0));
}

static void wait_for(volatile u64 *flag) {
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) rt_pause();
}

static void set(volatile u64 *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }

static void first(u64 round) {
    signals_t *s = &signals[round];
    switch (test) {
    case 0:
    case 6:
        put(round, 0, 1);
        if (test == 0) pm_ofence();
        put(round, 1, 1);
        break;
    case 1:
    case 5:
    case 7:
        put(round, 0, 1);
        if (test != 7) pm_ofence();
        set(&s->flag);
        break;
    case 2:
        put(round, 0, 1);
        pm_ofence();
        __atomic_exchange_n(word(round, 1, 0), 1, __ATOMIC_ACQ_REL);
        break;
    case 3:
        put(round, 0, 1);
        pm_ofence();
        *word(round, 0, 1) = 1;
        pm_clean((const void *)word(round, 0, 1));
        break;
    case 4:
        for (u64 line = 0; line < LINES - 1; line++) put(round, line, 1);
        pm_ofence();
        put(round, LINES - 1, 1);
        break;
    }
}

static void second(u64 round) {
    signals_t *s = &signals[round];
    if (test == 1 || test == 7) {
        wait_for(&s->flag);
        put(round, 1, 1);
    } else if (test == 2) {
        put(round, 2, 1);
        // What was there before says who was first.
        u64 before = __atomic_exchange_n(word(round, 1, 0), 2, __ATOMIC_ACQ_REL);
        pm_ofence();
        put(round, 3, 1 + before);
    } else if (test == 5) {
        wait_for(&s->flag);
        pm_ofence();
        set(&s->other);
    }
}

static void third(u64 round) {
    if (test != 5) return;
    wait_for(&signals[round].other);
    put(round, 1, 1);
}

static void work(u64 thread) {
    for (u64 round = 0; round < rounds; round++) {
        // Threads begin a round together, and not always at the same distance.
        barrier_wait(&barrier);
        for (u64 i = 0; i < (thread + round) % 3 * 20; i++) rt_pause();
        if (thread == 0) first(round);
        if (thread == 1) second(round);
        if (thread == 2) third(round);
    }
    pm_dfence();
}

static int is_found(u64 round) {
    u64 zero = *word(round, 0, 0), one = *word(round, 1, 0);
    switch (test) {
    case 2: return *word(round, 3, 0) == 2 && !zero;
    case 3: return *word(round, 0, 1) && !zero;
    case 4:
        for (u64 line = 0; line < LINES - 1; line++)
            if (*word(round, LINES - 1, 0) && !*word(round, line, 0)) return 1;
        return 0;
    default: return one && !zero;
    }
}

int main(int argc, char **argv) {
    int recover = arg_flag(argc, argv, "--recover");
    pool = pm_map(HEADER);
    volatile header_t *header = (volatile header_t *)pool;
    if (recover) {
        if (!header->magic) return 0;
        if (header->magic != MAGIC) return 10;
        test = header->test, rounds = header->rounds;
    } else {
        test = arg_u64(argc, argv, "--test", 0);
        rounds = arg_u64(argc, argv, "--rounds", 16);
        check(test < 8 && rounds, "--test is 0 to 7, --rounds at least 1");
        header->test = test, header->rounds = rounds;
        pm_clean((const void *)header);
        pm_ofence();
        header->magic = MAGIC;
        pm_clean((const void *)header);
        pm_ofence();
    }
    pool = pm_map(HEADER + rounds * LINES * LINE);
    if (!recover) {
        signals = alloc(rounds * sizeof *signals);
        barrier_init(&barrier, 3);
        threads_run(3, work);
    }
    for (u64 round = 0; round < rounds; round++)
        if (is_found(round)) {
            print_line("found in round", round);
            print_flush();
            return FOUND;
        }
    return 0;
}
