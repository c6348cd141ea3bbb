//! Reads `[instrument]` and checks it against buffers and kernels, as far as the text tells.

use super::reader::Reader;
use crate::manifest::buffers::{Buffer, Role, Space};
use crate::manifest::instrument::{FlagBarrier, Instrument, Mode, Output};
use crate::manifest::steps::HostStep;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::document::{Item, Place, TomlTable};
use durawarp_kernel::ir::Elem;

impl Reader<'_> {
    /// `[instrument]`.
    pub(crate) fn instrument(&mut self, root: TomlTable<'_>, steps: &[HostStep]) -> Option<Instrument> {
        let table = root.table("instrument")?;
        let (mode, mode_place) = table.text("mode")?;
        // A word that is none was reported by the schema.
        let mode: Mode = mode.parse().ok()?;
        let barrier = table.text("flag_barrier").and_then(|(word, _)| word.parse().ok());
        let mut outputs = Vec::new();
        for output in table.tables("outputs") {
            outputs.extend(self.instrumented_output(output));
        }
        let flag = self.role(Role::TxFlag);
        let instrument = Instrument {
            place: mode_place,
            mode,
            flag_barrier: barrier.unwrap_or(FlagBarrier::Safe),
            loop_log: table.get("loop_log").and_then(Item::boolean).unwrap_or(false),
            reload: table.get("reload").and_then(Item::boolean).unwrap_or(false),
            outputs,
            flag: flag.first().copied(),
        };
        if mode != Mode::None {
            if let [_, second, ..] = flag[..] {
                let place = self.buffers[second].place.clone();
                self.fault(place.fault("there is a second buffer with the role `tx_flag`: one holds all flags"));
            }
            // Outputs that could not be read have faults of their own.
            if !instrument.outputs.is_empty() || table.tables("outputs").is_empty() {
                check(&instrument, mode, &self.buffers).into_iter().for_each(|fault| self.fault(fault));
            }
            converging(&instrument, steps).into_iter().for_each(|fault| self.fault(fault));
        }
        Some(instrument)
    }

    fn role(&self, role: Role) -> Vec<usize> {
        (0..self.buffers.len()).filter(|number| self.buffers[*number].role == role).collect()
    }

    fn instrumented_output(&mut self, table: TomlTable<'_>) -> Option<Output> {
        let place = table.place();
        let buffer = self.buffer_at(table, "buffer");
        let kernel = table.text("kernel").map(|(name, place)| match self.programs.called(name, &place) {
            Ok((_, kernel)) => kernel.name.clone(),
            Err(fault) => {
                fault.into_iter().for_each(|fault| self.fault(fault));
                name.to_owned()
            }
        });
        let whole = self.names.in_thread(false);
        let each = self.names.in_thread(table.get("repeat").is_some());
        let index = self.integer_at(table, "index", &each);
        let guard = self.integer_at(table, "guard", &each);
        let repeat = self.integer_at(table, "repeat", &whole);
        let log_index = self.integer_at(table, "log_index", &self.names.in_log());
        let dynamic = table.get("dynamic").and_then(Item::boolean).unwrap_or(false);
        // An expression that could not be read has its own fault.
        for (key, read) in [("index", &index), ("guard", &guard), ("repeat", &repeat), ("log_index", &log_index)] {
            if table.get(key).is_some() && read.is_none() {
                return None;
            }
        }
        let (buffer, log) = (buffer?, self.log_of(table, buffer?));
        let form = &self.buffers[buffer];
        let home = table.get("buffer").map_or_else(|| place.clone(), |item| item.place());
        if form.space != Space::Pm {
            let fault = home.fault(format!("`{}` is not in persistent memory: nothing is left to undo", form.name));
            self.fault(fault.with_help("`space = \"pm\"`"));
        }
        if dynamic && ["index", "guard", "repeat", "log_index"].into_iter().any(|key| table.get(key).is_some()) {
            self.fault(place.fault("an output has either an `index` or `dynamic = true`"));
        }
        Some(Output { place, buffer, log, log_index, kernel, index, guard, repeat, dynamic })
    }

    /// The log that an output names, or the one that names it.
    fn log_of(&mut self, table: TomlTable<'_>, buffer: usize) -> Option<usize> {
        if let Some((_, place)) = table.text("log") {
            let log = self.buffer_at(table, "log")?;
            let form = &self.buffers[log];
            let wrong = match form.of {
                _ if form.role != Role::UndoLog => Some(format!("`{}` has not the role `undo_log`", form.name)),
                Some(of) if of != buffer => Some(format!("`{}` is the log of `{}`", form.name, self.buffers[of].name)),
                _ => None,
            };
            if let Some(message) = wrong {
                self.fault(place.fault(message));
                return None;
            }
            return Some(log);
        }
        let logs = self.role(Role::UndoLog).into_iter().filter(|log| self.buffers[*log].of == Some(buffer));
        let logs: Vec<usize> = logs.collect();
        if let [_, second, ..] = logs[..] {
            let form = &self.buffers[second];
            let fault = form.place.fault(format!("`{}` has a second undo log", self.buffers[buffer].name));
            self.fault(fault);
        }
        logs.first().copied()
    }
}

/// What stands in the way of `mode`: of the manifest, or chosen for the run.
pub(crate) fn check(instrument: &Instrument, mode: Mode, buffers: &[Buffer]) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    if mode != Mode::None && instrument.outputs.is_empty() {
        let fault = instrument.place.fault(format!("`mode = \"{mode}\"` needs `outputs`: the buffers that change"));
        faults.push(fault.with_help("`outputs = [{ buffer = \"y\", index = \"ctaid.x * ntid.x + tid.x\" }]`"));
    }
    let in_pm = |number: usize, what: &str| {
        let form = &buffers[number];
        let fault = || form.place.fault(format!("{what} must be in persistent memory")).with_help("`space = \"pm\"`");
        (form.space != Space::Pm).then(fault)
    };
    // A log with the buffer that it is of: outputs of one buffer share its log.
    let mut logs: Vec<(usize, usize)> = Vec::new();
    for output in &instrument.outputs {
        let name = &buffers[output.buffer].name;
        if output.dynamic && mode.needs_index() {
            let message = format!(
                "CTAs cannot be transactions over `{name}`, whose elements are known only at run time: another CTA may \
                 update the same element, and rolling one back would undo the other's work"
            );
            faults.push(output.place.fault(message).with_help("`mode = \"kernel_undo\"` logs all of it"));
        } else if mode.needs_index() && output.index.is_none() {
            let fault = output.place.fault(format!("`mode = \"{mode}\"` needs the `index` that a thread updates"));
            faults.push(fault.with_help("or `dynamic = true` with `mode = \"kernel_undo\"`"));
        }
        if let (Some(log_index), Mode::KernelUndo) = (&output.log_index, mode) {
            let fault =
                log_index.place().fault("`mode = \"kernel_undo\"` logs whole buffers, each element in its own place");
            faults.push(fault.with_help("`log_index` is of CTAs' transactions"));
        }
        // A declared log is of no concern to a mode that has none; another mode may use it.
        if !mode.has_log() {
            continue;
        }
        if mode == Mode::Manual && output.log.is_none() {
            let fault = output.place.fault(format!("`mode = \"manual\"` needs a declared log of `{name}`"));
            faults.push(fault.with_help(format!("a buffer with `role = \"undo_log\"` and `of = \"{name}\"`")));
        }
        let Some(log) = output.log else { continue };
        match logs.iter().find(|(other, _)| *other == log) {
            Some((_, home)) if *home != output.buffer => {
                let message = format!("`{}` already is the log of `{}`", buffers[log].name, buffers[*home].name);
                faults.push(output.place.fault(message).with_help("each output has a log of its own"));
            }
            Some(_) => {}
            None => {
                faults.extend(in_pm(log, "an undo log"));
                logs.push((log, output.buffer));
            }
        }
    }
    match instrument.flag {
        // In mode `none` the declared flags are not used: they may have any form.
        Some(flag) if mode != Mode::None => {
            faults.extend(in_pm(flag, "a transaction's flag"));
            let form = &buffers[flag];
            let words = !form.is_structured() && matches!(form.fields[0].elem, Elem::U32 | Elem::S32);
            if !words {
                faults.push(form.place.fault("flags are 32-bit integers").with_help("`type = \"u32\"`"));
            }
        }
        None if mode == Mode::Manual => {
            let fault = instrument.place.fault("`mode = \"manual\"` needs a declared buffer of flags");
            faults.push(fault.with_help("a buffer with `role = \"tx_flag\"`"));
        }
        _ => {}
    }
    faults
}

/// Faults of loops that end on a condition: their number of transactions is unknown before the run.
pub(crate) fn converging(instrument: &Instrument, steps: &[HostStep]) -> Vec<Diagnostic> {
    let changes = |kernel: &str| {
        instrument.outputs.iter().any(|output| output.kernel.as_deref().is_none_or(|named| named == kernel))
    };
    fn launches(steps: &[HostStep], changes: &dyn Fn(&str) -> bool) -> bool {
        steps.iter().any(|step| match step {
            HostStep::Launch(launch) => changes(&launch.kernel.name),
            HostStep::Loop(inner) => launches(&inner.before, changes) || launches(&inner.body, changes),
            _ => false,
        })
    }
    let mut faults = Vec::new();
    for step in steps {
        let HostStep::Loop(inner) = step else { continue };
        let all: [&[HostStep]; 2] = [&inner.before, &inner.body];
        if inner.kind.counted() {
            faults.extend(all.into_iter().flat_map(|steps| converging(instrument, steps)));
        } else if all.into_iter().any(|steps| launches(steps, &changes)) {
            faults.push(unknown_count(&inner.place));
        }
    }
    faults
}

/// The number of launches is not known before the run.
pub(crate) fn unknown_count(place: &Place) -> Diagnostic {
    let fault = place.fault("undo logging needs to know every launch before the run, this depends on the device");
    fault.with_help("a loop with a `count` has as many flags as it launches CTAs")
}
