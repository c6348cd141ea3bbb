//! The manifest as data; the readers ([`read`](super::read)) make it from a well-formed document.
//!
//! | file | what it has |
//! |---|---|
//! | `schema` | the keys of a manifest |
//! | `source` | the folder of a workload, its files, its PTX modules |
//! | `element` | types of elements; elements as bytes |
//! | `buffers`, `steps`, `checks`, `instrument` | the sections |
//! | `names` | variables that expressions may name, and their slots |
//!
//! Every expression is compiled, every name is a number: buffers, parameters and graphs are indexed in file
//! order.

pub(crate) mod buffers;
pub(crate) mod checks;
pub(crate) mod element;
pub(crate) mod instrument;
pub(crate) mod names;
pub(crate) mod schema;
pub(crate) mod source;
pub(crate) mod steps;
pub(crate) mod tensor;

use buffers::{Buffer, Graph, Param, Profile};
use checks::{Check, CrashForm, Expectation};
use instrument::Instrument;
use names::Names;
use steps::{HostStep, RecoveryForm};

/// A manifest, read.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) seed: u64,
    pub(crate) params: Vec<Param>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) graphs: Vec<Graph>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) steps: Vec<HostStep>,
    pub(crate) checks: Vec<Check>,
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) instrument: Option<Instrument>,
    pub(crate) recovery: RecoveryForm,
    pub(crate) conditions: Vec<CrashForm>,
    pub(crate) names: Names,
}
