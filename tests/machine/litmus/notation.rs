//! Litmus programs as text.
//!
//! ```text
//!   x=1; fence w,w; y=1 | a=y; b=x addr a          two harts; a, b, … are registers, x, y, z, w locations
//! ```
//! | statement | |
//! |---|---|
//! | `x=1`, `a=x` | a store, a load, of all 8 bytes |
//! | `x.l=1`, `a=x.h` | of the low, of the high 4 bytes |
//! | `m=1`, `a=m` | the same of `m` and `n`, whose low half ends a line and whose high half begins the next one |
//! | `addr a`, `data a` | behind an access: its address, the value that it stores, depends on a register |
//! | `if a` | a branch by a register; both ways go on with the next statement |
//! | `fence w,w`, `fence tso`, `fence i` | `fence` with its sets, `fence.tso`, `fence.i` |
//! | `a=amoswap.aqrl x 1`, `a=amoadd x 1` | atomics, with `.aq`, `.rl`, both or none |
//! | `a=lr.aq x`, `s=sc.rl x 1` | `lr` and `sc`; `s` is 0 of an `sc` that stored |
//!
//! Values are those of each half: `x=1` stores 1 in both. A condition is a list of halves of registers and,
//! of locations, of what they hold at last: `a=1 b.h=0 x=2`.

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    Store,
    Reserve,
    Conditional,
    Swap,
    Add,
}

impl Kind {
    pub(crate) fn loads(self) -> bool {
        !matches!(self, Kind::Store | Kind::Conditional)
    }

    pub(crate) fn stores(self) -> bool {
        !matches!(self, Kind::Load | Kind::Reserve)
    }

    pub(crate) fn is_amo(self) -> bool {
        matches!(self, Kind::Swap | Kind::Add)
    }
}

/// An access to memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) kind: Kind,
    pub(crate) location: usize,
    /// Its first half: 0 or 1; and how many.
    pub(crate) half: usize,
    pub(crate) halves: usize,
    /// The register that it writes, by its number in the program.
    pub(crate) to: Option<usize>,
    pub(crate) value: u32,
    pub(crate) address_of: Option<usize>,
    pub(crate) data_of: Option<usize>,
    pub(crate) acquire: bool,
    pub(crate) release: bool,
}

/// A statement of a hart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Access(Access),
    /// Accesses before and after that it orders: bit 0 writes, bit 1 reads.
    Fence(u8, u8),
    FenceTso,
    FenceI,
    Branch(usize),
}

/// A register: its name, its hart, how many halves it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Register {
    pub(crate) name: char,
    pub(crate) hart: usize,
    pub(crate) halves: usize,
}

/// A program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) harts: Vec<Vec<Step>>,
    pub(crate) locations: Vec<char>,
    pub(crate) registers: Vec<Register>,
}

/// Halves of all registers, in their order, then of what each location holds at last.
pub(crate) type Outcome = Vec<u32>;

impl Program {
    /// Reads a program.
    pub(crate) fn read(text: &str) -> Program {
        let mut program = Program::default();
        for (hart, statements) in text.split('|').enumerate() {
            let steps = statements.split(';').map(|statement| program.step(statement.trim(), hart)).collect();
            program.harts.push(steps);
        }
        program
    }

    /// A location lies across two lines.
    pub(crate) fn is_across(&self, location: usize) -> bool {
        matches!(self.locations[location], 'm' | 'n')
    }

    /// The accesses of a hart, in order.
    pub(crate) fn accesses(&self, hart: usize) -> impl Iterator<Item = &Access> {
        self.harts[hart].iter().filter_map(|step| if let Step::Access(access) = step { Some(access) } else { None })
    }

    /// Where the halves of a register begin in an outcome.
    pub(crate) fn place(&self, register: usize) -> usize {
        self.registers[..register].iter().map(|register| register.halves).sum()
    }

    /// The same of a location.
    pub(crate) fn memory_place(&self, location: usize) -> usize {
        self.place(self.registers.len()) + 2 * location
    }

    /// Reads a condition: places in an outcome and their values.
    pub(crate) fn condition(&self, text: &str) -> Vec<(usize, u32)> {
        let mut all = Vec::new();
        for part in text.split_whitespace() {
            let (name, value) = part.split_once('=').expect("name=value");
            let (name, half) = name.split_once('.').map_or((name, None), |(name, half)| (name, Some(half == "h")));
            let letter = name.chars().next().expect("a name");
            let location = self.locations.iter().position(|&of| of == letter);
            let (place, halves) = match self.registers.iter().position(|register| register.name == letter) {
                Some(register) => (self.place(register), self.registers[register].halves),
                None => (self.memory_place(location.unwrap_or_else(|| panic!("no {part}"))), 2),
            };
            let value = value.parse().expect("a number");
            match half {
                Some(half) => all.push((place + usize::from(half), value)),
                None => all.extend((place..place + halves).map(|place| (place, value))),
            }
        }
        all
    }

    fn named(&self, name: &str) -> usize {
        let letter = name.chars().next().expect("a register");
        self.registers
            .iter()
            .position(|register| register.name == letter)
            .unwrap_or_else(|| panic!("no register {name}"))
    }

    /// A location with its halves: `x`, `x.l`, `x.h`.
    fn location(&mut self, text: &str) -> (usize, usize, usize) {
        let (name, half, halves) = match text.split_once('.') {
            None => (text, 0, 2),
            Some((name, "l")) => (name, 0, 1),
            Some((name, _)) => (name, 1, 1),
        };
        let letter = name.chars().next().expect("a location");
        assert!(matches!(letter, 'm' | 'n' | 'w'..='z'), "{text} is no location");
        let at = self.locations.iter().position(|&of| of == letter).unwrap_or(self.locations.len());
        if at == self.locations.len() {
            self.locations.push(letter);
        }
        (at, half, halves)
    }

    fn step(&mut self, text: &str, hart: usize) -> Step {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["fence", "tso"] => return Step::FenceTso,
            ["fence", "i"] => return Step::FenceI,
            ["fence", sets] => {
                let (before, after) = sets.split_once(',').expect("two sets");
                let set = |letters: &str| u8::from(letters.contains('w')) | u8::from(letters.contains('r')) << 1;
                return Step::Fence(set(before), set(after));
            }
            ["if", register] => return Step::Branch(self.named(register)),
            _ => {}
        }
        let (left, right) = words[0].split_once('=').unwrap_or_else(|| panic!("{text}"));
        let (name, bits) = right.split_once('.').unwrap_or((right, ""));
        let kind = match name {
            "amoswap" => Kind::Swap,
            "amoadd" => Kind::Add,
            "lr" => Kind::Reserve,
            "sc" => Kind::Conditional,
            _ if right.starts_with(|c: char| c.is_ascii_digit()) => Kind::Store,
            _ => Kind::Load,
        };
        let (at, value, rest) = match kind {
            Kind::Store => (left, right, 1),
            Kind::Load => (right, "0", 1),
            Kind::Reserve => (words[1], "0", 2),
            _ => (words[1], words[2], 3),
        };
        let bits = if kind == Kind::Load { "" } else { bits };
        let (location, half, halves) = self.location(at);
        let depends = |on: &str| {
            let at = words[rest..].iter().position(|&word| word == on)?;
            Some(self.named(words[rest + at + 1]))
        };
        let (address_of, data_of) = (depends("addr"), depends("data"));
        let to = (kind != Kind::Store).then(|| {
            let halves = if kind == Kind::Conditional { 1 } else { halves };
            self.registers.push(Register { name: left.chars().next().expect("a register"), hart, halves });
            self.registers.len() - 1
        });
        let (acquire, release) = (bits.contains("aq"), bits.contains("rl"));
        let value = value.parse().expect("a number");
        Step::Access(Access { kind, location, half, halves, to, value, address_of, data_of, acquire, release })
    }
}
