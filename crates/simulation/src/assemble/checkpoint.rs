//! A machine between two rounds as bytes, and back into one that was assembled anew.
//!
//! How far the host program is comes first: launches follow from it, and components name them by their
//! numbers. The scheme reads the messages of its handlers. Machines of cores refuse: their components cannot
//! be saved yet.

use std::sync::Arc;

use super::Assembly;
use durawarp_checkpoint::{Context, LoadFault, StateReader, StateWriter};
use durawarp_engine::{ComponentId, load_simulation, save_simulation};
use durawarp_machine::command_processor::CommandProcessor;
use durawarp_machine::ports::Endpoint;
use durawarp_persist::Scheme;

/// Everything that changes while a machine runs.
///
/// # Errors
/// Something of it cannot be saved.
pub fn save(machine: &Assembly) -> Result<Vec<u8>, LoadFault> {
    if machine.id(Endpoint::CommandProcessor).is_none() {
        return Err(LoadFault::new("a machine of CPU cores"));
    }
    let host = machine.command_processor();
    let mut context = Context::default();
    context.provide(host.live_launches());
    let mut out = StateWriter::new(context);
    host.save_program(&mut out);
    save_simulation(&machine.simulation, &mut out);
    out.finish()
}

/// Takes a machine that has not run as far as one that was saved.
///
/// # Errors
/// The bytes are of another machine, program or scheme. The machine is of no use then.
pub fn load(machine: &mut Assembly, scheme: &Arc<dyn Scheme>, bytes: &[u8]) -> Result<(), LoadFault> {
    let mut from = StateReader::new(bytes, Context::default());
    from.provide(scheme.clone());
    let id = machine.id(Endpoint::CommandProcessor).ok_or_else(|| LoadFault::new("a machine of CPU cores"))?;
    let launches = host_of(machine, id)?.load_program(&mut from).map_err(|fault| fault.within("host program"))?;
    from.provide(launches);
    load_simulation(&mut machine.simulation, &mut from)?;
    from.end()
}

fn host_of(machine: &mut Assembly, id: ComponentId) -> Result<&mut CommandProcessor, LoadFault> {
    let host: &mut dyn std::any::Any = machine.simulation.component_mut(id);
    host.downcast_mut().ok_or_else(|| LoadFault::new("the machine's command processor is watched"))
}
