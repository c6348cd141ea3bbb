//! Kernels of one instruction: parsed, lowered and executed by the functional driver, a case a line.
//!
//! A table has a signature, `"32 = 32, 16"`: widths of the destination `d` and of the sources `a`, `b`, `c`; `p` is a
//! predicate. Upper bits of 16-bit sources are all ones, because nothing may depend on them.

use crate::ptx_common::{Setup, run_text};

pub(crate) type Case<'a> = (&'a str, &'a [u64], u64);

pub(crate) fn check(signature: &str, cases: &[Case<'_>]) {
    let (d, sources) = signature.split_once(" = ").unwrap();
    let sources: Vec<&str> = sources.split(", ").collect();
    for &(instruction, inputs, expected) in cases {
        let text = kernel(d, &sources, instruction);
        let input: Vec<u8> = inputs.iter().flat_map(|v| v.to_le_bytes()).collect();
        let ran = run_text(&text, &Setup { input: &input, output: 8, ..Setup::default() });
        ran.result.as_ref().unwrap_or_else(|e| panic!("{instruction}: {e}"));
        let found = ran.u64s()[0];
        assert_eq!(found, expected, "`{instruction}` of {inputs:#x?}: {found:#x}, not {expected:#x}");
    }
}

fn kernel(d: &str, sources: &[&str], instruction: &str) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 input, .param .u64 output) {\n\
         .reg .b64 in, out; .reg .b32 t, r<9>; .reg .b64 l<9>; .reg .b16 h<9>; .reg .pred p<9>;\n\
         ld.param.u64 in, [input]; ld.param.u64 out, [output];\n",
    );
    let register = |width: &str| if width == "p" { ".pred".to_owned() } else { format!(".b{width}") };
    text += &format!(".reg {} d;\n", register(d));
    for (i, (name, width)) in ["a", "b", "c", "e"].iter().zip(sources).enumerate() {
        text += &format!(".reg {} {name};\n", register(width));
        let at = 8 * i;
        text += &match *width {
            "p" => format!("ld.global.u32 t, [in+{at}]; setp.ne.u32 {name}, t, 0;\n"),
            "16" => {
                format!("ld.global.u16 {name}, [in+{at}]; not.b16 {name}, {name}; xor.b16 {name}, {name}, 0xffff;\n")
            }
            width => format!("ld.global.b{width} {name}, [in+{at}];\n"),
        };
    }
    text += instruction;
    text += ";\n";
    text += match d {
        "p" => "selp.u32 t, 1, 0, d; st.global.u32 [out], t;\n",
        "8" => "st.global.u8 [out], d;\n",
        "16" => "st.global.u16 [out], d;\n",
        "32" => "st.global.b32 [out], d;\n",
        _ => "st.global.b64 [out], d;\n",
    };
    text + "ret;\n}\n"
}

pub(crate) const M1: u64 = u64::MAX;
pub(crate) const W: u64 = 0xffff_ffff;
pub(crate) const MIN32: u64 = 0x8000_0000;
pub(crate) const MIN64: u64 = 1 << 63;

pub(crate) fn f(x: f32) -> u64 {
    u64::from(x.to_bits())
}

pub(crate) fn d(x: f64) -> u64 {
    x.to_bits()
}
