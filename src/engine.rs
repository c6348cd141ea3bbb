//! A conservative parallel discrete-event engine that knows no GPU.
//!
//! Components own all of their state and meet only by timestamped messages over links of latency >= 1 tick.
//! See `ARCHITECTURE.md` for the rules; each file below states its own.

pub mod component;
pub mod time;

pub use component::{Component, ComponentId, Ctx, Message, Port, Progress, Wait};
pub use time::{Clock, Time, Timebase};
