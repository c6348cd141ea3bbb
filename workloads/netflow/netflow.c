// A flow of least cost through a network, by the network simplex method, as mcf of SPEC CPU2006 and CPU2017 has it: a
// spanning tree of nodes that point to each other, and a long array of arcs that are priced through their ends' potentials.
// Pointers are chased; few words are stored to.
//
// Half of --nodes send or receive. Arcs have random ends, costs and capacities; a ring of dear arcs makes every demand feasible.
// An arc enters from a block of --block arcs (mcf's list of candidates, with less to keep); the leaving arc keeps the tree
// strongly feasible (Cunningham, A network simplex method, 1976), so that it ends.
//
//   --nodes 48 --arcs 200 --block 50 --seed 1
//
// The result is proven: what flows in and out of each node is its supply, flows are within capacities, and reduced costs
// of arcs agree with their flows (complementary slackness).
#include "cpu_rt.h"

typedef struct node node_t;
typedef struct arc arc_t;

// A line. Children are a list with both directions.
struct node {
    i64 potential, supply;
    node_t *parent, *child, *next, *previous;
    arc_t *basic;
    i64 depth;
};

enum { IN_TREE = 0, AT_LOWER = 1, AT_UPPER = -1 };

struct arc {
    node_t *tail, *head;
    i64 cost, flow, capacity, state;
};

static const i64 MOST = 1l << 40;
static u64 count, arc_count, block, pivots;
static node_t *nodes, *root;
static arc_t *arcs;

static void set_arc(arc_t *arc, node_t *tail, node_t *head, i64 cost, i64 capacity) {
    *arc = (arc_t){tail, head, cost, 0, capacity, AT_LOWER};
}

static void adopt(node_t *parent, node_t *child) {
    child->parent = parent;
    child->previous = 0;
    child->next = parent->child;
    if (parent->child) parent->child->previous = child;
    parent->child = child;
}

static void abandon(node_t *child) {
    if (child->previous) child->previous->next = child->next;
    else child->parent->child = child->next;
    if (child->next) child->next->previous = child->previous;
}

static void generate(u64 seed) {
    nodes = alloc((count + 1) * sizeof *nodes);
    arcs = alloc((arc_count + count) * sizeof *arcs);
    root = &nodes[count];
    i64 total = 0, dear = 4000;
    for (u64 i = 0; i + 3 < count; i += 4) {
        i64 supply = 1 + (i64)(mix(seed, i) % 20);
        nodes[i].supply = supply;
        nodes[mix(seed, i + 1) % (count / 4) * 4 + 2].supply -= supply;
        total += supply;
    }
    for (u64 i = 0; i < arc_count; i++) {
        u64 random = mix(seed + 1, i), tail = random % count, head = (tail + 1 + (random >> 20) % (count - 1)) % count;
        if (i < count) set_arc(&arcs[i], &nodes[i], &nodes[(i + 1) % count], dear, total);
        else set_arc(&arcs[i], &nodes[tail], &nodes[head], 1 + (i64)(random >> 40) % 1000, 1 + (i64)(random >> 52) % 30);
    }
    // The first tree: an arc between each node and the root, which costs more than any way around.
    for (u64 i = 0; i < count; i++) {
        arc_t *arc = &arcs[arc_count + i];
        node_t *node = &nodes[i];
        i64 supply = node->supply, cost = dear * (i64)count;
        if (supply >= 0) set_arc(arc, node, root, cost, MOST);
        else set_arc(arc, root, node, cost, MOST);
        arc->flow = supply < 0 ? -supply : supply;
        arc->state = IN_TREE;
        node->basic = arc;
        node->depth = 1;
        node->potential = supply >= 0 ? -cost : cost;
        adopt(root, node);
    }
}

static i64 reduced_cost(const arc_t *arc) { return arc->cost + arc->tail->potential - arc->head->potential; }

// The arc that gains most in the first block that has one, from where the last one ended. None: the flow is optimal.
static arc_t *price(void) {
    static u64 at;
    arc_t *best = 0;
    i64 least = 0;
    for (u64 i = 0, left = block; i < arc_count; i++) {
        arc_t *arc = &arcs[at];
        i64 gain = arc->state * reduced_cost(arc);
        if (gain < least) least = gain, best = arc;
        if (++at == arc_count) at = 0;
        if (--left == 0) {
            if (best) break;
            left = block;
        }
    }
    return best;
}

// What may still flow through a node's tree arc: towards its parent, or away from it.
static i64 room(const node_t *node, int upwards) {
    const arc_t *arc = node->basic;
    return (arc->tail == node) == upwards ? arc->capacity - arc->flow : arc->flow;
}

static void push(node_t *node, int upwards, i64 amount) {
    arc_t *arc = node->basic;
    arc->flow += (arc->tail == node) == upwards ? amount : -amount;
}

// Depth and potential of a node and all below it, in preorder.
static void refresh(node_t *top) {
    node_t *node = top;
    for (;;) {
        const arc_t *arc = node->basic;
        node->depth = node->parent->depth + 1;
        node->potential = arc->tail == node ? node->parent->potential - arc->cost : node->parent->potential + arc->cost;
        if (node->child) {
            node = node->child;
            continue;
        }
        while (node != top && !node->next) node = node->parent;
        if (node == top) return;
        node = node->next;
    }
}

static void pivot(arc_t *entering) {
    // The flow along the cycle goes through the entering arc from `first` to `second`.
    node_t *first = entering->state == AT_LOWER ? entering->tail : entering->head;
    node_t *second = entering->state == AT_LOWER ? entering->head : entering->tail;
    node_t *join = first, *other = second, *leaving = 0;
    while (join != other) {
        if (join->depth >= other->depth) join = join->parent;
        else other = other->parent;
    }
    i64 amount = entering->capacity;
    int on_first = 0;
    for (node_t *node = first; node != join; node = node->parent)
        if (room(node, 0) < amount) amount = room(node, 0), leaving = node, on_first = 1;
    for (node_t *node = second; node != join; node = node->parent)
        if (room(node, 1) <= amount) amount = room(node, 1), leaving = node, on_first = 0;
    check(amount < MOST, "a cycle without a bound");
    entering->flow += entering->state * amount;
    for (node_t *node = first; amount && node != join; node = node->parent) push(node, 0, amount);
    for (node_t *node = second; amount && node != join; node = node->parent) push(node, 1, amount);
    if (!leaving) {
        entering->state = -entering->state;
        return;
    }
    // What hung at the leaving arc hangs at the entering one: parents up to there are turned round.
    leaving->basic->state = leaving->basic->flow ? AT_UPPER : AT_LOWER;
    entering->state = IN_TREE;
    node_t *top = on_first ? first : second, *parent = on_first ? second : first, *end = leaving->parent;
    arc_t *basic = entering;
    for (node_t *node = top; node != end;) {
        node_t *above = node->parent;
        arc_t *old = node->basic;
        abandon(node);
        adopt(parent, node);
        node->basic = basic;
        basic = old;
        parent = node;
        node = above;
    }
    refresh(top);
}

int main(int argc, char **argv) {
    count = arg_u64(argc, argv, "--nodes", 48);
    arc_count = arg_u64(argc, argv, "--arcs", 200);
    block = arg_u64(argc, argv, "--block", 50);
    check(count >= 8 && arc_count > count && block, "--nodes is at least 8, --arcs more than that, --block at least 1");
    generate(arg_u64(argc, argv, "--seed", 1));
    for (arc_t *entering; (entering = price()) != 0; pivots++) pivot(entering);
    i64 cost = 0;
    u64 sum = 0;
    for (u64 i = 0; i < arc_count + count; i++) {
        const arc_t *arc = &arcs[i];
        i64 gain = reduced_cost(arc);
        check(arc->flow >= 0 && arc->flow <= arc->capacity, "flow within the capacity");
        check(i < arc_count || arc->flow == 0, "demand is met");
        check(i >= arc_count || gain >= 0 || arc->flow == arc->capacity, "an arc that gains is full");
        check(i >= arc_count || gain <= 0 || arc->flow == 0, "an arc that loses is empty");
        arc->tail->supply -= arc->flow;
        arc->head->supply += arc->flow;
        cost += arc->cost * arc->flow;
        sum += mix(i, (u64)arc->flow);
    }
    for (u64 i = 0; i <= count; i++) check(nodes[i].supply == 0, "conservation of flow");
    print_value("netflow: ", pivots);
    print_value(" pivots, cost ", (u64)cost);
    print_value(", sum ", sum);
    print_char('\n');
    return 0;
}
