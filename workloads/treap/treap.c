// Treaps of --keys random keys, each private to the thread that fills and searches it: recursion, pointers, branches that
// are hard to predict. Treap i is thread (i modulo --threads)'s. A node's priority is the hash of its key, so that its shape
// follows from its keys (Seidel and Aragon, Randomized search trees, 1996).
//
//   --treaps 4 --keys 500 --threads 1 --seed 1
#include "cpu_rt.h"

typedef struct node {
    u64 key, priority;
    struct node *left, *right;
} node_t;

typedef struct {
    node_t *root, *nodes;
    u64 used, found, depth, sum;
    u64 unused[2];
} treap_t;

static u64 keys, threads, treaps, seed;
static treap_t *all;

static u64 hash(u64 x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebul;
    return x ^ (x >> 31);
}

static node_t *insert(treap_t *treap, node_t *at, u64 key) {
    if (!at) {
        node_t *node = &treap->nodes[treap->used++];
        node->key = key;
        node->priority = hash(key + seed);
        return node;
    }
    if (key < at->key) {
        node_t *child = at->left = insert(treap, at->left, key);
        if (child->priority <= at->priority) return at;
        at->left = child->right;
        child->right = at;
        return child;
    }
    if (key > at->key) {
        node_t *child = at->right = insert(treap, at->right, key);
        if (child->priority <= at->priority) return at;
        at->right = child->left;
        child->left = at;
        return child;
    }
    return at;
}

static int search(const node_t *at, u64 key) {
    if (!at) return 0;
    if (at->key == key) return 1;
    return search(key < at->key ? at->left : at->right, key);
}

// Checks a subtree whose keys lie from `low` to `high`. How many nodes it has.
static u64 verify(treap_t *treap, const node_t *at, u64 low, u64 high, u64 most, u64 depth) {
    if (!at) return 0;
    check(at->key >= low && at->key <= high, "order of keys");
    check(at->priority <= most, "order of priorities");
    if (depth > treap->depth) treap->depth = depth;
    treap->sum += hash(at->key) * depth;
    u64 left = at->key ? verify(treap, at->left, low, at->key - 1, at->priority, depth + 1) : 0;
    return left + 1 + verify(treap, at->right, at->key + 1, high, at->priority, depth + 1);
}

static void work(u64 thread) {
    for (u64 number = thread; number < treaps; number += threads) {
        treap_t *treap = &all[number];
        treap->nodes = alloc(keys * sizeof(node_t));
        // Even keys are there, odd ones are not.
        u64 begin = hash(seed + 77 * number + 1) | 1, random = begin;
        for (u64 i = 0; i < keys; i++) treap->root = insert(treap, treap->root, random_next(&random) >> 16 << 1);
        random = begin;
        for (u64 i = 0; i < keys; i++) {
            u64 key = random_next(&random) >> 16 << 1;
            check(search(treap->root, key), "a key is missing");
            treap->found += 1 + (u64)search(treap->root, key + 1);
        }
        check(verify(treap, treap->root, 0, ~0ul, ~0ul, 1) == treap->used, "count of nodes");
        check(treap->found == keys, "a key is there that was not inserted");
    }
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    treaps = arg_u64(argc, argv, "--treaps", 4);
    keys = arg_u64(argc, argv, "--keys", 500);
    seed = arg_u64(argc, argv, "--seed", 1);
    check(threads > 0 && treaps > 0 && keys > 0, "--threads, --treaps and --keys are at least 1");
    all = alloc(treaps * sizeof *all);
    threads_run((u32)threads, work);
    u64 nodes = 0, depth = 0, sum = 0;
    for (u64 number = 0; number < treaps; number++) {
        nodes += all[number].used;
        sum += all[number].sum;
        if (all[number].depth > depth) depth = all[number].depth;
    }
    print_text("treap: ");
    print_u64(nodes);
    print_text(" nodes, depth ");
    print_u64(depth);
    print_text(", sum ");
    print_u64(sum);
    print_char('\n');
    return 0;
}
