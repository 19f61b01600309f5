//! A fleet that has nothing to do: how often its workers ask the server that they share.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Sandbox, eventually};
use crate::postgres_server::{OwnServer, url_in};

/// How long the server notes what it is asked. Looks are seconds apart, so that it takes some.
const WINDOW: Duration = Duration::from_secs(16);

/// Whoever has nothing to do looks at most every so often.
const EVERY: Duration = Duration::from_secs(5);

/// Questions that are put for several reasons, each as seldom: how often in the time in which others are put once. A clock is looked at
/// eight times in ten seconds.
const SEVERAL: [(&str, u32); 4] =
    [("clock_timestamp()", 4), ("leader", 2), ("FROM replay r", 2), ("FROM pipeline WHERE name", 4)];

fn psql(server: &OwnServer, sql: &str) {
    let ran = Command::new("psql").args(["-q", "-v", "ON_ERROR_STOP=1", "-d", &server.address(), "-c", sql]).output();
    let ran = ran.expect("psql runs");
    assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// How often each question was put by each worker, from the server's log. What begins and ends transactions is no question.
fn asked(log: &str) -> BTreeMap<(String, String), u32> {
    let mut asked = BTreeMap::new();
    // A statement of several lines goes on after a tab.
    for entry in log.replace("\n\t", " ").lines() {
        let Some((who, said)) = entry.split_once("|LOG:") else { continue };
        // `statement: …`, or `execute NAME: …`.
        let Some((_, sql)) = said.split_once(": ") else { continue };
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let who = who.split(' ').next().unwrap_or_default();
        if who.starts_with("worker-")
            && !["BEGIN", "COMMIT", "SET", "ROLLBACK"].iter().any(|word| sql.starts_with(word))
        {
            *asked.entry((who.to_owned(), sql)).or_default() += 1;
        }
    }
    asked
}

#[test]
fn workers_that_have_nothing_to_do_look_at_most_every_five_seconds() {
    let (sandbox, server) = (Sandbox::new(), OwnServer::start());
    let store = url_in(server.folder(), "redrive");
    sandbox.write("redrive.toml", format!("store = \"{store}\"\n[pipeline.default]\ncommand = [\"true\"]\n"));
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.redrive("run tasks.jsonl").expect(0);
    let worker = |n: u32| sandbox.spawn(&["work", "--store", &format!("{store}&application_name=worker-{n}")]);
    let workers = [worker(1), worker(2)];
    eventually("both work", || {
        sandbox.redrive("status --json").json_or_null()["workers"].as_array().is_some_and(|workers| workers.len() == 2)
    });
    // What a worker does when it begins is over after a look or two.
    std::thread::sleep(EVERY);
    let log = server.folder().join("log");
    let before = fs::read_to_string(&log).expect("a log").len();
    let begun = Instant::now();
    psql(&server, "ALTER SYSTEM SET log_line_prefix = '%a|'");
    psql(&server, "ALTER SYSTEM SET log_statement = 'all'");
    psql(&server, "SELECT pg_reload_conf()");
    std::thread::sleep(WINDOW);
    let noted = fs::read_to_string(&log).expect("a log");
    // Slow machines only make it less.
    let looks = u32::try_from(begun.elapsed().as_secs() / EVERY.as_secs()).expect("not for ever") + 2;
    for mut worker in workers {
        worker.kill().expect("killed");
        worker.wait().expect("waited");
    }
    let asked = asked(&noted[before..]);
    for n in [1, 2] {
        let who = format!("worker-{n}");
        assert!(
            asked.keys().any(|(asks, sql)| *asks == who && sql.contains("UPDATE worker")),
            "{who} beats: {asked:#?}"
        );
    }
    for ((who, sql), times) in &asked {
        let reasons = SEVERAL.iter().find(|(part, _)| sql.contains(part)).map_or(1, |(_, reasons)| *reasons);
        assert!(*times <= looks * reasons, "{who} asked {times} times in {:?}: {sql}", begun.elapsed());
    }
}
