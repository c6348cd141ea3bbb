// Insertion of many keys into a B+tree in persistent memory: algorithms 1 and 2 of Gope, Basu, Puthoor and Meswani, "A Case
// for Scoped Persist Barriers in GPUs" (GPGPU 2018), section 5.1, and their recovery (section 8.3).
//
//   find the leaf of each key, append the key to the leaf's list of new entries;       barrier
//   for each level, from the leaves to the root:
//       each thread: merge the new entries of its nodes, split a node that overflows,
//                    append the right half to the parent's list of new entries;        barrier
//
// A child is durable before its parent's entry for it, because a level is before the next. Algorithm 1: all threads share
// each level, and the barrier is of the kernel. Algorithm 2: each CTA owns the subtree below a node of depth d and waits for
// itself alone; from depth d up, the barrier is of the kernel.
//
// One batch, no races: sorted keys, a thread a node, a list slot a child, and a place of its own for what each node's
// split makes. So the final image does not depend on the order of threads. Nodes are read through the L1 only where no
// other CTA writes them in this launch.
#include "device.cuh"
#include "pm.cuh"

#define inlined __device__ inline __attribute__((always_inline))

typedef unsigned long long u64;

// A node is 16 words, 64 bytes: a line of the paper's machine.
//   0      entries
//   1      leaf: the next leaf, or END
//   2      8 * parent + its number among the parent's children, as they were loaded
//   4..9   keys, ascending; that of a child is the least of its subtree
//   10..15 leaf: values; else: children
enum { WORDS = 16, COUNT = 0, NEXT = 1, PLACE = 2, KEYS = 4, ENTRIES = 10, SLOTS = 8 };
enum { END = 0xffffffffu };

// What holds the levels below d together.
enum { SYNC_ONLY = 0, WORK_ITEM = 1, WORK_GROUP = 2, KERNEL = 3 };

struct Tree {
    // `loaded` nodes level by level, leaves first; node loaded + x is the right half of node x; node 2 * loaded a new root.
    unsigned *nodes;
    // New entries of each node: how many (leaf) or whether (else), and SLOTS of them, key | value or child << 32. Those of
    // a node that is not a leaf have the number of the child that split. Node `loaded` stands for a parent of the root.
    unsigned *new_count;
    u64 *new_entries;
    // The root node | levels << 32.
    u64 *root;
    // Undo log: words of node x at 16 x, epoch << 32 | old word. No word of it is ever torn, so each stands for itself.
    u64 *log;
    // Epoch status: the last complete epoch of each CTA, then of the kernel, SLOTS words apart.
    u64 *status;
    unsigned order, fan, below, leaves, loaded, barrier, logs;
};

inlined unsigned value_of(unsigned key) { return key * 2654435761u; }

inlined unsigned fresh(const unsigned *at) { return *(const volatile unsigned *)at; }
inlined u64 fresh(const u64 *at) { return *(const volatile u64 *)at; }

// Ends an epoch of a scope, or its first half.
inlined void barrier(unsigned scope)
{
    __syncthreads();
    if (scope == KERNEL)
        // Algorithm 1's synchronisation, line 19, too: from here on CTAs see what others stored.
        pm_barrier_kr();
    else if (scope == WORK_GROUP)
        pm_barrier_wg();
    else if (scope == WORK_ITEM)
        pm_barrier_wi();
}

// Puts entry k of the node x and its right half y together, of which x takes `left`.
inlined void put(const Tree &t, unsigned x, unsigned y, unsigned left, int k, unsigned key, unsigned entry)
{
    unsigned at = k < (int)left ? x * WORDS + k : y * WORDS + k - left;
    t.nodes[at + KEYS] = key;
    t.nodes[at + ENTRIES] = entry;
}

// Merges the new entries of a node into it, from the last to the first, in place.
inlined void update(const Tree &t, unsigned x)
{
    unsigned n = t.nodes[x * WORDS + COUNT], y = t.loaded + x, m = 0, split_key = 0;
    bool leaf = x < t.leaves;
    if (leaf)
        m = fresh(&t.new_count[x]);
    else
        for (unsigned s = 0; s < n; s++)
            m += fresh(&t.new_entries[x * SLOTS + s]) != 0;
    unsigned total = n + m, left = total <= t.order ? total : (total + 1) / 2;
    int i = n - 1, j = leaf ? m - 1 : n - 1;
    for (int k = total - 1; k >= 0 && (i < k || k >= (int)left); k--) {
        unsigned key = i < 0 ? 0 : t.nodes[x * WORDS + KEYS + i];
        unsigned entry = i < 0 ? 0 : t.nodes[x * WORDS + ENTRIES + i];
        u64 mine = j < 0 ? 0 : fresh(&t.new_entries[x * SLOTS + j]);
        // A leaf's new entries are sorted like its keys; that of a child follows the child.
        bool take = leaf ? j >= 0 && (i < 0 || (unsigned)mine > key) : mine != 0 && j == i;
        if (take) {
            key = (unsigned)mine;
            entry = mine >> 32;
            j--;
        } else {
            i--;
            if (!leaf)
                j = i;
        }
        if (k == (int)left)
            split_key = key;
        put(t, x, y, left, k, key, entry);
    }
    if (left < total) {
        unsigned place = t.nodes[x * WORDS + PLACE];
        t.nodes[y * WORDS + COUNT] = total - left;
        t.nodes[y * WORDS + NEXT] = t.nodes[x * WORDS + NEXT];
        t.nodes[y * WORDS + PLACE] = place;
        t.nodes[x * WORDS + NEXT] = y;
        t.new_entries[place] = (u64)y << 32 | split_key;
        t.new_count[place / SLOTS] = 1;
    }
    t.nodes[x * WORDS + COUNT] = left;
}

// The part of a level that this thread works on: of its CTA's subtree, or of all.
struct Part {
    unsigned begin, end, step;
};

inlined Part part(const Tree &t, unsigned level, unsigned first, unsigned size, unsigned span)
{
    unsigned cta = blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    if (level <= t.below && t.barrier != KERNEL)
        return {first + cta * span + thread, first + (cta + 1) * span, threads};
    return {first + cta * threads + thread, first + size, threads * gridDim.x};
}

// Notes that an epoch of the kernel, or of this CTA, is complete: one word, behind the epoch's barrier.
inlined void complete_epoch(const Tree &t, bool of_kernel, unsigned epoch)
{
    if (t.logs && threadIdx.x == 0 && (!of_kernel || blockIdx.x == 0))
        t.status[(of_kernel ? gridDim.x : blockIdx.x) * SLOTS] = epoch;
}

// Inserts `count` sorted keys a CTA, from the first epoch on that is not complete. `undo`: first takes back what an epoch
// that is not complete has left.
inlined void insert_from(const Tree &t, const unsigned *keys, unsigned count, bool undo)
{
    unsigned cta = blockIdx.x, thread = threadIdx.x, threads = blockDim.x, lower = t.barrier;
    // The last complete epoch of the CTA and of the kernel.
    unsigned cta_complete = (unsigned)fresh(&t.status[cta * SLOTS]);
    unsigned kernel_complete = (unsigned)fresh(&t.status[gridDim.x * SLOTS]);
    bool all_ctas = lower == KERNEL, chosen = cta == 0 && thread == 0;
    if (undo) {
        unsigned first = 0, size = t.leaves, span = t.leaves / gridDim.x;
        for (unsigned level = 0; first < t.loaded; level++) {
            Part p = part(t, level, first, size, span);
            unsigned epoch = level + 2, complete = all_ctas || level >= t.below ? kernel_complete : cta_complete;
            for (unsigned x = p.begin; x < p.end && complete < epoch; x += p.step)
                for (unsigned w = 0; w < WORDS; w++) {
                    u64 old = t.log[x * WORDS + w];
                    if (old >> 32 == epoch)
                        t.nodes[x * WORDS + w] = (unsigned)old;
                }
            first += size;
            size = (size + t.fan - 1) / t.fan;
            span /= t.fan;
        }
        barrier(KERNEL);
    }

    // Epoch 1: each thread finds the leaves of its keys.
    if ((all_ctas ? kernel_complete : cta_complete) < 1) {
        unsigned all = count * gridDim.x, begin = all_ctas ? 0 : cta * count, end = all_ctas ? all : begin + count;
        unsigned at = all_ctas ? cta * threads + thread : begin + thread, step = all_ctas ? threads * gridDim.x : threads;
        u64 root = *t.root;
        for (; at < end; at += step) {
            unsigned key = keys[at], x = (unsigned)root, low = 0, high = 0;
            for (unsigned level = root >> 32; level > 1; level--) {
                const unsigned *node = t.nodes + x * WORDS;
                unsigned n = node[COUNT], s = n - 1;
                while (s > 0 && node[KEYS + s] > key)
                    s--;
                low = node[KEYS + s];
                if (s + 1 < n)
                    high = node[KEYS + s + 1];
                x = node[ENTRIES + s];
            }
            // Keys before this one that have the same leaf.
            unsigned slot = 0;
            while (at - slot > begin && keys[at - slot - 1] >= low)
                slot++;
            if (slot >= t.order)
                asm volatile("trap;");
            t.new_entries[x * SLOTS + slot] = (u64)value_of(key) << 32 | key;
            if (at + 1 == all || (high != 0 && keys[at + 1] >= high))
                t.new_count[x] = slot + 1;
        }
        barrier(lower);
        complete_epoch(t, all_ctas, 1);
    }

    // An epoch a level.
    unsigned first = 0, size = t.leaves, span = t.leaves / gridDim.x, epoch = 2;
    for (unsigned level = 0; first < t.loaded; level++, epoch++) {
        Part p = part(t, level, first, size, span);
        bool of_kernel = all_ctas || level >= t.below;
        unsigned scope = of_kernel ? KERNEL : lower;
        if ((of_kernel ? kernel_complete : cta_complete) < epoch) {
            if (t.logs) {
                for (unsigned x = p.begin; x < p.end; x += p.step)
                    if (fresh(&t.new_count[x]) != 0)
                        for (unsigned w = 0; w < WORDS; w++)
                            t.log[x * WORDS + w] = (u64)epoch << 32 | t.nodes[x * WORDS + w];
                barrier(scope);
            }
            for (unsigned x = p.begin; x < p.end; x += p.step)
                if (fresh(&t.new_count[x]) != 0)
                    update(t, x);
            barrier(scope);
            complete_epoch(t, of_kernel, epoch);
        }
        first += size;
        size = (size + t.fan - 1) / t.fan;
        span /= t.fan;
    }

    // The root has split: a new root, then the word that says so.
    if (fresh(&t.new_count[t.loaded]) != 0) {
        u64 right = fresh(&t.new_entries[t.loaded * SLOTS]);
        if (kernel_complete < epoch) {
            if (chosen) {
                unsigned *node = t.nodes + 2 * t.loaded * WORDS, old = t.loaded - 1;
                node[KEYS] = t.nodes[old * WORDS + KEYS];
                node[ENTRIES] = old;
                node[KEYS + 1] = (unsigned)right;
                node[ENTRIES + 1] = right >> 32;
                node[NEXT] = END;
                node[COUNT] = 2;
            }
            barrier(KERNEL);
            complete_epoch(t, true, epoch);
        }
        epoch++;
        if (kernel_complete < epoch) {
            // Epochs so far: the first, one a level, the new level, this one.
            if (chosen)
                *t.root = (u64)(epoch - 2) << 32 | 2 * t.loaded;
            barrier(KERNEL);
            complete_epoch(t, true, epoch);
        }
    }
}

extern "C" __global__ void bplus_tree_insert(Tree t, const unsigned *keys, unsigned count)
{
    insert_from(t, keys, count, false);
}

// At boot: takes back the epoch of each scope that was under way, then goes on from the last complete one.
extern "C" __global__ void bplus_tree_recover(Tree t, const unsigned *keys, unsigned count)
{
    insert_from(t, keys, count, true);
}

// Looks a key up from the root, a thread a key: those that were loaded (slot s of leaf x is key x * span + 8 s), then those
// that were inserted. found[i] is 1 if the key has its value, and each node on the way is in order: entries within
// bounds, keys ascending and within the range that the parent gives it, the next leaf beginning where the range ends.
extern "C" __global__ void bplus_tree_walk(Tree t, const unsigned *keys, unsigned count, unsigned span, unsigned *found)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, old = t.leaves * t.order;
    if (i >= old + count)
        return;
    unsigned leaf = i / t.order, slot = i % t.order;
    bool loaded = i < old, good = true, has = false;
    // A leaf was loaded with `order` - its number % 4 keys.
    if (loaded && slot >= t.order - leaf % 4) {
        found[i] = 1;
        return;
    }
    unsigned key = loaded ? leaf * span + 8 * slot : keys[i - old];
    u64 root = *t.root;
    unsigned x = (unsigned)root, low = 0, high = END;
    for (unsigned level = root >> 32; good && level > 0; level--) {
        const unsigned *node = t.nodes + x * WORDS;
        unsigned n = node[COUNT], at = 0;
        good = n >= 1 && n <= t.order && node[KEYS] == low;
        for (unsigned s = 0; good && s < n; s++) {
            unsigned k = node[KEYS + s];
            good = k < high && (s == 0 || k > node[KEYS + s - 1]);
            if (k <= key)
                at = s;
        }
        if (!good)
            break;
        if (level == 1) {
            has = node[KEYS + at] == key && node[ENTRIES + at] == value_of(key);
            unsigned next = node[NEXT];
            good = high == END ? next == END : next < 2 * t.loaded && t.nodes[next * WORDS + KEYS] == high;
        } else {
            low = node[KEYS + at];
            if (at + 1 < n)
                high = node[KEYS + at + 1];
            x = node[ENTRIES + at];
            // Leaves below, others above.
            good = x < 2 * t.loaded;
        }
    }
    found[i] = good && has;
}
