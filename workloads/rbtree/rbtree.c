// Red-black trees in persistent memory, of which threads toggle random keys: "Searches for a value in a red-black tree.
// Insert if absent, remove if found." ("RBTree" of Table IV of the persistence parallelism paper.) A node is a line; a key
// belongs to the tree of its number modulo --trees, and each tree has a lock in ordinary memory.
//
//   --trees 4 --keys 256 --ops 300 --threads 1 --seed 1 | --recover
//
// Exit codes: 10 header, 11 log, 12 heap, 13 count of transactions, 20 set of keys, 21 torn value, 22 order of keys,
// 23 parent, 24 a red node with a red parent, 25 black heights, 26 colour.
#include "keyed.h"

enum { KEY = 0, LEFT = 8, RIGHT = 16, PARENT = 24, COLOUR = 32, VALUE = 40, VALUES = 2 };
enum { BLACK = 1, RED = 2 };
enum { WRONG_PARENT = 23, TWO_RED = 24, WRONG_HEIGHT = 25, WRONG_COLOUR = 26 };

static const u64 node_bytes = LINE;

typedef struct {
    lock_t lock;
    u64 unused[7];
} padded_lock_t;

static padded_lock_t *locks;

static u64 tree_of(u64 key) { return key % shape; }

// A tree's line: word 0 is its root.
static off_t tree_at(u64 tree) { return shape_at + tree * LINE; }

static u64 shape_bytes(void) { return shape * LINE; }

// A balanced tree of the keys that are there at first, from `low` on and below `high`, counted within the tree.
static off_t build(const u32 *sorted, u64 low, u64 high, off_t parent, u64 depth, u64 red_depth) {
    if (low >= high) return 0;
    u64 middle = (low + high) / 2, key = sorted[middle];
    off_t node = node_first();
    pm_put(node + KEY, key);
    pm_put(node + PARENT, parent);
    pm_put(node + COLOUR, depth == red_depth ? RED : BLACK);
    for (u64 i = 0; i < VALUES; i++) pm_put(node + VALUE + 8 * i, value_of(key, i));
    pm_put(node + LEFT, build(sorted, low, middle, node, depth + 1, red_depth));
    pm_put(node + RIGHT, build(sorted, middle + 1, high, node, depth + 1, red_depth));
    return node;
}

static void fill(void) {
    u32 *sorted = alloc((keys / shape + 1) * sizeof *sorted);
    for (u64 tree = 0; tree < shape; tree++) {
        u64 count = 0, levels = 0;
        for (u64 key = tree; key < keys; key += shape)
            if (initially(key)) sorted[count++] = (u32)key;
        // All levels but the last are full: nodes of the last one are red.
        while ((1ul << levels) - 1 < count) levels++;
        int full = (1ul << levels) - 1 == count;
        pm_put(tree_at(tree), build(sorted, 0, count, 0, 0, full || levels < 2 ? ~0ul : levels - 1));
    }
}

static void prepare(void) { locks = alloc(shape * sizeof *locks); }

// ---- As in Cormen et al., Introduction to Algorithms, with 0 for the sentinel

static u64 colour(tx_t *tx, off_t node) { return node ? tx_get(tx, node + COLOUR) : BLACK; }

// Puts `to` where `node` is.
static void replace(tx_t *tx, off_t tree, off_t node, off_t to) {
    off_t parent = tx_get(tx, node + PARENT);
    if (!parent) tx_set(tx, tree, to);
    else tx_set(tx, parent + (tx_get(tx, parent + LEFT) == node ? LEFT : RIGHT), to);
    if (to) tx_set(tx, to + PARENT, parent);
}

// Rotates so that the node's child on the other side comes above it.
static void rotate(tx_t *tx, off_t tree, off_t node, off_t side) {
    off_t other = LEFT + RIGHT - side, child = tx_get(tx, node + other), inner = tx_get(tx, child + side);
    replace(tx, tree, node, child);
    tx_set(tx, node + other, inner);
    if (inner) tx_set(tx, inner + PARENT, node);
    tx_set(tx, child + side, node);
    tx_set(tx, node + PARENT, child);
}

static void inserted(tx_t *tx, off_t tree, off_t node) {
    off_t parent;
    while ((parent = tx_get(tx, node + PARENT)) && colour(tx, parent) == RED) {
        off_t above = tx_get(tx, parent + PARENT);
        off_t side = tx_get(tx, above + LEFT) == parent ? LEFT : RIGHT, other = LEFT + RIGHT - side;
        off_t uncle = tx_get(tx, above + other);
        if (colour(tx, uncle) == RED) {
            tx_set(tx, parent + COLOUR, BLACK);
            tx_set(tx, uncle + COLOUR, BLACK);
            tx_set(tx, above + COLOUR, RED);
            node = above;
            continue;
        }
        if (tx_get(tx, parent + other) == node) {
            rotate(tx, tree, parent, side);
            parent = node;
        }
        tx_set(tx, parent + COLOUR, BLACK);
        tx_set(tx, above + COLOUR, RED);
        rotate(tx, tree, above, other);
        break;
    }
    tx_set(tx, tx_get(tx, tree) + COLOUR, BLACK);
}

static void insert(tx_t *tx, u64 thread, off_t tree, off_t parent, u64 key) {
    off_t node = node_new(tx, thread);
    tx_set(tx, node + KEY, key);
    tx_set(tx, node + LEFT, 0);
    tx_set(tx, node + RIGHT, 0);
    tx_set(tx, node + PARENT, parent);
    tx_set(tx, node + COLOUR, RED);
    for (u64 i = 0; i < VALUES; i++) tx_set(tx, node + VALUE + 8 * i, value_of(key, i));
    if (!parent) tx_set(tx, tree, node);
    else tx_set(tx, parent + (key < tx_get(tx, parent + KEY) ? LEFT : RIGHT), node);
    inserted(tx, tree, node);
}

// A black node is missing above `node`, which may be none, below `parent`.
static void removed(tx_t *tx, off_t tree, off_t node, off_t parent) {
    while (parent && colour(tx, node) == BLACK) {
        off_t side = tx_get(tx, parent + LEFT) == node ? LEFT : RIGHT, other = LEFT + RIGHT - side;
        off_t sibling = tx_get(tx, parent + other);
        if (colour(tx, sibling) == RED) {
            tx_set(tx, sibling + COLOUR, BLACK);
            tx_set(tx, parent + COLOUR, RED);
            rotate(tx, tree, parent, side);
            sibling = tx_get(tx, parent + other);
        }
        off_t near = tx_get(tx, sibling + side), far = tx_get(tx, sibling + other);
        if (colour(tx, near) == BLACK && colour(tx, far) == BLACK) {
            tx_set(tx, sibling + COLOUR, RED);
            node = parent;
            parent = tx_get(tx, node + PARENT);
            continue;
        }
        if (colour(tx, far) == BLACK) {
            tx_set(tx, near + COLOUR, BLACK);
            tx_set(tx, sibling + COLOUR, RED);
            rotate(tx, tree, sibling, other);
            sibling = tx_get(tx, parent + other);
            far = tx_get(tx, sibling + other);
        }
        tx_set(tx, sibling + COLOUR, colour(tx, parent));
        tx_set(tx, parent + COLOUR, BLACK);
        tx_set(tx, far + COLOUR, BLACK);
        rotate(tx, tree, parent, side);
        return;
    }
    if (node) tx_set(tx, node + COLOUR, BLACK);
}

static void remove(tx_t *tx, u64 thread, off_t tree, off_t node) {
    off_t left = tx_get(tx, node + LEFT), right = tx_get(tx, node + RIGHT), child, parent;
    u64 lost = colour(tx, node);
    if (!left || !right) {
        child = left ? left : right;
        parent = tx_get(tx, node + PARENT);
        replace(tx, tree, node, child);
    } else {
        // The next key's node comes here.
        off_t next = right;
        for (off_t below; (below = tx_get(tx, next + LEFT)) != 0;) next = below;
        lost = colour(tx, next);
        child = tx_get(tx, next + RIGHT);
        parent = next;
        if (next != right) {
            parent = tx_get(tx, next + PARENT);
            replace(tx, tree, next, child);
            tx_set(tx, next + RIGHT, right);
            tx_set(tx, right + PARENT, next);
        }
        replace(tx, tree, node, next);
        tx_set(tx, next + LEFT, left);
        tx_set(tx, left + PARENT, next);
        tx_set(tx, next + COLOUR, colour(tx, node));
    }
    if (lost == BLACK) removed(tx, tree, child, parent);
    node_free(tx, thread, node);
}

static void toggle(tx_t *tx, u64 thread, u64 key) {
    lock_t *mine = &locks[tree_of(key)].lock;
    lock(mine);
    off_t tree = tree_at(tree_of(key)), node = pm_get(tree), parent = 0;
    u64 there;
    while (node && (there = pm_get(node + KEY)) != key) {
        parent = node;
        node = pm_get(node + (key < there ? LEFT : RIGHT));
    }
    if (node) remove(tx, thread, tree, node);
    else insert(tx, thread, tree, parent, key);
    tx_commit(tx);
    unlock(mine);
}

// Checks a subtree whose keys lie from `low` on and below `high`. Its black height.
static u64 verify_node(u64 tree, off_t node, off_t parent, u64 low, u64 high) {
    if (!node) return 1;
    meet(node);
    u64 key = pm_get(node + KEY), shade = pm_get(node + COLOUR);
    must(key >= low && key < high && tree_of(key) == tree, WRONG_SHAPE, "order of keys");
    must(pm_get(node + PARENT) == parent, WRONG_PARENT, "parent");
    must(shade == RED || shade == BLACK, WRONG_COLOUR, "colour");
    must(shade == BLACK || (parent && pm_get(parent + COLOUR) == BLACK), TWO_RED, "red node with a red parent");
    for (u64 i = 0; i < VALUES; i++) must(pm_get(node + VALUE + 8 * i) == value_of(key, i), WRONG_VALUE, "torn value");
    u64 left = verify_node(tree, pm_get(node + LEFT), node, low, key);
    meet_key(key);
    u64 right = verify_node(tree, pm_get(node + RIGHT), node, key + 1, high);
    must(left == right, WRONG_HEIGHT, "black heights");
    return left + (shade == BLACK);
}

static void verify(void) {
    for (u64 tree = 0; tree < shape; tree++) verify_node(tree, pm_get(tree_at(tree)), 0, 0, keys);
}

int main(int argc, char **argv) { return keyed_main(argc, argv, "rbtree", 0x726274726565706d, "--trees", 4, 1, 1); }
