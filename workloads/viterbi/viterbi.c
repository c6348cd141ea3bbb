// Scores of the best alignments of protein sequences with a profile hidden Markov model, by Viterbi's algorithm, as hmmer of
// SPEC CPU2006 has it (P7Viterbi of HMMER 2): rows of match, insertion and deletion scores in integers of 1/1000 bit, a special
// row, all of them small and stored to over and over.
//
// The model is random. Each sequence is written by it: it begins and ends with random residues, and between them visits the
// states from first to last. So its score is known to be at least that of the way on which it was written; and the same
// recursion from the end to the beginning gives the same score.
//
//   --states 20 --sequences 4 --seed 1
#include "cpu_rt.h"

// No score, from which a sequence takes at most a few thousand a residue: far from the ends of the range of integers.
enum { RESIDUES = 20, WORST = -500000000, MOST_STATES = 20000 };

// Transitions from a state: match to match, ...; rows of scores.
enum { MM, MI, MD, IM, II, DM, DD, TRANSITIONS };

// Begin to a state and state to end are in the model; these are of the special states N, E, J and C.
static const int STAY = -300, N_BEGIN = -2300, E_END = -1000, E_AGAIN = -1000, J_BEGIN = -2300, C_DONE = -2300;

static u64 states, length;
static int *transition[TRANSITIONS], *enter, *leave, *match_score[RESIDUES], *insert_score[RESIDUES];
static int *match_row[2], *insert_row[2], *delete_row[2];
static u8 *sequence;

static int *row(void) { return alloc((states + 2) * sizeof(int)); }

static int most(int a, int b) { return a > b ? a : b; }

static void make_model(u64 seed) {
    for (int i = 0; i < TRANSITIONS; i++) transition[i] = row();
    enter = row(), leave = row();
    for (u64 k = 1; k <= states; k++) {
        static const int USUAL[TRANSITIONS] = {-20, -7000, -7500, -600, -1500, -500, -1700};
        for (u64 i = 0; i < TRANSITIONS; i++) transition[i][k] = USUAL[i] - (int)(mix(seed, 16 * k + i) % 500);
        enter[k] = k == 1 ? -200 : -6000 - (int)(mix(seed, 16 * k + 8) % 3000);
        leave[k] = k == states ? -100 : -6500 - (int)(mix(seed, 16 * k + 9) % 3000);
    }
    for (u64 residue = 0; residue < RESIDUES; residue++) {
        match_score[residue] = row(), insert_score[residue] = row();
        for (u64 k = 1; k <= states; k++) {
            match_score[residue][k] = (int)(mix(seed + 1, k * 32 + residue) % 4000) - 1500;
            insert_score[residue][k] = -(int)(mix(seed + 2, k * 32 + residue) % 400);
        }
    }
}

// Writes a sequence of the model. The score of how it was written.
static int write_sequence(u64 *random) {
    int score = N_BEGIN, before = 0;
    length = 0;
    u64 flank = random_next(random) % 8;
    for (u64 i = 0; i < flank; i++) sequence[length++] = (u8)(random_next(random) % RESIDUES), score += STAY;
    for (u64 k = 1; k <= states; k++) {
        // Deletions and insertions of one state; never at the ends, and no two in a row.
        u64 draw = random_next(random) >> 32;
        int deletes = before == MM && k > 1 && k < states && draw % 12 == 0, inserts = draw % 12 == 1 && k < states;
        score += k == 1 ? enter[1] : transition[deletes ? MD : before][k - 1];
        before = MM;
        if (deletes) {
            before = DM;
            continue;
        }
        // The best of three residues.
        u64 residue = draw % RESIDUES;
        for (int i = 0; i < 2; i++) {
            u64 other = (random_next(random) >> 32) % RESIDUES;
            if (match_score[other][k] > match_score[residue][k]) residue = other;
        }
        sequence[length++] = (u8)residue;
        score += match_score[residue][k];
        if (!inserts) continue;
        residue = (random_next(random) >> 32) % RESIDUES;
        sequence[length++] = (u8)residue;
        score += transition[MI][k] + insert_score[residue][k];
        before = IM;
    }
    flank = random_next(random) % 8;
    for (u64 i = 0; i < flank; i++) sequence[length++] = (u8)(random_next(random) % RESIDUES), score += STAY;
    return score + leave[states] + E_END + C_DONE;
}

static void clear(int at) {
    for (u64 k = 0; k <= states + 1; k++) match_row[at][k] = insert_row[at][k] = delete_row[at][k] = WORST;
}

static int forwards(void) {
    int n = 0, j = WORST, c = WORST, begin = N_BEGIN;
    clear(0), clear(1);
    for (u64 i = 0; i < length; i++) {
        const int *mp = match_row[i % 2], *ip = insert_row[i % 2], *dp = delete_row[i % 2];
        int *m = match_row[(i + 1) % 2], *in = insert_row[(i + 1) % 2], *d = delete_row[(i + 1) % 2], end = WORST;
        const int *ms = match_score[sequence[i]], *is = insert_score[sequence[i]];
        for (u64 k = 1; k <= states; k++) {
            int score = mp[k - 1] + transition[MM][k - 1];
            score = most(score, ip[k - 1] + transition[IM][k - 1]);
            score = most(score, dp[k - 1] + transition[DM][k - 1]);
            score = most(score, begin + enter[k]);
            m[k] = score + ms[k];
            d[k] = most(d[k - 1] + transition[DD][k - 1], m[k - 1] + transition[MD][k - 1]);
            in[k] = most(mp[k] + transition[MI][k], ip[k] + transition[II][k]) + is[k];
            end = most(end, m[k] + leave[k]);
        }
        n += STAY;
        j = most(j + STAY, end + E_AGAIN);
        c = most(c + STAY, end + E_END);
        begin = most(n + N_BEGIN, j + J_BEGIN);
    }
    return c + C_DONE;
}

// The best score of what comes behind a state once it has written its residue, from the last residue to the first.
static int backwards(void) {
    int n = WORST, j = WORST, c = C_DONE;
    clear(0), clear(1);
    for (u64 i = length; i <= length; i--) {
        const int *mp = match_row[(i + 1) % 2], *ip = insert_row[(i + 1) % 2];
        int *m = match_row[i % 2], *in = insert_row[i % 2], *d = delete_row[i % 2], begin = WORST;
        int more = i < length;
        const int *ms = match_score[more ? sequence[i] : 0], *is = insert_score[more ? sequence[i] : 0];
        for (u64 k = 1; more && k <= states; k++) begin = most(begin, enter[k] + ms[k] + mp[k]);
        if (more) c += STAY;
        j = most(j + STAY, begin + J_BEGIN);
        n = most(n + STAY, begin + N_BEGIN);
        int end = most(c + E_END, j + E_AGAIN);
        d[states + 1] = WORST;
        for (u64 k = states; k >= 1; k--) {
            int next = k < states && more ? ms[k + 1] + mp[k + 1] : WORST, stay = more ? is[k] + ip[k] : WORST;
            d[k] = most(transition[DM][k] + next, transition[DD][k] + d[k + 1]);
            in[k] = most(transition[IM][k] + next, transition[II][k] + stay);
            int score = most(leave[k] + end, transition[MM][k] + next);
            m[k] = most(most(score, transition[MI][k] + stay), transition[MD][k] + d[k + 1]);
        }
    }
    return n;
}

int main(int argc, char **argv) {
    states = arg_u64(argc, argv, "--states", 20);
    u64 sequences = arg_u64(argc, argv, "--sequences", 4), seed = arg_u64(argc, argv, "--seed", 1);
    check(states >= 2 && states <= MOST_STATES && sequences, "--states is from 2 to 20000, --sequences at least 1");
    make_model(seed);
    for (int i = 0; i < 2; i++) match_row[i] = row(), insert_row[i] = row(), delete_row[i] = row();
    sequence = alloc(2 * states + 16);
    u64 random = mix(seed, 1) | 1, residues = 0, sum = 0;
    i64 total = 0;
    for (u64 i = 0; i < sequences; i++) {
        int written = write_sequence(&random), score = forwards();
        check(score >= written, "no score is below that of the way it was written");
        check(backwards() == score, "score from the end");
        residues += length;
        total += score;
        sum += mix(i, (u64)(i64)score);
    }
    print_value("viterbi: ", sequences);
    print_value(" sequences, ", residues);
    print_text(" residues, score ");
    print_i64(total);
    print_value(" thousandths of bits, sum ", sum);
    print_char('\n');
    return 0;
}
