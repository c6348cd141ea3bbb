//! Exceptions: the classes of `durawarp._errors`, made of what the crate reports.

use durawarp::Diagnostics;
use pyo3::prelude::*;

/// An exception of a class of `durawarp._errors`, or why there is none.
fn raised<A>(class: &str, arguments: A) -> PyErr
where
    A: for<'py> pyo3::call::PyCallArgs<'py> + Send,
{
    Python::attach(|py| {
        let made = py.import("durawarp._errors").and_then(|errors| errors.getattr(class)?.call1(arguments));
        made.map_or_else(|why| why, PyErr::from_value)
    })
}

/// `InputError`: everything that is wrong with an input.
pub(crate) fn input(faults: Diagnostics) -> PyErr {
    let told = faults.to_string();
    let one = |fault: durawarp::Diagnostic| {
        let place = (fault.span.line > 0).then_some((fault.span.line, fault.span.column));
        let (line, column) = place.unzip();
        (fault.file, line, column, fault.message, fault.help, fault.source_line)
    };
    let faults: Vec<_> = faults.0.into_iter().map(one).collect();
    raised("InputError", (told, faults))
}

/// `ResultsError`: a folder of results cannot be read or written.
pub(crate) fn results(why: String) -> PyErr {
    raised("ResultsError", (why,))
}

/// `Defect`: the simulator itself failed.
pub(crate) fn defect(why: String) -> PyErr {
    raised("Defect", (why,))
}
