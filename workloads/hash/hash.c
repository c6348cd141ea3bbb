// A hash table with chains in persistent memory, of which threads toggle random keys: "Searches for a value in an
// open-chain hash table. Insert if absent, remove if found." ("Hash" of Table IV of the persistence parallelism paper.)
// A bucket is a word, a node a line; locks of buckets are in ordinary memory.
//
//   --buckets 64 --keys 256 --ops 300 --threads 1 --seed 1 | --recover
//
// Exit codes: 10 header, 11 log, 12 heap, 13 count of transactions, 20 set of keys, 21 torn value, 22 item in a wrong
// bucket.
#include "keyed.h"

enum { KEY = 0, NEXT = 8, VALUE = 16, VALUES = 5, LOCKS = 256 };

static const u64 node_bytes = LINE;

typedef struct {
    lock_t lock;
    u64 unused[7];
} padded_lock_t;

static padded_lock_t *locks;

static u64 bucket_of(u64 key) { return mix(16 * seed + 15, key) % shape; }

static off_t bucket_at(u64 bucket) { return shape_at + bucket * 8; }

static u64 shape_bytes(void) { return shape * 8; }

static void fill(void) {
    for (u64 key = 0; key < keys; key++) {
        if (!initially(key)) continue;
        off_t node = node_first(), bucket = bucket_at(bucket_of(key));
        pm_put(node + KEY, key);
        pm_put(node + NEXT, pm_get(bucket));
        for (u64 i = 0; i < VALUES; i++) pm_put(node + VALUE + 8 * i, value_of(key, i));
        pm_put(bucket, node);
    }
}

static void prepare(void) { locks = alloc(LOCKS * sizeof *locks); }

static void toggle(tx_t *tx, u64 thread, u64 key) {
    u64 bucket = bucket_of(key);
    // The 8 buckets of a line have one lock: see undo_log.h.
    lock_t *mine = &locks[bucket / 8 % LOCKS].lock;
    lock(mine);
    off_t link = bucket_at(bucket), node;
    while ((node = pm_get(link)) && pm_get(node + KEY) != key) link = node + NEXT;
    if (node) {
        tx_set(tx, link, pm_get(node + NEXT));
        node_free(tx, thread, node);
    } else {
        link = bucket_at(bucket);
        node = node_new(tx, thread);
        tx_set(tx, node + KEY, key);
        tx_set(tx, node + NEXT, pm_get(link));
        for (u64 i = 0; i < VALUES; i++) tx_set(tx, node + VALUE + 8 * i, value_of(key, i));
        tx_set(tx, link, node);
    }
    tx_commit(tx);
    unlock(mine);
}

static void verify(void) {
    for (u64 bucket = 0; bucket < shape; bucket++)
        for (off_t node = pm_get(bucket_at(bucket)); node; node = pm_get(node + NEXT)) {
            meet(node);
            u64 key = pm_get(node + KEY);
            must(bucket_of(key) == bucket, WRONG_SHAPE, "item in a wrong bucket");
            meet_key(key);
            for (u64 i = 0; i < VALUES; i++)
                must(pm_get(node + VALUE + 8 * i) == value_of(key, i), WRONG_VALUE, "torn value");
        }
}

int main(int argc, char **argv) { return keyed_main(argc, argv, "hash", 0x68736168706d3031, "--buckets", 64, 1, 1); }
