//! The program as a user meets it: its commands, files, errors and exit codes.

mod cli_common;

mod bounds;
mod checkpoints;
mod commands;
mod compat;
mod config;
mod cpu;
mod crash;
mod docs;
mod imports;
mod messages;
mod monitor;
mod outputs;
mod regions;
mod sampling;
mod scaling;
mod shown;
mod sweep;
mod timeline;
mod tools;
mod traces;
mod walkthrough;
