//! The manifest of a program of CPUs as data, and its keys.

use std::sync::Arc;

use crate::expr::Expr;
use crate::manifest::buffers::{Param, Profile};
use crate::manifest::names::Names;
use durawarp_base::document::Shape::{self, Any, Expression, Kinds, List, Map, Number, OneOrMany, Text, Whole, Words};
use durawarp_base::document::{Place, optional, required};
use durawarp_riscv::syscalls::File;

/// How the program is started.
pub(crate) const PROGRAM: Shape = Shape::Table(&[
    optional("args", List(&Expression)),
    optional("env", Map(&Expression)),
    optional("threads", Expression),
    optional("memory_mb", Expression),
    optional("pm_mb", Expression),
    optional("stack_kb", Expression),
    optional("files", List(&Text)),
    optional("stdin", Text),
]);

/// A number of the machine, and where it comes from.
const SOURCED: Shape = Shape::Table(&[required("value", Expression), required("source", Text)]);

/// What clients of the server do; names are those of the machine's table `client`.
const CLIENT: Shape = Shape::Table(&[
    optional("transactions", SOURCED),
    optional("write_percent", SOURCED),
    optional("epochs_per_tx", SOURCED),
    optional("plain_epochs", SOURCED),
    optional("bytes_per_epoch", SOURCED),
    optional("compute_ns", SOURCED),
    optional("region_kb", SOURCED),
    optional("addresses", Shape::Table(&[required("value", Words(&["log", "random"])), required("source", Text)])),
]);

/// What the program needs of servers; names are those of the machine's table `nodes`.
const NODES: Shape =
    Shape::Table(&[optional("servers", SOURCED), optional("clients", SOURCED), optional("peer_log_kb", SOURCED)]);

const CHECK: Shape = Shape::Table(&[
    optional("name", Text),
    optional("profile", OneOrMany(&Text)),
    required(
        "ref",
        Kinds(&[
            ("exit_code", &[required("value", Expression)]),
            ("stdout", &[optional("text", Text), optional("file", Text), optional("except", OneOrMany(&Text))]),
            ("functional", &[]),
        ]),
    ),
]);

/// A whole manifest.
pub(crate) const MANIFEST: Shape = Shape::Table(&[
    required("schema", Whole),
    required("name", Text),
    required("description", Text),
    optional("seed", Whole),
    required("isa", Shape::Table(&[required("kind", Words(&["ptx", "riscv"])), required("file", Text)])),
    optional("params", Map(&Number)),
    optional("profile", Map(&Map(&Number))),
    required("program", PROGRAM),
    optional("client", CLIENT),
    optional("nodes", NODES),
    optional("verify", OneOrMany(&CHECK)),
    optional("recovery", Any),
]);

/// How the program recovers what a power failure left; recovery of kernels is a list of steps.
pub(crate) const RECOVERY: Shape = Shape::Table(&[required("args", List(&Expression))]);

/// Keys of manifests of kernels, which a program of CPUs has no use for.
pub(crate) const OF_KERNELS: [&str; 9] =
    ["buffer", "graph", "kernel", "step", "loop", "expect", "instrument", "crash", "recovery_limit"];

/// An argument, or another value.
#[derive(Debug, Clone)]
pub(crate) enum Argument {
    /// As it is: an option, a word.
    Word(String),
    /// The value of an expression.
    Value(Expr),
    /// A word with values in it.
    Joined(Vec<Argument>),
}

/// A parameter of the network: of clients, or of servers.
#[derive(Debug, Clone)]
pub(crate) struct ClientKey {
    /// The machine's key: `client.NAME` or `nodes.NAME`.
    pub(crate) key: String,
    pub(crate) value: Argument,
    pub(crate) source: String,
    pub(crate) place: Place,
}

/// What a check compares with.
#[derive(Debug, Clone)]
pub(crate) enum CheckForm {
    ExitCode(Expr),
    Stdout { text: String, except: Vec<String> },
    Functional,
}

/// A check, and the profiles that it is of; all if none is named.
#[derive(Debug, Clone)]
pub(crate) struct NamedCheck {
    pub(crate) name: String,
    pub(crate) profiles: Vec<String>,
    pub(crate) form: CheckForm,
}

/// Sizes as expressions; defaults where the manifest says none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sizes {
    pub(crate) threads: Option<Expr>,
    pub(crate) memory_mb: Option<Expr>,
    pub(crate) pm_mb: Option<Expr>,
    pub(crate) stack_kb: Option<Expr>,
}

/// What the program finds when it begins, but for sizes.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartForm {
    pub(crate) args: Vec<Argument>,
    /// Names and values of its environment.
    pub(crate) env: Vec<(String, Argument)>,
    pub(crate) files: Vec<File>,
    /// Of these the one that standard input reads.
    pub(crate) stdin: Option<String>,
}

/// A manifest, read.
#[derive(Debug, Clone)]
pub(crate) struct CpuManifest {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) seed: u64,
    pub(crate) params: Vec<Param>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) names: Names,
    pub(crate) sizes: Sizes,
    pub(crate) start: StartForm,
    pub(crate) checks: Vec<NamedCheck>,
    pub(crate) recovery: Option<Vec<Argument>>,
    /// What clients of the server do, and what the program needs of servers; none where the workload is the
    /// program of one machine.
    pub(crate) clients: Vec<ClientKey>,
    /// The executable's content, the name that its faults are told under, and where the manifest names it.
    pub(crate) elf: Arc<Vec<u8>>,
    pub(crate) elf_file: String,
    pub(crate) elf_place: Option<Place>,
}

/// What a user can write, for the test of the page that names it.
#[cfg(test)]
pub(crate) fn shapes() -> [&'static Shape; 2] {
    [&MANIFEST, &RECOVERY]
}
