// Transactions on a pool (pool.h) that is consistent after a power failure at any instant: an undo log for each thread.
// A transaction has three steps, each of which ends with a fence:
//
//     log      old values of the words that will change, as entries that validate themselves
//     data     new values
//     commit   the log's count of transactions, one word: all its entries are void from then on
//
// A transaction changes copies of lines in ordinary memory first (tx_set), so that all that it logs is known when it
// commits: three fences, however much it changes. Locks are held until tx_commit has returned, and a line belongs to one
// lock, so that two transactions under way change different lines, and the logs of threads may be applied in any order.
#pragma once

#include "pool.h"

// ---- Undo logs

enum { LOG_ENTRIES = 255, LOG_BYTES = (1 + LOG_ENTRIES) * LINE };

static inline off_t pool_area(u64 threads) { return up(LOGS_AT + threads * LOG_BYTES, 4096); }

typedef struct {
    // Line of the pool in the low bits, and above them which of its words were changed (bit 56 + word).
    u64 place;
    // Of sequence, generation, number of the entry, and all of it.
    u64 check;
    // What these words were, the lowest first.
    u64 old[6];
} log_entry_t;

typedef struct {
    // Transactions that were committed: the number of the one under way.
    u64 committed;
    // Recoveries: entries of a transaction that was rolled back are void afterwards.
    u64 generation;
    u64 unused[6];
    log_entry_t entries[LOG_ENTRIES];
} undo_log_t;

static inline undo_log_t *log_of(u64 thread) { return (undo_log_t *)((u8 *)pool + LOGS_AT + thread * LOG_BYTES); }

static inline u64 entry_check(const undo_log_t *log, u64 number, u64 place, const u64 *old) {
    u64 check = mix(log->committed, log->generation) ^ number;
    for (int i = -1; i < 6; i++) {
        check = (check ^ (i < 0 ? place : old[i])) * 0x9e3779b97f4a7c15ul;
        check ^= check >> 32;
    }
    return check;
}

// Rolls the transaction under way back, youngest entry first. Entries are valid up to the first that is not: the fence
// between log and data lets no data be durable before.
static void undo_apply(undo_log_t *log) {
    u64 valid = 0;
    while (valid < LOG_ENTRIES) {
        const log_entry_t *entry = &log->entries[valid];
        if (entry->check != entry_check(log, valid, entry->place, entry->old)) break;
        valid++;
    }
    while (valid--) {
        const log_entry_t *entry = &log->entries[valid];
        off_t line = entry->place & ((1ul << 56) - 1);
        must(line % LINE == 0 && line >= LOGS_AT && line < pool->bytes, BAD_LOG, "place of a log entry");
        u64 next = 0;
        for (u64 word = 0; word < 8; word++)
            if (entry->place >> (56 + word) & 1) pm_put(line + 8 * word, entry->old[next++]);
        pm_clean((const u8 *)pool + line);
    }
    pm_ofence();
    ((volatile undo_log_t *)log)->generation = log->generation + 1;
    pm_clean(log);
    pm_ofence();
}

static inline void pool_recover(void) {
    for (u64 thread = 0; thread < pool->threads; thread++) undo_apply(log_of(thread));
    pm_dfence();
}

// ---- Transactions

enum { TX_LINES = 128, TX_SLOTS = 256 };

typedef struct {
    off_t at;
    // Its old contents need not be logged: nothing refers to it.
    u8 fresh;
    u8 slot;
    // Words that were set, by their bits.
    u8 changed;
    u8 unused[5];
    u64 words[8];
} tx_line_t;

typedef struct {
    undo_log_t *log;
    u32 count;
    u32 unused;
    // 1 + index of the line with this hash, 0: none.
    u8 slots[TX_SLOTS];
    tx_line_t lines[TX_LINES];
} tx_t;

// The transactions of a thread.
static inline tx_t *tx_new(u64 thread) {
    tx_t *tx = alloc(sizeof(tx_t));
    tx->log = log_of(thread);
    return tx;
}

// Where a line is in the table, or where it has its place.
static inline u32 tx_slot(const tx_t *tx, off_t line) {
    u32 slot = (u32)((line / LINE * 0x9e3779b97f4a7c15ul) >> 56);
    while (tx->slots[slot] && tx->lines[tx->slots[slot] - 1].at != line) slot = (slot + 1) % TX_SLOTS;
    return slot;
}

static inline u64 tx_get(const tx_t *tx, off_t at) {
    if (tx->count) {
        u32 found = tx->slots[tx_slot(tx, at & ~63ul)];
        if (found) return tx->lines[found - 1].words[at / 8 % 8];
    }
    return pm_get(at);
}

static tx_line_t *tx_edit(tx_t *tx, off_t line) {
    u32 slot = tx_slot(tx, line);
    if (!tx->slots[slot]) {
        must(tx->count < TX_LINES, BAD_LOG, "lines of a transaction");
        tx_line_t *copy = &tx->lines[tx->count];
        copy->at = line;
        copy->fresh = copy->changed = 0;
        copy->slot = (u8)slot;
        for (u64 i = 0; i < 8; i++) copy->words[i] = pm_get(line + 8 * i);
        tx->slots[slot] = (u8)++tx->count;
    }
    return &tx->lines[tx->slots[slot] - 1];
}

static inline void tx_set(tx_t *tx, off_t at, u64 value) {
    tx_line_t *copy = tx_edit(tx, at & ~63ul);
    u64 word = at / 8 % 8;
    copy->changed |= (u8)((copy->words[word] != value) << word);
    copy->words[word] = value;
}

// Appends an entry of up to 6 words of a line.
static inline void tx_append(tx_t *tx, u64 number, off_t line, u64 mask) {
    must(number < LOG_ENTRIES, BAD_LOG, "entries of a transaction");
    volatile log_entry_t *entry = &tx->log->entries[number];
    u64 old[6] = {0, 0, 0, 0, 0, 0}, place = line | mask << 56, next = 0;
    for (u64 word = 0; word < 8; word++)
        if (mask >> word & 1) old[next++] = pm_get(line + 8 * word);
    entry->place = place;
    entry->check = entry_check(tx->log, number, place, old);
    for (int i = 0; i < 6; i++) entry->old[i] = old[i];
    pm_clean((const void *)entry);
}

// Makes all that was set durable at once, and counts the transaction.
static void tx_commit(tx_t *tx) {
    u64 entries = 0;
    pm_tx_begin();
    for (u32 i = 0; i < tx->count; i++) {
        tx_line_t *copy = &tx->lines[i];
        u64 low = copy->changed & 0x3f, high = copy->changed & 0xc0;
        tx->slots[copy->slot] = 0;
        if (low && !copy->fresh) tx_append(tx, entries++, copy->at, low);
        if (high && !copy->fresh) tx_append(tx, entries++, copy->at, high);
    }
#ifndef MISSING_FENCE
    pm_ofence();
#endif
    for (u32 i = 0; i < tx->count; i++) {
        tx_line_t *copy = &tx->lines[i];
        if (!copy->changed) continue;
        for (u64 word = 0; word < 8; word++)
            if (copy->changed >> word & 1) pm_put(copy->at + 8 * word, copy->words[word]);
        pm_clean((const u8 *)pool + copy->at);
    }
    pm_ofence();
    volatile undo_log_t *log = tx->log;
    log->committed = log->committed + 1;
    pm_clean(tx->log);
    pm_ofence();
    tx->count = 0;
    pm_tx_end();
    pm_op();
}
