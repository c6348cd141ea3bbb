// A pool in persistent memory: a header with the parameters of the program that made it, and whatever the program has.
// Programs of workloads/*/ that are persistent include it once, most of them by undo_log.h.
//
//     line 0          magic word (written last, when the first contents are durable), 1: parameters, 2: more of them
//     LOGS_AT         a log for each thread
//     pool_area()     the program's own
//
// What is assumed of the hardware: aligned stores of 8 bytes are atomic; what a thread stored to a line, cleaned
// (pm_clean) and then fenced (pm_ofence) is durable before what it stores afterwards. Any other store may be durable at
// any time, or not.
//
// Places in the pool are offsets. 0 is no place (the header lies there).
#pragma once

#include "cpu_rt.h"
#include "pm.h"

typedef u64 off_t;

// ---- The pool

enum {
    LINE = 64,
    POOL_PARAMETERS = 16,
    LOGS_AT = 256,
};

typedef struct {
    u64 magic;
    // Something was written here before: not all is zero.
    u64 begun;
    u64 bytes;
    u64 threads;
    u64 unused[4];
    u64 parameters[POOL_PARAMETERS];
} pool_t;

static pool_t *pool;

static inline volatile u64 *pool_word(off_t at) { return (volatile u64 *)((u8 *)pool + at); }

// Reads a word of the pool, outside of transactions.
static inline u64 pm_get(off_t at) { return *pool_word(at); }

static inline void pm_put(off_t at, u64 value) { *pool_word(at) = value; }

// Ends the program with a code of its own when an invariant does not hold.
static inline void must(int holds, int code, const char *what) {
    if (holds) return;
    print_text("wrong: ");
    print_text(what);
    print_char('\n');
    rt_exit(code);
}

// Codes of what every pool must fulfil; a program's own begin at 20.
enum { BAD_HEADER = 10, BAD_LOG = 11, BAD_HEAP = 12, BAD_COUNT = 13 };

static inline u64 up(u64 value, u64 grain) { return (value + grain - 1) / grain * grain; }

// First place of the program's own, behind the logs: which logs there are says who includes this.
static inline off_t pool_area(u64 threads);

static inline void pool_fence_range(off_t at, u64 bytes) {
    pm_clean_range((const u8 *)pool + at, bytes);
    pm_ofence();
}

// Begins a pool of zeros with these parameters. It has no magic word until pool_ready.
static inline void pool_create(u64 bytes, u64 threads, const u64 *parameters, u32 count) {
    bytes = up(bytes, 4096);
    pool = pm_map(bytes);
    if (pool->begun) {
        // What an earlier run left, as little of it as it may be.
        u64 used = pool->bytes < bytes ? bytes : pool->bytes;
        pm_put(0, 0);
        pool_fence_range(0, LINE);
        pool = pm_map(used);
        for (off_t at = LINE; at < used; at += 8)
            if (pm_get(at)) {
                pm_put(at, 0);
                pm_clean((const u8 *)pool + at);
            }
        pm_ofence();
    }
    pm_put(8, 1);
    pm_put(16, bytes);
    pm_put(24, threads);
    for (u32 i = 0; i < count; i++) pm_put(LINE + 8 * i, parameters[i]);
    pool_fence_range(0, LINE + sizeof pool->parameters);
}

// The first contents are there, and this thread has cleaned them.
static inline void pool_ready(u64 magic) {
    pm_ofence();
    pm_put(0, magic);
    pool_fence_range(0, LINE);
}

// Opens the pool as it is. Whether it was initialised.
static inline int pool_open(u64 magic) {
    pool = pm_map(4096);
    if (pool->magic == 0) return 0;
    must(pool->magic == magic, BAD_HEADER, "magic word");
    must(pool->threads >= 1 && pool_area(pool->threads) <= pool->bytes && pool->bytes % 4096 == 0, BAD_HEADER, "header");
    pool = pm_map(pool->bytes);
    return 1;
}
