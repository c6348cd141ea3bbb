//! The host program: what each kind of step does, in which order, and how a run ends that cannot go on.

use crate::workload_common::{ADD_AND_TAKE, folder, resolve};
use durawarp::kernel::functional::Limits;
use durawarp::kernel::host::{HostAction, HostProgram};
use durawarp::workload::Resolved;

/// `sum_parts`: what an argument of several fields holds, added up.
const SUM_PARTS: &str = "
.visible .entry sum_parts(.param .align 8 .b8 parts[24], .param .u64 out)
{
    .reg .u32 %r<4>; .reg .u64 %d<3>;
    ld.param.u64 %d0, [parts];
    ld.param.u32 %r0, [parts+8];
    ld.param.s16 %r1, [parts+12];
    ld.param.u64 %d1, [parts+16];
    ld.global.u32 %r2, [%d0];
    add.u32 %r0, %r0, %r1;
    add.u32 %r0, %r0, %r2;
    ld.global.u32 %r2, [%d1];
    add.u32 %r0, %r0, %r2;
    ld.param.u64 %d2, [out];
    st.global.u32 [%d2], %r0;
    ret;
}
";

const BUFFERS: &str = r#"schema = 1
name = "host"
description = "steps"
isa = { kind = "ptx", file = "kernel.ptx" }
[params]
N = 4
[buffer.a]
type = "u32"
len = "N"
init = { kind = "iota" }
[buffer.b]
type = "u32"
len = "N"
init = { kind = "const", value = 10 }
[buffer.left]
type = "u32"
len = 1
init = { kind = "const", value = 4 }
[buffer.sum]
type = "u32"
len = 1
"#;

fn made(test: &str, steps: &str) -> Result<Resolved, String> {
    let manifest = format!("{BUFFERS}{steps}");
    let kernels = format!("{ADD_AND_TAKE}{SUM_PARTS}");
    resolve(&folder(test, &[("workload.toml", &manifest), ("kernel.ptx", &kernels)]))
}

/// Final contents of `a`, `b`, `left` and `sum`, and the number of launches; or why the run could not go on.
fn run(test: &str, steps: &str) -> Result<([Vec<u32>; 4], usize), String> {
    let resolved = made(test, steps).unwrap_or_else(|faults| panic!("{test}: {faults}"));
    let run = resolved.run_functional(&Limits::default()).map_err(|error| {
        let text = error.to_string();
        text.rsplit_once("workload.toml:").map_or(text.clone(), |(_, fault)| fault.to_owned())
    })?;
    let content = |name: &str| {
        let bytes = resolved.dump(name, run.memory(), run.bindings()).unwrap();
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    Ok((["a", "b", "left", "sum"].map(content), run.launches().len()))
}

const ADD: &str = "kernel = \"add\"\ngrid = \"ceil_div(N, 2)\"\nblock = 2\n";
const TAKE: &str = "kernel = \"take\"\ngrid = 1\nblock = 1\nargs = [\"&left\", \"&sum\"]\n";

#[test]
fn steps_and_loops_run_in_file_order() {
    let steps = format!(
        "[[step]]\n{ADD}args = [\"&a\", 1, \"N\"]\n\
         [[loop]]\ncount = 3\nvar = \"t\"\n[[loop.step]]\n{ADD}args = [\"&a\", \"t\", \"N\"]\n\
         [[step]]\ncopy = \"a\"\nto = \"b\"\ncount = 2\nfrom_index = 1\nto_index = 2\n\
         [[step]]\nfill = \"a\"\nvalue = \"N * 5\"\nindex = 3\n"
    );
    let ([a, b, ..], launches) = run("order", &steps).unwrap();
    assert_eq!((a, b, launches), (vec![4, 5, 6, 20], vec![10, 10, 5, 6], 4));
}

#[test]
fn a_counted_loop_may_run_no_time_and_its_sizes_may_follow_its_variable() {
    let none = format!("[[loop]]\ncount = \"N - 4\"\n[[loop.step]]\n{TAKE}");
    assert_eq!(run("none", &none).unwrap().1, 0);
    // Iteration t adds 1 to the first t + 1 elements.
    let growing = "[[loop]]\ncount = \"N\"\nvar = \"t\"\n[[loop.step]]\nkernel = \"add\"\ngrid = \"t + 1\"\nblock = 1\n\
                   args = [\"&b\", 1, \"grid.x\"]\n";
    assert_eq!(run("growing", growing).unwrap().0[1], [14, 13, 12, 11]);
    let negative = format!("[[loop]]\ncount = \"N - 5\"\n[[loop.step]]\n{TAKE}");
    assert_eq!(run("negative", &negative).unwrap_err(), "23:9: `count` is negative: -1");
}

#[test]
fn loops_nest_and_keep_their_own_variables() {
    let steps = format!(
        "[[loop]]\ncount = 2\nvar = \"outer\"\n[[loop.loop]]\ncount = \"outer + 1\"\nvar = \"inner\"\n\
         [[loop.loop.step]]\n{ADD}args = [\"&b\", \"100 * outer + inner\", \"N\"]\n\
         [[loop.step]]\n{ADD}args = [\"&a\", 1, \"N\"]\n"
    );
    let ([a, b, ..], launches) = run("nested", &steps).unwrap();
    assert_eq!((a, b, launches), (vec![2, 3, 4, 5], vec![10 + 100 + 101; 4], 5));
}

#[test]
fn an_until_loop_tests_after_its_body_and_a_while_loop_before() {
    let until = format!("[[loop]]\nuntil = {{ buffer = \"left\", eq = 0 }}\nmax = 9\n[[loop.step]]\n{TAKE}");
    assert_eq!(run("until", &until).unwrap(), ([vec![0, 1, 2, 3], vec![10; 4], vec![0], vec![6]], 4));
    let at_once = format!("[[loop]]\nuntil = \"@left[0] < 100\"\n[[loop.step]]\n{TAKE}");
    assert_eq!(run("until-once", &at_once).unwrap().1, 1);
    let not_once = format!("[[loop]]\nwhile = {{ buffer = \"left\", gt = 100 }}\n[[loop.step]]\n{TAKE}");
    assert_eq!(run("while-none", &not_once).unwrap().1, 0);
    let not_all = format!("[[loop]]\nwhile = \"@left[0] > 1 && @sum[0] < 5\"\n[[loop.step]]\n{TAKE}");
    assert_eq!(run("while", &not_all).unwrap().0[3], [5]);
}

#[test]
fn a_loop_that_does_not_converge_ends_with_its_place() {
    let until = format!("[[loop]]\nuntil = {{ buffer = \"left\", eq = 0 }}\nmax = 3\n[[loop.step]]\n{TAKE}");
    assert_eq!(
        run("until-max", &until).unwrap_err(),
        "22:1: the loop did not converge: `@left[0] == 0` after 3 iterations (`max` is the limit)"
    );
    let exact = format!("[[loop]]\nuntil = {{ buffer = \"left\", eq = 0 }}\nmax = 4\n[[loop.step]]\n{TAKE}");
    assert_eq!(run("until-exact", &exact).unwrap().1, 4);
    let exact = format!("[[loop]]\nwhile = {{ buffer = \"left\", ne = 0 }}\nmax = 4\n[[loop.step]]\n{TAKE}");
    assert_eq!(run("while-exact", &exact).unwrap().1, 4);
    let short = format!("[[loop]]\nwhile = {{ buffer = \"left\", ne = 0 }}\nmax = 3\n[[loop.step]]\n{TAKE}");
    assert!(run("while-max", &short).unwrap_err().contains("did not converge"));
}

#[test]
fn a_loop_s_before_runs_with_every_iteration() {
    let steps = format!(
        "[[loop]]\ncount = 3\nbefore = [{{ fill = \"sum\", value = 0 }}]\n[[loop.step]]\n{TAKE}\
         [[step]]\npersist = []\n"
    );
    assert_eq!(run("before", &steps).unwrap().0[3], [1]);
}

#[test]
fn a_swap_exchanges_what_names_stand_for() {
    let odd = format!(
        "[[loop]]\ncount = 3\n[[loop.step]]\n{ADD}args = [\"&a\", 100, \"N\"]\n[[loop.step]]\nswap = [\"a\", \"b\"]\n"
    );
    // a, b, a were written under the name `a`; after three swaps `a` is the memory that began as `b`.
    let ([a, b, ..], _) = run("swap", &odd).unwrap();
    assert_eq!((a, b), (vec![110; 4], vec![200, 201, 202, 203]));
}

#[test]
fn the_host_reads_sizes_from_the_device() {
    let steps =
        "[[step]]\nkernel = \"add\"\ngrid = \"ceil_div(@left[0], 3)\"\nblock = 1\nargs = [\"&b\", \"@a[N - 1]\", 9]\n";
    assert_eq!(run("device", steps).unwrap().0[1], [13, 13, 10, 10]);
    let zero = "[[step]]\nkernel = \"add\"\ngrid = \"@sum[0]\"\nblock = 1\nargs = [\"&b\", 1, 9]\n";
    assert_eq!(
        run("device-zero", zero).unwrap_err(),
        "24:8: a size of `grid` must be 1 to 2147483647 here, `@sum[0]` is 0"
    );
    let outside = "[[step]]\nkernel = \"add\"\ngrid = \"@a[N]\"\nblock = 1\nargs = [\"&b\", 1, 9]\n";
    assert_eq!(
        run("device-outside", outside).unwrap_err(),
        "24:9: `@a[N]`: index 4 is outside the buffer's 4 elements"
    );
}

#[test]
fn structures_pass_by_value_as_c_lays_them_out() {
    let steps = "[[step]]\nkernel = \"sum_parts\"\ngrid = 1\nblock = 1\n\
                 args = [{ struct = [\"&a + 3\", { u32 = \"N * 100\" }, { i16 = -50 }, \"&b\"] }, \"&sum\"]\n";
    assert_eq!(run("struct", steps).unwrap().0[3], [3 + 400 - 50 + 10]);
}

#[test]
fn a_program_s_fault_names_its_place() {
    let beyond = "[[step]]\nkernel = \"add\"\ngrid = 2\nblock = 4\nargs = [\"&a\", 1, 8]\n";
    let resolved = made("beyond", beyond).unwrap();
    let error = resolved.run_functional(&Limits::default()).unwrap_err().to_string();
    assert!(error.contains("add") && error.contains("`a`, which has 16 bytes"), "{error}");
}

#[test]
fn what_does_not_fit_a_buffer_is_refused() {
    let copy = "[[step]]\ncopy = \"a\"\nto = \"b\"\nto_index = 2\n";
    assert_eq!(run("copy", copy).unwrap_err(), "22:1: 4 elements from element 2 do not fit buffer `b`");
    let fill = "[[step]]\nfill = \"a\"\nvalue = 1\nindex = 2\ncount = 3\n";
    assert_eq!(run("fill", fill).unwrap_err(), "22:1: 3 elements from element 2 do not fit buffer `a`");
    let value = "[[step]]\nfill = \"a\"\nvalue = \"0 - 1\"\n";
    assert_eq!(run("value", value).unwrap_err(), "24:9: -1 does not fit u32 (0 to 4294967295)");
}

#[test]
fn ctas_are_counted_before_the_run_where_that_is_possible() {
    let counted = format!("[[loop]]\ncount = 5\n[[loop.step]]\n{ADD}args = [\"&a\", 1, \"N\"]\n");
    assert_eq!(made("counted", &counted).unwrap().total_ctas(), Some(10));
    let until = format!("[[loop]]\nuntil = \"@left[0] == 0\"\n[[loop.step]]\n{TAKE}");
    assert_eq!(made("uncounted", &until).unwrap().total_ctas(), None);
}

#[test]
fn the_host_asks_for_exactly_what_its_expressions_read() {
    let steps = format!("[[loop]]\nwhile = \"@left[0] > 9 || @sum[0] > 0\"\n[[loop.step]]\n{TAKE}");
    let resolved = made("reads", &steps).unwrap();
    let mut host = resolved.host();
    let read = |action: HostAction| match action {
        HostAction::Read { address, bytes } => {
            resolved.addresses().containing(address, address + u64::from(bytes) - 1).unwrap().name.clone()
        }
        other => format!("{other:?}"),
    };
    assert_eq!(read(host.next(None).unwrap()), "left");
    // The first half holds: the second is not read.
    assert!(matches!(host.next(Some(10)).unwrap(), HostAction::Launch(_)));
    assert_eq!(read(host.next(None).unwrap()), "left");
    assert_eq!(read(host.next(Some(9)).unwrap()), "sum");
    assert!(matches!(host.next(Some(0)).unwrap(), HostAction::Done));
}
