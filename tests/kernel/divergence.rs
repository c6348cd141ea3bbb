//! SIMT execution against a scalar reference: random nested programs with ifs, loops, breaks, early exits and guarded
//! instructions must leave in every thread what that thread computes alone, and structured control flow must reconverge:
//! at the end every lane that has not exited is active.

use crate::ptx_common::{Setup, run_text};
use proptest::prelude::*;

const VARIABLES: usize = 4;

#[derive(Debug, Clone)]
enum Statement {
    /// v[to] = v[from] * factor + term
    Assign {
        to: usize,
        from: usize,
        factor: u32,
        term: u32,
    },
    /// The same, guarded by a condition.
    Guarded(Condition, usize, u32),
    If(Condition, Vec<Statement>, Vec<Statement>),
    /// Repeats while less than `v[of] & 7` times.
    Loop {
        of: usize,
        body: Vec<Statement>,
    },
    /// Leaves the innermost loop, if there is one.
    Break(Condition),
    /// Goes on with the next turn of the innermost loop, if there is one.
    Continue(Condition),
    /// The thread ends.
    Exit(Condition),
}

/// `v[of] & mask == 0`, or its negation.
#[derive(Debug, Clone, Copy)]
struct Condition {
    of: usize,
    mask: u32,
    negated: bool,
}

impl Condition {
    fn holds(self, v: &[u32; VARIABLES]) -> bool {
        (v[self.of] & self.mask == 0) != self.negated
    }

    /// Code that sets `%p` to it.
    fn text(self) -> String {
        let compare = if self.negated { "ne" } else { "eq" };
        format!("and.b32 %t, %v{}, {}; setp.{compare}.u32 %p, %t, 0;\n", self.of, self.mask)
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    (0..VARIABLES, prop::sample::select(vec![1u32, 2, 3, 5, 8, 0x10]), any::<bool>())
        .prop_map(|(of, mask, negated)| Condition { of, mask, negated })
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let leaf = prop_oneof![
        4 => (0..VARIABLES, 0..VARIABLES, 1u32..9, 0u32..99)
            .prop_map(|(to, from, factor, term)| Statement::Assign { to, from, factor, term }),
        2 => (condition(), 0..VARIABLES, 1u32..99).prop_map(|(c, to, term)| Statement::Guarded(c, to, term)),
        1 => condition().prop_map(Statement::Break),
        1 => condition().prop_map(Statement::Continue),
        1 => condition().prop_map(Statement::Exit),
    ];
    let statement = leaf.prop_recursive(4, 40, 5, |inner| {
        let block = prop::collection::vec(inner, 0..5);
        prop_oneof![
            (condition(), block.clone(), block.clone()).prop_map(|(c, yes, no)| Statement::If(c, yes, no)),
            (0..VARIABLES, block).prop_map(|(of, body)| Statement::Loop { of, body }),
        ]
    });
    prop::collection::vec(statement, 1..7)
}

/// Why a block ended.
#[derive(PartialEq)]
enum End {
    Fell,
    Broke,
    Continued,
    Exited,
}

/// One thread, alone.
fn interpret(block: &[Statement], v: &mut [u32; VARIABLES], in_loop: bool) -> End {
    for statement in block {
        match statement {
            Statement::Assign { to, from, factor, term } => v[*to] = v[*from].wrapping_mul(*factor).wrapping_add(*term),
            Statement::Guarded(c, to, term) => {
                if c.holds(v) {
                    v[*to] = v[*to].wrapping_add(*term);
                }
            }
            Statement::If(c, yes, no) => {
                let end = interpret(if c.holds(v) { yes } else { no }, v, in_loop);
                if end != End::Fell {
                    return end;
                }
            }
            Statement::Loop { of, body } => {
                let turns = v[*of] & 7;
                for _ in 0..turns {
                    match interpret(body, v, true) {
                        End::Broke => break,
                        End::Exited => return End::Exited,
                        End::Fell | End::Continued => {}
                    }
                }
            }
            Statement::Break(c) if in_loop && c.holds(v) => return End::Broke,
            Statement::Continue(c) if in_loop && c.holds(v) => return End::Continued,
            Statement::Exit(c) if c.holds(v) => return End::Exited,
            Statement::Break(_) | Statement::Continue(_) | Statement::Exit(_) => {}
        }
    }
    End::Fell
}

/// The same as PTX.
struct Compiler {
    text: String,
    labels: usize,
}

impl Compiler {
    fn block(&mut self, block: &[Statement], innermost: Option<usize>) {
        for statement in block {
            self.statement(statement, innermost);
        }
    }

    fn statement(&mut self, statement: &Statement, innermost: Option<usize>) {
        self.labels += 1;
        let n = self.labels;
        match statement {
            Statement::Assign { to, from, factor, term } => {
                self.text += &format!("mad.lo.u32 %v{to}, %v{from}, {factor}, {term};\n");
            }
            Statement::Guarded(c, to, term) => {
                self.text += &format!("{} @%p add.u32 %v{to}, %v{to}, {term};\n", c.text());
            }
            Statement::If(c, yes, no) => {
                self.text += &format!("{} @!%p bra ELSE{n};\n", c.text());
                self.block(yes, innermost);
                self.text += &format!("bra.uni END{n};\nELSE{n}:\n");
                self.block(no, innermost);
                self.text += &format!("END{n}:\n");
            }
            Statement::Loop { of, body } => {
                self.text += &format!(
                    "{{ .reg .u32 %turn{n}, %turns{n}; .reg .pred %q{n};\n and.b32 %turns{n}, %v{of}, 7; mov.u32 %turn{n}, 0;\n\
                     LOOP{n}: setp.ge.u32 %q{n}, %turn{n}, %turns{n}; @%q{n} bra END{n};\n"
                );
                self.block(body, Some(n));
                self.text += &format!("NEXT{n}: add.u32 %turn{n}, %turn{n}, 1; bra LOOP{n};\nEND{n}: }}\n");
            }
            Statement::Break(c) | Statement::Continue(c) => {
                if let Some(of) = innermost {
                    let to = if matches!(statement, Statement::Break(_)) { "END" } else { "NEXT" };
                    self.text += &format!("{} @%p bra {to}{of};\n", c.text());
                }
            }
            Statement::Exit(c) => {
                self.text += &format!("{} @%p bra.uni LEAVE{n}; bra STAY{n}; LEAVE{n}: exit; STAY{n}:\n", c.text())
            }
        }
    }
}

fn compile(program: &[Statement]) -> String {
    let mut compiler = Compiler { text: String::new(), labels: 0 };
    compiler.block(program, None);
    format!(
        ".visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 %in, %out; .reg .u32 %tid, %t, %v<{VARIABLES}>; .reg .pred %p;\n\
         ld.param.u64 %in, [input]; ld.param.u64 %out, [output]; mov.u32 %tid, %tid.x;\n\
         mad.wide.u32 %in, %tid, 16, %in; mad.wide.u32 %out, %tid, 32, %out;\n\
         ld.global.v4.u32 {{%v0, %v1, %v2, %v3}}, [%in];\n{}\
         activemask.b32 %t; st.global.u32 [%out+16], %t;\n\
         st.global.v4.u32 [%out], {{%v0, %v1, %v2, %v3}};\nret;\n}}\n",
        compiler.text
    )
}

const THREADS: usize = 80;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_lane_computes_what_its_thread_computes_alone(program in statements(), seed in any::<u32>()) {
        let text = compile(&program);
        let start: Vec<[u32; VARIABLES]> = (0..THREADS as u32)
            .map(|t| std::array::from_fn(|i| (t ^ seed).wrapping_mul(0x9e37_79b1).rotate_left(8 * i as u32)))
            .collect();
        let input: Vec<u8> = start.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        let ends: Vec<Option<[u32; VARIABLES]>> = start
            .iter()
            .map(|v| {
                let mut v = *v;
                (interpret(&program, &mut v, false) != End::Exited).then_some(v)
            })
            .collect();
        // Without `exit` in a branch of its own the join of two paths is where they meet in the text.
        for warp_size in [32, 64] {
            let setup = Setup { input: &input, output: 32 * THREADS, shape: (1, THREADS as u32), warp_size, ..Setup::default() };
            let ran = run_text(&text, &setup);
            prop_assert!(ran.result.is_ok(), "{:?}\n{text}", ran.result);
            let found = ran.u32s();
            for (t, end) in ends.iter().enumerate() {
                let words = &found[8 * t..8 * t + 5];
                match end {
                    None => prop_assert_eq!(words, [0; 5], "thread {} has ended\n{}", t, text),
                    Some(v) => {
                        prop_assert_eq!(&words[..4], v, "thread {}\n{}", t, text);
                        let group = t / 32 * 32;
                        let alive: u32 = (group..(group + 32).min(THREADS))
                            .map(|other| u32::from(ends[other].is_some()) << (other - group))
                            .sum();
                        prop_assert_eq!(words[4], alive, "thread {} has not joined the others\n{}", t, text);
                    }
                }
            }
        }
    }
}
