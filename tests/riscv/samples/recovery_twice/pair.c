// Two words that change together, each on a line of its own, under an undo log. --recover undoes a change that was
// under way. With --early it gives the log up before it has undone, which is wrong only where power fails again.
// Compiled by workloads/compile_riscv.sh.
//
//   --changes 3 [--recover [--early]]
#include "cpu_rt.h"
#include "pm.h"

typedef struct {
    u64 value;
    u64 unused[7];
} line_t;

typedef struct {
    line_t valid, old, a, b;
} pair_t;

static void persist(line_t *line, u64 value) {
    line->value = value;
    pm_clean(line);
    pm_dfence();
    pm_ofence();
}

int main(int argc, char **argv) {
    u64 changes = arg_u64(argc, argv, "--changes", 3);
    pair_t *pair = pm_map(sizeof(pair_t));
    if (!arg_flag(argc, argv, "--recover")) {
        for (u64 change = 1; change <= changes; change++) {
            persist(&pair->old, change - 1);
            persist(&pair->valid, 1);
            persist(&pair->a, change);
            persist(&pair->b, change);
            persist(&pair->valid, 0);
            pm_op();
        }
    } else if (pair->valid.value) {
        u64 old = pair->old.value;
        if (arg_flag(argc, argv, "--early")) persist(&pair->valid, 0);
        persist(&pair->a, old);
        persist(&pair->b, old);
        persist(&pair->valid, 0);
    }
    check(pair->a.value == pair->b.value, "both words are of one change");
    return 0;
}
