//! Resuming: programs run on from the image after hardware recovery, and power fails again.
//!
//! Images after recovery differ only where f does: the first crash point of each f is enough. Source: P8 of
//! the oracle's design. Invariants: verdicts do not depend on how the work is cut. Not modelled: time.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::super::super::Draw;
use super::super::super::judge::Watch;
use super::super::super::verdict::{Failure, Property, Verdict};
use super::super::RegionFacts;
use super::super::recovery::{AtPowerFailure, recover};
use super::{JudgeOptions, Walk};
use durawarp_persist::image::PmImage;

/// What runs a program on from an image of persistent memory.
pub trait Resumes: Sync {
    /// Runs to the end, and compares the result with that of a run without a failure.
    ///
    /// # Errors
    /// The run does not end, or its result differs.
    fn finish(&self, recovered: &PmImage) -> Result<(), String>;

    /// Runs until power fails again, after `regions` more regions, recovers, runs to the end from there, and
    /// compares; the program may end before.
    ///
    /// # Errors
    /// As above, or the run ends by a fault or a limit before the second failure.
    fn finish_twice(&self, recovered: &PmImage, regions: u64) -> Result<(), TwiceResumed>;
}

/// What went wrong of a run in which power failed a second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TwiceResumed {
    /// Up to the second failure.
    Before(String),
    /// From there on.
    After(String),
}

/// Pieces of work, each of which starts with a replay.
const CHUNKS: usize = 16;

/// Runs on from what recovery leaves at some of these crash points (the first of each f), to the end, and
/// with a second failure a few regions later.
pub fn judge_resume(
    facts: &RegionFacts<'_>,
    firsts: &[u64],
    count: u64,
    asked: &JudgeOptions,
    hardware: &dyn AtPowerFailure,
    resumes: &dyn Resumes,
    watch: &Watch<'_>,
) -> Verdict {
    let mut points = firsts.to_vec();
    // Where more than one point is asked for, the first and the last are judged, whatever is drawn.
    let ends: Vec<u64> = points.first().into_iter().chain(points.last()).copied().collect();
    Draw::new(asked.seed ^ 2).thin(&mut points, count as usize);
    points.extend(if count > 1 { &ends[..] } else { &[] });
    points.sort_unstable();
    points.dedup();
    let total = points.len() as u64;
    let left_out = facts.changes() + 1 - total;
    let mut verdict = Verdict { points: total, distinct: total, left_out, ..Verdict::default() };
    let done = AtomicU64::new(0);
    let judge = |chunk: &[u64]| {
        let mut walk = Walk::new(facts);
        let mut parts = Vec::new();
        for &point in chunk {
            if watch.stop.load(Ordering::Relaxed) {
                break;
            }
            walk.advance_to(point);
            let recovered = recover(facts, &walk.gates, hardware);
            let image = walk.memory.image(&walk.over(&recovered.steps));
            // Drawn from the point and not from a shared state, so that verdicts do not depend on how points
            // are divided.
            let regions = Draw::new(asked.seed ^ point).below(1 + facts.regions() / 4) + 1;
            let found = resumed(&image, regions, resumes).err();
            // A stop ends a run early, too: what came of it says nothing.
            if watch.stop.load(Ordering::Relaxed) {
                break;
            }
            parts.push(found.map(|what| Failure { what, ..walk.place(Property::Resume) }));
            (watch.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
        parts
    };
    let size = points.len().div_ceil(CHUNKS).max(1);
    let parts: Vec<Vec<Option<Failure>>> = points.par_chunks(size).map(judge).collect();
    for found in parts.into_iter().flatten() {
        verdict.add(found, asked.keep);
    }
    verdict.stopped = verdict.judged < verdict.distinct;
    verdict
}

/// Resumes from an image, and again from a second failure.
fn resumed(image: &PmImage, regions: u64, resumes: &dyn Resumes) -> Result<(), String> {
    resumes.finish(image).map_err(|what| format!("resumed: {what}"))?;
    resumes.finish_twice(image, regions).map_err(|what| match what {
        TwiceResumed::Before(what) => format!("resumed, up to a second failure {regions} regions later: {what}"),
        TwiceResumed::After(what) => format!("resumed after a second failure {regions} regions later: {what}"),
    })
}
