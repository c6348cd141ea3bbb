// Threads swap random elements of 64 bytes of a vector in persistent memory: "Random swaps between entries in a 1 GB
// vector of values." ("SPS" of Table IV of the persistence parallelism paper.) A swap is one transaction, under the
// locks of both elements.
//
//   --items 256 --ops 300 --threads 1 --seed 1 | --recover
//
// Exit codes: 10 header, 11 log, 13 count of transactions, 20 an element is there twice, 21 torn element, 22 an element
// is in a wrong place (one thread only: with several the order of swaps is theirs).
#include "undo_log.h"

enum { LOCKS = 256, WORDS = 8, WRONG_SET = 20, WRONG_VALUE = 21, WRONG_PLACE = 22 };

static const u64 MAGIC = 0x737073706d303031;

typedef struct {
    lock_t lock;
    u64 unused[7];
} padded_lock_t;

static u64 items, ops, seed, threads;
static padded_lock_t *locks;

static off_t element(u64 number) { return pool_area(threads) + number * LINE; }

static u64 word_of(u64 identity, u64 i) { return i == 0 ? identity : mix(16 * seed + i, identity); }

static u64 share(u64 all, u64 thread) { return all / threads + (thread < all % threads); }

static u64 chosen(u64 operation, u64 which) { return mix(16 * seed + 8 + which, operation) % items; }

static void work(u64 thread) {
    tx_t *tx = tx_new(thread);
    for (u64 i = thread; i < ops; i += threads) {
        u64 a = chosen(i, 0), b = chosen(i, 1);
        // The lower lock first; once if it is the same.
        u64 low = a % LOCKS < b % LOCKS ? a % LOCKS : b % LOCKS, high = a % LOCKS + b % LOCKS - low;
        lock(&locks[low].lock);
        if (high != low) lock(&locks[high].lock);
        for (u64 word = 0; word < WORDS && a != b; word++) {
            u64 first = pm_get(element(a) + 8 * word), second = pm_get(element(b) + 8 * word);
            tx_set(tx, element(a) + 8 * word, second);
            tx_set(tx, element(b) + 8 * word, first);
        }
        tx_commit(tx);
        if (high != low) unlock(&locks[high].lock);
        unlock(&locks[low].lock);
    }
    pm_dfence();
}

// Checks all elements. The number of operations that were done.
static u64 verify(void) {
    u8 *met = alloc(items);
    u64 committed = 0;
    for (u64 thread = 0; thread < threads; thread++) {
        u64 done = log_of(thread)->committed;
        must(done <= share(ops, thread), BAD_COUNT, "count of transactions");
        committed += done;
    }
    for (u64 at = 0; at < items; at++) {
        u64 identity = pm_get(element(at));
        must(identity < items && !met[identity], WRONG_SET, "element is there twice");
        met[identity] = 1;
        for (u64 word = 1; word < WORDS; word++)
            must(pm_get(element(at) + 8 * word) == word_of(identity, word), WRONG_VALUE, "torn element");
    }
    if (threads > 1) return committed;
    u32 *order = alloc(items * sizeof *order);
    for (u64 at = 0; at < items; at++) order[at] = (u32)at;
    for (u64 i = 0; i < committed; i++) {
        u32 *a = &order[chosen(i, 0)], *b = &order[chosen(i, 1)], old = *a;
        *a = *b;
        *b = old;
    }
    for (u64 at = 0; at < items; at++) must(pm_get(element(at)) == order[at], WRONG_PLACE, "element in a wrong place");
    return committed;
}

int main(int argc, char **argv) {
    if (arg_flag(argc, argv, "--recover")) {
        if (!pool_open(MAGIC)) {
            print_text("sps: no pool\n");
            return 0;
        }
        threads = pool->threads;
        items = pool->parameters[0], ops = pool->parameters[1], seed = pool->parameters[2];
        must(element(items) <= pool->bytes, BAD_HEADER, "layout");
        pool_recover();
    } else {
        threads = arg_u64(argc, argv, "--threads", 1);
        items = arg_u64(argc, argv, "--items", 256);
        ops = arg_u64(argc, argv, "--ops", 300);
        seed = arg_u64(argc, argv, "--seed", 1);
        check(threads && items, "--threads and --items are at least 1");
        u64 parameters[] = {items, ops, seed};
        pool_create(element(items), threads, parameters, 3);
        for (u64 at = 0; at < items; at++)
            for (u64 word = 0; word < WORDS; word++) pm_put(element(at) + 8 * word, word_of(at, word));
        pm_clean_range((const u8 *)pool + element(0), items * LINE);
        pool_ready(MAGIC);
        locks = alloc(LOCKS * sizeof *locks);
        threads_run((u32)threads, work);
    }
    u64 committed = verify();
    if (!arg_flag(argc, argv, "--recover")) must(committed == ops, BAD_COUNT, "operations");
    print_text("sps: ");
    print_u64(committed);
    print_text(" swaps, ");
    print_u64(items);
    print_text(" elements, each there once\n");
    return 0;
}
