//! Streams of launches, and events between them: the keys `stream`, `record` and `wait` of a step with a
//! kernel.
//!
//! An event is a name. A launch records it when it is over; as its stream runs in order, so is all before it
//! there. A launch waits for the launch that recorded the event last, in the order of the program, and for
//! nothing where none has yet, as `cudaStreamWaitEvent` does. Faults: an event that no step records.

use super::reader::{NamedEvent, Reader, unknown};
use crate::expr::Value;
use crate::manifest::steps::LaunchOrder;
use durawarp_base::document::{Item, Place, TomlTable};

impl Reader<'_> {
    /// The order of a launch among others.
    pub(crate) fn order(&mut self, table: TomlTable<'_>) -> LaunchOrder {
        let stream = table.get("stream").and_then(Item::number).map_or(0, Value::bits);
        let programmatic = table.get("programmatic").and_then(Item::boolean).unwrap_or(false);
        let waits = table.get("wait").map(|item| item.list().unwrap_or_else(|| vec![item])).unwrap_or_default();
        let waits = waits.into_iter().filter_map(|item| Some(self.event(item.text()?, item.place()))).collect();
        let records = table.text("record").map(|(name, place)| self.event(name, place));
        if let Some(event) = records {
            self.events[event].recorded = true;
        }
        LaunchOrder { stream, programmatic, waits, records }
    }

    /// The number of an event.
    fn event(&mut self, name: &str, place: Place) -> usize {
        self.events.iter().position(|event| event.name == name).unwrap_or_else(|| {
            self.events.push(NamedEvent { name: name.to_owned(), recorded: false, place });
            self.events.len() - 1
        })
    }

    /// Finds events that are waited for and never recorded.
    pub(crate) fn check_events(&mut self) {
        let recorded: Vec<&str> = self.events.iter().filter(|event| event.recorded).map(|event| &*event.name).collect();
        let missing = self.events.iter().filter(|event| !event.recorded);
        let faults: Vec<_> =
            missing.map(|event| unknown("event", &event.name, &event.place, recorded.iter().copied())).collect();
        faults.into_iter().for_each(|fault| self.fault(fault));
    }
}
