//! P8: power fails again while recovery runs.
//!
//! Recovery is software that writes persistent memory step by step, each durable before the next. Whatever prefix of its
//! steps came to be, recovery that starts again from there comes to the image that it comes to undisturbed; after the
//! last step too, when it runs on its own result.
//!
//! Source: the third rule of crash consistency in XFDetector (ASPLOS'20), failures within recovery. Not modelled: steps
//! that become durable out of their order; power failures of the second recovery.

use super::undo::Finding;
use super::verdict::Property;
use crate::persist::image::PmImage;
use crate::persist::undo::RecoveryStep;

/// At most at how many places recovery is cut.
const CUTS: usize = 64;
/// At most how many steps cut recoveries take again, all together, before places are left out.
const STEPS_AGAIN: usize = 1 << 14;

/// Cuts recovery of `survived`, which took `steps` to come to `recovered`, at evenly spaced places, and has it start `again`.
pub(super) fn judge(
    survived: &PmImage,
    steps: &[RecoveryStep],
    recovered: &PmImage,
    again: &dyn Fn(&mut PmImage) -> Result<(), String>,
) -> Option<Finding> {
    let (mut cut_off, mut image) = (survived.clone(), survived.clone());
    let cuts = (STEPS_AGAIN / steps.len().max(1)).clamp(4, CUTS);
    let stride = steps.len().div_ceil(cuts);
    for (done, step) in steps.iter().enumerate() {
        cut_off.write(step.address, &step.data).ok()?;
        if (done + 1) % stride != 0 && done + 1 != steps.len() {
            continue;
        }
        image.bytes_mut().copy_from_slice(cut_off.bytes());
        let wrong = match again(&mut image) {
            Ok(()) if image == *recovered => continue,
            Ok(()) => "comes to another image".to_owned(),
            Err(what) => format!("does not end well when it starts again: {what}"),
        };
        let what = format!("recovery cut off after {} of {} steps {wrong}", done + 1, steps.len());
        return Some(Finding { property: Property::Idempotent, what, witness: None });
    }
    None
}
