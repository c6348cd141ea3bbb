//! Memory devices: their tables held by code that does not know the model, and a controller by itself beside
//! two other simulators.

mod beside_references;
mod checker;
mod disjoint_banks;
mod held;
mod pages;
mod pairs;
mod random_streams;
mod schedulers;
mod table;
mod violations;
mod wide;
