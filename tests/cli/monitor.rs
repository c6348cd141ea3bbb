//! `run --monitor`: a page of this host alone that shows a run and changes nothing of it. In a browser, where
//! one is installed, nothing is wider than the page and its numbers move.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::cli_common::{browser, command, durawarp, ended, folder};
use durawarp::run::{Conduct, Experiment, LiveState};
use serde_json::Value;

/// A run that is watched.
struct Watched {
    child: Child,
    address: String,
    /// The rest of its standard error.
    stderr: BufReader<std::process::ChildStderr>,
}

impl Watched {
    fn start(folder: &Path, arguments: &[&str]) -> Watched {
        let mut command = command(folder, &[&["run"], arguments, &["--monitor", "127.0.0.1:0"]].concat());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let rest = line.strip_prefix("note: this run is shown at http://").unwrap_or_else(|| panic!("{line}"));
        let address = rest.strip_suffix("/ until it ends\n").unwrap_or_else(|| panic!("{line}")).to_owned();
        assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{address}");
        Watched { child, address, stderr }
    }

    fn state(&self) -> Option<Value> {
        let answer = request(&self.address, "GET", "/state.json", "127.0.0.1")?;
        answer.starts_with("HTTP/1.1 200 OK\r\n").then(|| serde_json::from_str(body(&answer)).unwrap())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server answers; nothing where there is none.
fn request(address: &str, method: &str, path: &str, host: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

/// Some seconds of a kernel, in a debug build on an idle host: a state is shown every half second.
const SOME_SECONDS: [&str; 7] = ["gemm", "--max-cycles", "200000", "--no-reference", "-q", "--threads", "1"];

#[test]
fn a_run_that_is_watched_moves_ends_and_comes_to_the_same() {
    let folder = folder("monitor_run");
    let mut watched = Watched::start(&folder, &[&SOME_SECONDS[..], &["--json", "watched.json"]].concat());
    let mut states: Vec<Value> = Vec::new();
    while let Some(state) = watched.state() {
        let over = state["over"] == true;
        states.push(state);
        if over {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(watched.child.wait().unwrap().code(), Some(0));
    let cycles = |state: &Value| state["now"]["core_cycles"].as_u64().unwrap();
    let mut seen: Vec<u64> = states.iter().map(cycles).collect();
    assert!(seen.is_sorted(), "{seen:?}");
    seen.dedup();
    assert!(seen.len() >= 3 && seen.last() == Some(&200_000), "{seen:?}");
    // A page that is open has the last state before the command ends.
    let last = states.last().unwrap();
    assert_eq!((&last["over"], &last["status"]), (&Value::Bool(true), &Value::from("cut at its cycle limit")));
    assert_eq!(last["title"]["machine"], "agpm-table4");
    let ipc = last["rates"]["ipc"].as_array().unwrap();
    assert!(ipc.len() >= 2 && ipc.iter().all(|ipc| ipc.as_f64().unwrap() > 0.0), "{ipc:?}");
    let names: Vec<&str> =
        last["now"]["queues"].as_array().unwrap().iter().filter_map(|q| q["name"].as_str()).collect();
    assert!(["SM load-store queue", "L2 MSHRs", "WPQ"].iter().all(|name| names.contains(name)), "{names:?}");
    let waits = last["now"]["waits"].as_array().unwrap();
    assert!(waits.iter().any(|wait| wait["who"] == "sm warp" && wait["count"].as_u64() > Some(1)), "{waits:?}");

    assert_eq!(ended(&command_of(&folder, &["--json", "alone.json"]), 0, &[]), "");
    let read = |name: &str| {
        let mut outcome: Value = serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap();
        outcome["host"].take();
        outcome
    };
    assert_eq!(read("watched.json"), read("alone.json"));
}

fn command_of(folder: &Path, extra: &[&str]) -> std::process::Output {
    command(folder, &[&["run"], &SOME_SECONDS[..], extra].concat()).output().unwrap()
}

#[test]
fn what_is_shown_at_the_end_is_what_the_result_counts() {
    for (workload, scheme, kind) in [("atax", "strict", "sm"), ("hash", "sync", "core")] {
        let recipe = Experiment::of(workload).scheme(scheme).profile("ci");
        let experiment = recipe.build_any().unwrap_or_else(|faults| panic!("{faults}"));
        let states: Mutex<Vec<LiveState>> = Mutex::default();
        let keep = |state| states.lock().unwrap().push(state);
        let watched = experiment.run(&Conduct { monitor: Some(&keep), ..Conduct::default() }).outcome;
        let alone = experiment.run(&Conduct::default()).outcome;
        assert_eq!((&watched.digest, &watched.counters), (&alone.digest, &alone.counters), "{workload}");
        assert_eq!((&watched.engine, &watched.memory_digest), (&alone.engine, &alone.memory_digest), "{workload}");
        let states = states.into_inner().unwrap();
        let last = states.last().unwrap();
        assert!(last.over && last.waits.is_empty(), "{:?}", last.waits);
        let total = |table: &str, names: &[&str]| names.iter().map(|name| alone.total(table, name)).sum::<u64>();
        let counts = last.counts;
        let instructions = if kind == "sm" { "warp_instructions" } else { "instructions" };
        assert_eq!(counts.instructions, total(kind, &[instructions]), "{workload}");
        let bytes = |medium: &str| ["read", "written"].map(|way| format!("{medium}_{way}_bytes"));
        for (counted, medium) in [(counts.dram_bytes, "dram"), (counts.nvm_bytes, "nvm")] {
            let [read, written] = bytes(medium);
            assert_eq!(counted, total("memory_controller", &[&read, &written]), "{workload} {medium}");
        }
        assert!(0 < counts.l1_hits && counts.l1_hits < counts.l1_loads, "{counts:?}");
        assert!(0 < counts.l2_hits && counts.l2_hits < counts.l2_reads, "{counts:?}");
        assert!(last.core_cycles >= alone.time.core_cycles);
        // Everything is empty in the end, and its queues are those of its components.
        assert!(last.queues.iter().all(|queue| queue.entries <= queue.capacity && queue.capacity > 0));
        let has = |name: &str| last.queues.iter().any(|queue| queue.name == name);
        assert!(has("WPQ") && has("reorder buffer") == (kind == "core") && has("SM warp slots") == (kind == "sm"));
    }
}

#[test]
fn the_server_answers_this_host_with_two_things_and_nothing_else() {
    let folder = folder("monitor_server");
    let watched = Watched::start(&folder, &["gemm", "--no-reference", "-q", "--threads", "1"]);
    let ask = |method: &str, path: &str, host: &str| request(&watched.address, method, path, host).unwrap();
    let page = ask("GET", "/", &watched.address);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"), "{page}");
    let (headers, html) = page.split_once("\r\n\r\n").unwrap();
    assert!(headers.contains("Content-Security-Policy: default-src 'none'") && headers.contains("connect-src 'self'"));
    // No address but the name of SVG's elements, and nothing that loads something.
    let addresses: Vec<&str> = html.split("://").skip(1).filter_map(|rest| rest.split(['"', ' ']).next()).collect();
    assert_eq!(addresses, ["www.w3.org/2000/svg"]);
    assert!(!["src=", "@import", "url(", "<iframe"].iter().any(|word| html.contains(word)));
    assert_eq!(body(&ask("HEAD", "/", "localhost")), "");
    for (method, path, host, status) in [
        ("GET", "/state.json", "example.org", "403 Forbidden"),
        ("GET", "/", "192.168.0.1:80", "403 Forbidden"),
        ("GET", "/favicon.ico", "127.0.0.1", "404 Not Found"),
        ("POST", "/state.json", "127.0.0.1", "405 Method Not Allowed"),
    ] {
        let answer = ask(method, path, host);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{method} {path} {host}: {answer}");
    }
    // A client that says nothing keeps no other from being answered.
    let _idle = TcpStream::connect(&watched.address).unwrap();
    assert!(watched.state().is_some());
    // The address is taken: said before a run begins.
    let second = durawarp(&["run", "gemm", "--monitor", &watched.address]);
    ended(&second, 2, &["--monitor: cannot serve at 127.0.0.1:", "port 0 picks one"]);
    assert!(second.stdout.is_empty());
}

#[test]
fn addresses_that_others_may_reach_are_refused_with_the_reason() {
    for (address, word) in [
        ("0.0.0.0:8080", "other hosts may reach 0.0.0.0"),
        ("192.168.1.7:8080", "other hosts may reach 192.168.1.7"),
        ("[::]:8080", "other hosts may reach ::"),
        ("example.org:80", "expected 127.0.0.1:PORT"),
        ("8080", "expected 127.0.0.1:PORT"),
    ] {
        ended(&durawarp(&["run", "vecadd", "--profile", "ci", "--monitor", address]), 2, &["--monitor", word]);
    }
    ended(&durawarp(&["run", "gemm", "--sample", "--monitor", "127.0.0.1:0"]), 2, &["--sample", "--monitor"]);
}

/// Puts what it measures where it can be read: elements that reach beyond the window and lie in nothing that
/// scrolls, what was loaded, and what the first tile said from time to time.
const MEASURE: &str = "<script>
const saidByTile = new Set();
setInterval(() => {
    const tile = document.querySelector('dd');
    if (tile) saidByTile.add(tile.textContent);
    const out = [];
    for (const e of document.querySelectorAll('main *')) {
        if (e.getBoundingClientRect().right > innerWidth + 0.5 && !e.closest('.wide') && !e.closest('svg'))
            out.push('beyond ' + e.tagName);
    }
    if (document.documentElement.scrollWidth > innerWidth) out.push('page ' + document.documentElement.scrollWidth);
    for (const e of performance.getEntriesByType('resource'))
        if (e.name !== location.origin + '/state.json') out.push('loaded ' + e.name);
    out.push('charts ' + document.querySelectorAll('polyline').length);
    out.push('rows ' + (document.querySelectorAll('tbody tr').length > 8));
    document.body.dataset.measured = [saidByTile.size > 2 ? 'moves' : 'stands'].concat(out).join('; ');
}, 100);
</script></body>";

/// Hands on what the server answers until the browser is done, with the measuring script in the page; what was
/// asked for.
fn between(server: &str, listener: &TcpListener, over: &Receiver<()>) -> Vec<String> {
    let mut paths = Vec::new();
    listener.set_nonblocking(true).unwrap();
    while over.try_recv().is_err() {
        let Ok((mut stream, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut line = String::new();
        if BufReader::new(&stream).read_line(&mut line).is_err() {
            continue;
        }
        let Some(path) = line.split(' ').nth(1) else { continue };
        paths.push(path.to_owned());
        // A browser's clock stands while it waits, and so do its looks: they are as far apart as real ones.
        thread::sleep(Duration::from_millis(if path == "/" { 0 } else { 300 }));
        let Some(answer) = request(server, "GET", path, "127.0.0.1") else { continue };
        let content = body(&answer).replace("</body>", MEASURE);
        let kind = if path == "/" { "text/html; charset=utf-8" } else { "application/json" };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}", content.len());
        // A browser that has gone needs no answer.
        let _ = write!(stream, "{head}\r\nConnection: close\r\n\r\n{content}");
        let mut rest = [0; 4096];
        let _ = stream.read(&mut rest);
    }
    paths
}

#[test]
fn in_a_browser_numbers_move_and_nothing_is_wider_than_the_page() {
    let Some(browser) = browser() else { return };
    let folder = folder("monitor_browser").canonicalize().unwrap();
    let watched = Watched::start(&folder, &["gemm", "--no-reference", "-q", "--threads", "1"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for width in [600, 1400] {
        let (mut paths, output) = thread::scope(|scope| {
            let (done, over) = channel();
            let browsing = scope.spawn(move || {
                let output = Command::new(browser)
                    .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
                    .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
                    .args(["--dump-dom", "--virtual-time-budget=5000"])
                    .arg(format!("--window-size={width},900"))
                    .arg(format!("--user-data-dir={}", folder_of(width).display()))
                    .arg(format!("http://{address}/"))
                    .output();
                // Nobody listens any more where the test has failed.
                let _ = done.send(());
                output.unwrap()
            });
            (between(&watched.address, &listener, &over), browsing.join().unwrap())
        });
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths, ["/", "/state.json"], "{width}");
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let measured = dom.split("data-measured=\"").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(measured, Some("moves; charts 5; rows true"), "{width}");
    }
}

fn folder_of(width: u32) -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).canonicalize().unwrap().join(format!("monitor_browser/{width}"))
}

/// Minutes in a debug build, also on a fast host: every store waits for persistent memory. Counting its
/// instructions takes seconds.
const LONG: [&str; 7] = ["atax", "--scheme", "strict", "--threads", "1", "--set", "params.NX=16384"];

#[test]
#[cfg_attr(not(debug_assertions), ignore = "takes less than half a minute where the simulator is optimised")]
fn a_long_run_says_once_how_long_it_takes_and_shows_how_far_it_is() {
    let folder = folder("monitor_long");
    let mut watched = Watched::start(&folder, &LONG);
    let mut line = String::new();
    watched.stderr.read_line(&mut line).unwrap();
    let told = line.strip_prefix("note: this run takes about ").unwrap_or_else(|| panic!("{line}"));
    let (time, rest) = told.split_once(": it has ").unwrap();
    let seconds = time.split(':').fold(0, |sum, part| 60 * sum + part.parse::<u64>().unwrap());
    let counted = rest.strip_suffix(" warp instructions\n").unwrap_or_else(|| panic!("{line}"));
    assert!(seconds > 30 && counted.parse::<u64>().is_ok_and(|counted| counted > 1_000_000), "{line}");
    // The page has it from its next look on.
    let known = (0..100).find_map(|_| {
        thread::sleep(Duration::from_millis(100));
        watched.state().filter(|state| state["left_s"].is_number())
    });
    let state = known.expect("the time left is shown");
    let (share, left) = (state["share"].as_f64().unwrap(), state["left_s"].as_f64().unwrap());
    assert!((0.01..0.99).contains(&share) && left > 20.0, "{share} {left}");
    // Once: the run goes on, and says nothing more until it is asked to end.
    thread::sleep(Duration::from_secs(1));
    let pid = watched.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut rest = String::new();
    watched.stderr.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("this run takes"), "{rest}");
    assert_eq!(watched.child.wait().unwrap().code(), Some(143));
}
