//! What buffers hold before the first step: generators, graphs, files, seeds, and the user's own inputs.

use crate::workload_common::{folder, load, resolve};
use durawarp::workload::{Choice, Resolved};

const PTX: &str = "
.version 6.0
.target sm_60
.address_size 64
.visible .entry none() { ret; }
";

/// A manifest of buffers, with a kernel that does nothing.
fn manifest(buffers: &str) -> String {
    format!(
        "schema = 1\nname = \"t\"\ndescription = \"d\"\nisa = {{ kind = \"ptx\", file = \"kernel.ptx\" }}\n{buffers}\n\
         [[step]]\nkernel = \"none\"\ngrid = 1\nblock = 32\nargs = []\n"
    )
}

fn made(test: &str, buffers: &str) -> Resolved {
    let folder = folder(test, &[("workload.toml", &manifest(buffers)), ("kernel.ptx", PTX)]);
    resolve(&folder).unwrap_or_else(|faults| panic!("{faults}"))
}

fn bytes(resolved: &Resolved, buffer: &str) -> Vec<u8> {
    let host = resolved.host();
    resolved.dump(buffer, &resolved.image(), &host.bindings()).unwrap_or_else(|fault| panic!("{fault}"))
}

fn u32s(resolved: &Resolved, buffer: &str) -> Vec<u32> {
    bytes(resolved, buffer).chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn f32s(resolved: &Resolved, buffer: &str) -> Vec<f32> {
    u32s(resolved, buffer).into_iter().map(f32::from_bits).collect()
}

/// FNV-1a, to pin contents that are too long to write down.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn simple_generators_say_every_element() {
    let made = made(
        "simple",
        r#"
[params]
N = 4
[buffer.zero]
type = "u32"
len = "N"
[buffer.const]
type = "f32"
len = "N"
init = { kind = "const", value = 2.5 }
[buffer.iota]
type = "u32"
len = "N"
init = { kind = "iota", start = "N", step = 3 }
[buffer.expr]
type = "u32"
len = "N"
init = { kind = "expr", expr = "idx * idx + len(iota)" }
[buffer.matrix]
type = "f32"
len = "2 * 3"
init = { kind = "affine2d", expr = "10 * i + j / 2.0", cols = 3 }
[buffer.lcg]
type = "u32"
len = 3
init = { kind = "lcg", modulo = 100, seed = 7 }
"#,
    );
    assert_eq!(u32s(&made, "zero"), [0; 4]);
    assert_eq!(f32s(&made, "const"), [2.5; 4]);
    assert_eq!(u32s(&made, "iota"), [4, 7, 10, 13]);
    assert_eq!(u32s(&made, "expr"), [4, 5, 8, 13]);
    assert_eq!(f32s(&made, "matrix"), [0.0, 0.5, 1.0, 10.0, 10.5, 11.0]);
    // x' = 6364136223846793005 x + 1442695040888963407, upper halves, modulo 100.
    assert_eq!(u32s(&made, "lcg"), [2_118_330_556 % 100, 4_104_526_463 % 100, 3_893_713_506_u32 % 100]);
}

#[test]
fn expressions_have_their_value_in_every_element_also_where_others_are_guarded_against_faults() {
    let made = made(
        "long",
        r#"
[buffer.matrix]
type = "u32"
len = 1000
init = { kind = "affine2d", expr = "i * 1000 + j + idx % 13", cols = 7 }
[buffer.guarded]
type = "i32"
len = 1000
init = { kind = "expr", expr = "idx == 700 ? 5 : 7000 / (idx - 700)" }
"#,
    );
    assert_eq!(u32s(&made, "matrix"), (0..1000).map(|idx| idx / 7 * 1000 + idx % 7 + idx % 13).collect::<Vec<_>>());
    let guarded = (0..1000).map(|idx| if idx == 700 { 5 } else { (7000 / (idx - 700)) as u32 });
    assert_eq!(u32s(&made, "guarded"), guarded.collect::<Vec<_>>());
}

#[test]
fn structures_are_laid_out_as_c_does_and_each_field_has_its_init() {
    let made = made(
        "fields",
        r#"
[buffer.sample]
len = 2
[[buffer.sample.fields]]
name = "tag"
type = "u8"
init = { kind = "iota", start = 5 }
[[buffer.sample.fields]]
name = "weight"
type = "u32"
init = { kind = "const", value = 258 }
[[buffer.sample.fields]]
name = "last"
type = "u16"
"#,
    );
    assert_eq!(bytes(&made, "sample"), [5, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
}

const RANDOM: &str = r#"
[graph.r]
kind = "rmat"
nodes = 100
edges = 500
max_weight = 9
[graph.u]
kind = "uniform"
nodes = 100
edges = 500
[buffer.real]
type = "f32"
len = 1000
init = { kind = "uniform", lo = -1.0, hi = 1.0 }
[buffer.whole]
type = "i32"
len = 1000
init = { kind = "uniform", lo = -5, hi = 5 }
[buffer.order]
type = "u32"
len = 1000
init = { kind = "permutation" }
[buffer.ring]
type = "u32"
len = 1000
init = { kind = "chase" }
[buffer.rmat]
type = "u32"
init = { kind = "csr_graph", graph = "r", part = "col" }
[buffer.cost]
type = "u32"
init = { kind = "csr_graph", graph = "r", part = "weight" }
[buffer.flat]
type = "u32"
init = { kind = "csr_graph", graph = "u", part = "col" }
"#;

#[test]
fn random_contents_are_the_same_for_ever() {
    let made = made("golden", RANDOM);
    let found = made.buffer_names().map(|name| format!("{name} {:016x}", hash(&bytes(&made, name))));
    let found: Vec<String> = found.collect();
    // A change here changes every result that was ever published: it needs a very good reason.
    assert_eq!(found.join("\n"), GOLDEN.trim());
}

const GOLDEN: &str = "
real e0d2ea593a2bbe14
whole c6d4974d1e93cb81
order 2245dac2b4d46645
ring c0c885f1f6dfd285
rmat 34d9840263c82ba5
cost bd9b25d7ef9b8e71
flat 5c36b3e4d5fc43d5
";

#[test]
fn random_contents_are_in_range_and_follow_the_run_s_seed() {
    let folder = folder("seeds", &[("workload.toml", &manifest(RANDOM)), ("kernel.ptx", PTX)]);
    let workload = load(&folder).unwrap_or_else(|faults| panic!("{faults}"));
    let with = |seed: u64| workload.resolve(&Choice { seed, ..Choice::default() }).unwrap();
    let (first, again, other) = (with(0), with(0), with(1));
    for name in first.buffer_names() {
        assert_eq!(bytes(&first, name), bytes(&again, name), "{name}");
        assert_ne!(bytes(&first, name), bytes(&other, name), "{name}");
    }
    let real = f32s(&first, "real");
    assert!(
        real.iter().all(|x| (-1.0..1.0).contains(x)) && real.iter().any(|x| *x < -0.9) && real.iter().any(|x| *x > 0.9)
    );
    let whole: Vec<i32> = u32s(&first, "whole").into_iter().map(|x| x as i32).collect();
    assert_eq!((whole.iter().min(), whole.iter().max()), (Some(&-5), Some(&4)));
}

#[test]
fn every_part_of_a_graph_agrees_with_the_others() {
    let made = made(
        "parts",
        r#"
[graph.road]
kind = "road_grid"
width = 3
height = 2
max_weight = 4
[buffer.row]
type = "u32"
init = { kind = "csr_graph", graph = "road", part = "row_ptr" }
[buffer.col]
type = "u32"
init = { kind = "csr_graph", graph = "road", part = "col" }
[buffer.weight]
type = "u32"
init = { kind = "csr_graph", graph = "road", part = "weight" }
[buffer.degree]
type = "u32"
init = { kind = "csr_graph", graph = "road", part = "degree" }
[buffer.source]
type = "u32"
init = { kind = "csr_graph", graph = "road", part = "source" }
[buffer.sizes]
type = "u32"
len = 2
init = { kind = "expr", expr = "idx == 0 ? road.nodes : road.edges" }
"#,
    );
    assert_eq!(u32s(&made, "sizes"), [6, 14]);
    assert_eq!(u32s(&made, "row"), [0, 2, 5, 7, 9, 12, 14]);
    assert_eq!(u32s(&made, "degree"), [2, 3, 2, 2, 3, 2]);
    let (source, col, weight) = (u32s(&made, "source"), u32s(&made, "col"), u32s(&made, "weight"));
    assert_eq!(source, [0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5]);
    for (edge, (from, to)) in source.iter().zip(&col).enumerate() {
        let back = source.iter().zip(&col).position(|(a, b)| (a, b) == (to, from)).expect("both directions");
        assert_eq!(weight[edge], weight[back]);
        assert!((1..=4).contains(&weight[edge]));
    }
}

#[test]
fn graphs_and_buffers_come_from_files() {
    let npy =
        b"\x93NUMPY\x01\x00\x3a\x00{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }\n\x07\0\0\0\x08\0\0\0";
    let folder = folder(
        "files",
        &[
            (
                "workload.toml",
                &manifest(
                    r#"
[graph.map]
kind = "file"
file = "map.gr"
[buffer.col]
type = "u32"
init = { kind = "csr_graph", graph = "map", part = "col" }
[buffer.raw]
type = "u16"
init = { kind = "file", file = "raw.bin" }
[buffer.npy]
type = "u32"
len = 2
init = { kind = "file", file = "a.npy" }
"#,
                ),
            ),
            ("kernel.ptx", PTX),
            ("map.gr", "c x\np sp 3 2\na 1 3 7\na 3 2 9\n"),
        ],
    );
    std::fs::write(folder.join("raw.bin"), [1, 2, 3, 4]).unwrap();
    std::fs::write(folder.join("a.npy"), npy).unwrap();
    let made = resolve(&folder).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(u32s(&made, "col"), [2, 1]);
    assert_eq!(bytes(&made, "raw"), [1, 2, 3, 4]);
    assert_eq!(u32s(&made, "npy"), [7, 8]);

    std::fs::write(folder.join("raw.bin"), [1, 2, 3]).unwrap();
    std::fs::write(folder.join("map.gr"), "p sp 3 2\na 1 9 7\n").unwrap();
    assert_eq!(
        resolve(&folder).unwrap_err(),
        "8:8: `map.gr`: line 2: node 9 is not in 1 to 3\n\
         14:32: `raw.bin`: 3 bytes are no whole number of u16 elements of 2"
    );
}

#[test]
fn the_user_s_files_and_parameters_replace_the_manifest_s() {
    let buffers = r#"
[params]
N = 4
SCALE = 1.0
[profile.big]
N = 8
[buffer.a]
type = "u32"
len = "N"
init = { kind = "iota" }
[buffer.b]
type = "f32"
len = "N"
init = { kind = "expr", expr = "idx * SCALE" }
"#;
    let folder = folder("inputs", &[("workload.toml", &manifest(buffers)), ("kernel.ptx", PTX)]);
    let workload = load(&folder).unwrap_or_else(|faults| panic!("{faults}"));
    let file = folder.join("mine.bin");
    std::fs::write(&file, [9, 0, 0, 0].repeat(6)).unwrap();
    let choice = Choice {
        profile: Some("big".to_owned()),
        params: vec![("N".to_owned(), "6".to_owned()), ("SCALE".to_owned(), "2".to_owned())],
        inputs: vec![("a".to_owned(), file)],
        ..Choice::default()
    };
    let made = workload.resolve(&choice).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(u32s(&made, "a"), [9; 6]);
    assert_eq!(f32s(&made, "b"), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    let described = serde_json::to_value(made.describe()).unwrap();
    assert_eq!(described["params"], serde_json::json!({ "N": 6, "SCALE": 2.0 }));
    let big = Choice::of_profile("big");
    assert_eq!(u32s(&workload.resolve(&big).unwrap(), "a").len(), 8);
    assert_eq!(u32s(&workload.resolve(&Choice::default()).unwrap(), "a").len(), 4);
}
