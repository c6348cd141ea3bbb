//! A machine between two rounds as bytes, and back into one that was assembled anew.
//!
//! Of a machine with a GPU how far the host program is comes first: launches follow from it, and components
//! name them by their numbers. The scheme reads the messages of its handlers.

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
    let host = machine.id(Endpoint::CommandProcessor).map(|_| machine.command_processor());
    let mut context = Context::default();
    host.into_iter().for_each(|host| context.provide(host.live_launches()));
    let mut out = StateWriter::new(context);
    host.into_iter().for_each(|host| host.save_program(&mut out));
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
    if let Some(id) = machine.id(Endpoint::CommandProcessor) {
        let launches = host_of(machine, id)?.load_program(&mut from).map_err(|fault| fault.within("host program"))?;
        from.provide(launches);
    }
    load_simulation(&mut machine.simulation, &mut from)?;
    from.end()
}

fn host_of(machine: &mut Assembly, id: ComponentId) -> Result<&mut CommandProcessor, LoadFault> {
    let host: &mut dyn std::any::Any = machine.simulation.component_mut(id);
    host.downcast_mut().ok_or_else(|| LoadFault::new("the machine's command processor is watched"))
}
