//! Contents of buffers: initial ones (generators, graphs, files) and references for final ones (algorithms).

pub(crate) mod argument;
pub(crate) mod bplus_tree;
pub(crate) mod data_file;
pub(crate) mod generate;
pub(crate) mod graph;
pub(crate) mod graph_file;
pub(crate) mod random;
pub(crate) mod reference;
