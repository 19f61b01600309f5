//! `submit-poll` with the configurations that ship, against the demo's solver.

use std::process::Stdio;

use serde_json::json;

use crate::harness::{DemoSite, Sandbox, eventually};

/// A sandbox with a configuration that ships, pointed at the site and hurried.
fn sandbox(form: &str) -> (Sandbox, DemoSite) {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/solvers/{form}.toml"));
    let config = std::fs::read_to_string(shipped).expect("it ships");
    let config = config.replace("127.0.0.1:8000", &site.address).replace("every = \"5s\"", "every = \"100ms\"");
    sandbox.write("redrive.toml", format!("{config}\n[pipeline.solver.retry]\nbase = \"10ms\"\nattempts = 2\n"));
    (sandbox, site)
}

fn run(sandbox: &Sandbox, key: &str, sitekeys: &[&str]) -> std::process::Output {
    let tasks: String = sitekeys
        .iter()
        .enumerate()
        .map(|(n, sitekey)| {
            format!("{}\n", json!({"googlekey": sitekey, "pageurl": format!("https://shop.example/{n}")}))
        })
        .collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.command().args(["run", "tasks.jsonl"]).env("SOLVER_KEY", key).output().expect("ran")
}

const KEY: &str = "demo-api-key";

#[test]
fn every_end_of_a_task_has_its_reason() {
    for form in ["in-res", "create-task"] {
        let (sandbox, site) = sandbox(form);
        let sitekeys = [
            "6Ldemo-solved-1",
            "6Ldemo-no-slot",
            "6Ldemo-unsolvable",
            "6Ldemo-wrong-sitekey",
            "6Ldemo-never-ready",
            "6Ldemo-unknown-code",
        ];
        let output = run(&sandbox, KEY, &sitekeys);
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "{form}: solved, at once and on retry");
        let mut ends: Vec<String> = sandbox
            .dead()
            .iter()
            .map(|letter| {
                let word = |field: &str| letter[field].as_str().unwrap_or_default().to_owned();
                let sitekey = letter["input"]["googlekey"].as_str().expect("a key").trim_start_matches("6Ldemo-");
                format!("{sitekey}: {} {} {}", word("reason"), letter["attempts"], word("gate"))
            })
            .collect();
        ends.sort();
        assert_eq!(
            ends,
            [
                "never-ready: timeout 2 auto",
                "unknown-code: handler_error 1 review",
                "unsolvable: unsolvable 2 review",
                "wrong-sitekey: rejected_input 1 review",
            ],
            "{form}"
        );
        let submitted = site.count(if form == "in-res" { "/in.php" } else { "/createTask" });
        assert_eq!(
            submitted, 9,
            "{form}: once each, but again what found no slot, what was given up and what was stuck"
        );
        let late = sandbox.dead().into_iter().find(|letter| letter["reason"] == "timeout").expect("one is late");
        let message = late["message"].as_str().expect("a message").to_owned();
        assert!(message.starts_with("task ") && message.contains("timed out"), "{message}");
        assert_no_secret(&sandbox, &output);
        sandbox.assert_sound();
    }
}

/// Neither what was printed nor anything that was kept has the key.
fn assert_no_secret(sandbox: &Sandbox, output: &std::process::Output) {
    let has_it = |bytes: &[u8]| bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
    assert!(!has_it(&output.stdout) && !has_it(&output.stderr), "the key was printed");
    let exported = sandbox.redrive("dead export").expect(0).stdout;
    assert!(!has_it(exported.as_bytes()), "the key was exported");
    let mut folders = vec![sandbox.path(".redrive")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => assert!(!has_it(&std::fs::read(&path).expect("read")), "{} has the key", path.display()),
            }
        }
    }
    for letter in sandbox.dead() {
        let id = letter["id"].as_str().expect("an id");
        if letter["payload"].is_string() {
            assert!(!has_it(sandbox.run(&["payload", "show", id, "--meta"]).expect(0).stdout.as_bytes()));
        }
    }
}

#[test]
fn a_worker_that_is_killed_while_polling_goes_on_with_the_same_task() {
    let (sandbox, site) = sandbox("in-res");
    let config = sandbox.read("redrive.toml").replace("every = \"100ms\"", "every = \"1s\"");
    sandbox.write("redrive.toml", config);
    sandbox.write("tasks.jsonl", "{\"googlekey\":\"6Ldemo-solved-1\",\"pageurl\":\"https://shop.example/\"}\n");
    let start = || {
        let mut command = sandbox.command();
        command.args(["run", "tasks.jsonl", "--out", "out.jsonl"]).env("SOLVER_KEY", KEY);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started")
    };
    for polls in 1..=2 {
        let mut child = start();
        eventually("it is submitted and polled", || site.count("/in.php") == 1 && site.count("/res.php") >= polls);
        child.kill().expect("killed");
        child.wait().expect("waited");
    }
    assert_eq!(start().wait().expect("waited").code(), Some(0));
    assert_eq!(site.count("/in.php"), 1, "it was submitted, and paid for, once");
    assert_eq!(sandbox.read("out.jsonl").lines().count(), 1);
    sandbox.assert_sound();
}

#[test]
fn a_wrong_key_goes_to_a_person_and_holds_the_provider() {
    let (sandbox, site) = sandbox("in-res");
    sandbox.write(
        "tasks.jsonl",
        (0..60).map(|n| format!("{{\"googlekey\":\"k\",\"pageurl\":\"{n}\"}}\n")).collect::<String>(),
    );
    let mut child = sandbox.command();
    child
        .args(["run", "tasks.jsonl", "-j", "1"])
        .env("SOLVER_KEY", "a-wrong-key")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = child.spawn().expect("started");
    eventually("the others wait", || {
        let status = sandbox.redrive("status --json");
        status.code == Some(0) && status.json()["breakers"][0]["held"].as_u64() >= Some(50)
    });
    child.kill().expect("killed");
    child.wait().expect("waited");
    let dead = sandbox.dead();
    assert!(!dead.is_empty() && dead.len() <= 10, "{} died, where the others need not have been tried", dead.len());
    assert_eq!(dead.len() as u64, site.count("/in.php"));
    for letter in &dead {
        assert_eq!((&letter["reason"], &letter["gate"]), (&json!("misconfigured"), &json!("review")));
        assert_eq!(letter["code"], "ERROR_KEY_DOES_NOT_EXIST");
    }
    let jobs = sandbox.redrive("job list --state queued --all --json").expect(0).json_lines();
    assert!(jobs.iter().all(|job| job["attempts"] == 0 && job["target"] == "127.0.0.1"), "{jobs:?}");
}

#[test]
fn a_body_without_end_is_cut_with_little_memory() {
    let (sandbox, site) = sandbox("in-res");
    let config = "[pipeline.huge]\nhandler = \"http\"\ntimeout = \"2m\"\npayload_max = \"200MiB\"\n[pipeline.huge.http]\nbody_max = \"1MiB\"\n";
    sandbox.write("redrive.toml", config);
    sandbox.write("tasks.jsonl", format!("{{\"url\":\"http://{}/huge\"}}\n", site.address));
    let peak = crate::harness::peak_kib(&sandbox, &["run", "tasks.jsonl"], 3);
    assert!(peak < 150 * 1024, "{peak} KiB");
    let payload = &sandbox.dead()[0]["failures"][0]["payload"];
    assert_eq!((&payload["size_bytes"], &payload["truncated"]), (&json!(200_u64 << 20), &json!(true)), "{payload}");
}

#[test]
fn the_demo_tells_its_story() {
    let sandbox = Sandbox::new();
    let shown = sandbox.redrive("demo").expect(0);
    for part in [
        "schema_validation",
        "SelectorNotFound",
        "blocked",
        "timeout",
        "unsolvable",
        "<div class=\"price\">",
        "redrive payload show",
        "57 of 60 would recover",
        "60 letters, from their saved payloads",
        "Price on request",
    ] {
        assert!(shown.stdout.contains(part), "{part} in:\n{}", shown.stdout);
    }
    assert!(shown.stderr.contains("recovered: 57 of 60"), "{}", shown.stderr);
    let records = crate::harness::json_lines(&sandbox.read("redrive-demo/records.jsonl"));
    let fetched = records.iter().filter(|record| record["input"]["product"].as_u64().is_some_and(|n| n <= 60)).count();
    assert_eq!(records.len() - fetched, 57, "the records reach the output as if nothing had happened");
    assert!(sandbox.read("redrive-demo/report.html").contains("<svg"));
    let audit = sandbox.command().arg("audit").current_dir(sandbox.path("redrive-demo")).status().expect("ran");
    assert!(audit.success());
    sandbox.redrive("demo").expect(0);
    assert!(sandbox.path("redrive-demo-2").exists(), "it leaves what is there alone");
}
