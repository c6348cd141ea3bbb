//! P8: power fails again while recovery runs.
//!
//! Recovery is software that writes persistent memory step by step, each durable before the next. A second
//! failure may cut it off after any prefix of its steps, the whole included. Recovery that starts again from
//! there must give the same image as undisturbed recovery; one that is a program of its own, which may count
//! its starts, must end well.
//!
//! Source: the third rule of crash consistency in XFDetector (ASPLOS'20), failures within recovery. Not
//! modelled: steps that become durable out of their order; power failures of the second recovery.

use super::verdict::{Finding, Property};
use durawarp_persist::image::PmImage;
use durawarp_persist::undo::RecoveryStep;

/// How recovery is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuts {
    /// At most at how many places, 4 at least.
    pub places: usize,
    /// Recovery that starts again comes to the same image; else it need only end well.
    pub same_image: bool,
}

impl Cuts {
    /// Of recovery whose steps follow from the image alone.
    pub const TO_THE_SAME_IMAGE: Cuts = Cuts { places: 64, same_image: true };
    /// Of a program's own recovery, which takes a run of it each time.
    pub const TO_A_GOOD_END: Cuts = Cuts { places: 8, same_image: false };
}

/// At most how many steps cut recoveries take again, all together, before places are left out.
const STEPS_AGAIN: usize = 1 << 14;

/// Cuts recovery of `survived`, which took `steps` to come to `recovered`, at evenly spaced places, and has
/// it start `again`.
pub(super) fn judge(
    kind: Cuts,
    survived: &PmImage,
    steps: &[RecoveryStep],
    recovered: &PmImage,
    again: &dyn Fn(&mut PmImage) -> Result<(), String>,
) -> Option<Finding> {
    let (mut cut_off, mut image) = (survived.clone(), survived.clone());
    let cuts = (STEPS_AGAIN / steps.len().max(1)).clamp(4, kind.places.max(4));
    let stride = steps.len().div_ceil(cuts);
    for (done, step) in steps.iter().enumerate() {
        cut_off.write(step.address, &step.data).ok()?;
        if (done + 1) % stride != 0 && done + 1 != steps.len() {
            continue;
        }
        image.clone_from(&cut_off);
        let wrong = match again(&mut image) {
            Ok(()) if !kind.same_image || image == *recovered => continue,
            Ok(()) => "comes to another image".to_owned(),
            Err(what) => format!("does not end well when it starts again: {what}"),
        };
        let what = format!("recovery cut off after {} of {} steps {wrong}", done + 1, steps.len());
        return Some(Finding::in_words(Property::Idempotent, what));
    }
    None
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    /// Recovery sets `count` bytes to 1, a step each. Returns after how many steps it was cut off, and what
    /// was found. `again` is the recovery that follows; its argument is the number of steps made before.
    fn cut(count: usize, again: &dyn Fn(usize, &mut PmImage) -> Result<(), String>) -> (Vec<usize>, Option<String>) {
        let steps: Vec<RecoveryStep> =
            (0..count as u64).map(|address| RecoveryStep { address, data: smallvec![1] }).collect();
        let (survived, recovered) = (PmImage::new(0, vec![0; count]), PmImage::new(0, vec![1; count]));
        let cuts = std::cell::RefCell::new(Vec::new());
        let start = |image: &mut PmImage| {
            let done = image.bytes().iter().map(|&byte| usize::from(byte)).sum();
            cuts.borrow_mut().push(done);
            again(done, image)
        };
        let found = judge(Cuts::TO_THE_SAME_IMAGE, &survived, &steps, &recovered, &start);
        assert!(found.iter().all(|finding| finding.property == Property::Idempotent && finding.witness.is_none()));
        (cuts.into_inner(), found.map(|finding| finding.what))
    }

    fn right(_: usize, image: &mut PmImage) -> Result<(), String> {
        image.bytes_mut().fill(1);
        Ok(())
    }

    #[test]
    fn recovery_is_cut_off_at_evenly_spaced_places_and_after_its_last_step() {
        assert_eq!(cut(0, &right), (vec![], None));
        assert_eq!(cut(3, &right), (vec![1, 2, 3], None));
        assert_eq!(cut(64, &right).0, (1..=64).collect::<Vec<_>>());
        assert_eq!(cut(65, &right).0, (1..=32).map(|nth| 2 * nth).chain([65]).collect::<Vec<_>>());
        // 16 places of 63 steps, and fewer where steps are many.
        assert_eq!(cut(1000, &right).0, (1..=15).map(|nth| 63 * nth).chain([1000]).collect::<Vec<_>>());
        assert_eq!(cut(4096, &right).0, [1024, 2048, 3072, 4096]);
        assert_eq!(cut(8192, &right).0, [2048, 4096, 6144, 8192]);
    }

    #[test]
    fn a_program_of_its_own_may_come_to_another_image_but_must_end_well() {
        let step = |address| RecoveryStep { address, data: smallvec![1] };
        let steps: Vec<RecoveryStep> = (0..3).map(step).collect();
        let (survived, recovered) = (PmImage::new(0, vec![0; 3]), PmImage::new(0, vec![1; 3]));
        let judged = |again: &dyn Fn(&mut PmImage) -> Result<(), String>| {
            judge(Cuts::TO_A_GOOD_END, &survived, &steps, &recovered, again).map(|finding| finding.what)
        };
        assert_eq!(judged(&|_| Ok(())), None);
        let fails = |image: &mut PmImage| if image.bytes()[1] == 1 { Err("exit code 1".to_owned()) } else { Ok(()) };
        let what = "recovery cut off after 2 of 3 steps does not end well when it starts again: exit code 1";
        assert_eq!(judged(&fails), Some(what.to_owned()));
    }

    #[test]
    fn the_first_cut_that_does_not_come_to_the_same_is_told() {
        let told = |what: &str| Some(what.to_owned());
        let stays = |_: usize, _: &mut PmImage| Ok(());
        assert_eq!(cut(3, &stays), (vec![1], told("recovery cut off after 1 of 3 steps comes to another image")));
        let fails = |done: usize, image: &mut PmImage| match done {
            2 => Err("lost its way".to_owned()),
            _ => right(done, image),
        };
        let what = "recovery cut off after 2 of 3 steps does not end well when it starts again: lost its way";
        assert_eq!(cut(3, &fails), (vec![1, 2], told(what)));
        let clears = |done: usize, image: &mut PmImage| match done {
            3 => {
                image.bytes_mut()[0] = 0;
                Ok(())
            }
            _ => right(done, image),
        };
        let what = "recovery cut off after 3 of 3 steps comes to another image";
        assert_eq!(cut(3, &clears), (vec![1, 2, 3], told(what)));
    }
}
