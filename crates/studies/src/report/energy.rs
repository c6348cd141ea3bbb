//! Energy of a run by part of the machine, and wear of its NVM, for a terminal.
//!
//! Energy is of what was counted alone: the last line says what is not in it. A part of which some number was
//! chosen for lack of a source says so. Lifetimes are of the run repeated for ever.

use comfy_table::Table;

use super::console::{align_right, lines, plain_table};
use super::numbers::{count, joules, percent};
use durawarp_simulation::outcome::{ENERGY_PARTS, Energy, LineWrites, Outcome, Wear};

/// The sections of energy and wear, those that the outcome has.
pub(super) fn sections(outcome: &Outcome) -> String {
    let mut out = String::new();
    if let Some(energy) = &outcome.energy {
        out += "\nEnergy\n";
        out += &lines(&by_part(energy, outcome.time.ps), 1);
        out += &format!("  not in it: {}\n", energy.left_out);
    }
    if let Some(wear) = &outcome.wear {
        let of_lines = outcome.devices.as_ref().and_then(|devices| devices.nvm_lines.as_ref());
        out += "\nNVM wear\n";
        out += &lines(&wear_table(wear, of_lines), 1);
    }
    out
}

/// The energy of a run in a few characters; "-" where it is not known.
pub(super) fn total(outcome: &Outcome) -> String {
    outcome.energy.as_ref().map_or_else(|| "-".to_owned(), |energy| joules(energy.nj() * 1e-9))
}

fn by_part(energy: &Energy, ps: u64) -> Table {
    let mut table = plain_table();
    let whole = energy.nj();
    let share = |nj: f64| percent(if whole > 0.0 { nj / whole } else { 0.0 });
    for (part, _) in ENERGY_PARTS {
        let events: Vec<_> = energy.events.iter().filter(|event| event.part == part).collect();
        if events.is_empty() {
            continue;
        }
        let told: Vec<String> = events.iter().map(|event| format!("{} {}", count(event.count), event.event)).collect();
        let chosen = events.iter().any(|event| event.source.starts_with("chosen"));
        let nj = energy.part_nj(part);
        let mark = if chosen { "chosen" } else { "" };
        table.add_row([part, &joules(nj * 1e-9), &share(nj), mark, &told.join(", ")]);
    }
    let power = format!(
        "{:.3} W over the run; {} of it by numbers with a source",
        energy.watts(ps),
        percent(energy.sourced_share())
    );
    table.add_row(["all", &joules(whole * 1e-9), &share(whole), "", &power]);
    align_right(&mut table, [1, 2]);
    table
}

fn wear_table(wear: &Wear, of_lines: Option<&LineWrites>) -> Table {
    let mut table = plain_table();
    let (controller, bank) = wear.worst_bank;
    let cells = format!("{} lines of {} B, in {} banks", count(wear.writes), wear.line_bytes, wear.banks);
    table.add_row(["written to cells", &cells]);
    let most = format!(
        "{} lines, bank {bank} of controller {controller}: {:.2} of a mean bank",
        count(wear.most_of_a_bank),
        wear.bank_imbalance()
    );
    table.add_row(["most of a bank", &most]);
    // Counted by line only where it was asked for.
    if let Some(lines) = of_lines {
        let most = format!(
            "{} times, of {} lines that were written (0x{:x})",
            count(lines.most),
            count(lines.lines),
            lines.most_line
        );
        table.add_row(["most of a line", &most]);
        table.add_row(["lines by writes", &steps(&lines.steps)]);
    }
    // Cells of DRAM with a battery bear any number of writes.
    if let Some(lasts) = &wear.lifetimes {
        let unlevelled = match lasts.unlevelled_years {
            Some(years) => format!("{} without levelling, ", time(years)),
            None => String::new(),
        };
        let told = format!(
            "{unlevelled}{} with ideal levelling in banks, {} over all of NVM",
            time(lasts.levelled_in_banks_years),
            time(lasts.levelled_years)
        );
        table.add_row(["lifetime", &told]);
    }
    table
}

/// Lines by the number of their writes: "1: 20, 2: 3, 3 to 4: 1".
fn steps(steps: &[(u64, u64)]) -> String {
    let first = |most: u64| most / 2 + 1;
    let of = |&(most, lines): &(u64, u64)| match most - first(most) {
        0 => format!("{most}: {}", count(lines)),
        _ => format!("{} to {most}: {}", first(most), count(lines)),
    };
    steps.iter().filter(|(_, lines)| *lines > 0).map(of).collect::<Vec<_>>().join(", ")
}

/// A time from seconds to thousands of years.
fn time(years: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "years"), (1.0 / 365.25, "days"), (1.0 / 8766.0, "hours"), (0.0, "s")];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| years >= *unit).unwrap_or(UNITS[3]);
    let value = if unit > 0.0 { years / unit } else { years * 8766.0 * 3600.0 };
    if value >= 1e6 { format!("{value:.1e} {name}") } else { format!("{value:.1} {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_told_in_units_that_fit() {
        let told = [2.5e9, 12.34, 0.5, 1.0 / 365.25 / 4.0, 1e-9].map(time);
        assert_eq!(told, ["2.5e9 years", "12.3 years", "182.6 days", "6.0 hours", "0.0 s"]);
    }

    #[test]
    fn lines_by_writes_leave_out_steps_that_no_line_has() {
        assert_eq!(steps(&[(1, 20), (2, 3), (4, 1), (8, 0), (16, 2)]), "1: 20, 2: 3, 3 to 4: 1, 9 to 16: 2");
    }
}
