//! Which registers may still be read, at every instruction of the whole program.
//!
//! Calls and returns are followed, not summed up by a calling convention: what is live before a call is what
//! its function reads or leaves alone, and what is live at a return is what any caller of this function
//! reads afterwards. Code of assembly without a convention is right by this, too. Where a call is indirect,
//! every function may be meant, and every function may return behind it. Where control may go anywhere, and
//! in unknown code, every register is live.
//!
//! What is assumed: a return goes behind a call of its function (`graph` says which jumps are returns), and a
//! `jalr` that links goes to where a symbol is or to unknown code.

use super::graph::{Flow, Graph, NONE};
use super::terms::{ALL, ALWAYS, RegisterSet, written};
use crate::instruction::{A0, A7, Op};

/// Registers that a system call reads: its number and arguments.
const SYSTEM_CALL: RegisterSet = 1 << A7 | 0x3f << A0;

/// Registers that are live before each node.
pub(super) fn live_in(graph: &Graph) -> Vec<RegisterSet> {
    let mut live = vec![ALWAYS; graph.nodes.len()];
    let mut at_return = vec![0; graph.functions.len()];
    // What is live at an indirect call, and at the return from one.
    let (mut anyones, mut anywhere) = (0, if graph.unknown_calls { ALL } else { 0 });
    let of = |live: &[RegisterSet], node: u32| if node == NONE { ALL } else { live[node as usize] };
    loop {
        let mut changed = false;
        let mut grow = |set: &mut RegisterSet, by: RegisterSet| {
            changed |= by & !*set != 0;
            *set |= by;
        };
        for at in (0..graph.nodes.len()).rev() {
            let node = &graph.nodes[at];
            let out = match node.flow {
                Flow::Next => of(&live, node.next),
                Flow::Branch => of(&live, node.next) | of(&live, node.target),
                Flow::Jump | Flow::Call => of(&live, node.target),
                Flow::CallAny => anyones,
                Flow::JumpAny => ALL,
                Flow::Return => at_return[node.function as usize],
                Flow::End => 0,
            };
            let read = node.inst.sources().iter().fold(0, |set, source| set | 1 << source);
            let read = if node.inst.op == Op::Ecall { SYSTEM_CALL } else { read };
            grow(&mut live[at], read | out & !written(&node.inst, graph.exceptions));
            // Who returns behind a call.
            let returns = of(&live, node.next);
            match node.flow {
                Flow::Call if node.target != NONE => {
                    let function = graph.nodes[node.target as usize].function;
                    grow(&mut at_return[function as usize], returns);
                }
                Flow::Call | Flow::CallAny => grow(&mut anywhere, returns),
                Flow::JumpAny => grow(&mut anywhere, at_return[node.function as usize]),
                // Unknown code behind this function returns for it.
                Flow::Next | Flow::Branch | Flow::Jump if node.enters_unknown_code() => {
                    grow(&mut anywhere, at_return[node.function as usize]);
                }
                _ => {}
            }
        }
        for (at, function) in graph.functions.iter().enumerate() {
            if !function.nodes.is_empty() {
                grow(&mut anyones, live[function.nodes.start as usize]);
            }
            grow(&mut at_return[at], anywhere);
        }
        for (from, to) in graph.crossings() {
            let by = at_return[from];
            grow(&mut at_return[to], by);
        }
        if !changed {
            return live;
        }
    }
}
