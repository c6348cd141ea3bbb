// The four kernels of SSCA 2.2 on a scale-free graph whose adjacency lies in persistent memory: "A transactional
// implementation of SSCA 2.2, performing several analyses of large, scale-free graph." ("SSCA2" of Table IV of the
// persistence parallelism paper.)
//
//   1 construction   edge e of R-MAT (a, b, c, d = 0.55, 0.1, 0.1, 0.25) is appended to its source's list of blocks, in one
//                    transaction under the source's lock, by thread e modulo --threads
//   2 heaviest edges thread v modulo --threads notes in vertex v how many of its edges have the greatest weight, in one
//                    transaction a vertex that has such edges
//   3 subgraphs      vertices within --depth edges of each heaviest edge's end
//   4 betweenness    Brandes' algorithm from --sources vertices, in integers of 1/1024, so that no order of additions matters
//
//   --scale 6 --edges 384 --depth 3 --sources 4 --threads 1 --seed 1 | --recover
//
// Exit codes: 10 header, 11 log, 12 heap, 13 count of transactions, 20 an edge is missing or there twice, 21 torn edge,
// 22 an edge of another vertex, 23 degree, 24 note of heaviest edges, 25 betweenness.
#include "undo_log.h"

enum { WRONG_SET = 20, WRONG_VALUE = 21, WRONG_VERTEX = 22, WRONG_DEGREE = 23, WRONG_NOTE = 24, WRONG_SCORE = 25 };
// A vertex is a line: count of edges, first and last block, count of heaviest edges. A block is a line: next one, 7 edges.
enum { DEGREE = 0, FIRST = 8, LAST = 16, HEAVY = 24, OF_BLOCK = 7 };
// An edge is a word: number + 1 in 24 bits, weight in 20, target in 20.
enum { MOST_EDGES = 1 << 24, MOST_SCALE = 20 };

static const u64 MAGIC = 0x7373636132706d31, ONE = 1024;

typedef struct {
    lock_t lock;
    u64 unused[7];
} padded_lock_t;

static u64 scale, edges, depth, sources, seed, threads, vertices, heap_blocks;
static off_t heaps_at, vertices_at, blocks_at;
static padded_lock_t *locks;
static barrier_t after_phase;

static u64 share(u64 all, u64 thread) { return all / threads + (thread < all % threads); }

static u64 layout(void) {
    vertices = 1ul << scale;
    // A block for each vertex that a thread meets first, and for each 7 of its edges.
    u64 most = edges / threads + 1;
    heap_blocks = most;
    heaps_at = pool_area(threads);
    vertices_at = heaps_at + threads * LINE;
    blocks_at = vertices_at + vertices * LINE;
    return blocks_at + threads * heap_blocks * LINE;
}

static off_t vertex_at(u64 vertex) { return vertices_at + vertex * LINE; }

static u64 target_of(u64 word) { return word & 0xfffff; }

static u64 weight_of(u64 word) { return word >> 20 & 0xfffff; }

// Edge `number`: its source, and its word.
static u64 edge_of(u64 number, u64 *word) {
    u64 source = 0, target = 0, random = 0;
    for (u64 level = 0; level < scale; level++) {
        // 16 bits a level.
        random = level % 4 == 0 ? mix(16 * seed + level / 4, number) : random >> 16;
        u64 draw = (random & 0xffff) * 100 >> 16;
        source = source << 1 | (draw >= 65);
        target = target << 1 | ((draw >= 55 && draw < 65) || draw >= 75);
    }
    u64 weight = mix(16 * seed + 9, number) % vertices;
    *word = (number + 1) << 40 | weight << 20 | target;
    return source;
}

// ---- Kernel 1

static void add_edge(tx_t *tx, u64 thread, u64 number) {
    u64 word, source = edge_of(number, &word);
    off_t vertex = vertex_at(source);
    lock(&locks[source].lock);
    u64 degree = pm_get(vertex + DEGREE);
    off_t block = pm_get(vertex + LAST);
    if (degree % OF_BLOCK == 0) {
        off_t heap = heaps_at + thread * LINE, fresh = blocks_at + (thread * heap_blocks + pm_get(heap)) * LINE;
        must(pm_get(heap) < heap_blocks, BAD_HEAP, "heap is full");
        tx_set(tx, heap, pm_get(heap) + 1);
        tx_edit(tx, fresh)->fresh = 1;
        tx_set(tx, fresh, 0);
        tx_set(tx, block ? block : vertex + FIRST, fresh);
        tx_set(tx, vertex + LAST, fresh);
        block = fresh;
    }
    tx_set(tx, block + 8 + degree % OF_BLOCK * 8, word);
    tx_set(tx, vertex + DEGREE, degree + 1);
    tx_commit(tx);
    unlock(&locks[source].lock);
}

// ---- A vertex's edges in turn

typedef struct {
    u64 left, at;
    off_t block;
} edges_t;

static edges_t edges_from(u64 vertex) {
    return (edges_t){pm_get(vertex_at(vertex) + DEGREE), 0, pm_get(vertex_at(vertex) + FIRST)};
}

// Its next edge, 0: none.
static u64 next_edge(edges_t *edges) {
    if (!edges->left) return 0;
    if (edges->at == OF_BLOCK) {
        edges->block = pm_get(edges->block);
        edges->at = 0;
    }
    edges->left--;
    return pm_get(edges->block + 8 + 8 * edges->at++);
}

// ---- Kernel 2

static u64 greatest;

static u64 heaviest_of(u64 vertex, u64 weight) {
    u64 count = 0, word;
    for (edges_t list = edges_from(vertex); (word = next_edge(&list)) != 0;) count += weight_of(word) == weight;
    return count;
}

static void note_heaviest(tx_t *tx, u64 thread) {
    u64 mine = 0, word;
    for (u64 vertex = thread; vertex < vertices; vertex += threads)
        for (edges_t list = edges_from(vertex); (word = next_edge(&list)) != 0;)
            if (weight_of(word) > mine) mine = weight_of(word);
    u64 known = __atomic_load_n(&greatest, __ATOMIC_RELAXED);
    while (mine > known && !__atomic_compare_exchange_n(&greatest, &known, mine, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    barrier_wait(&after_phase);
    for (u64 vertex = thread; vertex < vertices; vertex += threads) {
        u64 count = heaviest_of(vertex, greatest);
        if (!count) continue;
        tx_set(tx, vertex_at(vertex) + HEAVY, count);
        tx_commit(tx);
    }
    barrier_wait(&after_phase);
}

// ---- Kernels 3 and 4: searches in breadth, on a thread's own arrays

typedef struct {
    u32 *queue, *level;
    u64 *paths, *score;
} search_t;

static u64 *reached, *betweenness;

// Breadth first from a vertex, `levels` deep; the level of a vertex is 1 + its distance. How many are reached.
static u64 breadth(search_t *search, u64 from, u64 levels) {
    for (u64 vertex = 0; vertex < vertices; vertex++) search->level[vertex] = 0, search->paths[vertex] = 0;
    u64 head = 0, tail = 0, word;
    search->level[from] = 1;
    search->paths[from] = 1;
    search->queue[tail++] = (u32)from;
    while (head < tail) {
        u32 vertex = search->queue[head++], level = search->level[vertex];
        if (level > levels) break;
        for (edges_t list = edges_from(vertex); (word = next_edge(&list)) != 0;) {
            u64 target = target_of(word);
            if (!search->level[target]) {
                search->level[target] = level + 1;
                search->queue[tail++] = (u32)target;
            }
            if (search->level[target] == level + 1) search->paths[target] += search->paths[vertex];
        }
    }
    return tail;
}

static void extract_subgraphs(search_t *search, u64 thread) {
    u64 number = 0, word;
    for (u64 vertex = 0; vertex < vertices; vertex++) {
        if (!pm_get(vertex_at(vertex) + HEAVY)) continue;
        for (edges_t list = edges_from(vertex); (word = next_edge(&list)) != 0;)
            if (weight_of(word) == greatest && number++ % threads == thread)
                reached[thread * 8] += breadth(search, target_of(word), depth);
    }
}

static void add_betweenness(search_t *search, u64 thread) {
    for (u64 i = thread; i < sources; i += threads) {
        u64 from = mix(16 * seed + 8, i) % vertices, count = breadth(search, from, vertices), word;
        u64 scores = 0, distances = 0, used = 0;
        for (u64 vertex = 0; vertex < vertices; vertex++) search->score[vertex] = 0;
        while (count--) {
            u64 vertex = search->queue[count], score = 0;
            for (edges_t list = edges_from(vertex); (word = next_edge(&list)) != 0;) {
                u64 target = target_of(word);
                if (search->level[target] != search->level[vertex] + 1) continue;
                score += search->paths[vertex] * (ONE + search->score[target]) / search->paths[target];
                used++;
            }
            search->score[vertex] = score;
            scores += score;
            distances += (search->level[vertex] - 1) * ONE;
            if (vertex != from) betweenness[thread * 8] += score;
        }
        // Dependencies of a source sum to its distances; a division loses less than 1, at most once for each edge and level.
        must(scores <= distances && scores + used * vertices >= distances, WRONG_SCORE, "betweenness");
    }
}

static void work(u64 thread) {
    tx_t *tx = tx_new(thread);
    search_t search = {alloc(4 * vertices), alloc(4 * vertices), alloc(8 * vertices), alloc(8 * vertices)};
    for (u64 number = thread; number < edges; number += threads) add_edge(tx, thread, number);
    pm_dfence();
    barrier_wait(&after_phase);
    note_heaviest(tx, thread);
    extract_subgraphs(&search, thread);
    add_betweenness(&search, thread);
    pm_dfence();
}

// ---- Checks

// Checks all of the graph. How many transactions there were.
static u64 verify(void) {
    u8 *there = alloc(edges + 1), *met = alloc(threads * heap_blocks + 1);
    u64 committed = 0, found = 0, most = 0;
    int whole = 1;
    for (u64 thread = 0; thread < threads; thread++) {
        u64 done = log_of(thread)->committed, mine = share(edges, thread);
        committed += done;
        whole &= done >= mine;
        for (u64 i = 0; i < mine && i < done; i++) there[thread + i * threads] = 1, found++;
    }
    for (u64 vertex = 0; vertex < vertices; vertex++) {
        u64 degree = pm_get(vertex_at(vertex) + DEGREE), last = 0;
        off_t block = pm_get(vertex_at(vertex) + FIRST);
        must(degree <= edges, WRONG_DEGREE, "degree");
        for (u64 i = 0; i < degree; i++) {
            if (i % OF_BLOCK == 0) {
                u64 number = (block - blocks_at) / LINE;
                must(block >= blocks_at && block % LINE == 0 && number < threads * heap_blocks, BAD_HEAP, "block");
                must(number % heap_blocks < pm_get(heaps_at + number / heap_blocks * LINE), BAD_HEAP, "block not given out");
                must(!met[number]++, BAD_HEAP, "block is met twice");
                last = block;
            }
            u64 word = pm_get(block + 8 + i % OF_BLOCK * 8), number = (word >> 40) - 1, right;
            must(number < edges && there[number], WRONG_SET, "edge that must not be there");
            there[number] = 0;
            found--;
            must(edge_of(number, &right) == vertex, WRONG_VERTEX, "edge of another vertex");
            must(word == right, WRONG_VALUE, "torn edge");
            if (weight_of(word) > most) most = weight_of(word);
            if (i % OF_BLOCK == OF_BLOCK - 1) block = pm_get(block);
        }
        must(pm_get(vertex_at(vertex) + LAST) == last, WRONG_DEGREE, "last block");
        must(degree == 0 || pm_get(last) == 0, WRONG_DEGREE, "block after the last");
    }
    must(found == 0, WRONG_SET, "edge that is missing");
    for (u64 thread = 0; thread < threads; thread++)
        for (u64 i = 0; i < pm_get(heaps_at + thread * LINE); i++)
            must(i < heap_blocks && met[thread * heap_blocks + i], BAD_HEAP, "block is lost");
    // Heaviest edges are noted after all edges are there, a transaction a vertex.
    for (u64 thread = 0; thread < threads; thread++) {
        u64 done = log_of(thread)->committed, mine = share(edges, thread), noted = 0;
        for (u64 vertex = thread; vertex < vertices; vertex += threads) {
            u64 note = pm_get(vertex_at(vertex) + HEAVY);
            must(!note || (whole && note == heaviest_of(vertex, most)), WRONG_NOTE, "note of heaviest edges");
            noted += note != 0;
        }
        must(done < mine ? noted == 0 : noted == done - mine, BAD_COUNT, "count of transactions");
    }
    return committed;
}

int main(int argc, char **argv) {
    int recover = arg_flag(argc, argv, "--recover");
    if (recover) {
        if (!pool_open(MAGIC)) {
            print_text("ssca2: no pool\n");
            return 0;
        }
        threads = pool->threads;
        scale = pool->parameters[0], edges = pool->parameters[1], seed = pool->parameters[2];
        must(scale <= MOST_SCALE && layout() <= pool->bytes, BAD_HEADER, "layout");
        pool_recover();
        u64 committed = verify();
        print_line("ssca2:", committed);
        return 0;
    }
    threads = arg_u64(argc, argv, "--threads", 1);
    scale = arg_u64(argc, argv, "--scale", 6);
    edges = arg_u64(argc, argv, "--edges", 384);
    depth = arg_u64(argc, argv, "--depth", 3);
    sources = arg_u64(argc, argv, "--sources", 4);
    seed = arg_u64(argc, argv, "--seed", 1);
    check(threads && edges && edges < MOST_EDGES, "--threads and --edges are at least 1, --edges below 2^24");
    check(scale <= MOST_SCALE, "--scale is at most 20");
    u64 parameters[] = {scale, edges, seed};
    pool_create(layout(), threads, parameters, 3);
    // An empty graph is zeros.
    pool_ready(MAGIC);
    locks = alloc(vertices * sizeof *locks);
    reached = alloc(threads * LINE);
    betweenness = alloc(threads * LINE);
    barrier_init(&after_phase, (u32)threads);
    threads_run((u32)threads, work);
    u64 committed = verify(), vertices_reached = 0, score = 0;
    for (u64 thread = 0; thread < threads; thread++) {
        vertices_reached += reached[thread * 8];
        score += betweenness[thread * 8];
    }
    print_text("ssca2: ");
    print_u64(edges);
    print_text(" edges, ");
    print_u64(committed - edges);
    print_text(" vertices of heaviest edges, ");
    print_u64(vertices_reached);
    print_text(" vertices in subgraphs, betweenness ");
    print_u64(score / ONE);
    print_char('\n');
    return 0;
}
