//! AGPM: which way log updates take, decided from the locality that they and the kernel's other accesses have had.
//!
//! Source: AGPM section IV. So far: the reasoning of Tables II and III ([`reason`]). The buffers that count localities, and
//! the sites that act on a decision, are not there yet; `agpm` is not in the catalogue before they are.

pub mod parameters;
pub mod reason;
