// A travel agency, as vacation of STAMP has it: tables of cars, flights, rooms and customers, in which clients look for the dearest
// offers that are free and reserve them, remove customers with what they reserved, and add and take away offers. The
// tables are trees (STAMP's are red-black trees, these are treaps: fewer cases), cut into 32 parts by a hash of the key, each under a
// lock; STAMP's are whole, under transactions.
//
//   --relations 100 --tasks 100 --contention low|high --threads 1 --seed 1
//
// Low and high contention are STAMP's: up to 2 queries a task among 90 % of the relations, 98 % of tasks reserve; up to 4
// among 60 %, 90 %. (0 and 1 stand for these words, too.)
//
// A query and its reservation are two critical sections: an offer may be gone between them, and then is not reserved. Which are
// depends on the order of threads, so that it is checked, and not printed: what offers say is used is what customers
// hold, offers and reservations are those that there were at first, and more, and less, by the threads' own books.
#include "cpu_rt.h"

enum { CAR, FLIGHT, ROOM, KINDS, CUSTOMER = KINDS, TABLES, PARTS = 32, CHUNK = 64 };

typedef struct booking {
    u64 kind, key, price;
    struct booking *next;
} booking_t;

// A line: an offer, or a customer with what was reserved.
typedef struct node {
    u64 key, priority;
    struct node *left, *right;
    u64 price, total, used;
    booking_t *bookings;
} node_t;

// A line.
typedef struct {
    lock_t lock;
    node_t *root;
    u64 unused[6];
} part_t;

// Memory and books of a thread.
typedef struct {
    node_t *nodes;
    booking_t *bookings;
    u64 reserved, released;
    u64 capacity[KINDS];
    u64 done[3], sum;
    u64 unused[5];
} client_t;

static u64 relations, tasks, seed, threads, most_queries, query_range, percent_user;
static part_t parts[TABLES][PARTS];
static client_t *clients;
static barrier_t filled;

static part_t *part_of(u64 table, u64 key) { return &parts[table][mix(table, key) % PARTS]; }

static node_t *new_node(client_t *client) {
    if (!client->nodes) {
        node_t *chunk = alloc(CHUNK * sizeof *chunk);
        for (u64 i = 0; i < CHUNK; i++) chunk[i].left = client->nodes, client->nodes = &chunk[i];
    }
    node_t *node = client->nodes;
    client->nodes = node->left;
    return node;
}

static booking_t *new_booking(client_t *client) {
    if (!client->bookings) {
        booking_t *chunk = alloc(CHUNK * sizeof *chunk);
        for (u64 i = 0; i < CHUNK; i++) chunk[i].next = client->bookings, client->bookings = &chunk[i];
    }
    booking_t *booking = client->bookings;
    client->bookings = booking->next;
    return booking;
}

// ---- A part of a table, whose lock is held

static node_t **link_to(part_t *part, u64 key) {
    node_t **link = &part->root;
    while (*link && (*link)->key != key) link = key < (*link)->key ? &(*link)->left : &(*link)->right;
    return link;
}

static node_t *insert(client_t *client, part_t *part, u64 key) {
    node_t *node = new_node(client), **link = &part->root, *rest;
    *node = (node_t){.key = key, .priority = mix(key, 1)};
    while (*link && (*link)->priority > node->priority) link = key < (*link)->key ? &(*link)->left : &(*link)->right;
    // What is below is split: smaller keys to the left, greater ones to the right.
    rest = *link;
    *link = node;
    node_t **left = &node->left, **right = &node->right;
    while (rest) {
        if (rest->key < key) *left = rest, left = &rest->right, rest = *left;
        else *right = rest, right = &rest->left, rest = *right;
    }
    *left = *right = 0;
    return node;
}

static void erase(client_t *client, node_t **link) {
    node_t *node = *link, *left = node->left, *right = node->right;
    while (left && right) {
        if (left->priority > right->priority) *link = left, link = &left->right, left = *link;
        else *link = right, link = &right->left, right = *link;
    }
    *link = left ? left : right;
    node->left = client->nodes;
    client->nodes = node;
}

// ---- Tasks

// Adds to an offer, or takes away what is free; an offer of nothing is removed.
static void change_offer(client_t *client, u64 kind, u64 key, u64 price, int adds) {
    part_t *part = part_of(kind, key);
    lock(&part->lock);
    node_t **link = link_to(part, key), *offer = *link;
    if (adds) {
        if (!offer) offer = insert(client, part, key);
        offer->price = price;
        offer->total += 100;
        client->capacity[kind] += 100;
    } else if (offer && offer->total - offer->used >= 100) {
        offer->total -= 100;
        client->capacity[kind] -= 100;
        if (!offer->total) erase(client, link);
    }
    unlock(&part->lock);
}

static void reserve(client_t *client, u64 *random) {
    u64 queries = 1 + random_next(random) % most_queries, best[KINDS] = {0, 0, 0}, found[KINDS] = {0, 0, 0};
    u64 who = random_next(random) % query_range;
    for (u64 i = 0; i < queries; i++) {
        u64 kind = random_next(random) % KINDS, key = random_next(random) % query_range;
        part_t *part = part_of(kind, key);
        lock(&part->lock);
        const node_t *offer = *link_to(part, key);
        if (offer && offer->used < offer->total && offer->price > best[kind]) best[kind] = offer->price, found[kind] = key;
        unlock(&part->lock);
        client->sum += mix(kind, key);
    }
    if (!best[CAR] && !best[FLIGHT] && !best[ROOM]) return;
    // The customer's lock before those of offers, of which one is held at a time.
    part_t *home = part_of(CUSTOMER, who);
    lock(&home->lock);
    node_t *customer = *link_to(home, who);
    if (!customer) customer = insert(client, home, who);
    for (u64 kind = 0; kind < KINDS; kind++) {
        if (!best[kind]) continue;
        part_t *part = part_of(kind, found[kind]);
        lock(&part->lock);
        node_t *offer = *link_to(part, found[kind]);
        if (offer && offer->used < offer->total) {
            booking_t *booking = new_booking(client);
            *booking = (booking_t){kind, found[kind], offer->price, customer->bookings};
            customer->bookings = booking;
            customer->used++;
            offer->used++;
            client->reserved++;
        }
        unlock(&part->lock);
    }
    unlock(&home->lock);
}

static void remove_customer(client_t *client, u64 who) {
    part_t *home = part_of(CUSTOMER, who);
    lock(&home->lock);
    node_t **link = link_to(home, who), *customer = *link;
    for (booking_t *next, *booking = customer ? customer->bookings : 0; booking; booking = next) {
        part_t *part = part_of(booking->kind, booking->key);
        lock(&part->lock);
        (*link_to(part, booking->key))->used--;
        unlock(&part->lock);
        next = booking->next;
        booking->next = client->bookings;
        client->bookings = booking;
        client->released++;
    }
    if (customer) erase(client, link);
    unlock(&home->lock);
}

static void work(u64 thread) {
    client_t *client = &clients[thread];
    range_t mine = range_of(relations, thread, threads);
    for (u64 key = mine.first; key < mine.end; key++)
        for (u64 kind = 0; kind < KINDS; kind++) {
            u64 random = mix(seed + kind, key);
            for (u64 i = 0; i <= random % 5; i++) change_offer(client, kind, key, 50 + 10 * (random >> 8) % 50, 1);
        }
    barrier_wait(&filled);
    for (u64 task = thread; task < tasks; task += threads) {
        u64 random = mix(seed + 4, task) | 1, draw = random_next(&random) % 100;
        if (draw < percent_user) {
            reserve(client, &random);
            client->done[0]++;
        } else if (draw % 2) {
            remove_customer(client, random_next(&random) % query_range);
            client->done[1]++;
        } else {
            for (u64 i = 1 + random_next(&random) % most_queries; i; i--) {
                u64 kind = random_next(&random) % KINDS, key = random_next(&random) % query_range;
                u64 price = 50 + 10 * (random_next(&random) % 5);
                change_offer(client, kind, key, price, random_next(&random) >> 63);
            }
            client->done[2]++;
        }
    }
}

// ---- Checks

static u64 totals[TABLES], used[TABLES];

// Order of keys and priorities below a node; offers' totals, and what is used of them.
static void verify(const node_t *node, u64 table, u64 low, u64 high, u64 most) {
    if (!node) return;
    check(node->key >= low && node->key < high && node->priority <= most, "order of a tree");
    check(table == CUSTOMER || (node->total && node->used <= node->total), "what is used of an offer");
    totals[table] += node->total;
    used[table] += node->used;
    verify(node->left, table, low, node->key, node->priority);
    verify(node->right, table, node->key + 1, high, node->priority);
}

// Takes back what a customer and those below hold.
static void take_back(const node_t *node) {
    if (!node) return;
    for (const booking_t *booking = node->bookings; booking; booking = booking->next) {
        node_t *offer = *link_to(part_of(booking->kind, booking->key), booking->key);
        check(offer && offer->used--, "a reservation of an offer");
    }
    take_back(node->left);
    take_back(node->right);
}

static void set_contention(int argc, char **argv) {
    const char *chosen = "low";
    for (int i = 1; i + 1 < argc; i++)
        if (rt_same(argv[i], "--contention")) chosen = argv[i + 1];
    int high = rt_same(chosen, "high") || rt_same(chosen, "1");
    check(high || rt_same(chosen, "low") || rt_same(chosen, "0"), "--contention is low or high");
    most_queries = high ? 4 : 2;
    query_range = relations * (high ? 60 : 90) / 100;
    percent_user = high ? 90 : 98;
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    relations = arg_u64(argc, argv, "--relations", 100);
    tasks = arg_u64(argc, argv, "--tasks", 100);
    seed = 16 * arg_u64(argc, argv, "--seed", 1);
    check(threads && relations >= 10, "--threads is at least 1, --relations at least 10");
    set_contention(argc, argv);
    clients = alloc(threads * sizeof *clients);
    barrier_init(&filled, (u32)threads);
    threads_run((u32)threads, work);
    client_t all = {0};
    for (u64 i = 0; i < threads; i++) {
        all.reserved += clients[i].reserved;
        all.released += clients[i].released;
        all.sum += clients[i].sum;
        for (u64 kind = 0; kind < 3; kind++)
            all.capacity[kind] += clients[i].capacity[kind], all.done[kind] += clients[i].done[kind];
    }
    for (u64 table = 0; table < TABLES; table++)
        for (u64 i = 0; i < PARTS; i++) verify(parts[table][i].root, table, 0, ~0ul, ~0ul);
    for (u64 kind = 0; kind < KINDS; kind++) check(totals[kind] == all.capacity[kind], "offers that there are");
    check(used[CUSTOMER] == all.reserved - all.released, "reservations of customers");
    check(used[CAR] + used[FLIGHT] + used[ROOM] == used[CUSTOMER], "reservations of offers");
    for (u64 i = 0; i < PARTS; i++) take_back(parts[CUSTOMER][i].root);
    for (u64 table = 0; table < TABLES; table++) used[table] = 0;
    for (u64 kind = 0; kind < KINDS; kind++)
        for (u64 i = 0; i < PARTS; i++) verify(parts[kind][i].root, kind, 0, ~0ul, ~0ul);
    check(used[CAR] + used[FLIGHT] + used[ROOM] == 0, "reservations by offers and by customers");
    print_value("reserve: ", all.done[0]);
    print_value(" tasks reserve, ", all.done[1]);
    print_value(" remove, ", all.done[2]);
    print_value(" change offers, sum of queries ", all.sum);
    print_char('\n');
    return 0;
}
