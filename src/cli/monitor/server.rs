//! A server of two things: the page, and the state of the run as JSON. For this host alone.
//!
//! Each connection has a thread, one request and two seconds. A request whose `Host` is another name than
//! this host's own is refused, so that no page from elsewhere can read the state through a name that it has
//! lead here. Not served: anything that changes something, other methods than GET and HEAD, TLS.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The page: all of it, as it loads nothing but the state.
const PAGE: &str = include_str!("page.html");

/// What a page may load: nothing from other hosts.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How long a client may take for its request, and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A page that asked for the state within this time is open.
const OPEN: Duration = Duration::from_secs(2);

/// Bytes of a request's head, at most.
const HEAD_BYTES: usize = 8192;

/// Headers of a request, at most.
const HEADERS: usize = 64;

/// Connections at a time.
const CONNECTIONS: usize = 16;

/// A server that runs until the program ends.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<ServerState>,
}

#[derive(Debug, Default)]
struct ServerState {
    state: Mutex<ServedState>,
    /// Rung when somebody has had the last state.
    had_last: Condvar,
    connections: AtomicUsize,
}

#[derive(Debug, Default)]
struct ServedState {
    json: String,
    /// It is the last.
    over: bool,
    /// When it was asked for last.
    asked: Option<Instant>,
    had_last: bool,
}

impl ServerState {
    fn state(&self) -> MutexGuard<'_, ServedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Listens at an address; port 0 picks one.
    pub(super) fn open(address: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let server = Server { address: listener.local_addr()?, shared: Arc::default() };
        let shared = Arc::clone(&server.shared);
        thread::Builder::new().name("monitor".to_owned()).spawn(move || accept(&listener, &shared))?;
        Ok(server)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves this state from now on.
    pub(super) fn serve(&self, json: String, over: bool) {
        let mut state = self.shared.state();
        (state.json, state.over) = (json, over);
    }

    /// Waits until a page that is open has had the last state, for so long at most.
    pub(super) fn wait_for_last_look(&self, most: Duration) {
        let state = self.shared.state();
        if state.asked.is_some_and(|asked| asked.elapsed() < OPEN) {
            drop(self.shared.had_last.wait_timeout_while(state, most, |state| !state.had_last));
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<ServerState>) {
    for stream in listener.incoming().flatten() {
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let of_thread = Arc::clone(shared);
        let started = thread::Builder::new().name("monitor client".to_owned()).spawn(move || {
            // A client that goes away, or takes too long, is no concern of the run's.
            let _ = answer(stream, &of_thread);
            of_thread.connections.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Page,
    State,
    Refused(&'static str),
}

fn answer(mut stream: TcpStream, shared: &ServerState) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = read_head(&mut stream)?;
    let (asked, body_wanted) = asked(&head);
    let (status, kind, body) = match asked {
        Asked::Page => ("200 OK", "text/html; charset=utf-8", PAGE.to_owned()),
        Asked::State => ("200 OK", "application/json", take_state(shared)),
        Asked::Refused(status) => (status, "text/plain; charset=utf-8", format!("{status}\n")),
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nContent-Security-Policy: {POLICY}\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if body_wanted {
        answer += &body;
    }
    stream.write_all(answer.as_bytes())?;
    stream.flush()?;
    if asked == Asked::State {
        let mut state = shared.state();
        // What was sent may be the state before the last: a page that is open asks again.
        state.had_last = state.over && state.json == body;
        if state.had_last {
            shared.had_last.notify_all();
        }
    }
    Ok(())
}

/// The state, which somebody looks at.
#[expect(clippy::disallowed_methods, reason = "whether a page is open is a matter of wall-clock time")]
fn take_state(shared: &ServerState) -> String {
    let mut state = shared.state();
    state.asked = Some(Instant::now());
    state.json.clone()
}

/// The head of a request, without what may follow it.
#[expect(clippy::disallowed_methods, reason = "how long a client takes is a matter of wall-clock time")]
fn read_head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut part)?;
        if read == 0 || head.len() + read > HEAD_BYTES || began.elapsed() > PATIENCE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&part[..read]);
    }
    Ok(head)
}

/// What a request asks for, and whether it wants more than the headers of the answer.
fn asked(head: &[u8]) -> (Asked, bool) {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).is_ok_and(|status| status.is_complete()) {
        return (Asked::Refused("400 Bad Request"), true);
    }
    let mut hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    if !hosts.all(|host| std::str::from_utf8(host.value).is_ok_and(is_this_host)) {
        return (Asked::Refused("403 Forbidden"), true);
    }
    let method = request.method.unwrap_or_default();
    if !["GET", "HEAD"].contains(&method) {
        return (Asked::Refused("405 Method Not Allowed"), true);
    }
    let path = request.path.unwrap_or_default().split('?').next();
    let asked = match path {
        Some("/") => Asked::Page,
        Some("/state.json") => Asked::State,
        _ => Asked::Refused("404 Not Found"),
    };
    (asked, method == "GET")
}

/// A `Host`, with or without a port, that names this host as only itself does.
fn is_this_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_for_the_page_or_its_state_and_from_this_host() {
        let of = |line: &str, host: &str| asked(format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        assert_eq!(of("GET /", "127.0.0.1:8080"), (Asked::Page, true));
        assert_eq!(of("HEAD /state.json?1", "localhost"), (Asked::State, false));
        assert_eq!(of("GET /state.json", "[::1]:99").0, Asked::State);
        assert_eq!(of("GET /../etc/passwd", "127.0.0.1").0, Asked::Refused("404 Not Found"));
        assert_eq!(of("POST /", "127.0.0.1").0, Asked::Refused("405 Method Not Allowed"));
        for other in ["example.org", "127.0.0.1.example.org:80", "10.0.0.1:80", ""] {
            assert_eq!(of("GET /state.json", other).0, Asked::Refused("403 Forbidden"), "{other}");
        }
        assert_eq!(asked(b"what is this\r\n\r\n").0, Asked::Refused("400 Bad Request"));
        assert_eq!(asked(b"GET / HTTP/1.0\r\n\r\n").0, Asked::Page);
    }

    #[test]
    fn a_head_that_does_not_end_is_refused() {
        assert!(read_head(&mut io::repeat(b'a')).is_err());
        assert!(read_head(&mut io::empty()).is_err());
        assert_eq!(read_head(&mut &b"GET / HTTP/1.1\r\n\r\n"[..]).unwrap().len(), 18);
    }
}
