// What hash, rbtree and btree share: a set of keys below --keys, of which --ops operations toggle random ones ("searches
// for a value. Insert if absent, remove if found"), the heaps of nodes, and the check of both.
//
// Operation i is done by thread i modulo --threads, in one transaction. Toggles commute, so that the set that must be
// there follows from how many operations each thread has committed, whatever the order was.
#pragma once

#include "undo_log.h"

enum { KEYS, OPS, SEED, SHAPE, NODES, PARAMETERS };

enum { WRONG_SET = 20, WRONG_VALUE = 21, WRONG_SHAPE = 22 };

static u64 keys, ops, seed, shape, threads;
// Nodes of a heap, and bytes of one, which the program sets; its last word links it when it is free.
static u64 heap_nodes;
static const u64 node_bytes;
// Places: a line for each heap, what the program keeps for its shape, the nodes.
static off_t heaps_at, shape_at, nodes_at;

static inline u64 share(u64 all, u64 thread) { return all / threads + (thread < all % threads); }

static inline u64 key_of(u64 operation) { return mix(16 * seed + 1, operation) % keys; }

// Half of the keys are there at first.
static inline int initially(u64 key) { return mix(16 * seed + 2, key) & 1; }

// Word `i` of the value of a key.
static inline u64 value_of(u64 key, u64 i) { return mix(16 * seed + 3 + i, key); }

// Lays the pool out. Its bytes.
static inline u64 layout(u64 shape_bytes) {
    heaps_at = pool_area(threads);
    shape_at = heaps_at + threads * LINE;
    nodes_at = up(shape_at + shape_bytes, 256);
    return nodes_at + threads * heap_nodes * node_bytes;
}

// ---- Heaps: one a thread; word 0 of its line is how many nodes were ever used, word 1 the first free one of these

static inline off_t heap_of(u64 thread) { return heaps_at + thread * LINE; }

static inline off_t node_at(u64 thread, u64 number) { return nodes_at + (thread * heap_nodes + number) * node_bytes; }

// A node that nothing refers to.
static off_t node_new(tx_t *tx, u64 thread) {
    off_t heap = heap_of(thread), node = tx_get(tx, heap + 8);
    if (node) {
        tx_set(tx, heap + 8, tx_get(tx, node + node_bytes - 8));
    } else {
        u64 used = tx_get(tx, heap);
        must(used < heap_nodes, BAD_HEAP, "heap is full");
        node = node_at(thread, used);
        tx_set(tx, heap, used + 1);
    }
    for (off_t line = node; line < node + node_bytes; line += LINE) tx_edit(tx, line)->fresh = 1;
    return node;
}

static void node_free(tx_t *tx, u64 thread, off_t node) {
    off_t heap = heap_of(thread);
    tx_set(tx, node + node_bytes - 8, tx_get(tx, heap + 8));
    tx_set(tx, heap + 8, node);
}

// A node before there are threads: they get them in turn.
static off_t node_first(void) {
    static u64 turn;
    off_t heap = heap_of(turn);
    u64 used = pm_get(heap);
    must(used < heap_nodes, BAD_HEAP, "heap is full");
    pm_put(heap, used + 1);
    off_t node = node_at(turn, used);
    turn = (turn + 1) % threads;
    return node;
}

// Cleans all that was written before there are threads.
static void clean_first(void) {
    pm_clean_range((const u8 *)pool + heaps_at, nodes_at - heaps_at);
    for (u64 thread = 0; thread < threads; thread++)
        pm_clean_range((const u8 *)pool + node_at(thread, 0), pm_get(heap_of(thread)) * node_bytes);
}

// ---- Checks

// For each key whether it must be there: 1, and 2 when it was found.
static u8 *expected;
// For each node whether it was met.
static u8 *met;
static u64 items, key_sum, committed;

static void expect(void) {
    expected = alloc(keys);
    met = alloc(threads * heap_nodes);
    items = key_sum = committed = 0;
    for (u64 key = 0; key < keys; key++) expected[key] = (u8)initially(key);
    for (u64 thread = 0; thread < threads; thread++) {
        u64 done = log_of(thread)->committed;
        must(done <= share(ops, thread), BAD_COUNT, "count of transactions");
        for (u64 i = 0; i < done; i++) expected[key_of(thread + i * threads)] ^= 1;
        committed += done;
    }
}

static void meet(off_t node) {
    u64 number = (node - nodes_at) / node_bytes;
    must(node >= nodes_at && number < threads * heap_nodes && node == nodes_at + number * node_bytes, BAD_HEAP, "node");
    must(number % heap_nodes < pm_get(heap_of(number / heap_nodes)), BAD_HEAP, "node was never given out");
    must(!met[number], BAD_HEAP, "node is met twice");
    met[number] = 1;
}

static void meet_key(u64 key) {
    must(key < keys && expected[key] == 1, WRONG_SET, "key that must not be there");
    expected[key] = 2;
    items++;
    key_sum += mix(16 * seed, key);
}

// After all keys and nodes of the structure were met.
static void expect_no_more(void) {
    for (u64 key = 0; key < keys; key++) must(expected[key] != 1, WRONG_SET, "key that is missing");
    for (u64 thread = 0; thread < threads; thread++) {
        off_t heap = heap_of(thread);
        u64 used = pm_get(heap);
        must(used <= heap_nodes, BAD_HEAP, "heap");
        for (off_t node = pm_get(heap + 8); node; node = pm_get(node + node_bytes - 8)) meet(node);
    }
    // A heap's free nodes may be those of other heaps, too.
    for (u64 thread = 0; thread < threads; thread++)
        for (u64 i = 0; i < pm_get(heap_of(thread)); i++) must(met[thread * heap_nodes + i], BAD_HEAP, "node is lost");
}

// ---- The program

// What each program defines: bytes and contents of its shape, an operation, a check that meets all nodes and keys.
static u64 shape_bytes(void);
static void fill(void);
static void prepare(void);
static void toggle(tx_t *tx, u64 thread, u64 key);
static void verify(void);

static void work(u64 thread) {
    tx_t *tx = tx_new(thread);
    for (u64 i = thread; i < ops; i += threads) toggle(tx, thread, key_of(i));
    pm_dfence();
}

static int keyed_main(int argc, char **argv, const char *name, u64 magic, const char *shape_name, u64 shape_default,
                      u64 nodes_of_keys, u64 nodes_of_ops) {
    if (arg_flag(argc, argv, "--recover")) {
        if (!pool_open(magic)) {
            print_text(name);
            print_text(": no pool\n");
            return 0;
        }
        const u64 *parameters = pool->parameters;
        threads = pool->threads;
        keys = parameters[KEYS], ops = parameters[OPS], seed = parameters[SEED];
        shape = parameters[SHAPE], heap_nodes = parameters[NODES];
        must(layout(shape_bytes()) <= pool->bytes, BAD_HEADER, "layout");
        pool_recover();
    } else {
        threads = arg_u64(argc, argv, "--threads", 1);
        keys = arg_u64(argc, argv, "--keys", 256);
        ops = arg_u64(argc, argv, "--ops", 300);
        seed = arg_u64(argc, argv, "--seed", 1);
        shape = arg_u64(argc, argv, shape_name, shape_default);
        check(threads && keys && shape, "--threads, --keys and sizes are at least 1");
        heap_nodes = (keys / nodes_of_keys + ops / nodes_of_ops) / threads + 16;
        u64 parameters[PARAMETERS] = {keys, ops, seed, shape, heap_nodes};
        pool_create(layout(shape_bytes()), threads, parameters, PARAMETERS);
        fill();
        clean_first();
        pool_ready(magic);
        prepare();
        threads_run((u32)threads, work);
    }
    expect();
    if (!arg_flag(argc, argv, "--recover")) must(committed == ops, BAD_COUNT, "operations");
    verify();
    expect_no_more();
    print_text(name);
    print_text(": ");
    print_u64(committed);
    print_text(" operations, ");
    print_u64(items);
    print_text(" items, sum ");
    print_u64(key_sum);
    print_char('\n');
    return 0;
}
