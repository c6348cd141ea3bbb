//! The streams of requests that a controller is compared by, as coordinates in a channel's devices.
//!
//! Source: the script that wrote the streams for Ramulator 2.1 and DRAMsim3; the values in `reference.csv`
//! are of the very same requests. Hence random streams take Python's generator: the Mersenne Twister
//! MT19937 (Matsumoto, Nishimura 1998) as `random.Random(1)` seeds it, with its way to numbers below a bound.
//! Invariant: a stream is a function of its name, the device's shape and the number of requests. Not here:
//! addresses, and when a request is sent. All requests go to one rank, or one pseudo channel.

/// Rows of a bank that the streams use.
pub const ROWS: u32 = 512;

/// Where one request goes, in units of the device's atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamAccess {
    /// It writes.
    pub write: bool,
    /// Bank group.
    pub group: u32,
    /// Bank in its group.
    pub bank: u32,
    /// Row of the bank, below [`ROWS`].
    pub row: u32,
    /// Atom of the row.
    pub column: u32,
}

/// What a rank or a pseudo channel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankShape {
    /// Bank groups.
    pub groups: u32,
    /// Banks of a group.
    pub banks: u32,
    /// Atoms of a row.
    pub columns: u32,
}

/// The order of a stream's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamOrder {
    /// All of a row, then the same row of the next bank: neighbours are in one bank group.
    ColumnFirst,
    /// Neighbours are in different bank groups.
    GroupFirst,
    /// One row of one bank.
    OneRow,
    /// Another row of one bank with each request.
    OneBank,
    /// Another bank with each request, and another row with each round.
    EveryBank,
    /// The same within one bank group.
    OneGroup,
    /// Any group, bank, row and column.
    Random,
}

/// Which way requests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// All of them read.
    Reads,
    /// All of them write.
    Writes,
    /// Half of them write: every second one, or by chance where the order is random.
    Mixed,
}

/// A stream of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// As typed, and as `reference.csv` has it.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Which way its requests go.
    pub traffic: Traffic,
    order: StreamOrder,
}

const fn stream(name: &'static str, title: &'static str, order: StreamOrder, traffic: Traffic) -> Stream {
    Stream { name, title, traffic, order }
}

/// All streams, in the order of the table.
pub const STREAMS: [Stream; 12] = [
    stream("column-reads", "reads, column first", StreamOrder::ColumnFirst, Traffic::Reads),
    stream("group-reads", "reads, bank group first", StreamOrder::GroupFirst, Traffic::Reads),
    stream("group-writes", "writes, bank group first", StreamOrder::GroupFirst, Traffic::Writes),
    stream("column-mixed", "reads and writes in turn, column first", StreamOrder::ColumnFirst, Traffic::Mixed),
    stream("group-mixed", "reads and writes in turn, bank group first", StreamOrder::GroupFirst, Traffic::Mixed),
    stream("one-row", "reads of one row", StreamOrder::OneRow, Traffic::Reads),
    stream("one-bank", "reads of one bank, another row each", StreamOrder::OneBank, Traffic::Reads),
    stream("every-bank", "reads of another bank and row each", StreamOrder::EveryBank, Traffic::Reads),
    stream("one-group", "reads of one bank group, another bank and row each", StreamOrder::OneGroup, Traffic::Reads),
    stream("random-reads", "random reads", StreamOrder::Random, Traffic::Reads),
    stream("random-writes", "random writes", StreamOrder::Random, Traffic::Writes),
    stream("random-mixed", "random, half of them writes", StreamOrder::Random, Traffic::Mixed),
];

impl Stream {
    /// Addresses follow from a generator of random numbers.
    pub fn is_random(&self) -> bool {
        self.order == StreamOrder::Random
    }

    /// The first `count` requests of the stream on a device of this shape.
    pub fn accesses(&self, shape: RankShape, count: u32) -> Vec<StreamAccess> {
        let RankShape { groups, banks, columns } = shape;
        let mut random = PythonRandom::new(1);
        let access = |i: u32| {
            // `rest` counts what is left of the request's number when its faster coordinates are taken.
            let at = |group, bank, rest: u32, column| (group, bank, rest % ROWS, column);
            let (group, bank, row, column) = match self.order {
                StreamOrder::ColumnFirst => {
                    let filled = i / columns;
                    at(filled % groups, filled / groups % banks, filled / (groups * banks), i % columns)
                }
                StreamOrder::GroupFirst => {
                    let round = i / (groups * banks);
                    at(i % groups, i / groups % banks, round / columns, round % columns)
                }
                StreamOrder::OneRow => at(0, 0, 0, i % columns),
                StreamOrder::OneBank => at(0, 0, i, 0),
                StreamOrder::EveryBank => at(i % groups, i / groups % banks, i / (groups * banks), 0),
                StreamOrder::OneGroup => at(0, i % banks, i / banks, 0),
                StreamOrder::Random => {
                    let write = self.traffic == Traffic::Mixed && random.unit() < 0.5;
                    let write = write || self.traffic == Traffic::Writes;
                    let [group, bank, row, column] = [groups, banks, ROWS, columns].map(|bound| random.below(bound));
                    return StreamAccess { write, group, bank, row, column };
                }
            };
            let write = match self.traffic {
                Traffic::Reads => false,
                Traffic::Writes => true,
                Traffic::Mixed => i % 2 == 1,
            };
            StreamAccess { write, group, bank, row, column }
        };
        (0..count).map(access).collect()
    }
}

const WORDS: usize = 624;

/// Random numbers as Python's `random.Random` has them.
#[derive(Debug)]
struct PythonRandom {
    state: [u32; WORDS],
    next: usize,
}

impl PythonRandom {
    /// Seeded with a number of one word.
    fn new(seed: u32) -> Self {
        let mut state = [0u32; WORDS];
        state[0] = 19_650_218;
        let mixed = |state: &[u32; WORDS], i: usize| state[i - 1] ^ state[i - 1] >> 30;
        for i in 1..WORDS {
            state[i] = mixed(&state, i).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        // `init_by_array` of the reference code, with a key of one word. It goes round the state once and a
        // word further: the last step finds index 1 again.
        let mut i = 1;
        let advance = |state: &mut [u32; WORDS], i: &mut usize| {
            *i += 1;
            if *i == WORDS {
                state[0] = state[WORDS - 1];
                *i = 1;
            }
        };
        for _ in 0..WORDS {
            state[i] = (state[i] ^ mixed(&state, i).wrapping_mul(1_664_525)).wrapping_add(seed);
            advance(&mut state, &mut i);
        }
        for _ in 1..WORDS {
            state[i] = (state[i] ^ mixed(&state, i).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            advance(&mut state, &mut i);
        }
        state[0] = 0x8000_0000;
        PythonRandom { state, next: WORDS }
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            for i in 0..WORDS {
                let joined = self.state[i] & 0x8000_0000 | self.state[(i + 1) % WORDS] & 0x7fff_ffff;
                let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % WORDS] ^ joined >> 1 ^ twist;
            }
            self.next = 0;
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    /// `random()`: at least 0, below 1.
    fn unit(&mut self) -> f64 {
        let (high, low) = (u64::from(self.word() >> 5), u64::from(self.word() >> 6));
        (high << 26 | low) as f64 / (1u64 << 53) as f64
    }

    /// `randrange(bound)`: as many bits as the bound has, again until they are below it.
    fn below(&mut self, bound: u32) -> u32 {
        loop {
            let number = self.word() >> bound.leading_zeros();
            if number < bound {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, last of 20,000 requests, and the digest of all, on DDR4 (rows of 128 atoms) and HBM2 (of 32).
    const WRITTEN: [(&str, &str, [u64; 2]); 12] = [
        ("column-reads", "R 0 3 9 31", [0x95e5_c551_75f0_5331, 0xb9b5_ac71_e194_d9d9]),
        ("group-reads", "R 3 3 9 97", [0x9df7_fdc3_3c5b_4afd, 0x1e2d_6d81_9b49_3705]),
        ("group-writes", "W 3 3 9 97", [0xe4bb_646c_efb9_4e4d, 0x7266_1796_22a7_a845]),
        ("column-mixed", "W 0 3 9 31", [0xbfad_7437_ea79_8673, 0xfc3f_f1ca_caeb_87db]),
        ("group-mixed", "W 3 3 9 97", [0xe7ed_35d7_e739_658d, 0x1d27_da99_b550_4ed5]),
        ("one-row", "R 0 0 0 31", [0xb2d1_7796_c82d_fdf1, 0x3470_4d0d_ca03_b839]),
        ("one-bank", "R 0 0 31 0", [0x7206_6728_63b8_f493, 0x7206_6728_63b8_f493]),
        ("every-bank", "R 3 3 225 0", [0xcbc5_996d_d197_ca6d, 0xcbc5_996d_d197_ca6d]),
        ("one-group", "R 0 3 391 0", [0xc38a_362b_7e3a_4725, 0xc38a_362b_7e3a_4725]),
        ("random-reads", "R 3 3 415 34", [0x4fe8_2560_df7f_3692, 0xa232_a895_5988_a608]),
        ("random-writes", "W 3 3 415 34", [0xab3e_e38d_10a2_8e36, 0xd91b_bf79_d99a_f42a]),
        ("random-mixed", "R 0 1 185 110", [0x3fc8_b87d_ee7a_81a9, 0x4a2e_2772_e843_1777]),
    ];

    fn line(access: &StreamAccess) -> String {
        let StreamAccess { write, group, bank, row, column } = access;
        format!("{} {group} {bank} {row} {column}", if *write { 'W' } else { 'R' })
    }

    #[test]
    fn streams_are_those_that_the_references_were_given() {
        // FNV-1a over the lines of the script's files.
        let digest = |accesses: &[StreamAccess]| {
            let lines: String = accesses.iter().map(|access| line(access) + "\n").collect();
            let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            lines.bytes().fold(0xcbf2_9ce4_8422_2325, add)
        };
        for (stream, (name, last, digests)) in STREAMS.iter().zip(WRITTEN) {
            assert_eq!(stream.name, name);
            let made = [128, 32].map(|columns| stream.accesses(RankShape { groups: 4, banks: 4, columns }, 20_000));
            assert_eq!(line(&made[0][19_999]), last, "{name}");
            assert_eq!(made.map(|accesses| digest(&accesses)), digests, "{name}");
        }
    }

    #[test]
    fn random_numbers_are_those_of_python() {
        let mut random = PythonRandom::new(1);
        assert_eq!([0; 3].map(|_| random.word()), [577_090_037, 2_444_712_010, 3_639_700_191]);
        assert_eq!(random.unit(), 0.802_265_061_168_183_5);
        assert_eq!([512, 4].map(|bound| random.below(bound)), [64, 2]);
        (0..2000).for_each(|_| _ = random.word());
        assert_eq!(random.word(), 2_705_941_237);
    }
}
