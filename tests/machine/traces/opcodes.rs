//! Opcodes of traces: every one that NVIDIA lists is read, in a trace of an architecture that has it.

use super::run;
use durawarp::Experiment;
use durawarp::outcome::{End, Outcome};

/// A heading for each list: the architectures that have it.
const OPCODES: &str = include_str!("sass-opcodes.txt");

/// What a trace of one warp comes to that executes each of these opcodes once, with an address.
fn traced(architecture: &str, opcodes: &[&str]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let line =
        |(at, opcode): (usize, &&str)| format!("{:04x} 00000001 1 R4 {opcode} 2 R8 R16 4 0 0x7f0000001000\n", 16 * at);
    let lines: String = opcodes.iter().enumerate().map(line).collect();
    let text = format!(
        "-kernel name = every\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-shmem = 65536\n-shmem base_addr = 0x7f0000000000\n\
         -binary version = {architecture}\n-accelsim tracer version = 5\n#\n#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n\
         insts = {}\n{lines}ffff ffffffff 0 EXIT 0 0 0\n#END_TB\n",
        opcodes.len() + 1
    );
    let path = folder.path().join("kernel-1.traceg");
    std::fs::write(&path, text).unwrap();
    run(Experiment::of(path.display().to_string()).machine("ampere-a100"))
}

#[test]
fn every_opcode_that_nvidia_lists_is_read() {
    let mut lists = 0;
    for list in OPCODES.split("\n[").skip(1) {
        let (architectures, names) = list.split_once("]\n").unwrap();
        // What ends the warp is at its end.
        let opcodes: Vec<&str> = names.split_whitespace().filter(|name| *name != "EXIT").collect();
        assert!(opcodes.len() > 150, "{architectures}");
        for architecture in architectures.split(' ') {
            let outcome = traced(architecture, &opcodes);
            assert_eq!(outcome.end, End::Finished, "sm_{architecture}");
            assert_eq!(outcome.warp_instructions(), opcodes.len() as u64 + 1, "sm_{architecture}");
            lists += 1;
        }
    }
    assert_eq!(lists, 9, "architectures");
}

#[test]
fn what_no_unit_serves_is_counted_and_told() {
    let outcome = traced("90", &["HGMMA", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "UCGABAR_ARV", "IADD3"]);
    let stood_in = serde_json::json!({ "HGMMA as NOP": 1, "SYNCS as NOP": 1, "UCGABAR_ARV as NOP": 1 });
    assert_eq!(outcome.workload["trace"]["stood_in"], stood_in);
    let told = "1 HGMMA as NOP, 1 SYNCS as NOP, 1 UCGABAR_ARV as NOP";
    assert!(outcome.validity.iter().any(|caveat| caveat.text.ends_with(told)), "{:?}", outcome.validity);
}
