//! Random kernels without races whose final memory does not depend on who comes first, as PTX and as a manifest.
//!
//! What a thread reads is its own, or somebody's from whom it has heard: by a barrier of the CTA, by a flag that an atomic
//! sets, under a lock, or as the last one to count itself. What depends on who comes first (a ticket, a place in a critical
//! section, who is last) never gets into a thread's value `%r1`, and where it says where to store, all store there what
//! one would. `%r1` goes through everything else, so that a wrong byte anywhere is seen at the end.

use std::fmt::Write as _;

use proptest::prelude::*;

/// Bytes of a thread's own: not lines or sectors, so that threads of several warps, CTAs and SMs share almost every line.
const OWN: u32 = 48;

/// What some lanes may do and others not.
#[derive(Debug, Clone)]
pub(crate) enum Leaf {
    Store {
        at: u32,
        bytes: u32,
    },
    Load {
        at: u32,
    },
    OwnAtomic {
        at: u32,
        used: bool,
    },
    SharedAtomic,
    Local {
        at: u32,
        load: bool,
    },
    /// Adds to, xors or raises one of four words.
    Sum {
        at: u32,
        used: bool,
    },
    /// Draws a number, and stores at its place.
    Ticket,
    /// Takes a lock, counts under it, and stores at the count.
    Lock {
        fence: bool,
    },
    Fence {
        cta: bool,
    },
}

/// How a flag is looked at: the last writes nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Poll {
    Load,
    Or,
    Cas,
}

/// What whole warps do.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Leaf(Leaf),
    /// By a bit of the thread's number.
    If {
        bit: u32,
        then: Vec<Leaf>,
        other: Vec<Leaf>,
    },
    /// So many turns; with `by_lane`, up to three more.
    Loop {
        turns: u32,
        by_lane: bool,
        bit: u32,
        body: Vec<Leaf>,
        some: Vec<Leaf>,
    },
    /// Values go to other threads of the CTA, in shared or global memory, across barriers.
    Exchange {
        shared: bool,
        by: u32,
        times: u32,
    },
    Barrier,
    /// Each CTA hears from the one before.
    OfCta {
        poll: Poll,
        by_add: bool,
    },
    /// Each warp hears from the one before, that of another CTA or of its own, without a barrier.
    OfWarp {
        poll: Poll,
    },
    /// Who counts itself last adds up what all have stored.
    Last,
    /// Threads with this bit are done: lanes, or warps.
    Exit {
        bit: u32,
    },
}

/// A program: launches of one kernel.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) grid: u32,
    /// CTAs from here on store once and are done.
    pub(crate) workers: u32,
    pub(crate) block: u32,
    pub(crate) launches: u32,
    pub(crate) steps: Vec<Step>,
    /// CTAs keep to themselves.
    pub(crate) apart: bool,
}

fn leaf() -> impl Strategy<Value = Leaf> {
    let words = 0..OWN / 4;
    prop_oneof![
        5 => (words.clone(), prop::sample::select(&[1u32, 4, 8][..]))
            .prop_map(|(at, bytes)| Leaf::Store { at: at * 4 / bytes * bytes, bytes }),
        3 => words.clone().prop_map(|at| Leaf::Load { at: 4 * at }),
        1 => (words, any::<bool>()).prop_map(|(at, used)| Leaf::OwnAtomic { at: 4 * at, used }),
        1 => Just(Leaf::SharedAtomic),
        1 => (0u32..4, any::<bool>()).prop_map(|(at, load)| Leaf::Local { at: 4 * at, load }),
        2 => (0u32..4, any::<bool>()).prop_map(|(at, used)| Leaf::Sum { at, used }),
        1 => Just(Leaf::Ticket),
        1 => any::<bool>().prop_map(|fence| Leaf::Lock { fence }),
        1 => any::<bool>().prop_map(|cta| Leaf::Fence { cta }),
    ]
}

fn leaves(most: usize) -> impl Strategy<Value = Vec<Leaf>> {
    prop::collection::vec(leaf(), 0..=most)
}

fn poll() -> impl Strategy<Value = Poll> {
    prop::sample::select(&[Poll::Load, Poll::Or, Poll::Cas][..])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => leaf().prop_map(Step::Leaf),
        2 => (0u32..7, leaves(3), leaves(2)).prop_map(|(bit, then, other)| Step::If { bit, then, other }),
        1 => (1u32..4, any::<bool>(), 0u32..7, leaves(3), leaves(2))
            .prop_map(|(turns, by_lane, bit, body, some)| Step::Loop { turns, by_lane, bit, body, some }),
        3 => (any::<bool>(), 1u32..80, 1u32..4)
            .prop_map(|(shared, by, times)| Step::Exchange { shared, by, times }),
        1 => Just(Step::Barrier),
        2 => (poll(), any::<bool>()).prop_map(|(poll, by_add)| Step::OfCta { poll, by_add }),
        2 => poll().prop_map(|poll| Step::OfWarp { poll }),
        2 => Just(Step::Last),
        1 => (0u32..7).prop_map(|bit| Step::Exit { bit }),
    ]
}

pub(crate) fn program() -> impl Strategy<Value = Program> {
    let blocks = prop::sample::select(&[32u32, 40, 64, 96, 128][..]);
    let steps = prop::collection::vec(step(), 1..9);
    (1u32..6, 0u32..3, blocks, 1u32..3, steps, prop::bool::weighted(0.2)).prop_map(
        |(workers, idle, block, launches, steps, apart)| Program {
            grid: workers + idle,
            workers,
            block,
            launches,
            steps,
            apart,
        },
    )
}

/// PTX in the making.
struct Text<'a> {
    of: &'a Program,
    warp: u32,
    body: String,
    labels: u32,
    /// Tickets and counts of a thread, at most.
    tickets: u32,
    counts: u32,
    times: u32,
    /// Steps with memory of their own.
    places: u32,
}

impl Text<'_> {
    fn line(&mut self, text: &str) {
        self.body.push_str(text);
        self.body.push('\n');
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// `%d9` is the address of a word of `base`: by a register's number, in words.
    fn word(&mut self, base: &str, index: &str) {
        self.line(&format!("mul.wide.u32 %d9, {index}, 4;\nadd.s64 %d9, %d9, %{base};"));
    }

    /// Skips to a label unless a bit of the thread's number is set.
    fn unless(&mut self, bit: u32, label: &str) {
        self.line(&format!("shr.u32 %r10, %tid, {bit};\nand.b32 %r10, %r10, 1;"));
        self.line(&format!("setp.eq.s32 %p1, %r10, 0;\n@%p1 bra {label};"));
    }

    fn leaf(&mut self, leaf: &Leaf) {
        match *leaf {
            Leaf::Store { at, bytes: 8 } => {
                self.line(&format!("mul.wide.u32 %d9, %r1, 77777;\nst.global.u64 [%d1+{at}], %d9;"));
            }
            Leaf::Store { at, bytes } => self.line(&format!("st.global.u{} [%d1+{at}], %r1;", 8 * bytes)),
            Leaf::Load { at } => {
                self.line(&format!("ld.global.u32 %r9, [%d1+{at}];\nmad.lo.s32 %r1, %r1, 5, %r9;"));
            }
            Leaf::OwnAtomic { at, used: true } => {
                self.line(&format!("atom.global.exch.b32 %r9, [%d1+{at}], %r1;\nadd.s32 %r1, %r1, %r9;"));
            }
            Leaf::OwnAtomic { at, used: false } => self.line(&format!("red.global.add.u32 [%d1+{at}], %r1;")),
            Leaf::SharedAtomic => self.line("atom.shared.add.u32 %r9, [%r2], %r1;\nxor.b32 %r1, %r1, %r9;"),
            Leaf::Local { at, load: true } => {
                self.line(&format!("ld.local.u32 %r9, [L+{at}];\nadd.s32 %r1, %r1, %r9;"))
            }
            Leaf::Local { at, load: false } => self.line(&format!("st.local.u32 [L+{at}], %r1;")),
            Leaf::Sum { at, used } => {
                let (op, kind) = [("add", "u32"), ("xor", "b32"), ("max", "u32"), ("add", "u32")][at as usize];
                self.line(&format!("add.s32 %r9, %whose, {at};"));
                self.word("sums", "%r9");
                match used {
                    true => self.line(&format!("atom.global.{op}.{kind} %r9, [%d9], %r1;")),
                    false => self.line(&format!("red.global.{op}.{kind} [%d9], %r1;")),
                }
            }
            Leaf::Ticket => {
                self.tickets += self.times;
                self.word("drawn", "%whose");
                self.line("atom.global.add.u32 %r9, [%d9], 1;\nadd.s32 %r8, %r9, 1;\nadd.s32 %r9, %r9, %lot;");
                self.word("tickets", "%r9");
                self.line("st.global.u32 [%d9], %r8;");
            }
            Leaf::Lock { fence } => {
                self.counts += self.times;
                let n = self.label();
                // Few lanes, each by itself: whoever has the lock gives it back before the others ask again.
                self.line("mov.u32 %r8, 0;\nand.b32 %r9, %tid, 15;\nsetp.ne.u32 %p1, %r9, 0;");
                self.line(&format!("@%p1 bra DONE{n};"));
                self.word("lock", "%whose");
                self.line("mov.u64 %d8, %d9;");
                self.line(&format!("SPIN{n}:\natom.global.cas.b32 %r9, [%d8], 0, 1;\nsetp.ne.u32 %p2, %r9, 0;"));
                self.line(&format!("@%p2 bra AGAIN{n};"));
                if fence {
                    self.line("membar.gl;");
                }
                self.line("ld.volatile.global.u32 %r9, [%d8+4];\nadd.s32 %r8, %r9, 1;\nadd.s32 %r9, %r9, %lot;");
                self.word("counted", "%r9");
                self.line("st.global.u32 [%d9], %r8;\nst.global.u32 [%d8+4], %r8;\nadd.s32 %r9, %r8, %r8;");
                self.line("st.global.u32 [%d8+8], %r9;\nmembar.gl;\natom.global.exch.b32 %r9, [%d8], 0;");
                self.line("mov.u32 %r8, 1;");
                self.line(&format!("AGAIN{n}:\nsetp.eq.u32 %p2, %r8, 0;\n@%p2 bra SPIN{n};\nDONE{n}:"));
            }
            Leaf::Fence { cta } => self.line(if cta { "membar.cta;" } else { "membar.gl;" }),
        }
    }

    fn leaves(&mut self, leaves: &[Leaf]) {
        leaves.iter().for_each(|leaf| self.leaf(leaf));
    }

    /// `%r7` is where the step's own words begin, among flags, mail and totals.
    fn place(&mut self) {
        let (places, own) = (self.of.places(), self.of.place_words(self.warp));
        self.line(&format!("mad.lo.s32 %r7, %turn, {places}, {};\nmul.lo.s32 %r7, %r7, {own};", self.places));
        self.places += 1;
    }

    /// Spins until a flag is up: `%d9` is its address.
    fn spin(&mut self, poll: Poll) {
        let n = self.label();
        let look = match poll {
            Poll::Load => "ld.volatile.global.u32 %r9, [%d9];",
            Poll::Or => "atom.global.or.b32 %r9, [%d9], 0;",
            Poll::Cas => "atom.global.cas.b32 %r9, [%d9], 2, 2;",
        };
        self.line(&format!("WAIT{n}:\n{look}\nsetp.eq.u32 %p2, %r9, 0;\n@%p2 bra WAIT{n};"));
    }

    fn step(&mut self, step: &Step, later: &[Step]) {
        let (threads, workers) = (self.of.workers * self.of.block, self.of.workers);
        match step {
            Step::Leaf(leaf) => self.leaf(leaf),
            Step::If { bit, then, other } => {
                let n = self.label();
                self.unless(*bit, &format!("ELSE{n}"));
                self.leaves(then);
                self.line(&format!("bra END{n};\nELSE{n}:"));
                self.leaves(other);
                self.line(&format!("END{n}:"));
            }
            Step::Loop { turns, by_lane, bit, body, some } => {
                let n = self.label();
                self.line(&format!("mov.u32 %r11, 0;\nand.b32 %r12, %tid, {};", if *by_lane { 3 } else { 0 }));
                self.line(&format!("add.s32 %r12, %r12, {turns};\nTURN{n}:"));
                self.times = turns + 3;
                self.leaves(body);
                if !some.is_empty() {
                    self.unless(*bit, &format!("SKIP{n}"));
                    self.leaves(some);
                    self.line(&format!("SKIP{n}:"));
                }
                self.times = 1;
                self.line(&format!("add.s32 %r11, %r11, 1;\nsetp.lt.u32 %p3, %r11, %r12;\n@%p3 bra TURN{n};"));
            }
            Step::Exchange { shared, by, times } => {
                let n = self.label();
                let block = self.of.block;
                self.line(&format!("add.s32 %r8, %tid, {by};\nrem.u32 %r8, %r8, {block};\nmov.u32 %r11, 0;\nTURN{n}:"));
                if *shared {
                    self.line("st.shared.u32 [%r2], %r1;\nbar.sync 0;");
                    self.line("shl.b32 %r9, %r8, 2;\nadd.s32 %r9, %r9, %r3;\nld.shared.u32 %r9, [%r9];");
                } else {
                    self.word("traded", "%id");
                    self.line("st.global.u32 [%d9], %r1;\nbar.sync 0;");
                    self.line(&format!("mad.lo.s32 %r9, %cta, {block}, %r8;"));
                    self.word("traded", "%r9");
                    self.line("ld.global.u32 %r9, [%d9];");
                }
                self.line("mad.lo.s32 %r1, %r1, 3, %r9;\nbar.sync 0;\nadd.s32 %r11, %r11, 1;");
                self.line(&format!("setp.lt.u32 %p3, %r11, {times};\n@%p3 bra TURN{n};"));
            }
            Step::Barrier => self.line("bar.sync 0;"),
            Step::OfCta { .. } | Step::OfWarp { .. } | Step::Last if self.of.apart => {}
            Step::OfCta { poll, by_add } => {
                let n = self.label();
                self.place();
                self.line(&format!("setp.eq.u32 %p4, %cta, 0;\n@%p4 bra FIRST{n};"));
                self.line(&format!("setp.ne.u32 %p1, %tid, 0;\n@%p1 bra HEARD{n};\nadd.s32 %r9, %r7, %cta;"));
                self.word("flags", "%r9");
                self.line("sub.s64 %d9, %d9, 4;");
                self.spin(*poll);
                self.line(&format!("membar.gl;\nHEARD{n}:\nbar.sync 0;"));
                self.line("add.s32 %r9, %r7, %id;");
                self.word("mail", "%r9");
                self.line(&format!("ld.volatile.global.u32 %r9, [%d9-{}];", 4 * self.of.block));
                self.line(&format!("mad.lo.s32 %r1, %r1, 3, %r9;\nFIRST{n}:"));
                self.line("add.s32 %r9, %r7, %id;");
                self.word("mail", "%r9");
                self.line("st.global.u32 [%d9], %r1;\nmembar.gl;\nbar.sync 0;");
                self.line(&format!("setp.ne.u32 %p1, %tid, 0;\n@%p1 bra SAID{n};\nadd.s32 %r9, %r7, %cta;"));
                self.word("flags", "%r9");
                self.line(if *by_add { "red.global.add.u32 [%d9], 1;" } else { "atom.global.exch.b32 %r9, [%d9], 1;" });
                self.line(&format!("SAID{n}:"));
            }
            Step::OfWarp { poll } => {
                let (n, warp) = (self.label(), self.warp);
                let warps = self.of.block.div_ceil(warp);
                self.place();
                // The warp's number among all.
                self.line(&format!("div.u32 %r6, %tid, {warp};\nmad.lo.s32 %r6, %cta, {warps}, %r6;"));
                self.line(&format!("setp.eq.u32 %p4, %r6, 0;\n@%p4 bra FIRST{n};\nadd.s32 %r9, %r7, %r6;"));
                self.word("flags", "%r9");
                self.line("sub.s64 %d9, %d9, 4;");
                self.line(&format!("rem.u32 %r8, %tid, {warp};\nsetp.ne.u32 %p1, %r8, 0;\n@%p1 bra HEARD{n};"));
                self.spin(*poll);
                self.line(&format!("HEARD{n}:\nmembar.gl;\nmad.lo.s32 %r9, %r6, {warp}, %r8;\nadd.s32 %r9, %r9, %r7;"));
                self.word("mail", "%r9");
                self.line(&format!("ld.volatile.global.u32 %r9, [%d9-{}];", 4 * warp));
                self.line(&format!("mad.lo.s32 %r1, %r1, 3, %r9;\nFIRST{n}:"));
                self.line(&format!("rem.u32 %r8, %tid, {warp};\nmad.lo.s32 %r9, %r6, {warp}, %r8;"));
                self.line("add.s32 %r9, %r9, %r7;");
                self.word("mail", "%r9");
                self.line(&format!(
                    "st.global.u32 [%d9], %r1;\nmembar.gl;\nsetp.ne.u32 %p1, %r8, 0;\n@%p1 bra SAID{n};"
                ));
                self.line("add.s32 %r9, %r7, %r6;");
                self.word("flags", "%r9");
                self.line(&format!("atom.global.exch.b32 %r9, [%d9], 1;\nSAID{n}:"));
            }
            Step::Last => {
                let n = self.label();
                self.place();
                self.line("add.s32 %r9, %r7, %id;");
                self.word("mail", "%r9");
                self.line("st.global.u32 [%d9], %r1;\nmembar.gl;\nbar.sync 0;");
                self.line(&format!("setp.ne.u32 %p1, %tid, 0;\n@%p1 bra COUNTED{n};"));
                self.word("flags", "%r7");
                self.line("atom.global.add.u32 %r9, [%d9], 1;\nmembar.gl;\nst.shared.u32 [%r3+4096], %r9;");
                self.line(&format!("COUNTED{n}:\nbar.sync 0;\nld.shared.u32 %r9, [%r3+4096];\nbar.sync 0;"));
                self.line(&format!("setp.ne.u32 %p1, %r9, {};\n@%p1 bra NOT{n};", workers - 1));
                self.line(&format!("mov.u32 %r8, 0;\nmov.u32 %r11, %tid;\nALL{n}:\nadd.s32 %r9, %r7, %r11;"));
                self.word("mail", "%r9");
                self.line("ld.volatile.global.u32 %r9, [%d9];\nmad.lo.s32 %r8, %r8, 3, %r9;");
                self.line(&format!("add.s32 %r11, %r11, {};\nsetp.lt.u32 %p3, %r11, {threads};", self.of.block));
                self.line(&format!("@%p3 bra ALL{n};\nadd.s32 %r9, %r7, %tid;"));
                self.word("totals", "%r9");
                self.line(&format!("st.global.u32 [%d9], %r8;\nNOT{n}:"));
            }
            Step::Exit { bit } => {
                // A warp that is done says nothing to the next one.
                let chained = later.iter().any(|step| matches!(step, Step::OfWarp { .. }));
                if !(chained && 1 << bit >= self.warp) {
                    self.line(&format!("shr.u32 %r10, %tid, {bit};\nand.b32 %r10, %r10, 1;"));
                    self.line("setp.ne.s32 %p1, %r10, 0;\n@%p1 st.global.u32 [%d1+4], %r1;\n@%p1 ret;");
                }
            }
        }
    }
}

/// Buffers of a kernel, all of 32-bit words.
const BUFFERS: [&str; 11] =
    ["own", "sums", "drawn", "tickets", "lock", "counted", "traded", "flags", "mail", "totals", "out"];

impl Program {
    /// Steps with memory of their own.
    fn places(&self) -> u32 {
        let with = |step: &&Step| matches!(step, Step::OfCta { .. } | Step::OfWarp { .. } | Step::Last);
        self.steps.iter().filter(with).count() as u32
    }

    /// Words of a step's own: one for each lane, those that the last warp of a CTA lacks too.
    fn place_words(&self, warp: u32) -> u32 {
        self.workers * self.block.next_multiple_of(warp)
    }

    /// The manifest, for warps of so many lanes.
    pub(crate) fn manifest(&self, warp: u32) -> String {
        let mut text =
            Text { of: self, warp, body: String::new(), labels: 0, tickets: 0, counts: 0, times: 1, places: 0 };
        for (number, step) in self.steps.iter().enumerate() {
            text.step(step, &self.steps[number + 1..]);
        }
        let Text { body, tickets, counts, .. } = text;
        let threads = self.grid * self.block;
        // How many tickets and counts a group, which keeps to itself, has.
        let groups = if self.apart { self.grid } else { 1 };
        let lot = threads / groups * self.launches * tickets.max(counts).max(1);
        let whose = if self.apart { "mov.u32 %whose, %cta;" } else { "mov.u32 %whose, 0;" };
        let mut manifest = format!(
            "schema = 1\nname = \"random\"\ndescription = \"a random kernel\"\n[isa]\nkind = \"ptx\"\ntext = '''\n\
             .version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k({}, .param .u32 p_turn)\n{{\n\
             .shared .align 16 .b8 s[4112];\n.local .align 16 .b8 L[16];\n\
             .reg .pred %p<5>;\n.reg .b32 %r<13>, %tid, %cta, %id, %turn, %whose, %lot;\n.reg .b64 %d<10>;\n",
            BUFFERS.map(|name| format!(".param .u64 p_{name}")).join(", ")
        );
        for name in BUFFERS {
            writeln!(manifest, ".reg .b64 %{name};\nld.param.u64 %{name}, [p_{name}];").unwrap();
        }
        write!(
            manifest,
            "ld.param.u32 %turn, [p_turn];\nmov.u32 %tid, %tid.x;\nmov.u32 %cta, %ctaid.x;\nmov.u32 %r9, %ntid.x;\n\
             mad.lo.s32 %id, %cta, %r9, %tid;\nmul.wide.u32 %d1, %id, {OWN};\nadd.s64 %d1, %d1, %own;\n\
             mad.lo.s32 %r1, %id, 1103515245, 12345;\n{whose}\nmul.lo.s32 %lot, %whose, {lot};\n\
             shl.b32 %whose, %whose, 2;\nsetp.ge.u32 %p1, %cta, {workers};\n@%p1 st.global.u32 [%d1+8], %r1;\n\
             @%p1 ret;\nmov.u32 %r3, s;\nshl.b32 %r2, %tid, 2;\nadd.s32 %r2, %r2, %r3;\nst.shared.u32 [%r2], %r1;\n\
             st.local.v4.u32 [L], {{%r1, %id, %tid, %r1}};\nbar.sync 0;\n{body}\
             mul.wide.u32 %d9, %id, 4;\nadd.s64 %d9, %d9, %out;\nst.global.u32 [%d9], %r1;\nret;\n}}\n'''\n",
            workers = self.workers,
        )
        .unwrap();
        let own = (self.launches * self.places()).max(1) * self.place_words(warp);
        let sizes = BUFFERS.map(|name| match name {
            "own" => threads * OWN / 4,
            "sums" | "drawn" | "lock" => 4 * groups,
            "tickets" | "counted" => groups * lot,
            "traded" | "out" => threads,
            _ => own,
        });
        for (name, size) in BUFFERS.into_iter().zip(sizes) {
            let init = if name == "own" { "init = { kind = \"uniform\", lo = 0, hi = 1000000 }\n" } else { "" };
            writeln!(manifest, "[buffer.{name}]\ntype = \"u32\"\nlen = {size}\nspace = \"pm\"\n{init}").unwrap();
        }
        for turn in 0..self.launches {
            let args = BUFFERS.map(|name| format!("\"&{name}\"")).join(", ");
            let Program { grid, block, .. } = self;
            writeln!(manifest, "[[step]]\nkernel = \"k\"\ngrid = {grid}\nblock = {block}\nargs = [{args}, {turn}]\n")
                .unwrap();
        }
        manifest + "[[verify]]\nref = { kind = \"functional\" }\n"
    }
}
