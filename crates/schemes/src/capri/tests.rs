//! The back-end buffer of a controller by itself, message by message.

use super::*;
use crate::core_regions::messages::{CoreRegion, CoreRegionMessage};
use crate::core_regions::tests::{PLACE, copied, sent};
use crate::entry::values_of;
use durawarp_persist::handler::{ControllerEvent, Outbox, Peer};
use durawarp_persist::{ControllerHandler, Handler};

fn spec(change: impl Fn(&mut CapriSpec)) -> CapriSpec {
    let values = serde_json::Value::Object(values_of::<CapriSpec>(DEFAULTS));
    let mut spec = serde_json::from_value(values).unwrap();
    change(&mut spec);
    spec
}

#[test]
fn a_region_is_written_when_the_last_boundary_is_acknowledged_and_told_when_the_last_write_is_taken() {
    let mut buffer = back_end::BackEndBuffer::new(Arc::new(spec(|_| {})), PLACE);
    let (mut outbox, region) = (Outbox::default(), CoreRegion { core: 1, number: 0 });
    let hears = |buffer: &mut back_end::BackEndBuffer, from, word, outbox: &mut Outbox| {
        buffer.message(from, Box::new(word), outbox);
        sent(outbox)
            .into_iter()
            .filter(|(to, ..)| !matches!(to, Peer::HomeOf(_)))
            .map(|(to, ..)| to)
            .collect::<Vec<_>>()
    };
    let core = Peer::Core(1);
    for line in [0, 64] {
        let store = CoreRegionMessage::Store(region, copied(line));
        assert_eq!(hears(&mut buffer, core, store, &mut outbox), [core]);
    }
    let boundary = CoreRegionMessage::Boundary(region);
    assert_eq!(hears(&mut buffer, core, boundary, &mut outbox), [Peer::Controller(1)]);
    assert!(outbox.flushes().is_empty(), "one early");
    hears(&mut buffer, Peer::Controller(1), CoreRegionMessage::BoundaryAck(region), &mut outbox);
    let flushes: Vec<_> = outbox.flushes().drain(..).collect();
    assert_eq!(flushes.iter().map(|flush| (flush.line, flush.logged)).collect::<Vec<_>>(), [(0, false), (64, false)]);
    // A core asks, and hears of it when the region's core does.
    assert_eq!(hears(&mut buffer, Peer::Core(2), CoreRegionMessage::Asked(region), &mut outbox), []);
    for (flush, told) in flushes.iter().zip([vec![], vec![core, Peer::Core(2)]]) {
        buffer.event(&ControllerEvent::Flushed(flush.token), &mut outbox);
        assert_eq!(sent(&mut outbox).into_iter().map(|(to, ..)| to).collect::<Vec<_>>(), told);
    }
    assert_eq!(hears(&mut buffer, Peer::Core(2), CoreRegionMessage::Asked(region), &mut outbox), [Peer::Core(2)]);
}

#[test]
fn buffers_hold_what_lightwsp_says_a_core_has() {
    let spec = spec(|_| {});
    let entries = u64::from(spec.feb_entries + spec.backend_entries);
    assert_eq!(entries * 3 * 64, BYTES_PER_CORE);
    assert!(spec.faults().is_empty());
    let faults = self::spec(|spec| (spec.backend_entries, spec.path_latency_ns.ps) = (31, 0)).faults();
    assert_eq!(faults.iter().map(|(key, _)| *key).collect::<Vec<_>>(), ["path_latency_ns", "backend_entries"]);
}
