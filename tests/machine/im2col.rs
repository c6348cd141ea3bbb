//! Pixels and rows of tensors on the timed machine: the kernels of `tests/kernel/im2col.rs` by maps of a
//! manifest, equal to the functional driver's values, at any number of threads and from checkpoints; what
//! they take; what is a fault.

use super::clusters::{goes_on, ran, same_at_any_threads, small, workload};
use durawarp::outcome::{End, Outcome};
use durawarp::run::{Conduct, Recipe, run};
use tempfile::TempDir;

const KERNELS: &str = include_str!("../kernel/ptx/im2col.ptx");

/// A convolution of 3 x 3 in steps of 2 over 3 images of 9 x 7, in 4 CTAs; a shift of 2 images of 8 x 6 by 12
/// CTAs; 32 rows that 8 CTAs take elsewhere. `corner` is the lower one of the convolution.
fn all(corner: &str) -> (TempDir, Recipe) {
    let buffer =
        |name: &str, len: &str, init: &str| format!("[buffer.{name}]\ntype = \"u32\"\nlen = \"{len}\"\n{init}\n");
    let hashed = "init = { kind = \"expr\", expr = \"idx * 7919 % 100003\" }";
    let buffers = [
        buffer("x", "8 * 9 * 7 * 3", hashed),
        buffer("weights", "9 * 8 * 8", "init = { kind = \"expr\", expr = \"idx * 31 % 101\" }"),
        buffer("out", "5 * 4 * 3 * 8", ""),
        buffer("images", "8 * 8 * 6 * 2", hashed),
        buffer("shifted", "8 * 8 * 6 * 2", ""),
        buffer("rows", "24 * 32", hashed),
        buffer("moved", "24 * 40", ""),
        buffer("sums", "24 * 40", ""),
        // Every row once, in another order; then one row twice in a CTA, others that are not there.
        buffer(
            "order",
            "64",
            "init = { kind = \"expr\", expr = \"idx < 32 ? idx * 5 % 32 : idx == 35 ? 17 : (idx * 5 + 15) % 42\" }",
        ),
    ];
    let pixels = "lower_corner = [0, 0], upper_corner = [0, 0]";
    let steps = format!(
        "[[step]]\nkernel = \"convolve\"\ngrid = 4\nblock = 128\n\
         args = [{{ tensor_map = \"x\", sizes = [8, 9, 7, 3], channels = 8, pixels = 16, lower_corner = {corner}, \
         upper_corner = [-1, -1], steps = [1, 2, 2, 1] }}, \"&weights\", \"&out\", \"5\", \"4\", \"60\", \"3\", \"2\", \"1\", \"1\"]\n\
         [[step]]\nkernel = \"shift\"\ngrid = 12\nblock = 1\n\
         args = [{{ tensor_map = \"images\", sizes = [8, 8, 6, 2], channels = 8, pixels = 8, {pixels}, swizzle = \"32B\" }}, \
         {{ tensor_map = \"shifted\", sizes = [8, 8, 6, 2], channels = 8, pixels = 8, {pixels}, swizzle = \"32B\" }}, \"8\", \"6\"]\n\
         [[step]]\nkernel = \"regroup\"\ngrid = 8\nblock = 1\n\
         args = [{{ tensor_map = \"rows\", sizes = [24, 32], box = [16, 1] }}, \
         {{ tensor_map = \"moved\", sizes = [24, 40], box = [16, 1] }}, \
         {{ tensor_map = \"sums\", sizes = [24, 40], box = [16, 1] }}, \"&order\", \"32\"]\n"
    );
    workload(KERNELS, &buffers.concat(), &steps, "\"out\", \"shifted\", \"moved\", \"sums\"")
}

#[test]
fn pixels_and_rows_are_those_of_the_functional_driver() {
    let (_folder, recipe) = all("[-1, -1]");
    let outcome = ran(small(recipe));
    assert_eq!(outcome.end, End::Finished);
    let check = outcome.verification.as_ref().unwrap();
    assert!(check.passed, "{:?}", check.failures);
    let counted = |name: &str| outcome.total("bulk", name);
    let copies = ["bulk_loads", "bulk_stores", "bulk_reductions", "bulk_prefetches"].map(counted);
    assert_eq!(copies, [4 * 9 + 12 + 8, 8, 12 + 8, 12]);
    // 16 and 8 pixels of 32 bytes, four rows of 64.
    assert_eq!(counted("bulk_bytes"), 4 * 9 * 512 + 12 * 3 * 256 + 8 * 3 * 256);
}

#[test]
fn pixels_that_lie_one_behind_the_other_share_requests() {
    let (_folder, recipe) = all("[-1, -1]");
    let outcome = ran(small(recipe));
    // `shift` reads 8 pixels of 32 bytes a CTA, the last of which is outside: two lines, as the first is the
    // second of its row; its prefetch asks for two whole lines. `regroup` reads rows of 96 bytes from byte 16
    // on, of which every fourth lies in one line alone.
    let of_shift = 12 * 2 + 12 * 2;
    let rows = (0..32).map(|row| 1 + u64::from((row * 96 + 16) % 128 + 64 > 128)).sum::<u64>();
    // Of every pixel of the convolution a line: they are 64 bytes and more apart. But the last pixel of an
    // image, which the filter's middle has, and the first one of the next lie one behind the other, in one line:
    // two copies have such a pair.
    let mut of_convolution = 0;
    for pixel in 0..64 {
        for tap in 0..9 {
            let at = |place: i32, tap: i32, size: i32| (0..size).contains(&(2 * place - 1 + tap));
            let there = at(pixel % 5, tap % 3, 9) && at(pixel / 5 % 4, tap / 3, 7) && pixel / 20 < 3;
            of_convolution += u64::from(there);
        }
    }
    assert_eq!(outcome.total("bulk", "bulk_reads"), of_convolution - 2 + of_shift + rows);
}

#[test]
fn maps_of_pixels_may_lie_in_global_memory() {
    let (_folder, recipe) = all("[-1, -1]");
    let by_value = ran(small(recipe));
    // `shift` by two maps that steps make in a buffer.
    let (folder, recipe) = all("[-1, -1]");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (mut text, mut manifest) = (read("kernel.ptx"), read("workload.toml"));
    let (before, shift) = text.split_once(".entry shift(").unwrap();
    let (shift, after) = shift.split_once(".visible").unwrap();
    let mut shift = shift.to_owned();
    for (map, register) in [("from", "%rd1"), ("to", "%rd2")] {
        let cvta = format!("mov.b64 {register}, {map};\n    cvta.param.u64 {register}, {register};");
        assert!(shift.contains(&cvta));
        shift = shift.replace(&cvta, &format!("ld.param.u64 {register}, [{map}];"));
        shift = shift.replace(&format!(".param .align 64 .b8 {map}[128]"), &format!(".param .u64 {map}"));
    }
    text = format!("{before}.entry shift({shift}.visible{after}");
    let step = manifest.find("[[step]]\nkernel = \"shift\"").unwrap();
    let (first, second) =
        (manifest[step..].find("{ tensor_map").unwrap(), manifest[step..].find("{ tensor_map = \"shifted").unwrap());
    let (first, second) = (step + first, step + second);
    let end = |from: usize| from + manifest[from..].find('}').unwrap() + 1;
    let maps = [&manifest[first..end(first)], &manifest[second..end(second)]].map(str::to_owned);
    let encoded: String = maps
        .iter()
        .enumerate()
        .map(|(n, map)| format!("[[step]]\nencode = \"maps\"\nindex = \"16 * {n}\"\nmap = {map}\n"))
        .collect();
    let [from, to] = &maps;
    manifest = manifest.replace(from, "\"&maps\"").replace(to, "\"&maps + 16\"");
    manifest.insert_str(step, &encoded);
    let buffer = "[buffer.maps]\ntype = \"u64\"\nlen = 32\n";
    manifest = manifest.replace("[buffer.images]", &format!("{buffer}[buffer.images]"));
    std::fs::write(folder.path().join("kernel.ptx"), text).unwrap();
    std::fs::write(folder.path().join("workload.toml"), manifest).unwrap();
    let outcome = ran(small(recipe));
    assert_eq!(outcome.end, End::Finished);
    let check = outcome.verification.as_ref().unwrap();
    assert!(check.passed, "{:?}", check.failures);
    let counted = |outcome: &Outcome, name: &str| outcome.total("bulk", name);
    // A load, a prefetch and a reduction of 12 CTAs; a map is a line.
    assert_eq!([counted(&by_value, "bulk_map_reads"), counted(&outcome, "bulk_map_reads")], [0, 36]);
    for name in ["bulk_bytes", "bulk_loads", "bulk_reductions"] {
        assert_eq!(counted(&by_value, name), counted(&outcome, name), "{name}");
    }
}

#[test]
fn no_race_is_found_where_copies_are_waited_for_and_one_where_they_are_not() {
    let races = |waits: bool| {
        let (folder, recipe) = all("[-1, -1]");
        let file = folder.path().join("kernel.ptx");
        let text = std::fs::read_to_string(&file).unwrap();
        let wait = "@!%p2 bra $wait;";
        assert!(text.contains(wait));
        let text = if waits { text } else { text.replace(wait, "") };
        std::fs::write(&file, text).unwrap();
        let experiment = small(recipe).build().unwrap_or_else(|faults| panic!("{faults}"));
        let outcome = run(&experiment, &Conduct { races: true, ..Conduct::default() }).outcome;
        outcome.races.expect("they are looked for").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(races(true), [""; 0]);
    let found = races(false);
    assert!(found.iter().any(|race| race.contains("kernel `convolve`")), "{found:#?}");
}

#[test]
fn pixels_and_rows_are_the_same_at_every_number_of_threads_and_from_checkpoints() {
    let (_folder, recipe) = all("[-1, -1]");
    same_at_any_threads(&small(recipe.clone()), "pixels and rows");
    let resumed = goes_on(small(recipe), (5..100).step_by(12));
    assert!(resumed > 3, "{resumed}");
}

#[test]
fn a_first_pixel_outside_of_its_box_is_a_fault_of_the_copy() {
    let (_folder, recipe) = all("[0, -1]");
    match ran(small(recipe)).end {
        End::Finished => panic!("it has no fault"),
        end => {
            let told = format!("{end:?}");
            let expected = "the first pixel lies at -1 of dimension 1, outside of the map's box of pixels: 0 to 7";
            assert!(told.contains(expected), "{told}");
        }
    }
}
