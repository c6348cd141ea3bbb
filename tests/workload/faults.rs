//! Every class of faults in a manifest, each with its exact place, what was expected, and advice.
//!
//! A test changes one thing in a sound manifest and looks at all the faults that come out.

use crate::workload_common::{folder, load, resolve, shown};
use durawarp::workload::{Choice, Workload};

const PTX: &str = "
.version 6.0
.target sm_60
.address_size 64
.const .align 4 .b8 table[16];
.visible .entry scale(.param .u64 from, .param .u64 to, .param .f32 factor, .param .u32 n) { ret; }
.visible .entry by_value(.param .align 8 .b8 graph[24], .param .u64 out) { ret; }
";

const SOUND: &str = r#"schema = 1
name = "sample"
description = "a sound manifest"
[isa]
kind = "ptx"
file = "kernel.ptx"
[params]
N = 64
F = 1.5
[profile.small]
N = 8
[buffer.src]
type = "f32"
len = "N * 2"
init = { kind = "uniform", lo = 0.0, hi = 1.0 }
[buffer.dst]
type = "f32"
len = "N * 2"
space = "pm"
role = "output"
[buffer.flag]
type = "i32"
len = 1
[[step]]
kernel = "scale"
grid = "ceil_div(N, 32)"
block = [32]
args = ["&src", "&dst + N", "F", "N"]
[[loop]]
count = 3
var = "t"
[[loop.step]]
kernel = "by_value"
grid = "t + 1"
block = 32
args = [{ struct = ["&src", "&dst", { u32 = "N" }, { i32 = -1 }] }, "&flag"]
[[verify]]
buffer = "dst"
ref = { kind = "expr", expr = "src[idx] * 0.0" }
"#;

/// Each change is (line, old, new); the expected faults come in the order of their places.
fn check(test: &str, changes: &[(usize, &str, &str)], expected: &[&str]) {
    let mut lines: Vec<String> = SOUND.lines().map(str::to_owned).collect();
    for (line, old, new) in changes {
        let text = &mut lines[line - 1];
        assert!(text.contains(old), "line {line} is `{text}`");
        *text = text.replacen(old, new, 1);
    }
    let folder = folder(test, &[("workload.toml", &lines.join("\n")), ("kernel.ptx", PTX)]);
    let found = resolve(&folder).map(|_| String::new()).unwrap_or_else(|faults| faults);
    assert_eq!(found, expected.join("\n"), "{test}");
}

#[test]
fn the_sample_is_sound() {
    check("sound", &[], &[]);
}

#[test]
fn a_stack_has_from_16_bytes_to_256_kib() {
    let stack = |found: &str, expected: &[&str]| {
        check("stack", &[(5, "\"ptx\"", &format!("\"ptx\"\nstack_bytes = {found}"))], expected);
    };
    stack("16", &[]);
    stack("262144", &[]);
    stack("15", &["6:15: `stack_bytes` must be from 16 to 262144, found 15"]);
    stack("262145", &["6:15: `stack_bytes` must be from 16 to 262144, found 262145"]);
    stack("-1", &["6:15: `stack_bytes` must be an integer from 0, found the integer -1"]);
}

#[test]
fn a_syntax_fault_comes_alone() {
    check(
        "syntax",
        &[(2, "\"sample\"", "sample"), (8, "64", "")],
        &[
            "2:8: string values must be quoted, expected literal string",
            "8:5: string values must be quoted, expected literal string",
        ],
    );
}

#[test]
fn unknown_keys_at_every_level() {
    check(
        "unknown-keys",
        &[
            (3, "description", "descriptoin"),
            (5, "kind", "knid"),
            (14, "len", "length"),
            (15, "lo", "low"),
            (26, "grid", "gird"),
            (30, "count", "cuont"),
            (39, "kind", "sort"),
        ],
        &[
            "1:1: the manifest lacks the key `description`",
            "3:1: unknown key `descriptoin` in the manifest (did you mean `description`?)",
            "4:1: `isa` lacks the key `kind`",
            "5:1: unknown key `knid` in `isa` (did you mean `kind`?)",
            "12:1: buffer `src` lacks the key `len` (only buffers made from a file or a graph have a length of their own)",
            "14:1: unknown key `length` in buffer `src` (its keys are `type`, `fields`, `len`, `space`, `init`, `role`, `of`, `symbol`, `texture`, `surface`, `guard`, `padding`)",
            "15:8: `init` of kind `uniform` lacks the key `lo`",
            "15:28: unknown key `low` in `init` of kind `uniform` (did you mean `lo`?)",
            "24:1: a launch step lacks the key `grid`",
            "26:1: unknown key `gird` in a launch step (did you mean `grid`?)",
            "29:1: a loop needs one of `count`, `until`, `while`, found none",
            "30:1: unknown key `cuont` in a loop (did you mean `count`?)",
            "39:7: `ref` lacks the key `kind` (one of `expr`, `file`, `functional`, `invariant`)",
        ],
    );
}

#[test]
fn wrong_types() {
    check(
        "wrong-types",
        &[
            (1, "1", "\"1\""),
            (8, "64", "\"64\""),
            (14, "\"N * 2\"", "[1]"),
            (19, "\"pm\"", "\"pmm\""),
            (20, "\"output\"", "7"),
        ],
        &[
            "1:10: `schema` must be an integer from 0, found the string \"1\"",
            "8:5: parameter `N` must be a number, found the string \"64\"",
            "14:7: `len` must be a number or an expression in quotes, found a list",
            "19:9: `space` must be one of `dram`, `pm`, `const`, `texture`, found `pmm` (did you mean `pm`?)",
            "20:8: `role` must be one of `input`, `output`, `scratch`, `undo_log`, `tx_flag`, `data`, found the integer 7",
        ],
    );
}

#[test]
fn wrong_expressions() {
    check(
        "expressions",
        &[
            (14, "N * 2", "M * 2"),
            (15, "0.0", "\"1 +\""),
            (18, "N * 2", "N * 2.0"),
            (26, "N, 32", "N 32"),
            (34, "t + 1", "q + 1"),
        ],
        &[
            "14:8: `M` is not defined here (defined here: N, F, grid.x, grid.y, grid.z, block.x, block.y, block.z)",
            "15:37: expected a value, found the end of the expression",
            "18:7: `len` must be an integer, `N * 2.0` is a float (`int(x)` rounds toward zero, `/` between integers already does)",
            "26:20: expected `)`, found `32`",
            "34:9: `q` is not defined here (defined here: N, F, t)",
        ],
    );
}

#[test]
fn unknown_names() {
    check(
        "names",
        &[
            (11, "N", "M"),
            (25, "scale", "scael"),
            (28, "&dst", "&dts"),
            (36, "\"&src\"", "\"&scr\""),
            (38, "dst", "dest"),
            (39, "src", "source"),
        ],
        &[
            "11:1: there is no parameter `M` (declared: `N`, `F`)",
            "25:10: there is no kernel `scael` (did you mean `scale`?)",
            "28:19: there is no buffer `dts` (did you mean `dst`?)",
            "36:23: there is no buffer `scr` (did you mean `src`?)",
            "38:10: there is no buffer `dest` (did you mean `dst`?)",
            "39:32: there is no buffer `source` (buffers: src, dst, flag)",
        ],
    );
}

#[test]
fn arguments_that_do_not_fit() {
    check(
        "args-count",
        &[(28, ", \"N\"]", "]")],
        &[
            "28:8: kernel `scale` takes 4 arguments, found 3 (its parameters are .u64 from, .u64 to, .f32 factor, .u32 n)",
        ],
    );
    check(
        "args-types",
        &[(28, "\"&src\"", "\"N\""), (28, "\"F\"", "\"&flag\""), (28, "\"N\"]", "\"F\"]"), (36, ", { i32 = -1 }", "")],
        &[
            "28:26: parameter `factor` is `.f32` (4 bytes), found an address (8 bytes)",
            "28:35: expected an integer (u32) for parameter `n`, found the float `F` (`int(x)` rounds toward zero)",
        ],
    );
    check(
        "args-typed",
        &[(28, "\"N\"]", "{ u64 = 3 }]"), (36, "{ i32 = -1 }", "-1")],
        &[
            "28:34: parameter `n` is `.u32` (4 bytes), found u64 (8 bytes)",
            "36:52: a part of a structure must be `\"&buffer\"` or say its type (`{u32 = \"N\"}`)",
        ],
    );
}

#[test]
fn sizes_that_cannot_be() {
    check(
        "negative",
        &[(14, "N * 2", "N - 100"), (18, "N * 2", "N - 64")],
        &["14:7: buffer `src` has the negative length -36", "18:7: buffer `dst` has no elements"],
    );
    check(
        "huge",
        &[(14, "N * 2", "N * 1_000_000_000_000"), (18, "N * 2", "pow(N, 11)")],
        &[
            "14:7: buffer `src` with 64000000000000 elements is larger than 512 GiB",
            "18:8: `pow(N, 11)`: integer overflow (beyond 64 bits)",
        ],
    );
    check(
        "grid",
        &[(26, "ceil_div(N, 32)", "N - 64"), (27, "[32]", "[32, 64]"), (35, "32", "2048")],
        &[
            "26:8: a size of `grid` must be 1 to 2147483647 here, `N - 64` is 0",
            "35:9: a size of `block` must be 1 to 1024 here, `2048` is 2048",
        ],
    );
    check("offset", &[(28, "+ N", "+ N * 3")], &["28:24: index 192 is outside the 128 elements of `dst`"]);
    check("offset-bytes", &[(28, "+ N", "+ bytes(N * 9)")], &["28:31: byte 576 is outside the 512 bytes of `dst`"]);
    check("offset-both", &[(28, "+ N", "+ N + bytes(-260)")], &["28:35: byte -4 is outside the 512 bytes of `dst`"]);
    check(
        "offset-minus",
        &[(28, "+ N", "- N")],
        &["28:23: expected `+` after `&dst` (`&dst + 4` is the address of element 4, `&dst + bytes(4)` of byte 4)"],
    );
    check(
        "offset-names",
        &[(28, "+ N", "+ M + bytes(F)")],
        &[
            "28:25: `M` is not defined here (defined here: N, F, grid.x, grid.y, grid.z, block.x, block.y, block.z)",
            "28:35: an offset in bytes must be an integer, `F` is a float (`int(x)` rounds toward zero, `/` between \
             integers already does)",
        ],
    );
}

#[test]
fn margins_that_cannot_be() {
    check(
        "margins",
        &[(14, "len", "guard = -1\npadding = \"N * 4097\"\nlen"), (18, "len", "guard = \"1.5\"\npadding = \"M\"\nlen")],
        &[
            "20:9: `guard` must be an integer, `1.5` is a float (`int(x)` rounds toward zero, `/` between integers already \
             does)",
            "21:12: `M` is not defined here (defined here: N, F, grid.x, grid.y, grid.z, block.x, block.y, block.z)",
        ],
    );
    check(
        "margins-sizes",
        &[(14, "len", "guard = -1\nlen"), (18, "len", "padding = \"N * 4097\"\nlen")],
        &[
            "14:9: `guard` must be 0 to 1048576 (1 MiB), found -1",
            "19:11: `padding` must be 0 to 262144 (1 MiB), found 262208",
        ],
    );
    check(
        "margins-const",
        &[(14, "len", "space = \"const\"\nsymbol = \"table\"\nguard = 4\nlen")],
        &[
            "16:9: `guard` means nothing in the constant bank, which has no address",
            "31:11: `src` lies in the constant bank, which has no address (kernels read it by its symbol; the host cannot \
             change it)",
            "39:23: `src` lies in the constant bank, which has no address (kernels read it by its symbol; the host cannot \
             change it)",
        ],
    );
}

#[test]
fn files_that_are_missing_or_do_not_fit() {
    check(
        "no-ptx",
        &[(6, "kernel.ptx", "kernle.ptx")],
        &["6:8: cannot read `kernle.ptx`: no such file (did you mean `kernel.ptx`?)"],
    );
    check(
        "no-data",
        &[(15, "kind = \"uniform\", lo = 0.0, hi = 1.0", "kind = \"file\", file = \"src.bin\"")],
        &["15:32: cannot read `src.bin`: no such file"],
    );
}

#[test]
fn values_that_do_not_fit_their_type() {
    check(
        "const",
        &[(23, "len = 1", "len = 1\ninit = { kind = \"const\", value = 3_000_000_000 }")],
        &["24:34: element 0: 3000000000 does not fit i32 (-2147483648 to 2147483647)"],
    );
    check(
        "float",
        &[(23, "len = 1", "len = 1\ninit = { kind = \"const\", value = 0.5 }")],
        &[
            "24:34: an element of an integer buffer must be an integer, `0.5` is a float (`int(x)` rounds toward zero, `/` between integers already does)",
        ],
    );
    check("uniform", &[(15, "hi = 1.0", "hi = \"F - 3\"")], &["15:43: `hi` (-1.5) must be above `lo` (0.0)"]);
}

#[test]
fn loops_need_an_end_and_a_body() {
    check(
        "loop-kinds",
        &[(30, "count = 3", "count = 3\nuntil = \"@flag[0] == 0\"")],
        &["29:1: a loop needs one of `count`, `until`, `while`, found several"],
    );
    check("loop-none", &[(30, "count = 3", "")], &["29:1: a loop needs one of `count`, `until`, `while`, found none"]);
    check(
        "loop-max",
        &[(30, "count = 3", "count = 3\nmax = 7")],
        &["31:7: `max` bounds `until` and `while` loops; a counted loop has its `count`"],
    );
    check(
        "loop-until",
        &[(30, "count = 3", "until = { buffer = \"flag\", index = 0 }")],
        &["30:9: `until` needs one comparison, found 0 (one of `eq`, `ne`, `lt`, `le`, `gt`, `ge`)"],
    );
    check(
        "loop-var",
        &[(31, "t", "N")],
        &[
            "31:7: `N` already has a meaning here (choose another name for the loop's variable)",
            "34:9: `t` is not defined here (defined here: N, F)",
        ],
    );
}

#[test]
fn what_is_not_supported_yet_is_refused() {
    check(
        "not-yet",
        &[(3, "description", "warmup = 3\ndescription"), (29, "[[loop]]", "[[step]]\ncheckpoint = 1\n[[loop]]")],
        &["3:1: `warmup` in the manifest is not supported yet", "31:1: a `checkpoint` step is not supported yet"],
    );
}

#[test]
fn checks_that_mean_nothing() {
    check(
        "check-kind",
        &[(39, "\"expr\"", "\"exprs\"")],
        &[
            "39:16: `kind` must be one of `expr`, `file`, `functional`, `invariant`, found `exprs` (did you mean `expr`?)",
        ],
    );
    check(
        "check-key",
        &[(39, "kind = \"expr\", expr = \"src[idx] * 0.0\"", "kind = \"functional\"")],
        &["38:1: `buffer` means nothing in a check of kind `functional`"],
    );
    check(
        "check-ref",
        &[(39, "kind = \"expr\", expr = \"src[idx] * 0.0\"", "kind = \"rust:bsf_levels\"")],
        &["39:16: there is no reference `bsf_levels` (did you mean `bfs_levels`?)"],
    );
    check(
        "check-args",
        &[(
            39,
            "kind = \"expr\", expr = \"src[idx] * 0.0\"",
            "kind = \"rust:chase\", next = \"src\", hop = 3, start = 0",
        )],
        &[
            "39:7: reference `chase` lacks its argument `hops`",
            "39:16: reference `chase` gives integers, the buffer holds floats",
            "39:37: `src` must be a buffer of integers",
            "39:44: reference `chase` has no argument `hop` (did you mean `hops`?)",
        ],
    );
}

#[test]
fn extents_are_named_only_where_they_are_known() {
    check("extents", &[(14, "N * 2", "grid.x * block.x * 2"), (39, "0.0", "grid.x")], &[]);
    check(
        "extents-late",
        &[(14, "N * 2", "grid.x"), (26, "N, 32", "len(src), 32")],
        &["14:7: `grid` and `block` are not known here: the first launch's depend on lengths of buffers"],
    );
    check(
        "extents-never",
        &[(15, "hi = 1.0", "hi = \"grid.x\""), (26, "ceil_div(N, 32)", "@flag[0]"), (39, "0.0", "block.x")],
        &[
            "15:43: `grid` and `block` are not known here: no first launch has extents that are known before the run",
            "39:31: `grid` and `block` are not known here: no first launch has extents that are known before the run",
        ],
    );
}

#[test]
fn choices_that_cannot_be() {
    let folder = folder("choices", &[("workload.toml", SOUND), ("kernel.ptx", PTX)]);
    let workload = load(&folder).unwrap();
    let faults = |choice: Choice| shown(&folder, &workload.resolve(&choice).unwrap_err());
    let profile = |name: &str| Choice::of_profile(name);
    assert_eq!(faults(profile("smal")), "workload `sample` has no profile `smal` (did you mean `small`?)");
    let set = |values: &[(&str, &str)]| {
        let params = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Choice { params: params.collect(), ..Choice::default() }
    };
    assert_eq!(
        faults(set(&[("n", "3"), ("N", "x"), ("N", "1.5")])),
        "--set params.N=1.5: parameter `N` is an integer, found the float 1.5\n\
         --set params.N=x: `x` is not a number\n\
         --set params.n=3: workload `sample` has no parameter `n` (did you mean `N`?)"
    );
    let input =
        |buffer: &str, file: &str| Choice { inputs: vec![(buffer.to_owned(), folder.join(file))], ..Choice::default() };
    assert_eq!(
        faults(input("scr", "kernel.ptx")),
        "--input scr=FOLDER/kernel.ptx: workload `sample` has no buffer `scr` (did you mean `src`?)"
    );
    assert!(faults(input("src", "none.bin")).starts_with("--input src=FOLDER/none.bin: cannot read the file: "));
    std::fs::write(folder.join("short.bin"), [0; 40]).unwrap();
    assert_eq!(
        faults(input("src", "short.bin")),
        "--input src=FOLDER/short.bin: the file holds 10 elements, buffer `src` has 128"
    );
}

#[test]
fn names_and_paths_that_lead_nowhere() {
    let fault = |name: &str| Workload::load(name).unwrap_err().to_string();
    assert_eq!(fault("gem"), "there is no workload `gem`, and no such path (did you mean `gemm`?)");
    assert_eq!(fault("no/such/folder"), "no/such/folder: no such file or folder");
    let folder = folder("empty", &[]);
    let found = fault(&folder.display().to_string()).replace(&folder.display().to_string(), "FOLDER");
    assert_eq!(
        found,
        "FOLDER: the folder has no `workload.toml` (a workload is a folder with that file, see workloads/README.md)"
    );
}

/// Kernels of C++: two of one template, two overloads, one in a namespace.
const MANGLED: &str = "
.version 6.0
.target sm_60
.address_size 64
.visible .entry _Z5saxpyifPfS_(.param .u64 to) { ret; }
.visible .entry _Z4axpyIfEvPT_(.param .u64 to) { ret; }
.visible .entry _Z4axpyIdEvPT_(.param .u64 to) { ret; }
.visible .entry _Z4fillPf(.param .u64 to) { ret; }
.visible .entry _Z4fillPi(.param .u64 to) { ret; }
.visible .entry _ZN4blas3dotEPf(.param .u64 to) { ret; }
.visible .entry plain(.param .u64 to) { ret; }
";

#[test]
fn what_is_stated_of_a_kernel_names_one_that_there_is() {
    let manifest = |fact: &str| {
        format!(
            "schema = 1\nname = \"k\"\ndescription = \"d\"\nisa = {{ kind = \"ptx\", file = \"kernel.ptx\" }}\n\
             [buffer.a]\ntype = \"f32\"\nlen = 4\n{fact}\n\
             [[step]]\nkernel = \"plain\"\ngrid = 1\nblock = 1\nargs = [\"&a\"]\n"
        )
    };
    let stated = |fact: &str| {
        resolve(&folder("stated", &[("workload.toml", &manifest(fact)), ("kernel.ptx", MANGLED)])).map(drop)
    };
    assert_eq!(stated("[kernel.plain]\ncommunicates = true"), Ok(()));
    for (fact, fault) in [
        ("[kernel.plane]\ncommunicates = true", "8:9: there is no kernel `plane` (did you mean `plain`?)"),
        ("[kernel.plain]\ncommunicates = 1", "9:16: `communicates` must be `true` or `false`, found the integer 1"),
        ("[kernel.plain]", "8:1: kernel `plain` lacks the key `communicates`"),
    ] {
        assert_eq!(stated(fact).unwrap_err(), fault);
    }
}

#[test]
fn a_kernel_is_called_by_its_cpp_name_where_one_kernel_has_it() {
    let manifest = |kernel: &str| {
        format!(
            "schema = 1\nname = \"k\"\ndescription = \"d\"\nisa = {{ kind = \"ptx\", file = \"kernel.ptx\" }}\n\
             [buffer.a]\ntype = \"f32\"\nlen = 4\n[[step]]\nkernel = \"{kernel}\"\ngrid = 1\nblock = 1\nargs = [\"&a\"]\n"
        )
    };
    let called = |kernel: &str| {
        let folder = folder("mangled", &[("workload.toml", &manifest(kernel)), ("kernel.ptx", MANGLED)]);
        let run = resolve(&folder)?.run_functional(&durawarp::kernel::functional::Limits::default()).unwrap();
        Ok::<String, String>(run.launches()[0].kernel.clone())
    };
    for (name, symbol) in [
        ("saxpy", "_Z5saxpyifPfS_"),
        ("_Z5saxpyifPfS_", "_Z5saxpyifPfS_"),
        ("axpy<double>", "_Z4axpyIdEvPT_"),
        ("dot", "_ZN4blas3dotEPf"),
        ("blas::dot", "_ZN4blas3dotEPf"),
        ("_Z4fillPi", "_Z4fillPi"),
        ("plain", "plain"),
    ] {
        assert_eq!(called(name).as_deref(), Ok(symbol), "{name}");
    }
    for (name, fault) in [
        ("axpy", "9:10: `axpy` is the name of 2 kernels (one of `axpy<float>`, `axpy<double>`)"),
        ("fill", "9:10: `fill` is the name of 2 kernels (one of `_Z4fillPf`, `_Z4fillPi`)"),
        ("saxpi", "9:10: there is no kernel `saxpi` (did you mean `saxpy`?)"),
        ("_Z5saxpyifPfS", "9:10: there is no kernel `_Z5saxpyifPfS` (did you mean `_Z5saxpyifPfS_`?)"),
        (
            "convolution",
            "9:10: there is no kernel `convolution` (declared: `saxpy`, `axpy<float>`, `axpy<double>`, `_Z4fillPf`, \
             `_Z4fillPi`, `dot`, `plain`)",
        ),
    ] {
        assert_eq!(called(name).unwrap_err(), fault);
    }
}
