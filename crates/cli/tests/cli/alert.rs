//! `redrive alert`: what fires, who is told, and what is seen of sinks that fail.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Sandbox, eventually};

/// The quotes count: the letters alone may be in an id.
const PIPELINE: &str = "[pipeline.shop]\ncommand = [\"sh\", \"-c\", \"grep -q '\\\"bad\\\"' && exit 65; echo 1\"]\n";

fn tasks(good: usize, bad: usize) -> String {
    let task = |n: usize, bad: bool| format!("{{\"n\":{n},\"what\":\"{}\"}}\n", if bad { "bad" } else { "good" });
    (0..good).map(|n| task(n, false)).chain((0..bad).map(|n| task(n, true))).collect()
}

/// A server that answers every request with a status, and hands on what it was sent.
fn server(status: &'static str) -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (send, received) = channel();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut bytes = Vec::new();
            let mut piece = [0; 4_096];
            let body = loop {
                let read = socket.read(&mut piece).unwrap_or(0);
                bytes.extend_from_slice(&piece[..read]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let whole = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
                if let Some(body) = whole {
                    break body;
                }
                if read == 0 {
                    break Value::Null;
                }
            };
            let _ = write!(socket, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            if send.send(body).is_err() {
                break;
            }
        }
    });
    (format!("http://{address}/s3cr3t-path"), received)
}

#[test]
fn check_prints_a_line_for_each_alert_and_exits_with_3_while_one_fires() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", PIPELINE);
    sandbox.write("tasks.jsonl", tasks(30, 10));
    sandbox.redrive("alert check").expect(1).complains("redrive.db");
    sandbox.redrive("run tasks.jsonl").expect(3);
    let previewed = sandbox.redrive("alert check --dry-run").expect(3).stdout;
    assert!(sandbox.redrive("alert list").expect(0).stdout.starts_with("nothing fires"), "nothing was kept");
    let checked = sandbox.redrive("alert check").expect(3).stdout;
    let lines: Vec<&str> = checked.lines().collect();
    let rate = lines.iter().find(|line| line.contains("25.0 % of the tasks died")).expect("the rate");
    assert!(rate.starts_with("alert: shop: ") && rate.contains("(10 of 40; ") && rate.contains("alerts above 0.50 %"));
    assert!(rate.ends_with("look: redrive cause list --pipeline shop"), "{rate}");
    assert!(lines.iter().any(|line| line.contains("look: redrive cause show ")), "{checked}");
    assert_eq!(previewed.lines().count(), lines.len());
    let document = sandbox.redrive("alert check --json").expect(3).json();
    let keys: Vec<_> = document["alerts"].as_array().expect("a list").iter().map(|alert| &alert["key"]).collect();
    assert!(keys.contains(&&Value::from("rate/shop")), "{document}");
    assert!(sandbox.redrive("alert list").expect(0).stdout.contains("25.0 % of the tasks died"));
    assert!(sandbox.redrive("status").expect(0).stdout.contains("alert: shop: 25.0 %"));
    // Who has no file looks by the defaults and keeps nothing.
    let (elsewhere, store) = (Sandbox::new(), sandbox.path(".redrive/redrive.db").display().to_string());
    elsewhere.redrive(&format!("alert check --store sqlite:{store}")).expect(3);
    // As if nothing of it had been: with other rules it is no longer watched.
    let off = "[alerts.rules]\nrate = \"off\"\ncause_letters = \"off\"\ndisk = \"off\"\n";
    sandbox.write("redrive.toml", format!("{PIPELINE}{off}"));
    assert_eq!(sandbox.redrive("alert check").expect(0).stdout, "", "cron mails nothing");
    elsewhere.redrive(&format!("alert check --store sqlite:{store}")).expect(3);
    assert!(sandbox.redrive("alert list").expect(0).stdout.starts_with("nothing fires"), "it fires nowhere else");
    let all = sandbox.redrive("alert list --all").expect(0).stdout;
    assert_eq!(sandbox.redrive("alert list --state ended").expect(0).stdout, all, "nothing else was kept");
    assert!(all.lines().any(|line| line.starts_with("over ") && line.contains(" rate/shop ")), "{all}");
}

#[test]
fn a_run_tells_the_sinks_of_its_file_and_one_that_fails_is_seen_everywhere_without_its_address() {
    let sandbox = Sandbox::new();
    let (well, told) = server("200 OK");
    let (ill, tried) = server("500 Oh");
    let sinks = format!(
        "[alerts.rules]\ncause_letters = \"off\"\n[alerts.sink.well]\nurl = \"{well}\"\n\
         [alerts.sink.ill]\nkind = \"slack\"\nurl = \"${{env:ILL}}\"\n"
    );
    sandbox.write("redrive.toml", format!("{PIPELINE}{sinks}"));
    sandbox.write("tasks.jsonl", tasks(30, 10));
    let output = sandbox.command().args(["run", "tasks.jsonl", "-v"]).env("ILL", &ill).output().expect("ran");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("it answered with HTTP 500"), "{said}");
    assert_eq!(told.recv_timeout(Duration::from_secs(60)).expect("told")["kind"], "fired");
    tried.recv_timeout(Duration::from_secs(60)).expect("tried");
    let seen = |args: &[&str], code| {
        let output = sandbox.command().args(args).env("ILL", &ill).output().expect("ran");
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        let both = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&both).into_owned();
        assert!(text.contains("it answered with HTTP 500"), "{args:?}: {text}");
        assert!(!text.contains("s3cr3t-path"), "{args:?}: {text}");
    };
    seen(&["status"], 0);
    seen(&["status", "--json"], 0);
    seen(&["doctor"], 1);
    seen(&["alert", "list"], 0);
    seen(&["alert", "list", "--json"], 0);
    seen(&["alert", "check"], 3);
    seen(&["alert", "test", "ill"], 1);
    assert!(!said.contains("s3cr3t-path"), "{said}");
    for file in ["redrive.db", "redrive.db-wal"] {
        let bytes = std::fs::read(sandbox.path(".redrive").join(file)).unwrap_or_default();
        assert!(!bytes.windows(11).any(|window| window == b"s3cr3t-path"), "{file} has the address");
    }
    let tested = sandbox.redrive("alert test").expect(1).stdout;
    assert!(tested.contains("the environment has no variable ILL"), "{tested}");
    assert!(told.recv_timeout(Duration::from_secs(30)).is_ok_and(|notice| notice["kind"] == "test"));
    sandbox.redrive("alert test other").expect(2).complains("no sink other (there are: ill, well)");
}

#[test]
fn without_a_sink_there_is_nothing_to_test() {
    let sandbox = Sandbox::new();
    sandbox.redrive("alert test").expect(2).complains("[alerts.sink.NAME]");
    sandbox.write("redrive.toml", format!("{PIPELINE}[alerts.rules]\nrat = 1\n"));
    sandbox.redrive("alert test").expect(2).complains("redrive.toml:4").complains("did you mean `rate`?");
}

/// A sink that is added while a worker runs is told of what fires.
#[test]
fn a_worker_takes_up_a_sink_that_is_new() {
    let sandbox = Sandbox::new();
    let rules = "[alerts.rules]\ncause_letters = \"off\"\n";
    sandbox.write("redrive.toml", format!("{PIPELINE}{rules}"));
    sandbox.write("tasks.jsonl", tasks(10, 10));
    sandbox.redrive("run tasks.jsonl").expect(3);
    let mut worker = sandbox.spawn(&["work"]);
    eventually("it works", || {
        !sandbox.redrive("status --json").expect(0).json()["workers"].as_array().is_none_or(Vec::is_empty)
    });
    let sink = "[alerts.sink.new]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> told.txt\"]\n";
    sandbox.write("redrive.toml", format!("{PIPELINE}{rules}{sink}"));
    eventually("it is told", || sandbox.read("told.txt").contains("redrive alert fired: shop: "));
    worker.kill().expect("killed");
    worker.wait().expect("waited");
}

/// A run that is killed while it tells somebody leaves that to whoever comes next.
#[test]
fn what_a_killed_run_did_not_tell_is_told_by_the_next_check() {
    let sandbox = Sandbox::new();
    sandbox.write("notify.sh", "echo x >> tries; [ -f ready ] || exec sleep 30; cat >> told.txt");
    let rest = "[alerts.rules]\ncause_letters = \"off\"\n[alerts.sink.s]\nkind = \"command\"\ncommand = [\"sh\", \"notify.sh\"]\ntimeout = \"60s\"\n";
    sandbox.write("redrive.toml", format!("{PIPELINE}{rest}"));
    sandbox.write("tasks.jsonl", tasks(10, 10));
    let mut run = sandbox.spawn(&["run", "tasks.jsonl"]);
    eventually("somebody is being told", || sandbox.read("tries").lines().count() == 1);
    run.kill().expect("killed");
    run.wait().expect("waited");
    sandbox.write("ready", "");
    sandbox.redrive("alert check").expect(3);
    assert_eq!(sandbox.read("told.txt"), "", "it may still be on its way");
    let store = rusqlite::Connection::open(sandbox.path(".redrive/redrive.db")).expect("opened");
    // As if a minute and a half had passed.
    store.execute("UPDATE alert_notice SET taken_until = taken_until - 90000", []).expect("changed");
    drop(store);
    sandbox.redrive("alert check").expect(3);
    sandbox.redrive("alert check").expect(3);
    assert_eq!(sandbox.read("told.txt").matches("redrive alert fired").count(), 1);
    sandbox.assert_sound();
}

crate::network::over_the_network! {
    kept: [a_worker_takes_up_a_sink_that_is_new],
    soak: [what_a_killed_run_did_not_tell_is_told_by_the_next_check],
}

#[test]
fn an_alert_is_acknowledged_snoozed_and_assigned() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", PIPELINE);
    sandbox.write("tasks.jsonl", tasks(30, 10));
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.redrive("alert check").expect(3);
    let said = sandbox.redrive("alert ack rate/shop").expect(0).stdout;
    assert!(said.starts_with("alert rate/shop is acknowledged by "), "{said}");
    assert!(said.ends_with(", until it doubles or fires anew\n"), "{said}");
    let said = sandbox.redrive("alert snooze rate/shop --until 2h --why moving").expect(0).stdout;
    assert!(said.starts_with("alert rate/shop is snoozed until "), "{said}");
    sandbox.redrive("alert assign rate/shop --to ada").expect(0);
    let checked = sandbox.redrive("alert check").expect(3).stdout;
    assert!(!checked.contains("25.0 %") && checked.contains("cause show"), "only of what is not snoozed: {checked}");
    let list = sandbox.redrive("alert list").expect(0).stdout;
    let line = list.lines().find(|line| line.contains("rate/shop")).expect("listed");
    assert!(line.starts_with("snoozed until ") && line.contains(" ada "), "{list}");
    let care = sandbox.redrive("alert list --json").expect(0).json()["alerts"].clone();
    let care =
        care.as_array().and_then(|all| all.iter().find(|alert| alert["key"] == "rate/shop")).expect("it")["care"]
            .clone();
    assert_eq!((&care["owner"], &care["snoozed"]["why"]), (&"ada".into(), &"moving".into()), "{care}");
    let listed = |state: &str| sandbox.redrive(&format!("alert list --state {state}")).expect(0).stdout;
    assert!(listed("snoozed").contains("rate/shop") && !listed("firing").contains("rate/shop"));
    assert!(listed("ended").starts_with("no alert is like that"), "{}", listed("ended"));
    sandbox.redrive("alert list --state loud").expect(2);
    sandbox.redrive("alert list --state ended --all").expect(2);
    assert_eq!(sandbox.redrive("alert wake rate/shop").expect(0).stdout, "alert rate/shop is told again\n");
    sandbox.redrive("alert wake rate/shop").expect(1).complains("alert rate/shop: it is not snoozed");
    sandbox.redrive("alert ack rate/shop --undo").expect(0);
    sandbox.redrive("alert ack rate/shop rate/nobody").expect(1).complains("no alert rate/nobody");
    sandbox.redrive("alert snooze rate/shop --until yesterday").expect(2).complains("yesterday");
    sandbox.redrive("alert snooze rate/shop --until 2001-01-01").expect(2).complains("is over");
    let done = sandbox.redrive("activity --json").expect(0).json_lines();
    let verbs: Vec<_> = done.iter().map(|entry| entry["verb"].as_str().expect("a verb")).take(5).collect();
    assert_eq!(verbs, ["unacknowledge", "wake", "assign", "snooze", "acknowledge"]);
}
