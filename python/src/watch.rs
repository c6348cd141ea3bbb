//! Work that is watched: it goes on in a thread of its own, while the thread that called heeds signals and
//! tells of progress.
//!
//! | who | does |
//! |---|---|
//! | the worker | simulates; looks at `stop`; leaves the newest news |
//! | the caller | looks every 50 ms (`LOOK`): runs handlers of signals, calls `progress` with news |
//!
//! Between two looks the caller does not hold the interpreter's lock. After an exception (Ctrl-C, or one of
//! `progress`) the worker is told to stop and gets 500 ms (`GRACE`). One that reads a large input, and cannot
//! stop, ends by itself later: nothing waits for it. Signals are the main thread's: elsewhere only an
//! exception of `progress` stops.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;

use crate::errors;

/// How often the caller looks up.
const LOOK: Duration = Duration::from_millis(50);

/// How long what was stopped may take to end. Chosen: the longest time between two looks at the flag is some
/// 100 ms.
const GRACE: Duration = Duration::from_millis(500);

/// Bytes of the worker's stack: as of a main thread, which simulates on the command line.
const STACK_BYTES: usize = 8 << 20;

/// How far something is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct News {
    /// What is under way.
    pub(crate) what: &'static str,
    /// What is done.
    pub(crate) done: u64,
    /// Of so much, if that is known.
    pub(crate) total: Option<u64>,
    /// Seconds left, if that is known.
    pub(crate) left_s: Option<f64>,
    /// More about it.
    pub(crate) text: String,
}

/// What worker and caller share.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The work is to end.
    pub(crate) stop: AtomicBool,
    news: Mutex<Option<News>>,
}

impl Watch {
    /// Leaves news in place of older ones.
    pub(crate) fn put(&self, news: News) {
        *self.news.lock().unwrap_or_else(PoisonError::into_inner) = Some(news);
    }

    /// Tells the newest news, if they were not told.
    fn tell(&self, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let news = self.news.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(progress), Some(News { what, done, total, left_s, text })) = (progress, news) else { return Ok(()) };
        progress.call1((what, done, total, left_s, text)).map(drop)
    }
}

/// Does the work in a thread of its own.
///
/// # Errors
/// What a signal's handler or `progress` raised; `Defect` when the work panics.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (end, ended) = bounded(1);
    let of_worker = Arc::clone(&watch);
    let worker = std::thread::Builder::new().name("durawarp".to_owned()).stack_size(STACK_BYTES);
    worker.spawn(move || {
        // Nobody may be waiting any more.
        let _ = end.send(catch_unwind(AssertUnwindSafe(|| work(&of_worker))));
    })?;
    loop {
        match py.detach(|| ended.recv_timeout(LOOK)) {
            Ok(Ok(came)) => {
                watch.tell(progress)?;
                return Ok(came);
            }
            Ok(Err(panic)) => return Err(errors::defect(told(&*panic))),
            Err(RecvTimeoutError::Disconnected) => return Err(errors::defect("the worker is gone".to_owned())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(why) = py.check_signals().and_then(|()| watch.tell(progress)) {
            watch.stop.store(true, Ordering::Relaxed);
            let _ = py.detach(|| ended.recv_timeout(GRACE));
            return Err(why);
        }
    }
}

/// What a panic says.
fn told(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}
