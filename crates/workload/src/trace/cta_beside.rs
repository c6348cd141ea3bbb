//! The walk through what goes on beside the warps of a CTA: copies of the copy engine, barriers in shared
//! memory, the barrier of the cluster.
//!
//! Source: Accel-Sim 2.0, `trace_driven.cc`. Stores of the copy engine are plain stores to a scheme, whatever
//! labels say of their range.

use super::asynchronous::AsyncStep;
use super::barrier_steps::{BarrierStep, BarrierUse};
use super::beside::GroupOf;
use super::code::TraceVariant;
use super::cta::{AddressPlaces, CtaWalk, WarpWalk};
use super::instruction::TraceLine;
use super::sends::{rank_and_byte, send_address, sent_to, shared_address};
use super::tensor_memory::{TensorUse, committed_to};
use durawarp_kernel::host::GlobalRange;
use durawarp_kernel::ir::BulkKind;
use durawarp_kernel::launch::MAX_SHARED;

/// Bytes of the windows of shared memory of all CTAs of a cluster, in generic addresses.
const WINDOW_BYTES: u64 = 17 << 24;

/// Bytes of a barrier in shared memory.
const BARRIER_BYTES: u32 = 8;

impl<P: AddressPlaces> CtaWalk<'_, P> {
    /// An instruction that goes on beside its warp, or waits for what does. Its lanes are there.
    ///
    /// # Errors
    /// What is wrong with the line; none where the file is not what it was before the run.
    pub(super) fn beside(
        &mut self,
        warp: &mut WarpWalk,
        (template, step): (u32, AsyncStep),
        line: &TraceLine<'_>,
        addresses: &[u64],
    ) -> Result<(), Option<String>> {
        match step {
            AsyncStep::Barrier(of) => return self.barrier(warp, (template, of), line, addresses),
            AsyncStep::Send(_) => return self.send(warp, template, line, addresses),
            AsyncStep::Tensor(TensorUse::CommitTo) => return self.commit_to(warp, template, line, addresses),
            AsyncStep::Tensor(of) => {
                let work = if let TensorUse::Multiply(product) = of { product.work(line) } else { None };
                let multiplies = |(elements, operations)| TraceVariant::Multiply { elements, operations };
                return self.step(warp, (template, work.map_or(TraceVariant::Plain, multiplies)), line.mask);
            }
            AsyncStep::CommitCopies => warp.groups.push(GroupOf::Stores),
            AsyncStep::Copy(_) | AsyncStep::Cluster(_) => {}
        }
        // What follows is of copies: the instruction itself is the same for all.
        self.step(warp, (template, TraceVariant::Plain), line.mask)?;
        if let (AsyncStep::Copy(kind), Some(words)) = (step, line.copy) {
            // What both numbers come to bounds the copy, whichever has those outside.
            let bytes = u64::from(words.bytes) + u64::from(words.outside);
            if bytes > u64::from(MAX_SHARED) {
                return Err(Some(format!("a copy of {bytes} bytes, and shared memory has {MAX_SHARED} at most")));
            }
            // Each address has as many bytes as the others but the last, which has the rest.
            let (mut copy, mut left) =
                self.beside.copy(words, (kind, line.opcode.split('.').any(|token| token == "2CTA")));
            let each = left.div_ceil((addresses.len() as u32).max(1));
            for &address in addresses {
                let bytes = each.min(left);
                if bytes == 0 {
                    break;
                }
                let range = GlobalRange { start: address, bytes: bytes.into() };
                let lies = &mut |piece: GlobalRange| copy.lies_at(piece.start, piece.bytes as u32);
                self.places.stretch(range, lies).map_err(Some)?;
                left -= bytes;
            }
            warp.trace.copy(copy);
            if kind == BulkKind::Load {
                self.beside.bytes.load(words);
                self.places.shared(&mut [rank_and_byte(words.barrier).1], BARRIER_BYTES);
            }
        }
        Ok(())
    }

    /// Lanes execute a variant of an instruction.
    fn step(
        &mut self,
        warp: &mut WarpWalk,
        (template, variant): (u32, TraceVariant),
        lanes: u32,
    ) -> Result<(), Option<String>> {
        let at = self.code.variant(template, variant).ok_or(None)?;
        warp.trace.step(at, lanes);
        Ok(())
    }

    /// Registers that go to shared memory of a CTA, where they complete at a barrier.
    fn send(
        &mut self,
        warp: &mut WarpWalk,
        template: u32,
        line: &TraceLine<'_>,
        addresses: &[u64],
    ) -> Result<(), Option<String>> {
        if addresses.is_empty() {
            return Err(Some(format!("`{}` accesses memory, and the line has no addresses", line.opcode)));
        }
        let bytes = self.code.bytes(template);
        let register = line.values.of(line.results);
        let of_lanes = (0..32).filter(|lane| line.mask >> lane & 1 == 1).zip(addresses);
        let both = of_lanes.map(|(lane, &address)| sent_to(address, register.map(|values| values[lane])));
        let Some(both) = both.collect::<Option<Vec<[u64; 2]>>>() else {
            // The kernel is looked at once more, as one without barriers.
            self.beside.bytes.forget();
            return self.step(warp, (template, TraceVariant::Off), line.mask);
        };
        for (at, bytes) in both.iter().flat_map(|&[data, barrier]| [(data, bytes), (barrier, BARRIER_BYTES)]) {
            let byte = rank_and_byte(at).1;
            if !byte.is_multiple_of(bytes.into()) {
                return Err(Some(format!("address {at:#x} is no multiple of its {bytes} bytes")));
            }
            self.places.shared(&mut [byte], bytes);
        }
        self.step(warp, (template, TraceVariant::Plain), line.mask)?;
        let own = self.beside.rank();
        let at = both.iter().map(|&[data, barrier]| send_address(data, barrier, own));
        warp.trace.access(&at.collect::<Vec<_>>());
        self.beside.bytes.send(u64::from(bytes) * both.len() as u64);
        Ok(())
    }

    /// An arrival behind products in tensor memory, in several CTAs.
    fn commit_to(
        &mut self,
        warp: &mut WarpWalk,
        template: u32,
        line: &TraceLine<'_>,
        addresses: &[u64],
    ) -> Result<(), Option<String>> {
        let Some(&address) = addresses.first() else {
            return Err(Some(format!("`{}` is at a barrier, and the line has no addresses", line.opcode)));
        };
        let Some(ranks) = committed_to(line) else {
            self.beside.bytes.forget();
            return self.step(warp, (template, TraceVariant::Off), line.mask);
        };
        let byte = rank_and_byte(address).1;
        self.barriers_at(&mut [byte])?;
        // It is one of the warp.
        let variant = TraceVariant::CommitTo { at: byte as u32, ranks };
        self.step(warp, (template, variant), line.mask & line.mask.wrapping_neg())?;
        self.beside.bytes.arrive();
        Ok(())
    }

    /// Barriers lie at these bytes of shared memory.
    fn barriers_at(&mut self, bytes: &mut [u64]) -> Result<(), Option<String>> {
        if let Some(byte) = bytes.iter().find(|byte| !byte.is_multiple_of(BARRIER_BYTES.into())) {
            return Err(Some(format!("a barrier at byte {byte:#x}, which is no multiple of {BARRIER_BYTES}")));
        }
        self.places.shared(bytes, BARRIER_BYTES);
        Ok(())
    }

    /// An instruction at a barrier in shared memory.
    fn barrier(
        &mut self,
        warp: &mut WarpWalk,
        (template, of): (u32, BarrierUse),
        line: &TraceLine<'_>,
        addresses: &[u64],
    ) -> Result<(), Option<String>> {
        if addresses.is_empty() {
            return Err(Some(format!("`{}` is at a barrier, and the line has no addresses", line.opcode)));
        }
        let Some(steps) = of.steps(line.mask, line.values, line.results) else {
            self.beside.bytes.forget();
            return self.step(warp, (template, TraceVariant::Plain), line.mask);
        };
        for (lanes, step) in steps {
            let variant = self.code.variant(template, TraceVariant::Barrier(step)).ok_or(None)?;
            // A wait is at a barrier of the own CTA.
            let own = if matches!(step, BarrierStep::Wait(_)) { None } else { self.beside.rank() };
            let of_mask = (0..32).filter(|lane| line.mask >> lane & 1 == 1);
            let of_lanes = of_mask.zip(addresses).filter(|(lane, _)| lanes >> lane & 1 == 1);
            let base = self.header.shared_base;
            let in_window =
                |address: u64| base.and_then(|base| address.checked_sub(base)).filter(|&at| at < WINDOW_BYTES);
            let at: Vec<u64> = of_lanes.map(|(_, &address)| in_window(address).unwrap_or(address)).collect();
            let mut bytes: Vec<u64> = at.iter().map(|&address| rank_and_byte(address).1).collect();
            self.barriers_at(&mut bytes)?;
            warp.trace.step(variant, lanes);
            warp.trace.access(&at.iter().map(|&address| shared_address(address, own)).collect::<Vec<_>>());
            self.beside.bytes.step(lanes.count_ones(), step);
        }
        Ok(())
    }
}
