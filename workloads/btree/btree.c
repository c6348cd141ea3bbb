// B+ trees in persistent memory, of which threads toggle random keys: "Searches for a value in a B+ tree. Insert if
// absent, remove if found." ("BTree" of Table IV of the persistence parallelism paper.) A node has four lines; a key belongs
// to the tree of its number modulo --trees, and each tree has a lock in ordinary memory.
//
// Nodes are split and merged on the way down, so that one pass suffices: an insertion splits full nodes that it meets, a
// removal makes sure that each node it enters can lose a key.
//
//   --trees 4 --keys 256 --ops 300 --threads 1 --seed 1 | --recover
//
// Exit codes: 10 header, 11 log, 12 heap, 13 count of transactions, 20 set of keys, 21 torn value, 22 order of keys,
// 23 too few or too many keys in a node, 24 depth of leaves, 25 chain of leaves.
#include "keyed.h"

// Words of a node: head (twice the count of keys, 1 more in a leaf), next leaf, keys, then the values of a leaf or the
// children, one more than keys.
enum { HEAD = 0, AFTER = 8, NODE_KEYS = 16, SLOTS = 16 + 8 * 13, MOST = 13, LEAST = 6 };
enum { WRONG_COUNT = 23, WRONG_DEPTH = 24, WRONG_CHAIN = 25 };

static const u64 node_bytes = 4 * LINE;

typedef struct {
    lock_t lock;
    u64 unused[7];
} padded_lock_t;

static padded_lock_t *locks;

static u64 tree_of(u64 key) { return key % shape; }

// A tree's line: word 0 is its root, 0 at first.
static off_t tree_at(u64 tree) { return shape_at + tree * LINE; }

static u64 shape_bytes(void) { return shape * LINE; }

static void prepare(void) { locks = alloc(shape * sizeof *locks); }

static u64 count_of(const tx_t *tx, off_t node) { return tx_get(tx, node + HEAD) >> 1; }

static int is_leaf(const tx_t *tx, off_t node) { return tx_get(tx, node + HEAD) & 1; }

static void set_head(tx_t *tx, off_t node, u64 count, int leaf) { tx_set(tx, node + HEAD, count << 1 | (u64)leaf); }

static u64 key_at(const tx_t *tx, off_t node, u64 i) { return tx_get(tx, node + NODE_KEYS + 8 * i); }

static u64 slot_at(const tx_t *tx, off_t node, u64 i) { return tx_get(tx, node + SLOTS + 8 * i); }

static void set_key(tx_t *tx, off_t node, u64 i, u64 key) { tx_set(tx, node + NODE_KEYS + 8 * i, key); }

static void set_slot(tx_t *tx, off_t node, u64 i, u64 slot) { tx_set(tx, node + SLOTS + 8 * i, slot); }

// Which child has a key: as many as separators are not above it.
static u64 child_of(const tx_t *tx, off_t node, u64 key) {
    u64 count = count_of(tx, node), i = 0;
    while (i < count && key_at(tx, node, i) <= key) i++;
    return i;
}

// Inserts a key and the slot at `slot` (of a leaf the key's value, else the child on the right).
static void put_in(tx_t *tx, off_t node, u64 at, u64 key, u64 slot_number, u64 slot) {
    u64 count = count_of(tx, node);
    int leaf = is_leaf(tx, node);
    for (u64 i = count; i > at; i--) set_key(tx, node, i, key_at(tx, node, i - 1));
    for (u64 i = count + !leaf; i > slot_number; i--) set_slot(tx, node, i, slot_at(tx, node, i - 1));
    set_key(tx, node, at, key);
    set_slot(tx, node, slot_number, slot);
    set_head(tx, node, count + 1, leaf);
}

static void take_out(tx_t *tx, off_t node, u64 at, u64 slot_number) {
    u64 count = count_of(tx, node);
    int leaf = is_leaf(tx, node);
    for (u64 i = at; i + 1 < count; i++) set_key(tx, node, i, key_at(tx, node, i + 1));
    for (u64 i = slot_number; i + 1 < count + !leaf; i++) set_slot(tx, node, i, slot_at(tx, node, i + 1));
    set_head(tx, node, count - 1, leaf);
}

// Splits the full child `i` of a node that is not full.
static void split(tx_t *tx, u64 thread, off_t parent, u64 i) {
    off_t left = slot_at(tx, parent, i), right = node_new(tx, thread);
    int leaf = is_leaf(tx, left);
    u64 kept = leaf ? MOST - LEAST : LEAST, first = leaf ? kept : kept + 1, separator = key_at(tx, left, kept);
    for (u64 k = first; k < MOST; k++) set_key(tx, right, k - first, key_at(tx, left, k));
    for (u64 k = first; k < MOST + (leaf ? 0 : 1); k++) set_slot(tx, right, k - first, slot_at(tx, left, k));
    set_head(tx, right, MOST - first, leaf);
    set_head(tx, left, kept, leaf);
    tx_set(tx, right + AFTER, leaf ? tx_get(tx, left + AFTER) : 0);
    if (leaf) tx_set(tx, left + AFTER, right);
    put_in(tx, parent, i, separator, i + 1, right);
}

static void insert(tx_t *tx, u64 thread, off_t tree, u64 key) {
    off_t node = tx_get(tx, tree);
    if (!node || count_of(tx, node) == MOST) {
        // The tree grows at its root.
        off_t root = node_new(tx, thread);
        set_head(tx, root, 0, node == 0);
        tx_set(tx, root + AFTER, 0);
        tx_set(tx, tree, root);
        if (node) {
            set_slot(tx, root, 0, node);
            split(tx, thread, root, 0);
        }
        node = root;
    }
    while (!is_leaf(tx, node)) {
        u64 i = child_of(tx, node, key);
        if (count_of(tx, slot_at(tx, node, i)) == MOST) {
            split(tx, thread, node, i);
            i = child_of(tx, node, key);
        }
        node = slot_at(tx, node, i);
    }
    u64 at = child_of(tx, node, key);
    put_in(tx, node, at, key, at, value_of(key, 0));
}

// Merges child `i + 1` into child `i`, which have the least number of keys.
static void merge(tx_t *tx, u64 thread, off_t parent, u64 i) {
    off_t left = slot_at(tx, parent, i), right = slot_at(tx, parent, i + 1);
    int leaf = is_leaf(tx, left);
    u64 have = count_of(tx, left), more = count_of(tx, right);
    if (!leaf) set_key(tx, left, have++, key_at(tx, parent, i));
    for (u64 k = 0; k < more; k++) set_key(tx, left, have + k, key_at(tx, right, k));
    for (u64 k = 0; k < more + !leaf; k++) set_slot(tx, left, have + k, slot_at(tx, right, k));
    set_head(tx, left, have + more, leaf);
    if (leaf) tx_set(tx, left + AFTER, tx_get(tx, right + AFTER));
    take_out(tx, parent, i, i + 1);
    node_free(tx, thread, right);
}

// Moves a key from child `from` to its neighbour `to` over the separator between them.
static void borrow(tx_t *tx, off_t parent, u64 from, u64 to) {
    u64 between = from < to ? from : to;
    off_t giver = slot_at(tx, parent, from), taker = slot_at(tx, parent, to);
    u64 have = count_of(tx, giver), had = count_of(tx, taker), separator = key_at(tx, parent, between);
    if (is_leaf(tx, giver)) {
        u64 at = from < to ? have - 1 : 0;
        u64 key = key_at(tx, giver, at), value = slot_at(tx, giver, at), into = from < to ? 0 : had;
        put_in(tx, taker, into, key, into, value);
        take_out(tx, giver, at, at);
        set_key(tx, parent, between, from < to ? key : key_at(tx, giver, 0));
    } else if (from < to) {
        put_in(tx, taker, 0, separator, 0, slot_at(tx, giver, have));
        set_key(tx, parent, between, key_at(tx, giver, have - 1));
        take_out(tx, giver, have - 1, have);
    } else {
        put_in(tx, taker, had, separator, had + 1, slot_at(tx, giver, 0));
        set_key(tx, parent, between, key_at(tx, giver, 0));
        take_out(tx, giver, 0, 0);
    }
}

// Makes sure that child `i` can lose a key. Which child has its keys then.
static u64 strengthen(tx_t *tx, u64 thread, off_t node, u64 i) {
    if (count_of(tx, slot_at(tx, node, i)) > LEAST) return i;
    if (i > 0 && count_of(tx, slot_at(tx, node, i - 1)) > LEAST) {
        borrow(tx, node, i - 1, i);
        return i;
    }
    if (i < count_of(tx, node) && count_of(tx, slot_at(tx, node, i + 1)) > LEAST) {
        borrow(tx, node, i + 1, i);
        return i;
    }
    if (i == count_of(tx, node)) i--;
    merge(tx, thread, node, i);
    return i;
}

static void remove(tx_t *tx, u64 thread, off_t tree, u64 key) {
    off_t node = tx_get(tx, tree);
    while (!is_leaf(tx, node)) {
        off_t child = slot_at(tx, node, strengthen(tx, thread, node, child_of(tx, node, key)));
        if (count_of(tx, node) == 0) {
            // Only a root can lose its last separator: the tree shrinks.
            tx_set(tx, tree, child);
            node_free(tx, thread, node);
        }
        node = child;
    }
    u64 at = child_of(tx, node, key) - 1;
    take_out(tx, node, at, at);
    if (count_of(tx, node) == 0) {
        tx_set(tx, tree, 0);
        node_free(tx, thread, node);
    }
}

static void toggle(tx_t *tx, u64 thread, u64 key) {
    lock_t *mine = &locks[tree_of(key)].lock;
    lock(mine);
    off_t tree = tree_at(tree_of(key)), node = pm_get(tree);
    int found = 0;
    if (node) {
        while (!is_leaf(tx, node)) node = slot_at(tx, node, child_of(tx, node, key));
        u64 after = child_of(tx, node, key);
        found = after > 0 && key_at(tx, node, after - 1) == key;
    }
    if (found) remove(tx, thread, tree, key);
    else insert(tx, thread, tree, key);
    tx_commit(tx);
    unlock(mine);
}

// ---- The first keys: levels from leaves to the root, nodes as full as they may be evenly

static u64 fill_level(u64 count, int leaf, const u64 *low, const off_t *below, u64 *node_low, off_t *nodes) {
    // A leaf takes keys, another node children.
    u64 most = MOST + !leaf, number = (count + most - 1) / most, at = 0;
    for (u64 n = 0; n < number; n++) {
        off_t node = node_first();
        u64 taken = count / number + (n < count % number);
        pm_put(node + HEAD, (taken - !leaf) << 1 | (u64)leaf);
        node_low[n] = low[at];
        for (u64 i = 0; i < taken; i++, at++) {
            if (leaf || i) pm_put(node + NODE_KEYS + 8 * (leaf ? i : i - 1), low[at]);
            pm_put(node + SLOTS + 8 * i, leaf ? value_of(low[at], 0) : below[at]);
        }
        if (leaf && n) pm_put(nodes[n - 1] + AFTER, node);
        nodes[n] = node;
    }
    return number;
}

static void fill(void) {
    u64 most = keys / shape + 1;
    u64 *low = alloc(most * 8);
    off_t *nodes = alloc(most * 8);
    for (u64 tree = 0; tree < shape; tree++) {
        u64 count = 0;
        for (u64 key = tree; key < keys; key += shape)
            if (initially(key)) low[count++] = key;
        if (!count) continue;
        // A level is written over the one below, which is read ahead of it.
        count = fill_level(count, 1, low, nodes, low, nodes);
        while (count > 1) count = fill_level(count, 0, low, nodes, low, nodes);
        pm_put(tree_at(tree), nodes[0]);
    }
}

// ---- Checks

typedef struct {
    u64 tree, depth;
    // The leaf that was met last.
    off_t leaf;
} walk_t;

static void verify_node(walk_t *walk, off_t node, u64 depth, u64 low, u64 high) {
    meet(node);
    u64 head = pm_get(node + HEAD), count = head >> 1;
    int leaf = head & 1;
    must(count <= MOST && count >= (depth ? LEAST : 1), WRONG_COUNT, "keys of a node");
    u64 before = low;
    for (u64 i = 0; i < count; i++) {
        u64 key = pm_get(node + NODE_KEYS + 8 * i);
        must(key >= before && key < high && (!leaf || tree_of(key) == walk->tree), WRONG_SHAPE, "order of keys");
        before = key + 1;
        if (!leaf) continue;
        meet_key(key);
        must(pm_get(node + SLOTS + 8 * i) == value_of(key, 0), WRONG_VALUE, "torn value");
    }
    if (leaf) {
        if (!walk->leaf) walk->depth = depth;
        else must(pm_get(walk->leaf + AFTER) == node, WRONG_CHAIN, "chain of leaves");
        must(depth == walk->depth, WRONG_DEPTH, "depth of leaves");
        walk->leaf = node;
        return;
    }
    must(depth < 16, WRONG_DEPTH, "depth of nodes");
    for (u64 i = 0; i <= count; i++) {
        u64 from = i ? pm_get(node + NODE_KEYS + 8 * (i - 1)) : low;
        verify_node(walk, pm_get(node + SLOTS + 8 * i), depth + 1, from, i < count ? pm_get(node + NODE_KEYS + 8 * i) : high);
    }
}

static void verify(void) {
    for (u64 tree = 0; tree < shape; tree++) {
        walk_t walk = {tree, 0, 0};
        off_t root = pm_get(tree_at(tree));
        if (root) verify_node(&walk, root, 0, 0, keys);
        if (walk.leaf) must(pm_get(walk.leaf + AFTER) == 0, WRONG_CHAIN, "end of the chain of leaves");
    }
}

int main(int argc, char **argv) { return keyed_main(argc, argv, "btree", 0x6274726565706d31, "--trees", 4, 4, 2); }
