// A quantum computer of --qubits, simulated as libquantum of SPEC CPU2006 does: a register is an array of basis states of
// 16 bytes, an amplitude and a label, and a gate is a sweep over all of it. Toffoli, CNOT and X flip a bit of the labels of a
// quarter, a half or all of the states; a controlled phase turns amplitudes.
//
// The circuit adds a to b in superposition over all a and b of --width bits (Cuccaro et al., A new quantum ripple-carry
// addition circuit, 2004), then applies the phases of a Fourier transform to b. In --rounds it adds and subtracts in turn.
//
//   --qubits 9 --width 2 --rounds 1
//
// Left out: gates that mix basis states (Hadamard, for which libquantum keeps a hash table), decoherence, measurement.
#include "cpu_rt.h"

typedef struct {
    float re, im;
    u64 state;
} node_t;

static u64 nodes, qubits, width, gates;
static node_t *reg;

static void x(u64 target) {
    for (u64 i = 0; i < nodes; i++) reg[i].state ^= 1ul << target;
    gates++;
}

static void cnot(u64 control, u64 target) {
    for (u64 i = 0; i < nodes; i++)
        if (reg[i].state >> control & 1) reg[i].state ^= 1ul << target;
    gates++;
}

static void toffoli(u64 one, u64 other, u64 target) {
    u64 mask = 1ul << one | 1ul << other;
    for (u64 i = 0; i < nodes; i++)
        if ((reg[i].state & mask) == mask) reg[i].state ^= 1ul << target;
    gates++;
}

typedef struct {
    double cosine, sine;
} turn_t;

// A turn by pi / 2^halvings, by half angles.
static turn_t turn_by(u64 halvings) {
    turn_t turn = {-1, 0};
    for (u64 i = 0; i < halvings; i++) {
        turn.sine = square_root((1 - turn.cosine) / 2);
        turn.cosine = square_root((1 + turn.cosine) / 2);
    }
    return turn;
}

// Turns amplitudes whose two bits are set.
static void phase(u64 one, u64 other, turn_t turn) {
    u64 mask = 1ul << one | 1ul << other;
    float c = (float)turn.cosine, s = (float)turn.sine;
    for (u64 i = 0; i < nodes; i++)
        if ((reg[i].state & mask) == mask) {
            float re = reg[i].re, im = reg[i].im;
            reg[i].re = re * c - im * s;
            reg[i].im = re * s + im * c;
        }
    gates++;
}

// ---- The adder: bit i of a, of b, and the carry that comes in, which is behind all others

static u64 a(u64 i) { return i; }
static u64 b(u64 i) { return width + i; }
static u64 carry(u64 i) { return i == 0 ? qubits : a(i - 1); }

static void majority(u64 i) {
    cnot(a(i), b(i));
    cnot(a(i), carry(i));
    toffoli(carry(i), b(i), a(i));
}

static void unmajority_and_add(u64 i) {
    toffoli(carry(i), b(i), a(i));
    cnot(a(i), carry(i));
    cnot(carry(i), b(i));
}

static void add(void) {
    for (u64 i = 0; i < width; i++) majority(i);
    for (u64 i = width; i-- > 0;) unmajority_and_add(i);
}

// The amplitude of what was basis state `i` at first, by what b was after each round: a turn for each two of its bits.
static turn_t expected(u64 i, u64 rounds, double even, const turn_t *turns) {
    turn_t all = {even, 0};
    for (u64 round = 0; round < rounds; round++) {
        u64 sum = round % 2 ? i >> width : (i >> width) + i;
        for (u64 one = 1; one < width; one++)
            for (u64 other = 0; other < one; other++) {
                if (!(sum >> one & sum >> other & 1)) continue;
                turn_t old = all, by = turns[one - other];
                all.cosine = old.cosine * by.cosine - old.sine * by.sine;
                all.sine = old.cosine * by.sine + old.sine * by.cosine;
            }
    }
    return all;
}

int main(int argc, char **argv) {
    qubits = arg_u64(argc, argv, "--qubits", 9);
    width = arg_u64(argc, argv, "--width", 2);
    u64 rounds = arg_u64(argc, argv, "--rounds", 1);
    check(width >= 1 && 2 * width <= qubits && qubits <= 28, "--width is at least 1, --qubits from twice that to 28");
    nodes = 1ul << qubits;
    reg = alloc(nodes * sizeof *reg);
    // All basis states, the same amplitude each: what Hadamard gates on every qubit leave.
    float even = (float)square_root(1 / (double)nodes);
    for (u64 i = 0; i < nodes; i++) reg[i].re = even, reg[i].state = i;
    // X before and behind, since b is counted down: the complement of (a + the complement of b) is b - a.
    for (u64 round = 0; round < rounds; round++) {
        int down = round % 2;
        for (u64 i = 0; down && i < width; i++) x(b(i));
        add();
        for (u64 i = 0; down && i < width; i++) x(b(i));
        for (u64 i = 0; i < width; i++)
            for (u64 j = 0; j < i; j++) phase(b(i), b(j), turn_by(i - j));
    }
    // Rounds add and subtract in turn: b + a is left after an odd number of them, b after an even one.
    u64 mask = (1ul << width) - 1, sum = 0;
    double norm = 0, close = 1e-4 * even;
    turn_t turns[32];
    for (u64 i = 0; i < width; i++) turns[i] = turn_by(i);
    for (u64 i = 0; i < nodes; i++) {
        u64 added = rounds % 2 ? (i >> width) + i : i >> width, right = (i & ~(mask << width)) | (added & mask) << width;
        check(reg[i].state == right, "sum in a basis state");
        turn_t amplitude = expected(i, rounds, even, turns);
        double re = reg[i].re, im = reg[i].im, off_re = re - amplitude.cosine, off_im = im - amplitude.sine;
        check(off_re < close && -off_re < close && off_im < close && -off_im < close, "amplitude");
        norm += re * re + im * im;
        sum += mix(bits_of(re) ^ reg[i].state, bits_of(im) + i);
    }
    check(norm > 0.9999 && norm < 1.0001, "norm");
    print_value("qsim: ", nodes);
    print_value(" basis states, ", gates);
    print_value(" gates, norm ", (u64)(norm * 1e9));
    print_value(" billionths, sum ", sum);
    print_char('\n');
    return 0;
}
