//! Directives of a kernel that bound its launches and its registers (PTX ISA, "Performance-Tuning
//! Directives" and "Cluster Dimension Directives").
//!
//! | directive | effect |
//! |---|---|
//! | `.maxntid x, y, z` | a launch has at most x y z threads a CTA |
//! | `.reqntid x, y, z` | a launch has this block |
//! | `.reqnctapercluster x, y, z` | extents of a launch's clusters in CTAs; its grid is a multiple of them |
//! | `.explicitcluster` | a launch states its clusters |
//! | `.maxclusterrank n` | a cluster has at most n CTAs |
//! | `.maxnreg n` | a thread has at most n registers |
//! | `.minnctapersm n` | a thread has at most as many registers as let n CTAs (else 1) of that size share an SM |
//!
//! Measured on an H200: it refuses a launch of another block than that of `.reqntid`, the same number of
//! threads in another shape included, of more threads than the product of `.maxntid`, and of a grid that is
//! no multiple of its clusters; a kernel with `.maxntid` and `.reqntid` does not compile. One of 72 registers
//! has 64 with `.maxntid 1024`; 64, 48 and 32 with `.maxntid 256` and `.minnctapersm` 4, 5 and 8; 56 with 100
//! and 9; 72 with `.minnctapersm 8` alone.
//!
//! `.blocksareclusters` is read over. Not modelled: spilling of registers beyond a bound.

use super::super::ir::LaunchBounds;
use super::ast::PtxWord;
use super::lower::{Lower, Lowered};

/// 32-bit registers of an SM, of every architecture from sm_50 on but sm_53 and sm_62 (CUDA programming
/// guide, "Technical Specifications per Compute Capability").
const SM_REGISTERS: u32 = 1 << 16;

/// Lanes of a warp; registers are allocated to whole warps.
const WARP: u32 = 32;

/// Registers of a thread are allocated in multiples of this.
const REGISTER_STEP: u32 = 8;

/// What a kernel's directives ask for.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) launch: LaunchBounds,
    /// Registers of a thread, at most.
    pub(super) registers: Option<u32>,
}

impl<'a> Lower<'_, 'a> {
    /// Reads a kernel's directives; faults are recorded.
    pub(super) fn bounds(&mut self, limits: &[(PtxWord<'a>, Vec<u64>)]) -> Bounds {
        let mut bounds = Bounds::default();
        let mut resident = None;
        for (word, numbers) in limits {
            match word.text {
                "maxntid" => bounds.launch.most_threads = self.extents(word, numbers).ok().map(product),
                "reqntid" => bounds.launch.block = self.extents(word, numbers).ok(),
                "reqnctapercluster" => {
                    bounds.launch.cluster = self.extents(word, numbers).ok();
                }
                "explicitcluster" => bounds.launch.explicit_cluster = true,
                "maxclusterrank" => bounds.launch.most_cluster = self.one(word, numbers).ok(),
                "minnctapersm" => resident = self.one(word, numbers).ok(),
                "maxnreg" => bounds.registers = self.one(word, numbers).ok(),
                "maxnctapersm" => {}
                other => {
                    self.fault(word.at.clone(), format!("directive `.{other}` is not supported"));
                }
            }
        }
        if let (Some(_), Some(_), Some((word, _))) = (bounds.launch.most_threads, bounds.launch.block, limits.last()) {
            self.fault(word.at.clone(), "`.maxntid` and `.reqntid` exclude each other");
        }
        // `.minnctapersm` means nothing without the size of a CTA; with the size alone one CTA has to fit.
        let threads = bounds.launch.block.map(product).or(bounds.launch.most_threads);
        if let Some(threads) = threads {
            let warps = threads.min(SM_REGISTERS).next_multiple_of(WARP);
            let share = SM_REGISTERS / resident.unwrap_or(1).saturating_mul(warps);
            let most = (share / REGISTER_STEP * REGISTER_STEP).max(REGISTER_STEP);
            bounds.registers = Some(bounds.registers.map_or(most, |registers| registers.min(most)));
        }
        bounds
    }

    /// One to three numbers, each at least 1; those that are missing are 1.
    fn extents(&mut self, word: &PtxWord<'a>, numbers: &[u64]) -> Lowered<[u32; 3]> {
        let mut sizes = [1; 3];
        let sound = |&n: &u64| u32::try_from(n).ok().filter(|&n| n > 0);
        if numbers.len() > 3 || numbers.iter().any(|n| sound(n).is_none()) {
            let message = format!("`.{}` takes 1 to 3 numbers, each at least 1", word.text);
            return Err(self.fault(word.at.clone(), message));
        }
        for (size, number) in sizes.iter_mut().zip(numbers.iter().filter_map(sound)) {
            *size = number;
        }
        Ok(sizes)
    }

    fn one(&mut self, word: &PtxWord<'a>, numbers: &[u64]) -> Lowered<u32> {
        match *numbers {
            [n @ 1..=0xffff] => Ok(n as u32),
            _ => {
                let message = format!("`.{}` takes one number from 1 to 65535", word.text);
                Err(self.fault(word.at.clone(), message))
            }
        }
    }
}

fn product(sizes: [u32; 3]) -> u32 {
    sizes.into_iter().fold(1, u32::saturating_mul)
}
