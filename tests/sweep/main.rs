//! Sweeps, their store of results, figures of them, and the papers that are reproduced by them.

#[path = "../cli/cli_common.rs"]
mod cli_common;
mod samples;
#[path = "samples/xml.rs"]
mod xml;

mod agpm_counting;
mod browser;
mod campaigns;
mod drawings;
mod figures;
mod reproduce;
mod reproduce_broi;
mod reproduce_lightwsp;
mod reproduce_lightwsp_cpu;
mod reproduce_scoped;
mod reproduced;
mod store;
