//! What a machine of cores has of persistent memory where its caches survive a power failure: each line from
//! the place that has its newest bytes.
//!
//! | place, the newest last | why it is newer than those before it |
//! |---|---|
//! | memory, with the write queue of its controller | |
//! | writes on their way to it: under way, then held for credit | a home has evicted the line since |
//! | homes | a line that is changed there has come back since, or never left |
//! | messages of cores under way to homes, in the order of their arrival | their core gave the bytes up |
//! | L1s | a core that has changed the line has the only copy |
//!
//! Source: eADR, as LightWSP's ideal of partial persistence has it (section V-D). Invariant: it is asked
//! between two runs, when all messages are in their queues. Not modelled: the battery, and DRAM caches, of
//! which a machine in that domain has none; handlers that hold stores back.

use std::collections::BTreeMap;

use durawarp_kernel::memory::Medium;
use durawarp_machine::address::Interleave;
use durawarp_machine::coherence::{CPU_LINE_BYTES, CPU_LINE_MASK, HomeMsg};
use durawarp_machine::core::Core;
use durawarp_machine::home::HomeSlice;
use durawarp_machine::memory_controller::MemoryController;
use durawarp_machine::msg::{ControllerMsg, MemoryWrite, Msg};

use super::assembly::Assembly;

/// Bytes of a line.
pub type SurvivingLine = [u8; CPU_LINE_BYTES as usize];

/// Lines of the first node, as a power failure leaves them.
#[derive(Debug)]
pub struct SurvivingLines<'a> {
    controllers: Vec<&'a MemoryController>,
    map: Interleave,
    /// Lines of which something beside memory has newer bytes.
    newer: BTreeMap<u64, SurvivingLine>,
}

impl<'a> SurvivingLines<'a> {
    /// Of a machine that is not running. Cost: its caches and messages.
    pub fn of(machine: &'a Assembly) -> SurvivingLines<'a> {
        let node = &machine.nodes[0];
        let controllers = machine.components_of(node).collect();
        let mut lines = SurvivingLines { controllers, map: node.roster.map, newer: BTreeMap::new() };
        let under_way = machine.simulation.under_way();
        let on_their_way = under_way.iter().filter_map(|message| match message {
            Msg::Controller(ControllerMsg::MemoryWrite(write)) => Some(write),
            _ => None,
        });
        // From the oldest place to the newest: each lies over those before it.
        let homes = || machine.components_of::<HomeSlice>(node);
        for MemoryWrite { line, data, .. } in on_their_way.chain(homes().flat_map(HomeSlice::held_writes)) {
            lines.put(*line, &data.bytes, data.mask);
        }
        for (line, bytes, mask) in homes().flat_map(HomeSlice::dirty_lines) {
            lines.put(line, bytes, mask);
        }
        let from_cores = under_way.iter().filter_map(|message| match message {
            Msg::Home(
                HomeMsg::Put { line, data, .. }
                | HomeMsg::ProbeAck { line, dirty: true, room: data, .. }
                | HomeMsg::Clean { line, dirty: true, room: data, .. },
            ) => Some((*line, data)),
            _ => None,
        });
        for (line, data) in from_cores {
            lines.put(line, &data.bytes, CPU_LINE_MASK);
        }
        // The only copy of a line that its core has changed.
        for (line, bytes) in machine.components_of::<Core>(node).flat_map(Core::modified_lines) {
            lines.put(line, bytes, CPU_LINE_MASK);
        }
        lines
    }

    /// A place has bytes of a line that are newer than those of all places before it.
    fn put(&mut self, line: u64, bytes: &[u8], mask: u128) {
        let mut now = self.line(line);
        for (at, byte) in now.iter_mut().enumerate().filter(|(at, _)| mask >> at & 1 == 1) {
            *byte = bytes[at];
        }
        self.newer.insert(line, now);
    }

    /// The bytes of a line.
    ///
    /// # Panics
    /// When no memory has it.
    pub fn line(&self, line: u64) -> SurvivingLine {
        if let Some(&newer) = self.newer.get(&line) {
            return newer;
        }
        let mut bytes = [0; CPU_LINE_BYTES as usize];
        let image = self.controllers[self.map.channel_of(line)].image(Medium::of(line));
        image.read(self.map.in_channel(line) as usize, &mut bytes);
        bytes
    }
}
