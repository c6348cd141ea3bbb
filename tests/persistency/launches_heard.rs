//! What an L2 slice tells its handler of an access: the place of the launch that made it, whatever else is in flight.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::bench_machine::{Bench, machine};
use crate::decorated::{Decorated, Decorator};
use durawarp::assemble::Persistency;
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::memory::Medium;
use durawarp::persist::{
    Access, AccessKind, Handler, HandlerPlace, HandlerReport, Outbox, Peer, Scheme, SchemeMessage, SliceEvent,
    SliceHandler, SliceInterests,
};
use durawarp::schemes::catalogue;

/// Line, kind and launch of each access, once.
type Heard = Arc<Mutex<BTreeSet<(u64, &'static str, u8)>>>;

#[derive(Debug)]
struct Listening {
    of: Arc<dyn Scheme>,
    heard: Heard,
}

#[derive(Debug)]
struct ListeningSlice {
    of: Box<dyn SliceHandler>,
    heard: Heard,
}

impl Handler for ListeningSlice {
    fn message(&mut self, from: Peer, message: Box<dyn SchemeMessage>, outbox: &mut Outbox) {
        self.of.message(from, message, outbox);
    }

    fn report(&self, report: &mut HandlerReport) {
        self.of.report(report);
    }
}

impl SliceHandler for ListeningSlice {
    fn interests(&self) -> SliceInterests {
        self.of.interests()
    }

    fn event(&mut self, event: &SliceEvent<'_>, outbox: &mut Outbox) {
        if let &SliceEvent::Accessed(&Access { line, kind, launch, .. }) = event {
            let kind = match kind {
                AccessKind::Load => "load",
                AccessKind::Atomic => "atomic",
                _ => "store",
            };
            self.heard.lock().unwrap().insert((line, kind, launch));
        }
        self.of.event(event, outbox);
    }

    fn keeps(&mut self, line: u64, outbox: &mut Outbox) -> bool {
        self.of.keeps(line, outbox)
    }

    fn admits(&mut self, access: &Access, outbox: &mut Outbox) -> bool {
        self.of.admits(access, outbox)
    }
}

impl Decorator for Listening {
    fn of(&self) -> &dyn Scheme {
        &*self.of
    }

    fn slice_handler(&self, place: HandlerPlace) -> Option<Box<dyn SliceHandler>> {
        let of = self.of.slice_handler(place)?;
        Some(Box::new(ListeningSlice { of, heard: self.heard.clone() }))
    }
}

/// Checks that slices hear of what three launches in flight do to lines of their own as of these launches.
fn each_launch_is_heard(overrides: &str) {
    const BYTES: u64 = 65536;
    let body = "mov.u32 %r1, 0;
mul.wide.u32 %d0, %id, 512;
add.u64 %d1, %out, %d0;
AGAIN:
st.global.u32 [%d1], %r1;
ld.global.cg.u32 %r2, [%d1+128];
atom.global.add.u32 %r3, [%d1+256], 1;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 20;
@%p1 bra AGAIN;";
    let mut bench = Bench::new(machine("agpm-table4", &format!("sm.count=4 {overrides}")));
    let out = bench.buffer(3 * BYTES, Medium::Nvm);
    for stream in 0..3u64 {
        bench.launch(body, 2, 32, (out + BYTES * stream, 0, 0, 0)).in_stream(stream, &[]);
    }
    let (of, heard) = (catalogue::find("agpm").unwrap(), Heard::default());
    let scheme = Arc::new(Decorated(Listening { of, heard: heard.clone() }));
    let persistency = Persistency { scheme, overlaps: true, ..Persistency::default() };
    let ran = bench.run_under(&persistency, &RunOptions::default());
    assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
    let heard = heard.lock().unwrap();
    for &(line, kind, launch) in heard.iter() {
        assert_eq!((line - out) / BYTES, u64::from(launch), "{overrides}: a {kind} of {line:#x}");
    }
    let kinds: BTreeSet<(&str, u8)> = heard.iter().map(|&(_, kind, launch)| (kind, launch)).collect();
    assert_eq!(kinds.len(), 9, "{overrides}: three kinds of three launches: {kinds:?}");
    assert_eq!(ran.sm("l1_cleanings") > 0, overrides.contains("combine"), "{overrides}");
}

#[test]
fn loads_stores_and_atomics_are_of_the_launch_that_makes_them() {
    each_launch_is_heard("");
}

#[test]
fn what_a_combining_l1_lets_go_of_is_of_the_launch_that_stored_it() {
    // Lines leave when the launch's last CTA of an SM ends, and, where the S-FIFO has one entry, before that.
    each_launch_is_heard("l1.writes=combine");
    each_launch_is_heard("l1.writes=combine l1.sfifo_entries=1");
}
