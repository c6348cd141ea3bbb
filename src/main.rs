//! The `durawarp` command: arguments and exit codes only.

fn main() {}
