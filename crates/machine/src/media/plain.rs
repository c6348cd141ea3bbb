//! The device that the parameters of `dram` and of `nvm` are: one rank, banks in groups, no refresh.
//!
//! Source: the doc of each key. Requests of several sectors are one burst without gaps, and hold their group
//! once for each of its commands.

use durawarp_base::spec::Nanos;
use durawarp_engine::{Clock, Timebase};

use super::parameters::MediaSpec;
use super::table::{Act, CommandTimes, Rules, Since};
use super::writes::Writes;

/// Bytes of a column command.
pub(super) const COMMAND_BYTES: u32 = 32;

/// The table of a device: its rows are those of `spec`, its writes cost what `writes` says.
pub(super) fn table(
    spec: &MediaSpec,
    bytes_per_cycle: u32,
    writes: Writes,
    clock: Clock,
    base: Timebase,
) -> CommandTimes {
    let t = |ns: Nanos| base.ticks_of_ps(ns.ps);
    let (columns, rcd) = ([Act::Read, Act::Write], t(spec.t_rcd_ns));
    let burst = clock.cycles(u64::from(COMMAND_BYTES.div_ceil(bytes_per_cycle)));
    let mut rules = Rules::default();
    // Levels: the channel, groups, banks.
    rules.all(&[Act::Open], &[Act::Open], 0, Since::Last, t(spec.t_rrd_ns));
    rules.all(&columns, &columns, 0, Since::First, t(spec.t_ccd_ns));
    if spec.bank_groups > 1 {
        rules.all(&columns, &columns, 1, Since::Each, t(spec.t_ccd_l_ns));
    }
    rules.all(&[Act::Open], &columns, 2, Since::Last, rcd);
    rules.all(&[Act::Open], &[Act::Close], 2, Since::Last, t(spec.t_ras_ns).max(rcd));
    rules.all(&[Act::Close], &[Act::Open], 2, Since::Last, t(spec.t_rp_ns));
    rules.all(&[Act::Read], &[Act::Close], 2, Since::Last, burst);
    rules.all(&[Act::Write], &[Act::Close], 2, Since::Last, t(spec.t_wl_ns) + burst + t(spec.t_wr_ns));
    match writes {
        Writes::Row { hit, .. } if hit > 0 => rules.all(&[Act::Write], &columns, 2, Since::First, hit),
        _ => {}
    }
    CommandTimes::grouped(spec.banks, spec.bank_groups, rules)
}
