//! Whole machines under each address mapping: results stay right, and strides lie where the mapping says.

use crate::bench_machine::{Bench, Ran};
use durawarp::config::{MachineConfig, Override};
use durawarp::kernel::memory::Medium;
use durawarp::machine::mapping::NAMED;
use durawarp::outcome::End;
use durawarp::run::Experiment;

/// Slices and memory that are taken by cuts and hashes, with the slice's bit below the channel.
const CUT: &str = "Ro[1:] Ba[1:] Co Ro[:1] Ch Ba[:1]; Ch slice ^= Ro; Ba = ipoly(Ba, Ro Co)";

fn assert_right(machine: &str, scheme: &str, workload: &str, mapping: &str, sets: &[&str]) {
    let recipe = Experiment::of(workload).machine(machine).scheme(scheme).profile("ci");
    let outcome = recipe.set("controller.mapping", mapping).changes(sets.iter().copied()).run();
    let outcome = outcome.unwrap_or_else(|faults| panic!("{machine} {mapping}: {faults}"));
    assert_eq!(outcome.end, End::Finished, "{machine} {mapping}");
    let verification = outcome.verification.unwrap_or_else(|| panic!("{machine} {mapping}: nothing was verified"));
    assert!(verification.passed, "{machine} {mapping}: {:?}", verification.failures);
}

#[test]
fn results_are_right_under_every_mapping() {
    for mapping in NAMED.map(|(name, _)| name).into_iter().chain([CUT]) {
        // An undo log that sees banks, and memory that survives.
        assert_right("agpm-table4", "agpm", "atax", mapping, &["sm.count=3"]);
        assert_right("lightwsp-gpu", "light-wsp", "kv_store", mapping, &["sm.count=3", "persist.domain=adr"]);
    }
    // Rows of NVM that are as long as a chunk; a cache in DRAM in front of it.
    for mapping in ["RoRaBaChCo", "MOP4CLXOR"] {
        assert_right("lightwsp-cpu", "base", "hash", mapping, &[]);
    }
    // 12 channels.
    for mapping in ["Ro Ba[1:] Co Ba[:1] Ch", "Ro Ba Ch Co; Ba ^= Ro"] {
        assert_right("titan-x", "base", "gemm_tiled", mapping, &["sm.count=3"]);
    }
}

/// 512 threads each load a word, a number of bytes apart.
fn strided(mapping: &str, stride: u32) -> Ran {
    let set = ["sm.count=2".to_owned(), format!("controller.mapping={mapping}")];
    let set = set.map(|text| Override::parse(&text).unwrap());
    let machine = MachineConfig::load("agpm-table4", &set).unwrap_or_else(|faults| panic!("{faults}"));
    let mut bench = Bench::new(machine.spec);
    let (out, a) = (bench.buffer(256, Medium::Dram), bench.buffer(512 * u64::from(stride), Medium::Dram));
    let body = format!(
        "mul.wide.u32 %d1, %id, {stride};
add.s64 %d1, %d1, %a;
ld.global.u32 %r1, [%d1];
setp.eq.s32 %p1, %r1, 77;
@%p1 st.global.u32 [%out], %r1;"
    );
    bench.launch(&body, 2, 256, (out, a, 0, 0));
    bench.run()
}

/// Reads of the channel that has most.
fn most_of_a_channel(ran: &Ran) -> u64 {
    ran.assembly.controllers().map(|controller| controller.counters().dram_reads).max().unwrap_or(0)
}

#[test]
fn a_stride_of_a_power_of_two_stays_on_one_channel_unless_channels_are_hashed() {
    // 8 channels of 256 B each: the stride leaves the channel's bits alone.
    let (plain, hashed, ours) = (strided("RoBaRaCoCh", 2048), strided("gpgpu-ipoly", 2048), strided("ours", 2048));
    assert!(most_of_a_channel(&plain) >= 512, "{}", most_of_a_channel(&plain));
    assert!(most_of_a_channel(&hashed) < 100, "{}", most_of_a_channel(&hashed));
    assert!(most_of_a_channel(&ours) < 120, "{}", most_of_a_channel(&ours));
    let [plain, hashed] = [plain, hashed].map(|ran| ran.seconds(0));
    assert!(plain > hashed * 2.0, "{plain} {hashed}");
}

#[test]
fn a_stride_of_all_banks_has_one_bank_unless_banks_are_hashed() {
    // One channel, one bank of its 16, another row each.
    let of = |mapping| strided(mapping, 8 * 16 * 2048);
    let (plain, hashed) = (of("RoBaRaCoCh"), of("Ro Ba Co Ch; Ba ^= Ro"));
    assert_eq!([plain.mc("activates"), hashed.mc("activates")], [512; 2]);
    assert!(most_of_a_channel(&plain) >= 512 && most_of_a_channel(&hashed) >= 512);
    let [plain, hashed] = [plain, hashed].map(|ran| ran.seconds(0));
    assert!(plain > hashed * 4.0, "{plain} {hashed}");
}
