//! Standard output and error, and signals.
//!
//! Output to a pipe that was closed (`| head`) is no failure; any other failure of standard output is
//! reported once, the command goes on with its files, and the exit code is that of a file that cannot be
//! written. The first SIGINT (Ctrl-C) or SIGTERM (a cluster's time limit) asks a simulation to end and report
//! what it knows; a second one, or one outside a simulation, ends the program at once.

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use signal_hook::consts::{SIGABRT, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit::{Exit, Stop};

static STOP: AtomicBool = AtomicBool::new(false);
static SIMULATING: AtomicBool = AtomicBool::new(false);
/// The signal that asked for the end; 0 for none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static STDOUT_FAILED: AtomicBool = AtomicBool::new(false);
static ALL_ERRORS: AtomicBool = AtomicBool::new(false);

/// Faults of one input that are told unless all are asked for.
const ERRORS_SHOWN: usize = 20;

/// Heeds SIGINT and SIGTERM from now on.
pub(super) fn listen_for_signals() {
    let mut signals = match Signals::new([SIGINT, SIGTERM]) {
        Ok(signals) => signals,
        Err(fault) => return error(&format!("Ctrl-C will end the program without a report: {fault}")),
    };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            SIGNAL.store(signal, Ordering::Relaxed);
            let first = !STOP.swap(true, Ordering::Relaxed);
            if !(first && SIMULATING.load(Ordering::Relaxed)) {
                std::process::exit(i32::from(interrupted_exit() as u8));
            }
        }
    });
}

/// Has an abort end the program with an exit code of its own: Rust aborts, after a line on standard error,
/// where an allocation fails.
pub(super) fn heed_aborts() {
    let always = std::sync::Arc::new(AtomicBool::new(true));
    let heeded = signal_hook::flag::register_conditional_shutdown(SIGABRT, Exit::Aborted as i32, always);
    if let Err(fault) = heeded {
        error(&format!("a lack of memory will end the program by a signal: {fault}"));
    }
}

/// Set by a signal while something polls it.
pub(super) fn stop_flag() -> &'static AtomicBool {
    SIMULATING.store(true, Ordering::Relaxed);
    &STOP
}

/// A signal has asked for the end.
pub(super) fn interrupted() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// How a command ends that a signal interrupted.
pub(super) fn interrupted_exit() -> Exit {
    if SIGNAL.load(Ordering::Relaxed) == SIGTERM { Exit::Terminated } else { Exit::Interrupted }
}

/// Something could not be written to standard output.
pub(super) fn stdout_failed() -> bool {
    STDOUT_FAILED.load(Ordering::Relaxed)
}

/// Prints a result.
pub(super) fn print(text: &str) {
    if !stdout_failed()
        && let Err(Stop::File(message)) = print_by(|out| out.write_all(text.as_bytes()))
    {
        error(&message);
    }
}

/// Prints a result, or shows it on standard error where standard output is for something else.
pub(super) fn show(text: &str, stdout_is_taken: bool) {
    match stdout_is_taken {
        // A standard error that cannot be written to leaves nowhere to say so.
        true => drop(io::stderr().write_all(text.as_bytes())),
        false => print(text),
    }
}

/// Writes to standard output piece by piece.
pub(super) fn print_by(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(fault) if fault.kind() != io::ErrorKind::BrokenPipe => {
            STDOUT_FAILED.store(true, Ordering::Relaxed);
            Err(Stop::File(format!("cannot write to standard output: {fault}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line about what went wrong.
pub(super) fn error(message: &str) {
    // A standard error that cannot be written to leaves nowhere to say so.
    let _ = writeln!(io::stderr(), "error: {message}");
}

/// Prints a line that is good to know.
pub(super) fn say(message: &str) {
    let _ = writeln!(io::stderr(), "note: {message}");
}

/// Prints a line about what is odd but allowed.
pub(super) fn note(message: &str) {
    let _ = writeln!(io::stderr(), "warning: {message}");
}

/// Has every fault of an input told from now on, however many there are.
pub(super) fn tell_all_errors(all: bool) {
    ALL_ERRORS.store(all, Ordering::Relaxed);
}

/// With colours where standard error shows them and they are not refused (NO_COLOR, TERM=dumb, CLICOLOR,
/// CLICOLOR_FORCE): as the parser of the command line decides for its own errors.
fn renderer() -> Renderer {
    match anstream::AutoStream::choice(&io::stderr()) {
        anstream::ColorChoice::Never => Renderer::plain(),
        _ => Renderer::styled(),
    }
}

/// Whether standard error is a terminal whose lines can be drawn again.
pub(super) fn can_redraw() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Prints the faults of an input, each with the line it is in: all of them, or the first ones of a file that
/// is none of its kind.
pub(super) fn complain(faults: &Diagnostics) {
    let renderer = renderer();
    let mut text = String::new();
    let shown = if ALL_ERRORS.load(Ordering::Relaxed) { usize::MAX } else { ERRORS_SHOWN };
    for fault in faults.0.iter().take(shown) {
        text += &renderer.render(&[report(fault, Level::ERROR)]);
        text += "\n";
    }
    if faults.0.len() > shown {
        text += &format!("{} errors; the first {shown} are above, --all-errors tells all\n", faults.0.len());
    } else if faults.0.len() > 1 {
        text += &format!("{} errors\n", faults.0.len());
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints what is odd but allowed.
pub(super) fn warn<'a>(warnings: impl IntoIterator<Item = &'a Diagnostic>) {
    let renderer = renderer();
    for warning in warnings {
        let _ = writeln!(io::stderr(), "{}", renderer.render(&[report(warning, Level::WARNING)]));
    }
}

fn report<'a>(fault: &'a Diagnostic, level: Level<'a>) -> annotate_snippets::Group<'a> {
    let title = level.primary_title(&fault.message);
    let mut group = if fault.span.line == 0 {
        let group = annotate_snippets::Group::with_title(title);
        if fault.file.is_empty() { group } else { group.element(Origin::path(&fault.file)) }
    } else if fault.source_line.is_empty() {
        let place = Origin::path(&fault.file).line(fault.span.line as usize);
        title.element(place.char_column(fault.span.column as usize))
    } else {
        let line = &fault.source_line;
        let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
        let start = fault.span.column.saturating_sub(1) as usize;
        let span = byte(start)..byte(start + fault.span.length.max(1) as usize);
        let place = Snippet::source(line).line_start(fault.span.line as usize).path(&fault.file);
        title.element(place.annotation(AnnotationKind::Primary.span(span)))
    };
    if let Some(help) = &fault.help {
        group = group.element(Level::HELP.message(help));
    }
    group
}

/// Makes a folder for what is written, unless it is there.
pub(super) fn make_folder(folder: &Path) -> Result<(), Stop> {
    std::fs::create_dir_all(folder)
        .map_err(|fault| Stop::File(format!("cannot make the folder `{}`: {fault}", folder.display())))
}

/// Says on standard error why a command stopped. How the command ends then.
pub(super) fn tell(why: Stop) -> Exit {
    match why {
        Stop::Input(faults) => complain(&faults),
        Stop::File(message) => error(&message),
    }
    Exit::BadInput
}
