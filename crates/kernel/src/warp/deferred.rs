//! Values that wait: a timed warp moves past register-to-register instructions when they issue, and computes
//! a stretch of them at once.
//!
//! When an instruction issues is the machine's business; what it computes is asked for by other instructions
//! of its warp alone. So the registers of a warp come into the host's cache once a stretch of code, not once
//! an instruction, and a stretch is one call. Invariants: deferred instructions lie just before the pc, have
//! no guard, and were passed with the lanes of the current path; a warp catches up before anything else is
//! done with it. A load's result may be written meanwhile: the scoreboard lets nothing pass that reads or
//! writes its registers.

use std::borrow::Cow;

use super::super::launch::Launch;
use super::Warp;

impl Warp {
    /// Moves on past a register-to-register instruction without a guard. Its values are computed with those
    /// of the instructions behind it, by [`Warp::catch_up`].
    #[inline]
    pub fn defer(&mut self, launch: &Launch) {
        self.deferred += 1;
        self.top.pc += 1;
        if self.top.pc == self.top.reconverge {
            // The lanes change with the path.
            self.catch_up(launch);
            self.settle();
        }
    }

    /// Computes what has been deferred.
    #[inline]
    pub fn catch_up(&mut self, launch: &Launch) {
        if self.deferred != 0 {
            self.compute_deferred(launch);
        }
    }

    /// The warp as it is once it has caught up: for who looks at it from outside.
    pub fn caught_up(&self, launch: Option<&Launch>) -> Cow<'_, Warp> {
        let mut warp = Cow::Borrowed(self);
        if self.deferred != 0 {
            let Some(launch) = launch else { panic!("a warp without a launch") };
            warp.to_mut().catch_up(launch);
        }
        warp
    }

    #[inline(never)]
    fn compute_deferred(&mut self, launch: &Launch) {
        let end = self.top.pc as usize;
        let first = end - std::mem::take(&mut self.deferred) as usize;
        self.alu_each(&launch.kernel.code[first..end], launch, self.top.mask);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::ir::{Inst, Op};
    use super::super::super::launch::Binding;
    use super::super::super::memory::AddressMap;
    use super::super::super::ptx;
    use super::*;

    /// Lanes take both sides of a branch, and meet behind it with values of either.
    const PTX: &str = ".version 6.0 .target sm_60 .address_size 64 .entry k() {
        .reg .b32 r<4>; .reg .pred p;
        mov.u32 r1, %tid.x; mul.lo.u32 r2, r1, 3; setp.lt.u32 p, r1, 5;
        @p bra SMALL;
        add.u32 r2, r2, 7; xor.b32 r3, r2, r1;
        bra JOIN;
    SMALL:
        sub.u32 r2, r2, 9; shl.b32 r3, r2, 2;
    JOIN:
        add.u32 r1, r2, r3; @!p add.u32 r1, r1, 1; add.u32 r3, r1, r1;
        ret;
    }";

    fn launch() -> Launch {
        let module = ptx::parse("k.ptx", PTX).expect("valid PTX");
        let binding = Binding {
            grid: [1; 3],
            block: [40, 1, 1],
            dynamic_shared: 0,
            params: &[],
            globals: &[],
            const_bank: None,
            textures: &[],
            surfaces: &[],
            registers: None,
            cluster: None,
            addresses: Arc::new(AddressMap::default()),
        };
        Launch::bind(&module, &module.kernels[0], &binding).expect("a kernel without parameters")
    }

    fn words(warp: &Warp) -> Vec<u64> {
        let mut words = Vec::new();
        warp.each_word(&mut |word| words.push(word));
        words
    }

    fn step(warp: &mut Warp, inst: &Inst, launch: &Launch) {
        let lanes = warp.guarded(inst);
        match inst.op {
            Op::Branch { target, reconverge } => warp.branch(lanes, target, reconverge),
            Op::Exit => warp.exit(lanes),
            _ => {
                warp.alu(inst, launch, lanes);
                warp.advance();
            }
        }
    }

    #[test]
    fn a_warp_that_defers_is_at_every_step_what_one_is_that_does_not() {
        let launch = launch();
        for (lanes, warp_size) in [(0, 32), (1, 32), (0, 64)] {
            let (mut at_once, mut defers) = (Warp::default(), Warp::default());
            for warp in [&mut at_once, &mut defers] {
                warp.start(&launch, 0, lanes, warp_size);
            }
            let mut most = 0;
            while !at_once.is_done() {
                let inst = &launch.kernel.code[at_once.pc() as usize];
                step(&mut at_once, inst, &launch);
                if inst.is_free() {
                    defers.defer(&launch);
                } else {
                    defers.catch_up(&launch);
                    step(&mut defers, inst, &launch);
                }
                most = most.max(defers.deferred);
                assert_eq!(words(&defers.caught_up(Some(&launch))), words(&at_once), "{inst:?}");
            }
            assert!(defers.is_done() && most >= 2, "a stretch of {most} instructions");
        }
    }
}
