//! `redrive demo --dashboard`: the story ends on a page, and Ctrl-C ends the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::dashboard_commands::{browser, unset};
use crate::harness::{Ran, Sandbox};
use crate::network::Serving;
use crate::served::local;

/// The rule of the demo that finds nothing any more, and one that does.
const RULE: &str = ".price-tag-main::text";
const CORRECTED: &str = ".price data::attr(value)";

/// It plays the whole demo: there is no shorter way to see that its end is the page of its largest cause.
#[test]
fn the_demo_ends_on_the_page_of_its_largest_cause() {
    let sandbox = Sandbox::new();
    let mut demo = sandbox.command().args(["demo", "--dashboard"]).stdout(Stdio::piped()).spawn().expect("started");
    let mut lines = BufReader::new(demo.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let open = lines.find_map(|line| line.strip_prefix("open http://").map(str::to_owned)).expect("an address");
    let (address, path) = open.split_once('/').expect("a page");
    let get = |path: &str, cookie: &str| {
        let mut stream = TcpStream::connect(address).expect("connected");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}{cookie}\r\nConnection: close\r\n\r\n").expect("asked");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("answered");
        page
    };
    let signed_in = get(&format!("/{path}"), "");
    let header = |name: &str| signed_in.lines().find_map(|line| line.strip_prefix(name)).expect("signed in");
    let cookie = header("set-cookie: ").split(';').next().unwrap_or_default();
    assert!(header("location: ").starts_with("/causes/"), "{open}");
    let page = get(header("location: "), &format!("\r\nCookie: {cookie}"));
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("SelectorNotFound"), "{page}");
    assert!(page.contains("Replay 60"), "{page}");
    let ended = Command::new("kill").args(["-INT", &demo.id().to_string()]).status().expect("asked to end");
    assert!(ended.success());
    assert_eq!(demo.wait().expect("ended").code(), Some(0));
    the_story_goes_on(&sandbox.path("redrive-demo"));
    what_is_offered_of_saved_pages_does_what_its_form_does(&sandbox.path("redrive-demo"));
}

/// What the demo left, with a server that works, in a folder of its own.
fn world(demo: &Path) -> (Serving, Sandbox) {
    let sandbox = Sandbox::new();
    let copied = Command::new("cp").arg("-r").arg(demo).arg(sandbox.path("")).status().expect("copied");
    assert!(copied.success());
    let mut served = sandbox.command();
    served.current_dir(sandbox.path("redrive-demo")).args(["serve", "--work", "--listen", "127.0.0.1:0"]);
    (Serving::of(served), sandbox)
}

/// What the demo left goes on in a browser, on a copy for each way to use it: a rule is tried and corrected, and what it broke is brought
/// back. `scripts/soak` goes all three ways, others the first: by pointer.
fn the_story_goes_on(demo: &Path) {
    let ways = if std::env::var_os("REDRIVE_TEST_SOAK").is_some() { 3 } else { 1 };
    let worlds: Vec<_> = (0..ways).map(|_| world(demo)).collect();
    let mut node = browser("demo.mjs");
    // Each is a copy of one folder, and has its token file.
    node.arg(RULE).env("LOCAL", local(&worlds[0].0.address));
    for (serving, sandbox) in &worlds {
        node.arg(format!("{}={}", serving.url(), sandbox.path("redrive-demo").display()));
    }
    Ran::of(node.output().expect("node runs")).expect(0);
}

/// "Copy as CLI" of what needs pages that were saved: each command is run on a copy, beside its form.
fn what_is_offered_of_saved_pages_does_what_its_form_does(demo: &Path) {
    let [(serving, sandbox), (_beside, copy)] = [(); 2].map(|()| world(demo));
    let [folder, copy] = [&sandbox, &copy].map(|sandbox| sandbox.path("redrive-demo"));
    let mut node = browser("saved.mjs");
    node.arg(serving.url()).arg(copy).arg(env!("CARGO_BIN_EXE_redrive")).arg(folder).args([RULE, CORRECTED]);
    node.env("LOCAL", local(&serving.address));
    Ran::of(unset(&mut node).output().expect("node runs")).expect(0);
}
