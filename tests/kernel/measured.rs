//! Values that a card gave: conversions at their ties and ends, carry chains, packed integers, `szext`,
//! `lop3` with a predicate. Where the ISA leaves a value open, these decide.
//!
//! The table is `measured_h200.txt`. Each kernel here is the one that ran there: a thread a line.

use crate::ptx_common::{Setup, run_text};

const TABLE: &str = include_str!("measured_h200.txt");

/// One instruction of the table.
struct Measured<'a> {
    /// Width of the destination, and of the sources; `p` is a predicate.
    destination: &'a str,
    sources: Vec<&'a str>,
    instruction: &'a str,
    lines: Vec<(Vec<u64>, u64)>,
}

fn measured(table: &str) -> Vec<Measured<'_>> {
    let mut all: Vec<Measured<'_>> = Vec::new();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or_else(|_| panic!("`{text}` is no number"));
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix('[') {
            let (signature, instruction) = head.split_once("] ").unwrap();
            let (destination, sources) = signature.split_once(" = ").unwrap();
            let sources = sources.split(", ").collect();
            all.push(Measured { destination, sources, instruction, lines: Vec::new() });
        } else {
            let (inputs, output) = line.split_once(" = ").unwrap();
            all.last_mut().unwrap().lines.push((inputs.split(' ').map(number).collect(), number(output)));
        }
    }
    all
}

impl Measured<'_> {
    fn text(&self) -> String {
        let register = |width: &str| if width == "p" { ".pred".to_owned() } else { format!(".b{width}") };
        let mut text = format!(
            ".version 8.6 .target sm_90 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
             .reg .b64 in, out, at; .reg .b32 t, tid, r<9>; .reg .b64 l<9>; .reg .b16 h<9>; .reg .pred p<9>; .reg {} d;\n\
             ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 tid, %tid.x; mul.wide.u32 at, tid, 32;\n\
             add.u64 in, in, at; mul.wide.u32 at, tid, 8; add.u64 out, out, at;\n",
            register(self.destination)
        );
        for (number, (name, width)) in ["a", "b", "c", "e"].iter().zip(&self.sources).enumerate() {
            text += &format!(".reg {} {name}; ld.global.b{width} {name}, [in+{}];\n", register(width), 8 * number);
        }
        text += &format!("{};\n", self.instruction);
        text += &match self.destination {
            "p" => "selp.u32 t, 1, 0, d; st.global.u32 [out], t;".to_owned(),
            width => format!("st.global.b{width} [out], d;"),
        };
        text + " ret; }"
    }
}

#[test]
fn values_are_those_of_a_card() {
    let table = measured(TABLE);
    assert!(table.len() > 100 && table.iter().all(|one| !one.lines.is_empty()));
    let mut wrong = Vec::new();
    for one in &table {
        let word = |inputs: &[u64], number: usize| inputs.get(number).copied().unwrap_or(0);
        let input: Vec<u8> =
            one.lines.iter().flat_map(|(inputs, _)| (0..4).flat_map(|n| word(inputs, n).to_le_bytes())).collect();
        let threads = one.lines.len();
        let setup = Setup { input: &input, output: 8 * threads, shape: (1, threads as u32), ..Setup::default() };
        let ran = run_text(&one.text(), &setup);
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{}: {fault}", one.instruction));
        for ((inputs, expected), found) in one.lines.iter().zip(ran.u64s()) {
            if found != *expected {
                wrong.push(format!("`{}` of {inputs:x?}: {found:x}, not {expected:x}", one.instruction));
            }
        }
    }
    assert!(wrong.is_empty(), "{} values differ from the card's:\n{}", wrong.len(), wrong.join("\n"));
}
