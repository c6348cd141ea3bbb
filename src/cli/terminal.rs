//! Standard output and error, and Ctrl-C.
//!
//! Output to a pipe that was closed (`| head`) is no failure. The first Ctrl-C asks a simulation to end and report what
//! it knows; a second one, or one outside a simulation, ends the program at once.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use durawarp::diagnostic::{Diagnostic, Diagnostics};
use serde::Serialize;

use super::{Exit, Stop};

static STOP: AtomicBool = AtomicBool::new(false);
static SIMULATING: AtomicBool = AtomicBool::new(false);

/// Installs the handler of Ctrl-C.
pub(super) fn listen_for_interrupts() {
    let handler = || {
        let first = !STOP.swap(true, Ordering::Relaxed);
        if !(first && SIMULATING.load(Ordering::Relaxed)) {
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    if let Err(fault) = ctrlc::set_handler(handler) {
        error(&format!("Ctrl-C will end the program without a report: {fault}"));
    }
}

/// Set by Ctrl-C while something polls it.
pub(super) fn stop_flag() -> &'static AtomicBool {
    SIMULATING.store(true, Ordering::Relaxed);
    &STOP
}

/// Ctrl-C was pressed.
pub(super) fn interrupted() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Prints a result.
pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => {}
        Err(fault) => error(&format!("cannot write to standard output: {fault}")),
    }
}

/// Prints a line about what went wrong.
pub(super) fn error(message: &str) {
    // A standard error that cannot be written to leaves nowhere to say so.
    let _ = writeln!(io::stderr(), "error: {message}");
}

/// Prints a line about what is odd but allowed.
pub(super) fn note(message: &str) {
    let _ = writeln!(io::stderr(), "warning: {message}");
}

/// Prints every fault of an input with the line it is in.
pub(super) fn complain(faults: &Diagnostics) {
    let renderer = if io::stderr().is_terminal() { Renderer::styled() } else { Renderer::plain() };
    let mut text = String::new();
    for fault in &faults.0 {
        text += &renderer.render(&[report(fault, Level::ERROR)]);
        text += "\n";
    }
    if faults.0.len() > 1 {
        text += &format!("{} errors\n", faults.0.len());
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints what is odd but allowed.
pub(super) fn warn<'a>(warnings: impl IntoIterator<Item = &'a Diagnostic>) {
    let renderer = if io::stderr().is_terminal() { Renderer::styled() } else { Renderer::plain() };
    for warning in warnings {
        let _ = writeln!(io::stderr(), "{}", renderer.render(&[report(warning, Level::WARNING)]));
    }
}

fn report<'a>(fault: &'a Diagnostic, level: Level<'a>) -> annotate_snippets::Group<'a> {
    let title = level.primary_title(&fault.message);
    let mut group = if fault.span.line == 0 {
        let group = annotate_snippets::Group::with_title(title);
        if fault.file.is_empty() { group } else { group.element(Origin::path(&fault.file)) }
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

/// Writes a file whole or not at all: to a neighbour first, then renamed.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    stream_file(path, |file| file.write_all(bytes))
}

/// Writes a value as JSON, as [`write_file`] does.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Stop> {
    let mut text = serde_json::to_string_pretty(value).map_err(|fault| Stop::File(fault.to_string()))?;
    text.push('\n');
    write_file(path, text.as_bytes())
}

/// As [`write_file`], piece by piece.
pub(super) fn stream_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Stop> {
    let partial = partial(path);
    let written = File::create(&partial).and_then(|mut file| write(&mut file));
    let named = written.and_then(|()| std::fs::rename(&partial, path));
    named.map_err(|fault| {
        // Half a file is of no use; that it may not be there is no news.
        let _ = std::fs::remove_file(&partial);
        cannot(path, &fault)
    })
}

/// Makes a folder for what is written, unless it is there.
pub(super) fn make_folder(folder: &Path) -> Result<(), Stop> {
    std::fs::create_dir_all(folder)
        .map_err(|fault| Stop::File(format!("cannot make the folder `{}`: {fault}", folder.display())))
}

/// Says now, and not after hours of simulation, that `path` cannot be written.
pub(super) fn check_writable(path: &Path) -> Result<(), Stop> {
    if path.is_dir() {
        return Err(Stop::File(format!("cannot write `{}`: it is a folder", path.display())));
    }
    let partial = partial(path);
    std::fs::write(&partial, []).and_then(|()| std::fs::remove_file(&partial)).map_err(|fault| cannot(path, &fault))
}

fn partial(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

fn cannot(path: &Path, fault: &io::Error) -> Stop {
    Stop::File(format!("cannot write `{}`: {fault}", path.display()))
}
