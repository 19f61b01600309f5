//! Commands that ask a server instead of a store: with the same output, and plain words where something is between.
//!
//! Cases of other files run a second time with every command that can be asked of a server, by [`over_the_network!`].

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::harness::{Ran, Sandbox, eventually};
use crate::real::authority::Authority;
use crate::served::answered;

/// Which commands are asked of a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// None: there is none.
    None,
    /// Those that work on nothing: that is done where the store is.
    ButWork,
    /// All that can be.
    All,
}

thread_local! {
    /// What is asked of the servers that sandboxes of this thread have.
    static ASKED: Cell<Asked> = const { Cell::new(Asked::None) };
}

/// Whether sandboxes that are made now have a server.
pub fn is_served() -> bool {
    ASKED.get() != Asked::None
}

/// Runs a case in which commands are asked of a server.
pub fn served(case: fn(), asked: Asked) {
    ASKED.set(asked);
    case();
}

/// Runs cases of a file again, over the network; those after the semicolon work on tasks where the store is.
macro_rules! over_the_network {
    ($($case:ident),* $(,)? $(; $($but_work:ident),* $(,)?)?) => {
        mod over_the_network {
            $(#[test]
            fn $case() {
                crate::network::served(super::$case, crate::network::Asked::All);
            })*
            $($(#[test]
            fn $but_work() {
                crate::network::served(super::$but_work, crate::network::Asked::ButWork);
            })*)?
        }
    };
}
pub(crate) use over_the_network;

/// Whether a command is asked of a server: others are done where the store is.
pub fn is_asked_of_servers(args: &[&str]) -> bool {
    let here = ["serve", "init", "demo", "backup", "restore", "store", "doctor"];
    let works = ["run", "work", "retry"];
    let other_store = args.iter().any(|arg| ["--store", "--help"].contains(arg));
    let is_here = args.is_empty() || here.contains(&args[0]) || args.get(..2) == Some(&["token", "reset"]);
    !(is_here || other_store || (ASKED.get() == Asked::ButWork && works.contains(&args[0])))
}

/// A server, for as long as this is kept.
pub struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    /// Starts one over the store of a sandbox.
    pub fn start(sandbox: &Sandbox, extra: &[&str]) -> Self {
        let mut command = sandbox.command();
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(extra);
        Self::of(command)
    }

    /// Starts one by a command.
    pub fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("redrive starts");
        let lines = BufReader::new(child.stderr.take().expect("an error stream")).lines();
        let mut lines = lines.map_while(Result::ok);
        let found = |line: String| {
            let (_, address) = line.split_once("http://").or_else(|| line.split_once("https://"))?;
            Some(address.to_owned())
        };
        let address = lines.find_map(found).expect("it says where");
        // What it says further is read, so that it never waits for us.
        std::thread::spawn(move || lines.count());
        Self { child, address }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A store with three dead letters of two causes.
fn failed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    let script =
        r#"read task; case "$task" in *'"n":3'*) echo "no such page" >&2;; *) echo "boom 17" >&2;; esac; exit 1"#;
    sandbox.run(&["run", "tasks.jsonl", "--attempts", "1", "--", "sh", "-c", script]).expect(3);
    sandbox
}

fn at(sandbox: &Sandbox, url: &str, token: Option<&str>, line: &str) -> Ran {
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", url).args(line.split_whitespace());
    command.envs(token.map(|token| ("REDRIVE_TOKEN", token)));
    Ran::of(command.output().expect("redrive starts"))
}

/// What is printed, without times that go by between two looks.
fn steady(ran: &Ran) -> String {
    let is_time =
        |word: &str| word.starts_with("ago") || word.trim_matches(['(', ')', ',', 's', 'm']).parse::<u32>().is_ok();
    let line = |line: &str| line.split_whitespace().filter(|word| !is_time(word)).collect::<Vec<_>>().join(" ");
    ran.stdout.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn commands_print_the_same_of_a_server_as_of_its_store() {
    let sandbox = failed();
    let serving = Serving::start(&sandbox, &[]);
    let cause = sandbox.redrive("cause list --json").json_lines()[0]["id"].as_str().expect("an id").to_owned();
    for line in [
        "cause list",
        "cause list --json",
        &format!("cause show {cause}"),
        &format!("cause show {cause} --json"),
        "dead list",
        "dead list --json",
        "dead list --reason handler_error --limit 2",
        "dead show 1",
        "dead show 1 --json",
        "dead top --by reason",
        "dead top --by input.n --json",
        "dead export",
        "job list",
        "job list --json --state dead",
        "job show 2 --json",
        "pipeline list",
        "pipeline show default",
        "breaker list",
        "round list",
        "replay list",
        "replay plan --reason handler_error",
        "replay plan --pipeline default --json",
        "replay plan 1 2",
        "replay plan 99",
        "replay plan",
        "replay try --show",
        "replay resume last",
        "retry 99 -- true",
        "retry --reason timeout -- true",
        "payload verify",
        "payload verify 1",
        "payload gc",
        "activity",
        "audit --json",
        "alert list",
        "alert check --dry-run",
        "alert ack rate/nobody",
        "alert snooze rate/nobody --until 2h",
        "replay rate last 5/s",
        "replay rate last fast",
        "cause resolve beefbeef",
        "cause assign beefbeef 3f9a1c2e --to ada",
        "cause assign beefbeef 3f9a1c2e ada",
        "token list",
        "report --json --since 2h",
        "dead show 99",
        "dead show 4444-4444",
        "job show 99",
        "cause show beefbeef",
        "replay show last",
        "replay show abcd",
        "pipeline show nobody",
        "breaker close nowhere.example",
        "dead list --cursor nonsense",
        "dead discard --why x",
    ] {
        let (here, there) = (sandbox.redrive(line), at(&sandbox, &serving.url(), None, line));
        assert_eq!(here.code, there.code, "{line}\n{}\n{}", here.stderr, there.stderr);
        if line.starts_with("report") {
            assert_eq!(here.json()["reasons"], there.json()["reasons"]);
        } else {
            assert_eq!(steady(&here), steady(&there), "{line}");
        }
        let place = serving.url();
        let said = |ran: &Ran| ran.stderr.replace("sqlite:.redrive/redrive.db", "STORE").replace(&place, "STORE");
        assert_eq!(said(&here), said(&there), "{line}");
    }
}

#[test]
fn what_is_changed_at_a_server_is_changed_in_its_store() {
    let sandbox = failed();
    let serving = Serving::start(&sandbox, &[]);
    let there = |line: &str| at(&sandbox, &serving.url(), None, line);
    let cause = there("cause list --json").expect(0).json_lines()[0]["id"].as_str().expect("an id").to_owned();
    assert!(there(&format!("cause assign {cause} ada")).expect(0).stdout.contains("is assigned to ada"));
    assert_eq!(sandbox.redrive("cause list --json").json_lines()[0]["owner"], "ada");
    let both = there(&format!("cause assign {cause} {cause} --to bob")).expect(0).stdout;
    assert_eq!(both.matches("is assigned to bob").count(), 2, "{both}");
    assert!(there("pipeline pause default --why maintenance").expect(0).stdout.contains("is paused for every worker"));
    assert!(sandbox.redrive("status").stdout.contains("maintenance"));
    let until = there("pipeline pause default --until 2h").expect(0).stdout;
    assert!(until.contains("for every worker until 2"), "{until}");
    assert!(sandbox.redrive("pipeline list --json").json_lines()[0]["paused"]["until"].is_string());
    there("pipeline pause nobody").expect(1).complains("no pipeline nobody: there are default");
    assert!(there("pipeline resume default").expect(0).stdout.contains("goes on, 0 queued; it was paused"));
    there("dead discard --pipeline default").expect(2);
    assert_eq!(there("dead discard 1 --why old").expect(0).stdout, "1 discarded\n");
    assert_eq!(sandbox.ledger("default")["dead"], 2);
    sandbox.write("more.jsonl", "{\"n\":9}\n");
    sandbox.redrive("push more.jsonl -p default").expect(0);
    assert_eq!(there("job cancel 4 --why wrong").expect(0).stdout, "1 cancelled\n");
    there("job cancel 4 --why again").expect(1).complains("is discarded: only tasks that are queued or running");
    let tasks: String = (100..110).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("more.jsonl", tasks);
    sandbox.redrive("run more.jsonl --attempts 1 -- false").expect(3);
    // What is judged without a file that says anything is kept nowhere.
    sandbox.write("redrive.toml", "[pipeline.default]\ncommand = [\"false\"]\n");
    sandbox.redrive("alert check").expect(3);
    assert!(there("alert ack rate/default").expect(0).stdout.contains("is acknowledged by "));
    assert!(there("alert snooze rate/default --until 2h").expect(0).stdout.contains("is snoozed until "));
    assert!(sandbox.redrive("alert list").stdout.contains("snoozed until "));
    there("alert wake rate/default").expect(0);
    there("alert wake rate/default").expect(1).complains("it is not snoozed");
    sandbox.redrive("replay start --pipeline default --detach --rate 1/h").expect(0);
    assert!(there("replay rate last 5/s").expect(0).stdout.contains("goes at 5 letters a second at most"));
    assert_eq!(sandbox.redrive("replay list --json").json_lines()[0]["pacing"]["per_second"], 5.0);
    there("replay cancel last").expect(0);
    sandbox.assert_sound();
}

#[test]
fn tasks_run_here_for_a_server_as_they_do_for_a_store() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\nbroken\n{\"n\":3}\n");
    let script =
        r#"read task; case "$task" in *'"n":3'*) echo "no such page" >&2; exit 1;; *) echo "{\"got\":1}";; esac"#;
    let run = |url: &str| {
        let mut command = sandbox.command();
        command.env("REDRIVE_SERVER", url).args(["run", "tasks.jsonl", "--attempts", "1", "--out", "out.jsonl"]);
        Ran::of(command.args(["--", "sh", "-c", script]).output().expect("redrive starts"))
    };
    let ran = run(&serving.url()).expect(3).complains("done: 2").complains("no such page");
    assert!(ran.stderr.contains("broken lines: 1"), "{}", ran.stderr);
    assert_eq!(sandbox.read("out.jsonl").lines().count(), 2);
    let ledger = sandbox.ledger("default");
    assert_eq!((&ledger["done"], &ledger["dead"]), (&2.into(), &1.into()), "{ledger}");
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["attempts"], &letter["input"]["n"]), (&1.into(), &3.into()), "{letter}");
    let again = run(&serving.url()).expect(3);
    assert!(again.stderr.contains("2 done before"), "{}", again.stderr);
    sandbox.assert_sound();
}

#[test]
fn a_worker_for_a_server_retries_hands_on_and_ends_when_nothing_is_left() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "redrive.toml",
        "[pipeline.list]\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; test -e again || { touch again; exit 1; }; echo 7\"]\n",
    );
    let serving = Serving::start(&sandbox, &[]);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    assert_eq!(
        at(&sandbox, &serving.url(), None, "push tasks.jsonl").expect(0).stdout,
        "pipeline list: 2 accepted, 0 known already, 0 broken\n"
    );
    let ran = at(&sandbox, &serving.url(), None, "work --drain --out out.jsonl").expect(0);
    ran.complains(&format!("working on list in {}", serving.url()));
    let ledger = sandbox.ledger("list");
    assert_eq!((&ledger["done"], &ledger["queued"]), (&2.into(), &0.into()), "{ledger}");
    assert_eq!(sandbox.read("out.jsonl").lines().count(), 2);
    let tried = sandbox.redrive("job list --json").expect(0).json_lines();
    assert!(tried.iter().any(|job| job["attempts"] == 2), "{tried:?}");
    sandbox.assert_sound();
}

#[test]
fn lists_of_a_server_are_whole_however_long_they_are() {
    let sandbox = Sandbox::new();
    let pipelines: String = (0..60).map(|n| format!("[pipeline.p{n}]\ncommand = [\"true\"]\n")).collect();
    sandbox.write("redrive.toml", pipelines);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("push tasks.jsonl -p p1").expect(0);
    let admin = sandbox.redrive("token create t0 --role admin --json").expect(0).json();
    let token = admin["secret"].as_str().expect("a secret");
    let serving = Serving::start(&sandbox, &[]);
    for n in 1..60 {
        for (request, body) in [
            ("POST /tokens", json!({ "name": format!("t{n}"), "role": "viewer" })),
            ("POST /breakers/hold", json!({ "target": format!("{n}.example"), "pipeline": "p1" })),
            ("POST /rounds", json!({ "pipeline": "p1" })),
        ] {
            answered(&serving.address, token, request, &body);
        }
    }
    let there = |line: &str| at(&sandbox, &serving.url(), Some(token), line).expect(0).stdout.lines().count();
    for (line, least) in [
        ("pipeline list --json", 60),
        ("token list --json", 60),
        ("breaker list --json", 59),
        ("round list --limit 2000 --json", 59),
        ("cause list --limit 2000", 0),
        ("dead top --limit 2000", 0),
    ] {
        let (here, there) = (sandbox.redrive(line).expect(0).stdout.lines().count(), there(line));
        assert!(here >= least && here == there, "{line}: {there} of {here}");
    }
}

#[test]
fn sinks_are_those_of_the_server_and_it_is_the_server_that_tells_them() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "redrive.toml",
        "[pipeline.p]\ncommand = [\"true\"]\n[alerts.sink.team]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat > told\"]\n",
    );
    let serving = Serving::start(&sandbox, &[]);
    let elsewhere = Sandbox::new();
    let ran = at(&elsewhere, &serving.url(), None, "alert test").expect(0);
    assert!(ran.stdout.contains("team (command) was told"), "{}", ran.stdout);
    assert!(sandbox.path("told").exists() && !elsewhere.path("told").exists());
    assert_eq!(at(&elsewhere, &serving.url(), None, "alert test team --json").expect(0).json()[0]["sink"], "team");
    at(&elsewhere, &serving.url(), None, "alert test nobody").expect(2).complains("no sink nobody (there are: team)");
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"true\"]\n");
    eventually("it has no sink any more", || {
        at(&elsewhere, &serving.url(), None, "alert test").stderr.contains("redrive.toml of the server")
    });
}

#[test]
fn a_replay_is_left_to_who_leases_it_by_somebody_who_knows_no_pipeline() {
    let sandbox = failed();
    let (serving, elsewhere) = (Serving::start(&sandbox, &[]), Sandbox::new());
    let there = |line: &str| at(&elsewhere, &serving.url(), None, line);
    let started = there("replay start --pipeline default --detach").expect(0).stdout;
    assert!(started.contains("3 letters") && started.contains("replay watch"), "{started}");
    assert_eq!(sandbox.ledger("default")["dead"], 2, "the first step is on its way: {started}");
    let replay = there("replay show last --json").expect(0).json();
    assert_eq!(replay["state"], "running", "{replay}");
    let cancelled = there("replay cancel last").expect(0).stdout;
    eventually("it is as it was", || sandbox.ledger("default")["dead"] == 3);
    assert!(cancelled.contains("cancel"), "{cancelled}");
    there("replay start --pipeline default").expect(2).complains("replay start --detach");
    there("retry 1").expect(2).complains("pipeline default has no command here");
    sandbox.assert_sound();
}

#[test]
fn what_is_done_to_a_store_itself_says_so() {
    let sandbox = failed();
    for line in [
        "backup all.tar",
        "restore all.tar",
        "store migrate",
        "serve",
        "doctor --compact",
        "token reset",
        "init",
        "demo",
    ] {
        at(&sandbox, "http://127.0.0.1:1", None, line).expect(2).complains("on the machine that has the store");
    }
    for line in ["codes", "completions bash"] {
        at(&sandbox, "http://127.0.0.1:1", None, line).expect(0);
    }
}

#[test]
fn tokens_are_asked_for_and_what_they_may_is_said() {
    let sandbox = failed();
    let token = |line: &str| sandbox.redrive(line).expect(0).stdout.trim_end().to_owned();
    let admin = token("token create ops --role admin");
    let viewer = token("token create eve --role viewer");
    let serving = Serving::start(&sandbox, &[]);
    let url = serving.url();
    at(&sandbox, &url, None, "status").expect(1).complains("a token is needed").complains("set REDRIVE_TOKEN");
    at(&sandbox, &url, Some("rdr_wrong"), "status").expect(1).complains("no such token");
    at(&sandbox, &url, Some(&viewer), "status").expect(0);
    let refused = at(&sandbox, &url, Some(&viewer), "pipeline pause default").expect(1);
    refused.complains("needs a token with the role operator; this one has the role viewer");
    assert!(
        at(&sandbox, &url, Some(&admin), "doctor").expect(0).stdout.contains("token: ops (admin), for all pipelines")
    );
    let made = at(&sandbox, &url, Some(&admin), "token create ci --role viewer --json").expect(0).json();
    sandbox.write("token", format!("{}\n", made["secret"].as_str().expect("a secret")));
    at(&sandbox, &url, None, "status --token-file token").expect(0);
    at(&sandbox, &url, Some(&admin), "token revoke ci").expect(0);
    let gone = at(&sandbox, &url, None, "status --token-file token --json").expect(1);
    assert!(gone.complains("token ci was revoked").stdout.is_empty());
}

#[test]
fn where_to_ask_is_said_once() {
    let sandbox = failed();
    let both = sandbox.redrive("status --store sqlite:a.db --server http://127.0.0.1:1");
    both.expect(2).complains("--store and --server are both given");
    at(&sandbox, "http://127.0.0.1:1", None, "status --store sqlite:.redrive/redrive.db").expect(0);
    for (url, why) in [
        ("redrive.example", "is not the address of a server"),
        ("https://me:secret@redrive.example", "no name and no password"),
        ("https://redrive.example/?a=b", "nothing after its path"),
    ] {
        at(&sandbox, url, None, "status").expect(2).complains(why);
    }
    let plain = at(&sandbox, "http://redrive.example", Some("rdr_secret"), "status").expect(2);
    assert!(!plain.complains("only sent over https, or to this machine").stderr.contains("rdr_secret"));
}

/// Something that answers each request with the same bytes, and keeps what it was asked.
fn answering(answer: String) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = sender.send(answer_one(stream, &answer));
        }
    });
    (url, asked)
}

fn answer_one(mut stream: TcpStream, answer: &str) -> String {
    let mut asked = Vec::new();
    let mut buffer = [0; 4096];
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => asked.extend_from_slice(&buffer[..n]),
        }
    }
    let _ = stream.write_all(answer.as_bytes());
    String::from_utf8_lossy(&asked).into_owned()
}

fn http(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

const STATUS: &str =
    r#"{"pipelines":{},"replays":[],"breakers":[],"workers":[],"alerts":[],"failing_sinks":[],"pauses":{},"new":1}"#;

#[test]
fn neighbouring_versions_understand_each_other_and_others_say_that_they_do_not() {
    let sandbox = Sandbox::new();
    let of = |version: &str| {
        answering(http(&format!("200 OK\r\nredrive-version: {version}\r\ncontent-type: application/json"), STATUS)).0
    };
    let own: Vec<u64> = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().expect("a number")).collect();
    let (major, minor) = (own[0], own[1]);
    for near in
        [format!("{major}.{minor}.99"), format!("{major}.{}.0", minor + 1), format!("{major}.{}.0-rc.1", minor + 1)]
    {
        let ran = at(&sandbox, &of(&near), None, "status").expect(0);
        assert!(ran.stdout.contains("no tasks yet"), "{}", ran.stdout);
    }
    for far in [format!("{major}.{}.0", minor + 2), format!("{}.0.0", major + 1)] {
        let ran = at(&sandbox, &of(&far), None, "status").expect(1);
        ran.complains(&format!("is redrive {far}, this is")).complains("they do not understand each other: bring");
    }
    let newer = format!("200 OK\r\nredrive-version: {major}.{minor}.1\r\ncontent-type: application/json");
    let (url, _asked) = answering(http(&newer, r#"{"pipelines":[1]}"#));
    at(&sandbox, &url, None, "status").expect(1).complains("said something that redrive");
}

#[test]
fn what_is_no_server_is_said_to_be_none() {
    let sandbox = Sandbox::new();
    let (page, _) = answering(http("200 OK\r\ncontent-type: text/html; charset=utf-8", "<html>Sign in</html>"));
    let ran = at(&sandbox, &page, None, "status").expect(1);
    ran.complains("answers with 200 OK and text/html, not as a redrive server does").complains("look at --server");
    let (other, asked_other) = answering(http("200 OK\r\ncontent-type: application/json", STATUS));
    let moved = format!("307 Temporary Redirect\r\nlocation: {other}/api/v1/status?x=1");
    let (url, asked) = answering(http(&moved, ""));
    let ran = at(&sandbox, &url, Some("rdr_secret"), "status").expect(1);
    ran.complains(&format!("leads to {other}, and is not followed there"));
    assert!(asked.recv().expect("it was asked").contains("Bearer rdr_secret"));
    assert!(asked_other.try_recv().is_err(), "nothing is sent to where it leads");
}

#[test]
fn a_proxy_of_the_environment_is_not_sent_the_token() {
    let sandbox = failed();
    let (proxy, asked) = answering(http("502 Bad Gateway", ""));
    let serving = Serving::start(&sandbox, &[]);
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", serving.url()).env("REDRIVE_TOKEN", "rdr_secret");
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"] {
        command.env(name, &proxy);
    }
    Ran::of(command.args(["status"]).output().expect("redrive starts")).expect(0);
    assert!(asked.try_recv().is_err(), "the proxy was not asked");
}

/// Something that answers by what it is asked.
fn answering_each(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().expect("cloned")).read_line(&mut line);
            let _ = stream.write_all(answer(&line).as_bytes());
        }
    });
    url
}

#[test]
fn a_payload_that_ends_too_soon_is_no_whole_one() {
    let sandbox = Sandbox::new();
    let version = env!("CARGO_PKG_VERSION");
    let head = move |kind: &str| format!("200 OK\r\nredrive-version: {version}\r\ncontent-type: {kind}");
    let hash = "ab".repeat(32);
    let payload = format!(r#"{{"hash":"{hash}","size_bytes":1000}}"#);
    let url = answering_each(move |asked| match asked.contains("/bytes") {
        true => format!(
            "HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: 1000\r\n\r\nonly this",
            head("application/octet-stream")
        ),
        false => http(&head("application/json"), &payload),
    });
    let ran = at(&sandbox, &url, None, &format!("payload show {hash} --out page")).expect(1);
    ran.complains("could not be read whole");
}

#[test]
fn a_token_that_has_expired_is_said_to_have() {
    let sandbox = failed();
    let token = |line: &str| sandbox.redrive(line).expect(0).stdout.trim_end().to_owned();
    token("token create ops --role admin");
    let short = token("token create short --role viewer --expires 3s");
    let serving = Serving::start(&sandbox, &[]);
    eventually("it is over", || {
        let ran = at(&sandbox, &serving.url(), Some(&short), "status");
        ran.code == Some(1) && ran.stderr.contains("token short has expired")
    });
}

#[test]
fn an_authority_of_ones_own_is_believed_if_it_is_named() {
    let sandbox = failed();
    let token = sandbox.redrive("token create ops --role admin").expect(0).stdout.trim_end().to_owned();
    let authority = Authority::new(&sandbox.path(""), "own");
    authority.sign(&sandbox.path(""), "server", "localhost", 2090);
    let tls = ["--tls-certificate", "server.pem", "--tls-key", "server.key"];
    let serving = Serving::start(&sandbox, &tls);
    let port = serving.address.rsplit(':').next().expect("a port");
    let url = format!("https://localhost:{port}");
    let stranger = at(&sandbox, &url, Some(&token), "status").expect(1);
    assert!(stranger.stderr.contains("certificate"), "{}", stranger.stderr);
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", &url).env("REDRIVE_TOKEN", &token).env("REDRIVE_CA", &authority.pem);
    Ran::of(command.arg("status").output().expect("redrive starts")).expect(0);
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", &url).env("REDRIVE_CA", sandbox.path("nowhere.pem"));
    Ran::of(command.arg("status").output().expect("redrive starts")).expect(2).complains("REDRIVE_CA");
}

#[test]
fn a_server_is_reached_through_the_proxy_that_is_named_for_it() {
    let sandbox = Sandbox::new();
    let version = env!("CARGO_PKG_VERSION");
    let head = format!("200 OK\r\nredrive-version: {version}\r\ncontent-type: application/json");
    let (proxy, asked) = answering(http(&head, STATUS));
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", "http://redrive.example").env("REDRIVE_PROXY", &proxy).arg("status");
    Ran::of(command.output().expect("redrive starts")).expect(0);
    let asked = asked.recv().expect("it was asked");
    assert!(asked.starts_with("GET http://redrive.example/api/v1/status"), "{asked}");
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", "http://redrive.example").env("REDRIVE_PROXY", "not an address").arg("status");
    Ran::of(command.output().expect("redrive starts")).expect(2).complains("REDRIVE_PROXY");
}

#[test]
fn a_command_that_was_run_for_a_server_is_known_here_and_not_there() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.write("work.sh", "cat > /dev/null; test -e fixed || { echo broken >&2; exit 65; }; echo 1");
    at(&sandbox, &serving.url(), None, "run tasks.jsonl -- sh work.sh").expect(3);
    assert!(!sandbox.redrive("pipeline show default").stdout.contains("work.sh"), "commands do not get there");
    sandbox.write("fixed", "");
    let retried = at(&sandbox, &serving.url(), None, "retry 1").expect(0);
    assert!(retried.stderr.contains("1  recovered"), "{}", retried.stderr);
    let started = at(&sandbox, &serving.url(), None, "replay start --pipeline default -- sh work.sh").expect(0);
    assert!(started.stdout.contains("1 letter, anew (1 request)"), "{}", started.stdout);
    assert_eq!(sandbox.ledger("default")["recovered"], 2);
    sandbox.assert_sound();
}

#[test]
fn what_a_server_works_on_itself_is_not_taken_from_who_gave_a_command() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"false\"]\n[pipeline.shop.retry]\nattempts = 1\n");
    let serving = Serving::start(&sandbox, &["--work"]);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    at(&sandbox, &serving.url(), None, "push tasks.jsonl").expect(0);
    eventually("it died there", || sandbox.ledger("shop")["dead"] == 1);
    let retried = at(&sandbox, &serving.url(), None, "retry --pipeline shop -- echo 1").expect(0);
    assert!(retried.stderr.contains("recovered"), "{}", retried.stderr);
    sandbox.assert_sound();
}

#[test]
fn letters_go_to_an_archive_and_into_a_store_over_the_network() {
    let (sandbox, other) = (failed(), Sandbox::new());
    let (serving, there) = (Serving::start(&sandbox, &[]), Serving::start(&other, &[]));
    let ran = at(&sandbox, &serving.url(), None, "dead export --warc there.warc.gz").expect(0);
    ran.complains("3 dead letters archived");
    sandbox.redrive("dead export --warc here.warc.gz").expect(0);
    let length = |name: &str| std::fs::metadata(sandbox.path(name)).expect("written").len();
    assert!(length("there.warc.gz").abs_diff(length("here.warc.gz")) < 16, "they differ in their date");
    let exported = at(&sandbox, &serving.url(), None, "dead export").expect(0).stdout;
    other.write("letters.jsonl", format!("{exported}nonsense\n"));
    let told = at(&other, &there.url(), None, "dead import letters.jsonl --dry-run").expect(4);
    assert!(told.stdout.contains("3 would be imported"), "{}", told.stdout);
    let doubled: String = other.read("letters.jsonl").repeat(800);
    other.write("doubled.jsonl", doubled);
    let told = at(&other, &there.url(), None, "dead import doubled.jsonl --dry-run").expect(4);
    assert!(told.stdout.contains("3 would be imported, 2397 known already"), "in several pieces: {}", told.stdout);
    let taken = at(&other, &there.url(), None, "dead import letters.jsonl").expect(4);
    assert_eq!(taken.stdout, "3 imported, 0 known already, 1 broken\n");
    taken.complains("letters.jsonl:4: not a dead letter");
    let letter = other.dead().remove(0);
    assert_eq!((&letter["origin"]["kind"], &letter["origin"]["over_network"]), (&"import".into(), &true.into()));
    let again = at(&other, &there.url(), None, "dead import letters.jsonl").expect(4);
    assert_eq!(again.stdout, "0 imported, 3 known already, 1 broken\n");
    other.assert_sound();
}
