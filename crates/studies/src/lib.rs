//! Outcomes as tables, figures and pages; papers' experiments beside what they published; sensitivity.
//!
//! | module | what it has |
//! |---|---|
//! | [`report`] | outcomes and sweeps for people: consoles, HTML, CSV, figures |
//! | [`papers`] | the experiments of four papers, and their published values |
//! | [`devices`] | memory devices by themselves, beside two other simulators and arithmetic |
//! | [`sensitivity`] | which parameters a result hangs on |

pub mod devices;
pub mod papers;
pub mod report;
pub mod sensitivity;
