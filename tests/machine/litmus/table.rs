//! Litmus programs by name: whether an outcome is allowed by RVWMO, and by total store order.
//!
//! The notation is that of [`super::notation`]. Names are those of the field's families (a fence, a
//! dependency or an annotation of each hart in turn; `s` at the end: of all harts); the verdicts are ours, by
//! the rules of the unprivileged ISA, and a test holds [`super::axioms`] against them.

/// A verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    Forbidden,
}

use Verdict::{Allowed as A, Forbidden as F};

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
    /// The outcome in question.
    pub(crate) outcome: &'static str,
    pub(crate) rvwmo: Verdict,
    pub(crate) tso: Verdict,
}

const fn row(name: &'static str, program: &'static str, outcome: &'static str, rvwmo: Verdict, tso: Verdict) -> Row {
    Row { name, program, outcome, rvwmo, tso }
}

/// The row of a name.
pub(crate) fn named(name: &str) -> &'static Row {
    TABLE.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no litmus program {name}"))
}

/// Name, program, outcome; what RVWMO says of it, what total store order does.
#[rustfmt::skip]
pub(crate) const TABLE: &[Row] = &[
    // Message passing: stores in order, loads in order.
    row("MP", "x=1; y=1 | a=y; b=x", "a=1 b=0", A, F),
    row("MP+fence.w.w+po", "x=1; fence w,w; y=1 | a=y; b=x", "a=1 b=0", A, F),
    row("MP+po-pos", "x=1; y=1 | a=y; b=x; c=z; d=w", "a=1 b=0", A, F),
    row("MP+po+fence.r.r", "x=1; y=1 | a=y; fence r,r; b=x", "a=1 b=0", A, F),
    row("MP+po+addr", "x=1; y=1 | a=y; b=x addr a", "a=1 b=0", A, F),
    row("MP+fence.w.w+fence.r.r", "x=1; fence w,w; y=1 | a=y; fence r,r; b=x", "a=1 b=0", F, F),
    row("MP+fence.rw.rws", "x=1; fence rw,rw; y=1 | a=y; fence rw,rw; b=x", "a=1 b=0", F, F),
    row("MP+fence.rw.w+fence.r.rw", "x=1; fence rw,w; y=1 | a=y; fence r,rw; b=x", "a=1 b=0", F, F),
    row("MP+fence.tsos", "x=1; fence tso; y=1 | a=y; fence tso; b=x", "a=1 b=0", F, F),
    row("MP+fence.w.r+addr", "x=1; fence w,r; y=1 | a=y; b=x addr a", "a=1 b=0", A, F),
    row("MP+fence.r.r+addr", "x=1; fence r,r; y=1 | a=y; b=x addr a", "a=1 b=0", A, F),
    row("MP+fence.w.w+fence.r.w", "x=1; fence w,w; y=1 | a=y; fence r,w; b=x", "a=1 b=0", A, F),
    row("MP+fence.w.w+addr", "x=1; fence w,w; y=1 | a=y; b=x addr a", "a=1 b=0", F, F),
    row("MP+fence.w.w+ctrl", "x=1; fence w,w; y=1 | a=y; if a; b=x", "a=1 b=0", A, F),
    row("MP+fence.w.w+ctrlfencei", "x=1; fence w,w; y=1 | a=y; if a; fence i; b=x", "a=1 b=0", A, F),
    row("MP+fence.w.w+addr-po", "x=1; fence w,w; y=1 | a=y; c=z addr a; b=x", "a=1 b=0", A, F),
    row("MP+fence.w.w+fri-rfi-addr", "x=1; fence w,w; y=1 | a=y; y=2; b=y; c=x addr b", "a=1 b=2 c=0 y=2", A, F),
    row("MP+amoswap.rl+addr", "x=1; c=amoswap.rl y 1 | a=y; b=x addr a", "a=1 b=0", F, F),
    row("MP+amoswap.rl+amoadd.aq", "x=1; c=amoswap.rl y 1 | a=amoadd.aq y 0; b=x", "a=1 b=0", F, F),
    row("MP+amoswap+amoadd", "x=1; c=amoswap y 1 | a=amoadd y 0; b=x", "a=1 b=0", A, F),
    row("MP+amoswap.rl+amoadd", "x=1; c=amoswap.rl y 1 | a=amoadd y 0; b=x", "a=1 b=0", A, F),
    row("MP+amoswap+amoadd.aq", "x=1; c=amoswap y 1 | a=amoadd.aq y 0; b=x", "a=1 b=0", A, F),
    row("MP+amoswap.aq+amoadd.rl", "x=1; c=amoswap.aq y 1 | a=amoadd.rl y 0; b=x", "a=1 b=0", A, F),
    row("MP+amoswap.aqrl+lr.aq", "x=1; c=amoswap.aqrl y 1 | a=lr.aq y; b=x", "a=1 b=0", F, F),
    row("MP+fence.w.w+lr", "x=1; fence w,w; y=1 | a=lr y; b=x", "a=1 b=0", A, F),
    row("MP+sc.rl+addr", "c=lr y; x=1; s=sc.rl y 1 | a=y; b=x addr a", "s=0 a=1 b=0", F, F),
    row("MP+sc+addr", "c=lr y; x=1; s=sc y 1 | a=y; b=x addr a", "s=0 a=1 b=0", A, F),
    row("PPOCA", "x=1; fence w,w; y=1 | a=y; if a; z=1; b=z; c=x addr b", "a=1 b=1 c=0", A, F),
    row("PPOAA", "x=1; fence w,w; y=1 | a=y; z=1 addr a; b=z; c=x addr b", "a=1 b=1 c=0", F, F),
    row("MP+fence.w.w+data-rfi-addr", "x=1; fence w,w; y=1 | a=y; z=1 data a; b=z; c=x addr b", "a=1 b=1 c=0", F, F),
    row("RSW", "x=1; fence w,w; y=1 | a=y; b=z addr a; c=z; d=x addr c", "a=1 b=0 c=0 d=0", A, F),
    row("RDW", "x=1; fence w,w; y=1 | a=y; b=z addr a; c=z; d=x addr c | z=1", "a=1 b=0 c=1 d=0", F, F),
    row("RNSW", "x=1; fence w,w; y=1 | a=y; b=z addr a; c=z; d=x addr c | z=0", "a=1 b=0 c=0 d=0", A, F),
    row("MP+fence.w.w+addr+twice", "x=1; fence w,w; y=1 | a=y; b=x addr a; c=x", "a=1 b=1 c=0", F, F),

    // Store buffering: a store before a load.
    row("SB", "x=1; a=y | y=1; b=x", "a=0 b=0", A, A),
    row("SB+fence.rw.rws", "x=1; fence rw,rw; a=y | y=1; fence rw,rw; b=x", "a=0 b=0", F, F),
    row("SB+fence.w.rs", "x=1; fence w,r; a=y | y=1; fence w,r; b=x", "a=0 b=0", F, F),
    row("SB+fence.w.r+po", "x=1; fence w,r; a=y | y=1; b=x", "a=0 b=0", A, A),
    row("SB+fence.w.ws", "x=1; fence w,w; a=y | y=1; fence w,w; b=x", "a=0 b=0", A, A),
    row("SB+fence.r.rs", "x=1; fence r,r; a=y | y=1; fence r,r; b=x", "a=0 b=0", A, A),
    row("SB+fence.r.rws", "x=1; fence r,rw; a=y | y=1; fence r,rw; b=x", "a=0 b=0", A, A),
    row("SB+fence.tsos", "x=1; fence tso; a=y | y=1; fence tso; b=x", "a=0 b=0", A, A),
    row("SB+rfis", "x=1; a=x; b=y | y=1; c=y; d=x", "a=1 b=0 c=1 d=0", A, A),
    row("SB+rfi-addrs", "x=1; a=x; b=y addr a | y=1; c=y; d=x addr c", "a=1 b=0 c=1 d=0", A, A),
    row("SB+amoswaps", "c=amoswap x 1; a=y | d=amoswap y 1; b=x", "a=0 b=0", A, F),
    row("SB+amoswap.aqs", "c=amoswap.aq x 1; a=y | d=amoswap.aq y 1; b=x", "a=0 b=0", F, F),
    row("SB+amoswap.rls", "c=amoswap.rl x 1; a=y | d=amoswap.rl y 1; b=x", "a=0 b=0", A, F),
    row("SB+amoswap.rl-lr.aqs", "c=amoswap.rl x 1; a=lr.aq y | d=amoswap.rl y 1; b=lr.aq x", "a=0 b=0", F, F),
    row("SB+sc-po", "c=lr x; s=sc x 1; a=y | y=1; fence rw,rw; b=x", "s=0 a=0 b=0", A, A),
    row("n6", "x=1; a=x; b=y | y=1; x=2", "a=1 b=0 x=1", A, A),
    row("3.SB", "x=1; a=y | y=1; b=z | z=1; c=x", "a=0 b=0 c=0", A, A),
    row("3.SB+fence.rw.rws", "x=1; fence rw,rw; a=y | y=1; fence rw,rw; b=z | z=1; fence rw,rw; c=x", "a=0 b=0 c=0", F, F),

    // Load buffering: a load before a store.
    row("LB", "a=x; y=1 | b=y; x=1", "a=1 b=1", A, F),
    row("LB+datas", "a=x; y=1 data a | b=y; x=1 data b", "a=1 b=1", F, F),
    row("LB+addrs", "a=x; y=1 addr a | b=y; x=1 addr b", "a=1 b=1", F, F),
    row("LB+ctrls", "a=x; if a; y=1 | b=y; if b; x=1", "a=1 b=1", F, F),
    row("LB+data+ctrl", "a=x; y=1 data a | b=y; if b; x=1", "a=1 b=1", F, F),
    row("LB+data+po", "a=x; y=1 data a | b=y; x=1", "a=1 b=1", A, F),
    row("LB+fence.r.ws", "a=x; fence r,w; y=1 | b=y; fence r,w; x=1", "a=1 b=1", F, F),
    row("LB+fence.rw.ws", "a=x; fence rw,w; y=1 | b=y; fence rw,w; x=1", "a=1 b=1", F, F),
    row("LB+fence.tsos", "a=x; fence tso; y=1 | b=y; fence tso; x=1", "a=1 b=1", F, F),
    row("LB+fence.w.ws", "a=x; fence w,w; y=1 | b=y; fence w,w; x=1", "a=1 b=1", A, F),
    row("LB+addr-pos", "a=x; c=z addr a; y=1 | b=y; d=w addr b; x=1", "a=1 b=1", F, F),
    row("LB+addr-store-pos", "a=x; z=1 addr a; y=1 | b=y; w=1 addr b; x=1", "a=1 b=1", F, F),
    row("LB+data-rfi-data+data", "a=x; z=1 data a; c=z; y=1 data c | b=y; x=1 data b", "a=1 b=1 c=1", F, F),
    row("LB+amoswap.rls", "a=x; c=amoswap.rl y 1 | b=y; d=amoswap.rl x 1", "a=1 b=1", F, F),
    row("LB+amoswaps", "a=x; c=amoswap y 1 | b=y; d=amoswap x 1", "a=1 b=1", A, F),
    row("LB+amoadd.aqs", "a=amoadd.aq x 0; y=1 | b=amoadd.aq y 0; x=1", "a=1 b=1", F, F),
    row("3.LB+datas", "a=x; y=1 data a | b=y; z=1 data b | c=z; x=1 data c", "a=1 b=1 c=1", F, F),

    // S, R, 2+2W.
    row("S", "x=2; y=1 | a=y; x=1", "a=1 x=2", A, F),
    row("S+fence.w.w+po", "x=2; fence w,w; y=1 | a=y; x=1", "a=1 x=2", A, F),
    row("S+po+data", "x=2; y=1 | a=y; x=1 data a", "a=1 x=2", A, F),
    row("S+fence.w.w+data", "x=2; fence w,w; y=1 | a=y; x=1 data a", "a=1 x=2", F, F),
    row("S+fence.w.w+ctrl", "x=2; fence w,w; y=1 | a=y; if a; x=1", "a=1 x=2", F, F),
    row("S+fence.w.w+addr", "x=2; fence w,w; y=1 | a=y; x=1 addr a", "a=1 x=2", F, F),
    row("S+fence.w.w+fence.r.w", "x=2; fence w,w; y=1 | a=y; fence r,w; x=1", "a=1 x=2", F, F),
    row("R", "x=1; y=1 | y=2; a=x", "a=0 y=2", A, A),
    row("R+fence.w.w+po", "x=1; fence w,w; y=1 | y=2; a=x", "a=0 y=2", A, A),
    row("R+fence.w.w+fence.w.r", "x=1; fence w,w; y=1 | y=2; fence w,r; a=x", "a=0 y=2", F, F),
    row("R+fence.rw.rws", "x=1; fence rw,rw; y=1 | y=2; fence rw,rw; a=x", "a=0 y=2", F, F),
    row("2+2W", "x=1; y=2 | y=1; x=2", "x=1 y=1", A, F),
    row("2+2W+fence.w.w+po", "x=1; fence w,w; y=2 | y=1; x=2", "x=1 y=1", A, F),
    row("2+2W+fence.w.ws", "x=1; fence w,w; y=2 | y=1; fence w,w; x=2", "x=1 y=1", F, F),
    row("2+2W+fence.tsos", "x=1; fence tso; y=2 | y=1; fence tso; x=2", "x=1 y=1", F, F),
    row("2+2W+amoswap.rls", "x=1; a=amoswap.rl y 2 | y=1; b=amoswap.rl x 2", "x=1 y=1", F, F),
    row("3.2W+fence.w.ws", "x=1; fence w,w; y=2 | y=1; fence w,w; z=2 | z=1; fence w,w; x=2", "x=1 y=1 z=1", F, F),

    // Three and four harts: one order for all.
    row("IRIW", "x=1 | y=1 | a=x; b=y | c=y; d=x", "a=1 b=0 c=1 d=0", A, F),
    row("IRIW+addrs", "x=1 | y=1 | a=x; b=y addr a | c=y; d=x addr c", "a=1 b=0 c=1 d=0", F, F),
    row("IRIW+addr+po", "x=1 | y=1 | a=x; b=y addr a | c=y; d=x", "a=1 b=0 c=1 d=0", A, F),
    row("IRIW+ctrls", "x=1 | y=1 | a=x; if a; b=y | c=y; if c; d=x", "a=1 b=0 c=1 d=0", A, F),
    row("IRIW+fence.r.rs", "x=1 | y=1 | a=x; fence r,r; b=y | c=y; fence r,r; d=x", "a=1 b=0 c=1 d=0", F, F),
    row("IRIW+fence.rw.rws", "x=1 | y=1 | a=x; fence rw,rw; b=y | c=y; fence rw,rw; d=x", "a=1 b=0 c=1 d=0", F, F),
    row("IRIW+fence.tsos", "x=1 | y=1 | a=x; fence tso; b=y | c=y; fence tso; d=x", "a=1 b=0 c=1 d=0", F, F),
    row("WRC", "x=1 | a=x; y=1 | b=y; c=x", "a=1 b=1 c=0", A, F),
    row("WRC+data+addr", "x=1 | a=x; y=1 data a | b=y; c=x addr b", "a=1 b=1 c=0", F, F),
    row("WRC+ctrl+addr", "x=1 | a=x; if a; y=1 | b=y; c=x addr b", "a=1 b=1 c=0", F, F),
    row("WRC+data+ctrl", "x=1 | a=x; y=1 data a | b=y; if b; c=x", "a=1 b=1 c=0", A, F),
    row("WRC+po+addr", "x=1 | a=x; y=1 | b=y; c=x addr b", "a=1 b=1 c=0", A, F),
    row("WRC+amoadd.rl+addr", "x=1 | a=x; d=amoadd.rl y 1 | b=y; c=x addr b", "a=1 b=1 c=0", F, F),
    row("WRC+fence.rw.rws", "x=1 | a=x; fence rw,rw; y=1 | b=y; fence rw,rw; c=x", "a=1 b=1 c=0", F, F),
    row("RWC", "x=1 | a=x; b=y | y=1; c=x", "a=1 b=0 c=0", A, A),
    row("RWC+po+fence.rw.rw", "x=1 | a=x; b=y | y=1; fence rw,rw; c=x", "a=1 b=0 c=0", A, F),
    row("RWC+addr+fence.w.r", "x=1 | a=x; b=y addr a | y=1; fence w,r; c=x", "a=1 b=0 c=0", F, F),
    row("RWC+fence.r.r+po", "x=1 | a=x; fence r,r; b=y | y=1; c=x", "a=1 b=0 c=0", A, A),
    row("RWC+fence.rw.rws", "x=1 | a=x; fence rw,rw; b=y | y=1; fence rw,rw; c=x", "a=1 b=0 c=0", F, F),
    row("WWC", "x=2 | a=x; y=1 | b=y; x=1", "a=2 b=1 x=2", A, F),
    row("WWC+datas", "x=2 | a=x; y=1 data a | b=y; x=1 data b", "a=2 b=1 x=2", F, F),
    row("WWC+addrs", "x=2 | a=x; y=1 addr a | b=y; x=1 addr b", "a=2 b=1 x=2", F, F),
    row("WWC+data+po", "x=2 | a=x; y=1 data a | b=y; x=1", "a=2 b=1 x=2", A, F),
    row("WWC+data+ctrl", "x=2 | a=x; y=1 data a | b=y; if b; x=1", "a=2 b=1 x=2", F, F),
    row("ISA2", "x=1; y=1 | a=y; z=1 | b=z; c=x", "a=1 b=1 c=0", A, F),
    row("ISA2+po+data+addr", "x=1; y=1 | a=y; z=1 data a | b=z; c=x addr b", "a=1 b=1 c=0", A, F),
    row("ISA2+fence.w.w+data+addr", "x=1; fence w,w; y=1 | a=y; z=1 data a | b=z; c=x addr b", "a=1 b=1 c=0", F, F),
    row("ISA2+fence.w.w+ctrl+fence.r.r", "x=1; fence w,w; y=1 | a=y; if a; z=1 | b=z; fence r,r; c=x", "a=1 b=1 c=0", F, F),
    row("Z6.0", "x=1; y=1 | a=y; z=1 | z=2; b=x", "a=1 b=0 z=2", A, A),
    row("Z6.0+fence.w.w+data+fence.w.r", "x=1; fence w,w; y=1 | a=y; z=1 data a | z=2; fence w,r; b=x", "a=1 b=0 z=2", F, F),
    row("Z6.1", "x=2; y=1 | y=2; z=1 | a=z; x=1", "y=2 a=1 x=2", A, F),
    row("Z6.1+fence.w.ws+addr", "x=2; fence w,w; y=1 | y=2; fence w,w; z=1 | a=z; x=1 addr a", "y=2 a=1 x=2", F, F),
    row("Z6.2", "x=2; y=1 | a=y; z=1 | b=z; x=1", "a=1 b=1 x=2", A, F),
    row("Z6.2+fence.w.w+data+ctrl", "x=2; fence w,w; y=1 | a=y; z=1 data a | b=z; if b; x=1", "a=1 b=1 x=2", F, F),
    row("Z6.3", "x=1; y=1 | y=2; z=1 | a=z; b=x", "y=2 a=1 b=0", A, F),
    row("Z6.3+fence.w.ws+addr", "x=1; fence w,w; y=1 | y=2; fence w,w; z=1 | a=z; b=x addr a", "y=2 a=1 b=0", F, F),
    row("Z6.4", "x=1; y=1 | y=2; a=z | z=1; b=x", "y=2 a=0 b=0", A, A),
    row("Z6.4+fence.w.w+fence.w.rs", "x=1; fence w,w; y=1 | y=2; fence w,r; a=z | z=1; fence w,r; b=x", "y=2 a=0 b=0", F, F),

    // Coherence: one location.
    row("CoRR", "x=1 | a=x; b=x", "a=1 b=0", F, F),
    row("CoRR2", "x=1 | x=2 | a=x; b=x | c=x; d=x", "a=1 b=2 c=2 d=1", F, F),
    row("CoRR3", "x=1 | a=x; b=x; c=x", "a=1 b=0 c=1", F, F),
    row("CoRR+addr", "x=1 | c=y; a=x addr c; b=x", "a=1 b=0", F, F),
    row("CoRR+addr-addr", "x=1 | c=y; a=x addr c; d=z; b=x addr d", "a=1 b=0", F, F),
    row("CoRR+addr-pos", "x=1 | c=y; a=x addr c; b=x; d=z; e=w", "a=1 b=0", F, F),
    row("CoRR+ctrl", "x=1 | c=y; if c; a=x; b=x", "a=1 b=0", F, F),
    row("CoRR+addr+two", "x=1; x=2 | c=y; a=x addr c; b=x", "a=2 b=1", F, F),
    row("CoRR+rfi", "x=2 | x=1; c=y; a=x addr c; b=x", "a=2 b=1 x=2", F, F),
    row("CoRR+amoadd", "a=amoadd x 1 | c=y; d=x addr c; b=x", "d=1 b=0", F, F),
    row("CoRR+lr", "x=1 | c=y; a=x addr c; b=lr x", "a=1 b=0", F, F),
    row("CoWW", "x=1; x=2", "x=1", F, F),
    row("CoWW+addr", "c=y; x=1 addr c; x=2", "x=1", F, F),
    row("CoWR0", "x=1; a=x", "a=0", F, F),
    row("CoWR", "x=1; a=x | x=2", "a=2 x=1", F, F),
    row("CoWR+addr", "c=y; x=1 addr c; a=x", "a=0", F, F),
    row("CoWR+data", "c=y; x=1 data c; a=x", "a=0", F, F),
    row("CoWR+two", "x=1; x=2; a=x", "a=1", F, F),
    row("CoWR+rfi-data", "x=1; a=x; x=2 data a; b=x | c=x; d=x", "c=2 d=1", F, F),
    row("CoRW1", "a=x; x=1", "a=1", F, F),
    row("CoRW1+addr", "c=y; a=x addr c; x=1", "a=1", F, F),
    row("CoRW2", "x=1 | a=x; x=2", "a=1 x=1", F, F),
    row("n4", "a=x; x=1 | b=x; x=2", "a=2 b=1", F, F),
    row("n5", "x=1; a=x | x=2; b=x", "a=2 b=1", F, F),

    // Atomics.
    row("AMO+AMO", "a=amoadd x 1 | b=amoadd x 1", "x=1", F, F),
    row("AMO+AMO+AMO", "a=amoadd x 1 | b=amoadd x 1; c=amoadd x 1", "x=2", F, F),
    row("AMO+W", "a=amoadd x 1 | x=2", "a=0 x=1", F, F),
    row("AMO+rfi", "a=amoswap x 1; b=x", "b=0", F, F),
    row("W+AMO", "x=1; a=amoadd x 1", "a=0", F, F),
    row("R+AMO", "b=x; a=amoadd x 1", "b=1", F, F),
    row("LRSC+LRSC", "a=lr x; s=sc x 1 | b=lr x; t=sc x 2", "a=0 s=0 b=0 t=0", F, F),
    row("LRSC+W", "a=lr x; s=sc x 1 | x=2", "a=0 s=0 x=1", F, F),
    row("LRSC+AMO", "a=lr x; s=sc x 5 | b=amoadd x 1", "a=0 s=0 b=0 x=5", F, F),
    row("LRSC+W.h", "a=lr x.l; s=sc x.l 1 | x=2", "a=0 s=0 x.l=1 x.h=2", F, F),
    row("LRSC+rfi", "a=lr x; s=sc x 1; b=x", "s=0 b=0", F, F),
    row("LRSC+aq.rl", "a=lr.aq x; y=1; s=sc.rl x 1 | b=x; c=y addr b", "s=0 b=1 c=0", F, F),
    row("SC", "s=sc x 1 | a=x", "s=0", F, F),

    // Halves of a location, and both: accesses of several sizes.
    row("MP+halves", "x.l=1; x.h=1 | a=x", "a.l=0 a.h=1", A, F),
    row("MP+halves+fence.w.w", "x.l=1; fence w,w; x.h=1 | a=x", "a.l=0 a.h=1", F, F),
    row("SB+halves-rfi", "x.l=1; a=x | x.h=1; b=x", "a.l=1 a.h=0 b.l=0 b.h=1", A, A),
    row("SB+halves-fence.w.r", "x.l=1; fence w,r; a=x | x.h=1; fence w,r; b=x", "a.l=1 a.h=0 b.l=0 b.h=1", F, F),
    row("CoRR+whole-half", "x=1 | c=y; a=x addr c; b=x.h", "a.h=1 b=0", F, F),
    row("CoRR+half-whole", "x=1 | c=y; a=x.h addr c; b=x", "a=1 b.l=0", F, F),
    row("CoWR+half-whole", "x.h=1; a=x", "a.h=0", F, F),
    row("CoWR+whole-half", "x=1; x.l=2; a=x", "a.l=2 a.h=0", F, F),
    row("CoRR+half-rfi", "x=2 | x.l=1; c=y; a=x addr c; b=x", "a.h=2 b.h=0", F, F),
    row("AMO+halves", "a=amoadd x.l 1 | b=amoadd x.h 1", "x.l=0", F, F),

    // Accesses across lines are two operations each.
    row("torn", "m=1 | a=m", "a.l=1 a.h=0", A, A),
    row("torn+fence", "m.l=1; fence w,w; m.h=1 | a=m.h; fence r,r; b=m.l", "a=1 b=0", F, F),
    row("MP+across+po", "m=1; y=1 | a=y; b=m", "a=1 b.h=0", A, F),
    row("MP+across+po.l", "m=1; y=1 | a=y; b=m", "a=1 b.l=0", A, F),
    row("MP+across+fence.w.w+fence.r.r", "m=1; fence w,w; y=1 | a=y; fence r,r; b=m", "a=1 b.h=0", F, F),
    row("MP+across+fence.w.w+addr", "m=1; fence w,w; y=1 | a=y; b=m addr a", "a=1 b.l=0", F, F),
    row("MP+fence.w.w+across", "x=1; fence w,w; m=1 | a=m; fence r,r; b=x", "a.h=1 b=0", F, F),
    row("SB+across+fence.w.rs", "m=1; fence w,r; a=n | n=1; fence w,r; b=m", "a.h=0 b.h=0", F, F),
    row("LB+across+datas", "a=m; y=1 data a | b=y; m=1 data b", "a.h=1 b=1", F, F),
    row("CoRR+across", "m=1 | c=y; a=m addr c; b=m", "a.h=1 b.h=0", F, F),
    row("CoRR+across-half", "m=1 | c=y; a=m addr c; b=m.h", "a.h=1 b=0", F, F),
    row("CoRR+half-across", "m=1 | c=y; a=m.h addr c; b=m", "a=1 b.h=0", F, F),
    row("CoRR+across-rfi", "m=2 | m=1; c=y; a=m.h addr c; b=m", "a=2 b.h=1 m.h=2", F, F),
    row("CoWR+across", "m=1; a=m", "a.h=0", F, F),
    row("CoWR+across-half", "m=1; m.h=2; a=m", "a.h=1", F, F),
    row("CoWW+across", "m=1; m=2 | a=m", "m.h=1", F, F),
    row("MP+fence.w.w+across-rfi-addr", "m=1; c=y; a=m.l addr c | m.l=2; fence w,w; y=1", "c=1 a=1 m.l=2", F, F),
    row("SB+across-rfi", "m=1; a=m; b=y | y=1; fence rw,rw; c=m", "a=1 b=0 c=0", A, A),
];
