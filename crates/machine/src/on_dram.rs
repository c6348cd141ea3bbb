//! Persistency operations on DRAM: legal, without effect on durability, and hence most likely a mistake of
//! the program. For each kernel, the first such instruction is kept, so that a user can be shown the line.
//!
//! Invariant: of a kernel launched several times and run by many SMs, the least (launch, instruction) is
//! kept, which does not depend on threads.

use std::sync::Arc;

use durawarp_checkpoint::value;
use durawarp_kernel::launch::Launch;

/// The first persistency operation on DRAM of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDram {
    /// Launch number, from 0.
    pub launch: u32,
    /// Instruction.
    pub pc: u32,
    pub kernel: String,
    /// Its PTX file.
    pub file: Arc<str>,
    /// Line in it.
    pub line: u32,
}

value!(record OnDram { launch, pc, kernel, file, line });

impl OnDram {
    fn is_of(&self, launch: &Launch) -> bool {
        self.kernel == launch.kernel.name && self.file == launch.kernel.file
    }

    /// Takes in an operation of the instruction at `pc` of launch number `number`; launches come in order.
    pub(super) fn note(known: &mut Vec<OnDram>, number: u32, pc: u32, launch: &Launch) {
        // Most often the same kernel as before.
        let seen = known.iter_mut().rev().find(|on_dram| on_dram.is_of(launch));
        let line = || launch.kernel.pos.get(pc as usize).map_or(0, |pos| pos.line);
        match seen {
            Some(first) if first.launch == number && pc < first.pc => {
                first.pc = pc;
                first.line = line();
            }
            Some(_) => {}
            None => known.push(OnDram {
                launch: number,
                pc,
                kernel: launch.kernel.name.clone(),
                file: launch.kernel.file.clone(),
                line: line(),
            }),
        }
    }

    /// The first of each kernel among those of several SMs, in the order of launches.
    pub fn merged<'a>(of_sms: impl Iterator<Item = &'a OnDram>) -> Vec<OnDram> {
        let mut all: Vec<OnDram> = of_sms.cloned().collect();
        all.sort_by_key(|on_dram| (on_dram.launch, on_dram.pc));
        let mut firsts: Vec<OnDram> = Vec::new();
        for on_dram in all {
            if !firsts.iter().any(|first| first.kernel == on_dram.kernel && first.file == on_dram.file) {
                firsts.push(on_dram);
            }
        }
        firsts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kernel_the_first_launch_and_instruction_is_kept() {
        let on_dram =
            |kernel: &str, launch, pc| OnDram { launch, pc, kernel: kernel.into(), file: "a.ptx".into(), line: pc };
        let of_sms = [on_dram("k", 2, 5), on_dram("k", 1, 9), on_dram("j", 1, 7), on_dram("k", 1, 8)];
        assert_eq!(OnDram::merged(of_sms.iter()), [on_dram("j", 1, 7), on_dram("k", 1, 8)]);
    }
}
